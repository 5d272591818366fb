/* The tokenizer of a GGUF file: the keys tokenizer.ggml.*. */
#include <string.h>

#include "quote.h"
#include "tokenizer_impl.h"

#define KEY "tokenizer.ggml."

static const Value *
get(Checkpoint *c, const char *key)
{
	return value_get(ckpt_config(c), key);
}

static ingot_status
want_list(const Tokenizer *t, const char *key, const Value *v, Error *err)
{
	if (!v)
		return fail(
		    err, INGOT_BAD_FILE, "%s: %s is missing", t->where, key);
	if (v->kind != VAL_ARRAY)
		return fail(
		    err, INGOT_BAD_FILE, "%s: %s is no list", t->where, key);
	return INGOT_OK;
}

/* The string at key; *out is NULL when the key is absent. */
static ingot_status
get_string(Checkpoint *c, const Tokenizer *t, const char *key, const char **out,
    Error *err)
{
	const Value *v = get(c, key);

	*out = value_string(v);
	if (v && !*out)
		return fail(
		    err, INGOT_BAD_FILE, "%s: %s is no string", t->where, key);
	return INGOT_OK;
}

static ingot_status
read_token(
    Tokenizer *t, uint32_t id, const Value *text, const Value *type, Error *err)
{
	Added added = {.id = id};
	ingot_status s;

	if (text->kind != VAL_STRING)
		return fail(err, INGOT_BAD_FILE,
		    "%s: token %u of " KEY "tokens is no string", t->where, id);
	if (type->kind != VAL_INT || type->u.integer < TOKEN_NORMAL ||
	    type->u.integer >= TOKEN_TYPE_END)
		return fail(err, INGOT_BAD_FILE,
		    "%s: " KEY "token_type of token %u is none of 1 to %d",
		    t->where, id, TOKEN_TYPE_END - 1);
	s = vocab_set(&t->vocab, &t->pool, id, text->u.string.text,
	    text->u.string.length, (TokenType)type->u.integer, t->where, err);
	if (s != INGOT_OK || text->u.string.length == 0)
		return s;
	added.text = text->u.string.text;
	added.length = text->u.string.length;
	added.special = type->u.integer != TOKEN_USER;
	if (type->u.integer == TOKEN_USER || type->u.integer == TOKEN_CONTROL ||
	    type->u.integer == TOKEN_UNKNOWN)
		s = added_add(&t->raw, &t->pool, added, err);
	return s;
}

static ingot_status
read_vocab(Checkpoint *c, Tokenizer *t, Error *err)
{
	const Value *tokens = get(c, KEY "tokens");
	const Value *types = get(c, KEY "token_type");
	ingot_status s = want_list(t, KEY "tokens", tokens, err);
	size_t count;
	uint32_t id;

	if (s == INGOT_OK)
		s = want_list(t, KEY "token_type", types, err);
	if (s != INGOT_OK)
		return s;
	count = tokens->u.list.count;
	if (count == 0 || count > VOCAB_MAX)
		return fail(err, INGOT_BAD_FILE,
		    "%s: " KEY "tokens has %zu elements, not 1 to %d", t->where,
		    count, VOCAB_MAX);
	if (types->u.list.count != count)
		return fail(err, INGOT_BAD_FILE,
		    "%s: " KEY "token_type has %zu elements, but " KEY
		    "tokens has %zu",
		    t->where, types->u.list.count, count);
	s = vocab_init(&t->vocab, &t->pool, count, err);
	for (id = 0; s == INGOT_OK && id < count; id++)
		s = read_token(t, id, &tokens->u.list.items[id],
		    &types->u.list.items[id], err);
	return s == INGOT_OK ? vocab_index(&t->vocab, &t->pool, t->where, err)
			     : s;
}

/* The pre-tokenizer and the normaliser that goes with it. A vocabulary without
 * merges makes bytes of any text, so it needs neither. */
static ingot_status
read_pre(Checkpoint *c, Tokenizer *t, bool merges, Error *err)
{
	const char *pre, *pattern;
	ingot_status s = get_string(c, t, KEY "pre", &pre, err);
	Quote q;

	if (s != INGOT_OK || (!pre && !merges))
		return s;
	if (!pre)
		return fail(err, INGOT_UNSUPPORTED,
		    "%s: " KEY "pre is missing, so how to cut text is "
		    "unknown; convert the model again",
		    t->where);
	pattern = pretok_named(pre);
	if (!pattern)
		return fail(err, INGOT_UNSUPPORTED,
		    "%s: " KEY "pre is '%s'; qwen2 and qwen35 are covered",
		    t->where, quote(&q, pre, strlen(pre)));
	t->nfc = true;
	return pretok_add(&t->pretok, pattern, strlen(pattern), err);
}

static ingot_status
read_merges(Checkpoint *c, Tokenizer *t, Error *err)
{
	const Value *merges = get(c, KEY "merges");
	ingot_status s;

	if (!merges)
		return INGOT_OK;
	s = want_list(t, KEY "merges", merges, err);
	if (s == INGOT_OK)
		s = read_pre(c, t, merges->u.list.count > 0, err);
	if (s == INGOT_OK)
		s = bpe_init(
		    &t->bpe, &t->pool, &t->vocab, merges, t->where, err);
	t->can_encode = s == INGOT_OK;
	return s;
}

/* The ids put around a text. */
static ingot_status
read_bos(Checkpoint *c, Tokenizer *t, Error *err)
{
	bool add_bos, add_eos;
	int64_t bos;
	ingot_status s = tok_read_bool(t, KEY "add_bos_token",
	    get(c, KEY "add_bos_token"), false, &add_bos, err);

	if (s == INGOT_OK)
		s = tok_read_bool(t, KEY "add_eos_token",
		    get(c, KEY "add_eos_token"), false, &add_eos, err);
	if (s != INGOT_OK)
		return s;
	if (add_eos)
		return fail(err, INGOT_UNSUPPORTED,
		    "%s: " KEY "add_eos_token is true; a token behind each "
		    "text is not covered",
		    t->where);
	if (!add_bos)
		return INGOT_OK;
	s = tok_read_id(
	    t, KEY "bos_token_id", get(c, KEY "bos_token_id"), &bos, err);
	t->bos = bos;
	return s;
}

ingot_status
tok_read_gguf(Checkpoint *c, Tokenizer *t, bool *found, Error *err)
{
	static const char *const stops[] = {
	    KEY "eos_token_id", KEY "eot_token_id", KEY "eom_token_id"};
	const char *model;
	ingot_status s;
	size_t i;
	Quote q;

	t->where = ckpt_path(c);
	s = get_string(c, t, KEY "model", &model, err);
	if (s != INGOT_OK)
		return s;
	*found = model && strcmp(model, "none") != 0;
	if (!*found)
		return INGOT_OK;
	if (strcmp(model, "gpt2") != 0)
		return fail(err, INGOT_UNSUPPORTED,
		    "%s: " KEY "model is '%s'; only gpt2 is covered", t->where,
		    quote(&q, model, strlen(model)));
	s = read_vocab(c, t, err);
	if (s == INGOT_OK)
		s = read_merges(c, t, err);
	if (s == INGOT_OK)
		s = read_bos(c, t, err);
	for (i = 0; s == INGOT_OK && i < sizeof stops / sizeof *stops; i++)
		s = tok_read_stop(t, stops[i], get(c, stops[i]), err);
	return s;
}
