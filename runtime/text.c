/* The tokenizer as ingot.h offers it. */
#include <stdlib.h>
#include <string.h>

#include "tokenizer.h"

struct ingot_tokenizer {
	Tokenizer *tokenizer;
};

Tokenizer *
tokenizer_of(const ingot_tokenizer *t)
{
	return t->tokenizer;
}

static ingot_status
open_inner(const char *checkpoint, Tokenizer **out, Error *err)
{
	Checkpoint *c;
	/* Tokens need no weights: a header serves. */
	ingot_status s = ckpt_open(checkpoint, true, &c, err);

	if (s != INGOT_OK)
		return s;
	s = tok_open(c, out, err);
	ckpt_close(c);
	if (s == INGOT_OK && !*out)
		return fail(err, INGOT_UNSUPPORTED,
		    "%s has no tokenizer: give token ids", checkpoint);
	return s;
}

ingot_status
ingot_tokenizer_open(const char *checkpoint, ingot_tokenizer **out, Error *err)
{
	ingot_tokenizer *t = calloc(1, sizeof *t);
	ingot_status s;

	*out = NULL;
	if (!t)
		return fail(err, INGOT_NO_MEMORY, "no memory for a tokenizer");
	s = open_inner(checkpoint, &t->tokenizer, err);
	if (s != INGOT_OK) {
		ingot_tokenizer_close(t);
		return s;
	}
	*out = t;
	return INGOT_OK;
}

void
ingot_tokenizer_close(ingot_tokenizer *t)
{
	if (!t)
		return;
	tok_close(t->tokenizer);
	free(t);
}

ingot_status
ingot_encode(const ingot_tokenizer *t, const char *text, size_t length,
    int specials, uint32_t *ids, size_t capacity, size_t *count, Error *err)
{
	uint32_t *all;
	ingot_status s = tok_encode(
	    t->tokenizer, text, length, specials != 0, &all, count, err);

	if (s != INGOT_OK)
		return s;
	if (capacity > *count)
		capacity = *count;
	if (capacity)
		memcpy(ids, all, capacity * sizeof *ids);
	free(all);
	return INGOT_OK;
}

const char *
ingot_token_bytes(const ingot_tokenizer *t, uint32_t id, size_t *length)
{
	return tok_bytes(t->tokenizer, id, length);
}

int
ingot_is_stop(const ingot_tokenizer *t, uint32_t id)
{
	size_t count, i;
	const uint32_t *stops = tok_stop_ids(t->tokenizer, &count);

	for (i = 0; i < count; i++)
		if (stops[i] == id)
			return 1;
	return 0;
}
