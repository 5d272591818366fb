#include "added.h"

#include <stdlib.h>
#include <string.h>

#include "quote.h"
#include "utf8.h"

ingot_status
added_add(AddedSet *a, Pool *pool, Added token, Error *err)
{
	size_t capacity = a->capacity ? 2 * a->capacity : 64;
	Added *items;

	token.text = pool_text(pool, token.text, token.length);
	if (a->count == a->capacity && token.text) {
		items = pool_alloc(pool, capacity, sizeof *items);
		if (items && a->count)
			memcpy(items, a->items, a->count * sizeof *items);
		a->items = items;
		a->capacity = items ? capacity : 0;
	}
	if (!token.text || !a->items)
		return fail(err, INGOT_NO_MEMORY, "no memory for added tokens");
	a->items[a->count++] = token;
	return INGOT_OK;
}

/* By bytes; a text comes before those that it begins. */
static int
compare(const void *x, const void *y)
{
	const Added *a = x, *b = y;
	size_t n = a->length < b->length ? a->length : b->length;
	int c = memcmp(a->text, b->text, n);

	return c ? c : (a->length > b->length) - (a->length < b->length);
}

ingot_status
added_complete(AddedSet *a, const char *where, Error *err)
{
	size_t i;
	Quote q;

	if (a->count == 0)
		return INGOT_OK;
	qsort(a->items, a->count, sizeof *a->items, compare);
	for (i = 1; i < a->count; i++)
		if (compare(&a->items[i - 1], &a->items[i]) == 0)
			return fail(err, INGOT_BAD_FILE,
			    "%s: tokens %u and %u are the same, '%s'", where,
			    a->items[i - 1].id, a->items[i].id,
			    quote(&q, a->items[i].text, a->items[i].length));
	for (i = 0; i < a->count; i++)
		a->first[(unsigned char)a->items[i].text[0] + 1]++;
	for (i = 1; i < 257; i++)
		a->first[i] += a->first[i - 1];
	return INGOT_OK;
}

/* The first item of [low, high), which agree before place at and are longer,
 * whose byte there is at least b (or, with above, more than b). */
static size_t
bound(const AddedSet *a, size_t low, size_t high, size_t at, unsigned char b,
    bool above)
{
	size_t middle;
	unsigned char c;

	while (low < high) {
		middle = low + (high - low) / 2;
		c = (unsigned char)a->items[middle].text[at];
		if (c < b || (above && c == b))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The longest token that begins text, or NULL. The sorted items are walked as
 * a trie: [low, high) are those that agree with the first at bytes. */
static const Added *
longest(const AddedSet *a, const char *text, size_t length, bool specials)
{
	unsigned char b = (unsigned char)text[0];
	size_t low = a->first[b], high = a->first[b + 1], at = 1;
	const Added *best = NULL;

	while (low < high) {
		if (a->items[low].length == at) {
			if (specials || !a->items[low].special)
				best = &a->items[low];
			low++;
		}
		if (at == length)
			break;
		b = (unsigned char)text[at];
		low = bound(a, low, high, at, b, false);
		high = bound(a, low, high, at, b, true);
		at++;
	}
	return best;
}

/* Where the white space that ends at end, and not before start, begins. */
static size_t
space_before(const char *text, size_t start, size_t end)
{
	size_t at, bytes;

	while (end > start) {
		at = end - 1;
		while (at > start && ((unsigned char)text[at] & 0xC0) == 0x80)
			at--;
		if (!utf8_is_space(utf8_char(text + at, &bytes)))
			break;
		end = at;
	}
	return end;
}

static size_t
space_behind(const char *text, size_t at, size_t length)
{
	size_t bytes;

	while (at < length && utf8_is_space(utf8_char(text + at, &bytes)))
		at += bytes;
	return at;
}

bool
added_find(const AddedSet *a, const char *text, size_t length, size_t from,
    bool specials, AddedMatch *m)
{
	const Added *token;
	size_t at;

	if (a->count == 0)
		return false;
	for (at = from; at < length; at++) {
		token = longest(a, text + at, length - at, specials);
		if (!token)
			continue;
		m->id = token->id;
		m->start = token->lstrip ? space_before(text, from, at) : at;
		m->end = at + token->length;
		if (token->rstrip)
			m->end = space_behind(text, m->end, length);
		return true;
	}
	return false;
}

int64_t
added_id(const AddedSet *a, const char *text, size_t length)
{
	const Added key = {.text = text, .length = length};
	const Added *found = NULL;

	if (a->count)
		found = bsearch(
		    &key, a->items, a->count, sizeof *a->items, compare);
	return found ? (int64_t)found->id : -1;
}
