#include "ids.h"

#include <stdlib.h>
#include <string.h>

#include "../runtime/quote.h"
#include "cli.h"
#include "npy.h"

void
ids_free(Ids *ids)
{
	free(ids->at);
	*ids = (Ids){0};
}

static bool
append(Ids *ids, const uint32_t *more, size_t n)
{
	size_t count = ids->count + n;
	uint32_t *at = realloc(ids->at, (count ? count : 1) * sizeof *at);

	if (!at) {
		note("no memory for %zu ids", count);
		return false;
	}
	if (n)
		memcpy(at + ids->count, more, n * sizeof *at);
	*ids = (Ids){at, count};
	return true;
}

/* ---- ids as text ---- */

static const char *
skip_space(const char *s)
{
	return s + strspn(s, " \t\r\n\f\v");
}

/* One id at s, which ends behind it; false when there is none. */
static bool
read_id(const char **s, uint32_t *id)
{
	const char *at = *s;
	uint64_t n = 0;

	while (*at >= '0' && *at <= '9' && n <= UINT32_MAX)
		n = n * 10 + (uint64_t)(*at++ - '0');
	if (at == *s || n > UINT32_MAX)
		return false;
	*s = at;
	*id = (uint32_t)n;
	return true;
}

static bool
no_id(const char *name, const char *at)
{
	Quote q, where;
	size_t n = strcspn(at, ", \t\r\n");

	if (n == 0)
		note("--tokens '%s': an id is missing",
		    quote(&q, name, strlen(name)));
	else
		note("--tokens '%s': '%s' is no token id",
		    quote(&q, name, strlen(name)), quote(&where, at, n));
	return false;
}

/* Ids with commas or space between them; name is for the sentence. */
static bool
parse_ids(const char *name, const char *text, Ids *out)
{
	const char *s = skip_space(text);
	uint32_t *ids = malloc((strlen(s) / 2 + 1) * sizeof *ids);
	size_t n = 0;

	if (!ids) {
		note("no memory for the ids of %s", name);
		return false;
	}
	*out = (Ids){ids, 0};
	do {
		if (!read_id(&s, &ids[n++]))
			return no_id(name, s);
		s = skip_space(s);
		if (*s == ',') {
			s = skip_space(s + 1);
			if (*s == '\0')
				return no_id(name, s);
		}
	} while (*s != '\0');
	out->count = n;
	return true;
}

static bool
read_npy(const char *path, const char *bytes, size_t length, Ids *out)
{
	char why[NPY_WHY];
	Quote q;

	if (!npy_ids(bytes, length, &out->at, &out->count, why)) {
		*out = (Ids){0};
		note("%s: %s", quote(&q, path, strlen(path)), why);
		return false;
	}
	if (out->count == 0)
		note("%s holds no ids", quote(&q, path, strlen(path)));
	return out->count > 0;
}

bool
ids_read(const char *argument, Ids *out)
{
	char *bytes;
	size_t length;
	bool ok;

	*out = (Ids){0};
	if (argument[strspn(argument, "0123456789,")] == '\0')
		return parse_ids(argument, argument, out);
	if (!read_file(argument, &bytes, &length))
		return false;
	if (npy_is(bytes, length)) {
		ok = read_npy(argument, bytes, length, out);
	} else {
		ok = strlen(bytes) == length;
		if (!ok)
			note("%s is neither text nor .npy", argument);
		ok = ok && parse_ids(argument, bytes, out);
	}
	free(bytes);
	return ok;
}

bool
ids_check(const Ids *ids, const char *argument, uint32_t vocab)
{
	Quote q;
	size_t i;

	for (i = 0; i < ids->count; i++)
		if (ids->at[i] >= vocab) {
			note("--tokens %s: %u is no token of this model, "
			     "whose ids end at %u",
			    quote(&q, argument, strlen(argument)), ids->at[i],
			    vocab - 1);
			return false;
		}
	return true;
}

/* ---- texts ---- */

static bool
encode(const Tokenizer *t, const char *text, size_t length, bool specials,
    Ids *out)
{
	Error e;
	uint32_t *ids;
	size_t n;
	bool ok;

	if (!tok_can_encode(t)) {
		note("the checkpoint's tokenizer has no merges, so it cannot "
		     "encode text: give ids with --tokens");
		return false;
	}
	if (tok_encode(t, text, length, specials, &ids, &n, &e)) {
		note("%s", e.text);
		return false;
	}
	ok = append(out, ids, n);
	free(ids);
	return ok;
}

bool
ids_of_text(const Tokenizer *t, const char *text, size_t length, Ids *out)
{
	int64_t bos = tok_bos(t);
	uint32_t first = (uint32_t)bos;

	*out = (Ids){0};
	if (bos >= 0 && !append(out, &first, 1))
		return false;
	return encode(t, text, length, true, out);
}

/* "user\n" and the text, encoded as one. */
static bool
encode_turn(const Tokenizer *t, const char *text, size_t length, Ids *out)
{
	static const char role[] = "user\n";
	size_t n = sizeof role - 1;
	char *turn = length < SIZE_MAX - n ? malloc(n + length) : NULL;
	bool ok;

	if (!turn) {
		note("no memory for the prompt");
		return false;
	}
	memcpy(turn, role, n);
	memcpy(turn + n, text, length);
	ok = encode(t, turn, n + length, false, out);
	free(turn);
	return ok;
}

bool
ids_of_chat(const Tokenizer *t, const char *text, size_t length, Ids *out)
{
	int64_t start = tok_id(t, "<|im_start|>"),
		end = tok_id(t, "<|im_end|>");
	uint32_t open = (uint32_t)start, close = (uint32_t)end;

	*out = (Ids){0};
	if (start < 0 || end < 0) {
		note("--chat: the checkpoint's tokenizer has no %s",
		    start < 0 ? "<|im_start|>" : "<|im_end|>");
		return false;
	}
	return append(out, &open, 1) && encode_turn(t, text, length, out) &&
	       append(out, &close, 1) && encode(t, "\n", 1, false, out) &&
	       append(out, &open, 1) &&
	       encode(t, "assistant\n", 10, false, out);
}
