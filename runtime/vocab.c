#include "vocab.h"

#include <string.h>
#include <xxhash.h>

#include "quote.h"

enum { BLOCK_BYTES = 16 * 1024 };

/* The byte that the visible character c stands for, or -1. Printable bytes
 * stand for themselves; the 68 others follow from U+0100, in order. */
static int
visible_byte(uint32_t c)
{
	if ((c >= 33 && c <= 126) || (c >= 161 && c <= 172) ||
	    (c >= 174 && c <= 255))
		return (int)c;
	if (c < 0x100 || c >= 0x100 + 68)
		return -1;
	c -= 0x100;
	if (c < 33)
		return (int)c;
	if (c < 33 + 34)
		return (int)(c - 33 + 127);
	return 173;
}

/* Writes the bytes of visible text to out, at most capacity, and returns their
 * number; -1 when a character stands for no byte or room is short. */
static int64_t
from_visible(const char *text, size_t length, char *out, size_t capacity)
{
	const unsigned char *s = (const unsigned char *)text;
	size_t i = 0, n = 0;
	uint32_t c;
	int b;

	/* Visible characters end at U+0143: at most two bytes. */
	while (i < length) {
		c = s[i++];
		if (c >= 0xC2 && c <= 0xC5 && i < length &&
		    (s[i] & 0xC0) == 0x80)
			c = (c & 0x1F) << 6 | (s[i++] & 0x3F);
		else if (c >= 0x80)
			return -1;
		b = visible_byte(c);
		if (b < 0 || n == capacity)
			return -1;
		out[n++] = (char)b;
	}
	return (int64_t)n;
}

ingot_status
vocab_init(Vocab *v, Pool *pool, size_t count, Error *err)
{
	size_t i;

	memset(v, 0, sizeof *v);
	v->tokens = pool_alloc(pool, count, sizeof *v->tokens);
	if (!v->tokens)
		return fail(err, INGOT_NO_MEMORY,
		    "no memory for a vocabulary of %zu tokens", count);
	v->count = (uint32_t)count;
	for (i = 0; i < count; i++)
		v->tokens[i].type = TOKEN_UNUSED;
	for (i = 0; i < 256; i++)
		v->byte[i] = NO_TOKEN;
	return INGOT_OK;
}

static int
hex_digit(char c)
{
	const char *digits = "0123456789ABCDEF", *at = strchr(digits, c);

	return c && at ? (int)(at - digits) : -1;
}

/* The byte of a byte token spelt <0xNN>, or -1. */
static int
spelt_byte(const char *text, size_t length)
{
	if (length != 6 || memcmp(text, "<0x", 3) != 0 || text[5] != '>' ||
	    hex_digit(text[3]) < 0 || hex_digit(text[4]) < 0)
		return -1;
	return hex_digit(text[3]) * 16 + hex_digit(text[4]);
}

/* Fills in t. bytes has room for length bytes. */
static void
decode_token(
    Token *t, const char *text, size_t length, TokenType type, char *bytes)
{
	bool visible = type == TOKEN_NORMAL || type == TOKEN_BYTE;
	int64_t n = -1;
	int b = type == TOKEN_BYTE ? spelt_byte(text, length) : -1;

	if (b >= 0) {
		bytes[0] = (char)b;
		n = 1;
	} else if (visible) {
		n = from_visible(text, length, bytes, length);
	}
	/* A normal token that is not in visible form can never be encoded
	 * to; it is shown as it is spelt. */
	t->piece = length > 0 && (n > 0 || !visible);
	if (n < 0) {
		memcpy(bytes, text, length);
		n = (int64_t)length;
	}
	t->bytes = bytes;
	t->length = (uint32_t)n;
	t->type = (uint8_t)type;
}

/* Room for the bytes of a token, without the pool's alignment: small tokens
 * lie close together, which is what looking them up needs. */
static char *
alloc_bytes(Vocab *v, Pool *pool, size_t length)
{
	size_t n = length > BLOCK_BYTES ? length : BLOCK_BYTES;

	if (length > v->room) {
		v->next = pool_alloc(pool, n, 1);
		v->room = v->next ? n : 0;
	}
	if (!v->next)
		return NULL;
	v->next += length;
	v->room -= length;
	return v->next - length;
}

