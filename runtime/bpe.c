#include "bpe.h"

#include <stdlib.h>
#include <string.h>

#include "quote.h"

ingot_status
ids_add(Ids *ids, uint32_t id, Error *err)
{
	size_t capacity = ids->capacity ? ids->capacity * 2 : 64;
	uint32_t *items;

	if (ids->count == ids->capacity) {
		items = capacity > SIZE_MAX / sizeof *items
			    ? NULL
			    : realloc(ids->items, capacity * sizeof *items);
		if (!items)
			return fail(err, INGOT_NO_MEMORY,
			    "no memory for %zu token ids", capacity);
		ids->items = items;
		ids->capacity = capacity;
	}
	ids->items[ids->count++] = id;
	return INGOT_OK;
}

/* ---- the merge table ---- */

static BpeSlot *
find_slot(const Bpe *b, uint32_t left, uint32_t right)
{
	uint64_t hash = ((uint64_t)left << 32 | right) * 0x9E3779B97F4A7C15U;
	size_t i = (hash ^ hash >> 32) & b->mask;

	while (b->slots[i].place &&
	       (b->slots[i].left != left || b->slots[i].right != right))
		i = (i + 1) & b->mask;
	return &b->slots[i];
}

/* The two halves of a merge as the file spells them. */
typedef struct Halves {
	const char *left, *right;
	size_t left_length, right_length;
} Halves;

static bool
split_string(const Value *v, Halves *h)
{
	const char *text = v->u.string.text, *space;
	size_t length = v->u.string.length;

	/* A left half may itself be a space. */
	space = length > 2 ? memchr(text + 1, ' ', length - 1) : NULL;
	if (!space || space == text + length - 1)
		return false;
	h->left = text;
	h->left_length = (size_t)(space - text);
	h->right = space + 1;
	h->right_length = length - h->left_length - 1;
	return true;
}

static bool
split_merge(const Value *v, Halves *h)
{
	const Value *pair;

	if (v->kind == VAL_STRING)
		return split_string(v, h);
	if (v->kind != VAL_ARRAY || v->u.list.count != 2)
		return false;
	pair = v->u.list.items;
	if (pair[0].kind != VAL_STRING || pair[1].kind != VAL_STRING)
		return false;
	h->left = pair[0].u.string.text;
	h->left_length = pair[0].u.string.length;
	h->right = pair[1].u.string.text;
	h->right_length = pair[1].u.string.length;
	return true;
}

/* The token that the two of m make together, or NO_TOKEN. scratch has room
 * for two pieces. */
static uint32_t
joined(const Vocab *v, const Merge *m, char *scratch)
{
	const Token *left = &v->tokens[m->left], *right = &v->tokens[m->right];

	memcpy(scratch, left->bytes, left->length);
	memcpy(scratch + left->length, right->bytes, right->length);
	return vocab_find(v, scratch, (size_t)left->length + right->length);
}

static ingot_status
unknown_piece(const char *where, uint32_t rank, const char *text, size_t length,
    Error *err)
{
	Quote q;

	return fail(err, INGOT_BAD_FILE,
	    "%s: merge %u names '%s', which is no token", where, rank,
	    quote(&q, text, length));
}

static ingot_status
read_merge(const Bpe *b, const Value *v, uint32_t rank, char *scratch,
    const char *where, Error *err)
{
	Merge *m = &b->merges[rank];
	Halves h;

	if (!split_merge(v, &h))
		return fail(err, INGOT_BAD_FILE,
		    "%s: merge %u is no pair of pieces", where, rank);
	m->left = vocab_find_visible(b->vocab, h.left, h.left_length, scratch);
	if (m->left == NO_TOKEN)
		return unknown_piece(where, rank, h.left, h.left_length, err);
	m->right =
	    vocab_find_visible(b->vocab, h.right, h.right_length, scratch);
	if (m->right == NO_TOKEN)
		return unknown_piece(where, rank, h.right, h.right_length, err);
	m->result = joined(b->vocab, m, scratch);
	if (m->result == NO_TOKEN)
		return fail(err, INGOT_BAD_FILE,
		    "%s: merge %u, of tokens %u and %u, makes no token", where,
		    rank, m->left, m->right);
	return INGOT_OK;
}

static ingot_status
add_merge(Bpe *b, uint32_t rank, const char *where, Error *err)
{
	const Merge *m = &b->merges[rank];
	BpeSlot *slot = find_slot(b, m->left, m->right);

	if (slot->place)
		return fail(err, INGOT_BAD_FILE,
		    "%s: merges %u and %u are the same, of tokens %u and %u",
		    where, slot->place - 1, rank, m->left, m->right);
	if (vocab_special(b->vocab, m->result))
		return INGOT_OK;
	slot->left = m->left;
	slot->right = m->right;
	slot->place = rank + 1;
	return INGOT_OK;
}

static ingot_status
alloc_table(Bpe *b, Pool *pool, size_t count, Error *err)
{
	size_t n = 16;

	while (n < 2 * count)
		n *= 2;
	b->merges = pool_alloc(pool, count, sizeof *b->merges);
	b->slots = pool_alloc(pool, n, sizeof *b->slots);
	if (!b->merges || !b->slots)
		return fail(
		    err, INGOT_NO_MEMORY, "no memory for %zu merges", count);
	b->mask = n - 1;
	b->count = (uint32_t)count;
	return INGOT_OK;
}