ingot_status
vocab_set(Vocab *v, Pool *pool, uint32_t id, const char *text, size_t length,
    TokenType type, const char *where, Error *err)
{
	Token *t = &v->tokens[id];
	char *bytes;

	if (type == TOKEN_UNUSED)
		return INGOT_OK;
	if (length > INT32_MAX)
		return fail(err, INGOT_BAD_FILE, "%s: token %u has %zu bytes",
		    where, id, length);
	bytes = alloc_bytes(v, pool, length ? length : 1);
	if (!bytes)
		return fail(err, INGOT_NO_MEMORY,
		    "no memory for a vocabulary of %u tokens", v->count);
	decode_token(t, text, length, type, bytes);
	if (t->piece && t->length > v->longest)
		v->longest = t->length;
	return INGOT_OK;
}

/* The slot that holds the piece, or the free one where it belongs. */
static VocabSlot *
find_slot(const Vocab *v, const char *bytes, size_t length, uint32_t *tag)
{
	uint64_t hash = XXH3_64bits(bytes, length);
	size_t i = hash & v->mask;
	const Token *t;

	*tag = (uint32_t)(hash >> 32);
	for (; v->slots[i].id != NO_TOKEN; i = (i + 1) & v->mask) {
		if (v->slots[i].tag != *tag)
			continue;
		t = &v->tokens[v->slots[i].id];
		if (t->length == length && memcmp(t->bytes, bytes, length) == 0)
			break;
	}
	return &v->slots[i];
}

/* Puts id into the index. *twin is the id that was there, or NO_TOKEN. */
static void
insert(Vocab *v, uint32_t id, uint32_t *twin)
{
	const Token *t = &v->tokens[id];
	uint32_t tag;
	VocabSlot *slot = find_slot(v, t->bytes, t->length, &tag);

	*twin = slot->id;
	if (slot->id == NO_TOKEN) {
		slot->tag = tag;
		slot->id = id;
	}
}

static ingot_status
alloc_slots(Vocab *v, Pool *pool, Error *err)
{
	size_t n = 16, i;

	while (n < 2 * (size_t)v->count)
		n *= 2;
	v->slots = pool_alloc(pool, n, sizeof *v->slots);
	if (!v->slots)
		return fail(err, INGOT_NO_MEMORY,
		    "no memory for a vocabulary of %u tokens", v->count);
	for (i = 0; i < n; i++)
		v->slots[i].id = NO_TOKEN;
	v->mask = n - 1;
	return INGOT_OK;
}

static void
find_bytes(Vocab *v)
{
	unsigned b;
	uint32_t id;
	char c;

	for (b = 0; b < 256; b++) {
		c = (char)b;
		id = vocab_find(v, &c, 1);
		if (id != NO_TOKEN && !vocab_special(v, id))
			v->byte[b] = id;
	}
}

ingot_status
vocab_index(Vocab *v, Pool *pool, const char *where, Error *err)
{
	ingot_status s = alloc_slots(v, pool, err);
	uint32_t id, twin;
	const Token *t;
	Quote q;

	if (s != INGOT_OK)
		return s;
	for (id = 0; id < v->count; id++) {
		t = &v->tokens[id];
		if (!t->piece || t->type != TOKEN_NORMAL)
			continue;
		insert(v, id, &twin);
		if (twin != NO_TOKEN)
			return fail(err, INGOT_BAD_FILE,
			    "%s: tokens %u and %u are the same, '%s'", where,
			    twin, id, quote(&q, t->bytes, t->length));
	}
	for (id = 0; id < v->count; id++)
		if (v->tokens[id].piece && v->tokens[id].type != TOKEN_NORMAL)
			insert(v, id, &twin);
	find_bytes(v);
	return INGOT_OK;
}

uint32_t
vocab_find(const Vocab *v, const char *bytes, size_t length)
{
	uint32_t tag;

	if (length > v->longest)
		return NO_TOKEN;
	return find_slot(v, bytes, length, &tag)->id;
}

uint32_t
vocab_find_visible(
    const Vocab *v, const char *text, size_t length, char *scratch)
{
	int64_t n = from_visible(text, length, scratch, v->longest);

	if (n >= 0)
		return vocab_find(v, scratch, (size_t)n);
	return vocab_find(v, text, length);
}

bool
vocab_has(const Vocab *v, uint32_t id)
{
	return id < v->count && v->tokens[id].type != TOKEN_UNUSED;
}

bool
vocab_special(const Vocab *v, uint32_t id)
{
	return v->tokens[id].type == TOKEN_CONTROL ||
	       v->tokens[id].type == TOKEN_UNKNOWN;
}