ingot_status
bpe_init(Bpe *b, Pool *pool, const Vocab *vocab, const Value *merges,
    const char *where, Error *err)
{
	size_t count = merges->u.list.count;
	char *scratch;
	uint32_t rank;
	ingot_status s;

	if (count > 4 * (size_t)VOCAB_MAX)
		return fail(err, INGOT_BAD_FILE,
		    "%s: %zu merges are more than a vocabulary can have", where,
		    count);
	b->vocab = vocab;
	s = alloc_table(b, pool, count, err);
	if (s != INGOT_OK)
		return s;
	scratch = malloc(2 * (size_t)vocab->longest + 1);
	if (!scratch)
		return fail(
		    err, INGOT_NO_MEMORY, "no memory for %zu merges", count);
	for (rank = 0; s == INGOT_OK && rank < count; rank++) {
		s = read_merge(
		    b, &merges->u.list.items[rank], rank, scratch, where, err);
		if (s == INGOT_OK)
			s = add_merge(b, rank, where, err);
	}
	free(scratch);
	return s;
}

/* ---- words ---- */

/* A word is a list of symbols, linked through their places in the array; the
 * place behind the last is the end. A symbol merged into its left neighbour
 * is NO_TOKEN. */
typedef struct Symbol {
	uint32_t id, previous, next;
} Symbol;

/* The heap holds rank << 32 | place of a pair's left symbol, smallest on top:
 * lowest rank first, leftmost on ties. Entries that no longer hold stay and
 * are skipped when they come up. */
static void
heap_push(BpeScratch *s, uint64_t entry)
{
	uint64_t *h = s->heap;
	size_t i = s->heap_count++, parent;

	for (; i > 0; i = parent) {
		parent = (i - 1) / 2;
		if (h[parent] <= entry)
			break;
		h[i] = h[parent];
	}
	h[i] = entry;
}

static uint64_t
heap_pop(BpeScratch *s)
{
	uint64_t *h = s->heap, top = h[0], last = h[--s->heap_count];
	size_t n = s->heap_count, i = 0, child;

	while ((child = 2 * i + 1) < n) {
		if (child + 1 < n && h[child + 1] < h[child])
			child++;
		if (last <= h[child])
			break;
		h[i] = h[child];
		i = child;
	}
	h[i] = last;
	return top;
}

static ingot_status
reserve(BpeScratch *s, size_t length, Error *err)
{
	size_t capacity = s->capacity ? s->capacity : 64;

	if (length <= s->capacity)
		return INGOT_OK;
	while (capacity < length)
		capacity *= 2;
	bpe_scratch_free(s);
	if (capacity < SIZE_MAX / 2 / sizeof *s->symbols) {
		s->symbols = malloc(capacity * sizeof *s->symbols);
		/* Each pair at first; then a merge takes one and gives two. */
		s->heap = malloc(2 * capacity * sizeof *s->heap);
	}
	if (!s->symbols || !s->heap) {
		bpe_scratch_free(s);
		return fail(err, INGOT_NO_MEMORY,
		    "no memory to encode a word of %zu bytes", length);
	}
	s->capacity = capacity;
	return INGOT_OK;
}

static ingot_status
start_word(
    const Bpe *b, BpeScratch *s, const char *bytes, size_t length, Error *err)
{
	size_t i;
	unsigned char c;

	for (i = 0; i < length; i++) {
		c = (unsigned char)bytes[i];
		s->symbols[i].id = b->vocab->byte[c];
		s->symbols[i].previous = (uint32_t)(i - 1);
		s->symbols[i].next = (uint32_t)(i + 1);
		if (s->symbols[i].id == NO_TOKEN)
			return fail(err, INGOT_UNSUPPORTED,
			    "the vocabulary has no token for byte 0x%02X, "
			    "which the text holds",
			    c);
	}
	return INGOT_OK;
}

/* Queues the pair that starts at place i, if it has a merge. */
static void
queue_pair(const Bpe *b, BpeScratch *s, uint32_t i, uint32_t end)
{
	uint32_t next = s->symbols[i].next;
	const BpeSlot *slot;

	if (next == end)
		return;
	slot = find_slot(b, s->symbols[i].id, s->symbols[next].id);
	if (slot->place)
		heap_push(s, (uint64_t)(slot->place - 1) << 32 | i);
}

static void
merge_pairs(const Bpe *b, BpeScratch *s, uint32_t end)
{
	Symbol *at = s->symbols;
	uint64_t entry;
	const Merge *m;
	uint32_t i, next;

	while (s->heap_count) {
		entry = heap_pop(s);
		m = &b->merges[entry >> 32];
		i = (uint32_t)entry;
		next = at[i].next;
		if (at[i].id != m->left || next == end ||
		    at[next].id != m->right)
			continue;
		at[i].id = m->result;
		at[i].next = at[next].next;
		at[next].id = NO_TOKEN;
		if (at[i].next != end)
			at[at[i].next].previous = i;
		if (i > 0)
			queue_pair(b, s, at[i].previous, end);
		queue_pair(b, s, i, end);
	}
}

ingot_status
bpe_word(const Bpe *b, BpeScratch *s, const char *bytes, size_t length,
    Ids *ids, Error *err)
{
	ingot_status status;
	uint32_t i, end = (uint32_t)length;

	if (length > INT32_MAX)
		return fail(err, INGOT_BAD_ARG,
		    "a word of %zu bytes is too long to encode", length);
	status = reserve(s, length, err);
	if (status == INGOT_OK)
		status = start_word(b, s, bytes, length, err);
	if (status != INGOT_OK)
		return status;
	s->heap_count = 0;
	for (i = 0; i < end; i++)
		queue_pair(b, s, i, end);
	merge_pairs(b, s, end);
	for (i = 0; status == INGOT_OK && i < end; i = s->symbols[i].next)
		status = ids_add(ids, s->symbols[i].id, err);
	return status;
}

void
bpe_scratch_free(BpeScratch *s)
{
	free(s->symbols);
	free(s->heap);
	memset(s, 0, sizeof *s);
}
