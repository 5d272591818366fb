/* The tokenizer of a Hugging Face folder: tokenizer.json, and the ids that
 * config.json, generation_config.json and tokenizer_config.json name. A part
 * that is not covered is refused by its name. */
#include <stdlib.h>
#include <string.h>

#include "nfc.h"
#include "quote.h"
#include "tokenizer_impl.h"
#include "utf8.h"

/* The string at key of o, or "" when it is absent, null or no string. */
static const char *
get_text(const Value *o, const char *key)
{
	const char *s = value_string(value_get(o, key));

	return s ? s : "";
}

static bool
is_type(const Value *o, const char *type)
{
	return strcmp(get_text(o, "type"), type) == 0;
}

static ingot_status
refuse(const Tokenizer *t, const char *part, const char *what, Error *err)
{
	Quote q;

	return fail(err, INGOT_UNSUPPORTED, "%s: %s '%s' is not covered",
	    t->where, part, quote(&q, what, strlen(what)));
}

/* Whether the member is there and says anything but null, false, 0 or "". */
static bool
is_set(const Value *o, const char *key)
{
	const Value *v = value_get(o, key);

	if (!v)
		return false;
	switch (v->kind) {
	case VAL_NULL:
		return false;
	case VAL_BOOL:
		return v->u.boolean;
	case VAL_INT:
		return v->u.integer != 0;
	case VAL_FLOAT:
		return v->u.number != 0;
	case VAL_STRING:
		return v->u.string.length != 0;
	default:
		return true;
	}
}

/* Elements of the list or object at key; none when it is absent. */
static ingot_status
get_list(const Tokenizer *t, const Value *o, const char *key, ValueKind kind,
    const Value **items, size_t *count, Error *err)
{
	const Value *v = value_get(o, key);

	*items = NULL;
	*count = 0;
	if (!v || v->kind == VAL_NULL)
		return INGOT_OK;
	if (v->kind != kind)
		return fail(err, INGOT_BAD_FILE, "%s: %s is no %s", t->where,
		    key, kind == VAL_ARRAY ? "list" : "object");
	*items = v->u.list.items;
	*count = v->u.list.count;
	return INGOT_OK;
}

/* ---- vocabulary ---- */

static ingot_status
check_id(const Tokenizer *t, const char *text, const Value *id, Error *err)
{
	Quote q;

	if (id && id->kind == VAL_INT && id->u.integer >= 0 &&
	    id->u.integer < VOCAB_MAX)
		return INGOT_OK;
	return fail(err, INGOT_BAD_FILE,
	    "%s: the id of token '%s' is no number from 0 to %d", t->where,
	    quote(&q, text, strlen(text)), VOCAB_MAX - 1);
}

/* The two lists of tokens in the file. */
typedef struct Tokens {
	const Value *vocab, *added;
	size_t vocab_count, added_count;
} Tokens;

/* One more than the largest id. */
static ingot_status
count_ids(const Tokenizer *t, const Tokens *k, size_t *count, Error *err)
{
	ingot_status s = INGOT_OK;
	const Value *id;
	size_t i;

	*count = 0;
	for (i = 0; s == INGOT_OK && i < k->vocab_count + k->added_count; i++) {
		if (i < k->vocab_count) {
			id = &k->vocab[i];
			s = check_id(t, id->key, id, err);
		} else {
			id = value_get(&k->added[i - k->vocab_count], "id");
			s = check_id(t,
			    get_text(&k->added[i - k->vocab_count], "content"),
			    id, err);
		}
		if (s == INGOT_OK && (size_t)id->u.integer >= *count)
			*count = (size_t)id->u.integer + 1;
	}
	if (s == INGOT_OK && *count == 0)
		return fail(err, INGOT_BAD_FILE,
		    "%s: model.vocab has no tokens", t->where);
	return s;
}

/* Reads the flags of an added token. */
static ingot_status
read_flags(
    const Tokenizer *t, const Value *v, Added *a, bool *normalized, Error *err)
{
	const char *const keys[] = {
	    "special", "lstrip", "rstrip", "normalized"};
	bool *const flags[] = {&a->special, &a->lstrip, &a->rstrip, normalized};
	ingot_status s = INGOT_OK;
	size_t i;

	for (i = 0; s == INGOT_OK && i < sizeof keys / sizeof *keys; i++)
		s = tok_read_bool(
		    t, keys[i], value_get(v, keys[i]), false, flags[i], err);
	if (s == INGOT_OK && is_set(v, "single_word"))
		return refuse(t, "single_word of added token",
		    get_text(v, "content"), err);
	return s;
}

/* Adds a token that is looked for in normalised text, itself normalised. */
static ingot_status
add_normalized(Tokenizer *t, Added a, Error *err)
{
	char *normal = NULL;
	size_t length;
	ingot_status s;

	if (utf8_valid(a.text, a.length) != a.length)
		return fail(err, INGOT_BAD_FILE,
		    "%s: added token %u is not UTF-8", t->where, a.id);
	if (t->nfc && !nfc_trivial(a.text, a.length)) {
		s = nfc_text(a.text, a.length, &normal, &length, err);
		if (s != INGOT_OK)
			return s;
		a.text = normal;
		a.length = length;
	}
	s = added_add(&t->normalized, &t->pool, a, err);
	free(normal);
	return s;
}

static ingot_status
same_id(const Tokenizer *t, const char *text, uint32_t id, Error *err)
{
	const Token *other = &t->vocab.tokens[id];
	Quote q, r;

	return fail(err, INGOT_BAD_FILE,
	    "%s: tokens '%s' and '%s' have the same id, %u", t->where,
	    quote(&r, other->bytes, other->length),
	    quote(&q, text, strlen(text)), id);
}

static ingot_status
add_added(Tokenizer *t, const Value *v, Error *err)
{
	const Value *content = value_get(v, "content");
	Added a = {.id = (uint32_t)value_get(v, "id")->u.integer};
	bool normalized;
	ingot_status s;

	if (!value_string(content))
		return fail(err, INGOT_BAD_FILE,
		    "%s: added token %u has no content", t->where, a.id);
	a.text = content->u.string.text;
	a.length = content->u.string.length;
	if (vocab_has(&t->vocab, a.id))
		return same_id(t, a.text, a.id, err);
	s = read_flags(t, v, &a, &normalized, err);
	if (s == INGOT_OK)
		s = vocab_set(&t->vocab, &t->pool, a.id, a.text, a.length,
		    a.special ? TOKEN_CONTROL : TOKEN_USER, t->where, err);
	if (s != INGOT_OK || a.length == 0)
		return s;
	return normalized ? add_normalized(t, a, err)
			  : added_add(&t->raw, &t->pool, a, err);
}

/* An added token may stand in model.vocab as well, with the same id. */
static ingot_status
add_ordinary(Tokenizer *t, const Value *v, Error *err)
{
	uint32_t id = (uint32_t)v->u.integer;
	size_t length = strlen(v->key);
	const Token *there = &t->vocab.tokens[id];

	if (!vocab_has(&t->vocab, id))
		return vocab_set(&t->vocab, &t->pool, id, v->key, length,
		    TOKEN_NORMAL, t->where, err);
	if (there->type == TOKEN_NORMAL || there->length != length ||
	    memcmp(there->bytes, v->key, length) != 0)
		return same_id(t, v->key, id, err);
	return INGOT_OK;
}

static ingot_status
read_vocab(Tokenizer *t, const Value *file, const Value *model, Error *err)
{
	Tokens k;
	size_t count, i;
	ingot_status s = get_list(
	    t, model, "vocab", VAL_OBJECT, &k.vocab, &k.vocab_count, err);

	if (s == INGOT_OK)
		s = get_list(t, file, "added_tokens", VAL_ARRAY, &k.added,
		    &k.added_count, err);
	if (s == INGOT_OK)
		s = count_ids(t, &k, &count, err);
	if (s == INGOT_OK)
		s = vocab_init(&t->vocab, &t->pool, count, err);
	for (i = 0; s == INGOT_OK && i < k.added_count; i++)
		s = add_added(t, &k.added[i], err);
	for (i = 0; s == INGOT_OK && i < k.vocab_count; i++)
		s = add_ordinary(t, &k.vocab[i], err);
	return s == INGOT_OK ? vocab_index(&t->vocab, &t->pool, t->where, err)
			     : s;
}

/* ---- model ---- */

static ingot_status
read_model(Tokenizer *t, const Value *file, Error *err)
{
	static const char *const uncovered[] = {"dropout",
	    "continuing_subword_prefix", "end_of_word_suffix", "byte_fallback"};
	const Value *model = value_get(file, "model");
	const Value *merges = value_get(model, "merges");
	ingot_status s;
	size_t i;

	if (!is_type(model, "BPE"))
		return refuse(t, "model.type", get_text(model, "type"), err);
	for (i = 0; i < sizeof uncovered / sizeof *uncovered; i++)
		if (is_set(model, uncovered[i]))
			return refuse(t, "the model's", uncovered[i], err);
	s = tok_read_bool(t, "ignore_merges", value_get(model, "ignore_merges"),
	    false, &t->ignore_merges, err);
	if (s == INGOT_OK)
		s = read_vocab(t, file, model, err);
	if (s != INGOT_OK || !merges)
		return s;
	if (merges->kind != VAL_ARRAY)
		return fail(err, INGOT_BAD_FILE, "%s: model.merges is no list",
		    t->where);
	s = bpe_init(&t->bpe, &t->pool, &t->vocab, merges, t->where, err);
	t->can_encode = s == INGOT_OK;
	return s;
}

/* ---- normaliser, pre-tokenizer, decoder ---- */

/* A component is absent, one of its kind, or a Sequence of those. */
typedef ingot_status PartFn(Tokenizer *t, const Value *part, Error *err);

static ingot_status
read_parts(Tokenizer *t, const Value *file, const char *key, const char *list,
    PartFn *read, Error *err)
{
	const Value *o = value_get(file, key), *items;
	size_t count, i;
	ingot_status s;

	if (!o || o->kind == VAL_NULL)
		return INGOT_OK;
	if (!is_type(o, "Sequence"))
		return read(t, o, err);
	s = get_list(t, o, list, VAL_ARRAY, &items, &count, err);
	for (i = 0; s == INGOT_OK && i < count; i++)
		s = read(t, &items[i], err);
	return s;
}

static ingot_status
read_normalizer(Tokenizer *t, const Value *part, Error *err)
{
	if (!is_type(part, "NFC"))
		return refuse(t, "normalizer", get_text(part, "type"), err);
	t->nfc = true;
	return INGOT_OK;
}

static ingot_status
read_split(Tokenizer *t, const Value *part, Error *err)
{
	const Value *regex = value_get(value_get(part, "pattern"), "Regex");

	if (!value_string(regex))
		return refuse(t, "pattern of pre-tokenizer", "Split", err);
	if (strcmp(get_text(part, "behavior"), "Isolated") != 0)
		return refuse(
		    t, "behavior of Split", get_text(part, "behavior"), err);
	if (is_set(part, "invert"))
		return refuse(t, "option of Split", "invert", err);
	return pretok_add(
	    &t->pretok, regex->u.string.text, regex->u.string.length, err);
}

static ingot_status
read_pre_tokenizer(Tokenizer *t, const Value *part, Error *err)
{
	bool regex;
	ingot_status s;

	if (is_type(part, "Split"))
		return read_split(t, part, err);
	if (!is_type(part, "ByteLevel"))
		return refuse(t, "pre-tokenizer", get_text(part, "type"), err);
	if (is_set(part, "add_prefix_space"))
		return refuse(
		    t, "option of ByteLevel", "add_prefix_space", err);
	s = tok_read_bool(
	    t, "use_regex", value_get(part, "use_regex"), true, &regex, err);
	if (s == INGOT_OK && regex)
		s = pretok_add(
		    &t->pretok, pretok_gpt2, strlen(pretok_gpt2), err);
	return s;
}

/* ByteLevel must be there, and last: what comes behind it would see the
 * visible form of the bytes. */
static ingot_status
check_byte_level(const Tokenizer *t, const Value *file, Error *err)
{
	const Value *pre = value_get(file, "pre_tokenizer"), *items;
	const Value *decoder = value_get(file, "decoder");
	size_t count = 0, i, level = 0;
	ingot_status s = INGOT_OK;

	if (is_type(pre, "Sequence"))
		s = get_list(
		    t, pre, "pretokenizers", VAL_ARRAY, &items, &count, err);
	else if (is_type(pre, "ByteLevel"))
		level = 1;
	for (i = 0; i < count; i++)
		level += is_type(&items[i], "ByteLevel");
	if (s == INGOT_OK &&
	    (level != 1 || (count && !is_type(&items[count - 1], "ByteLevel"))))
		return fail(err, INGOT_UNSUPPORTED,
		    "%s: the pre-tokenizer does not end with ByteLevel; other "
		    "kinds are not covered",
		    t->where);
	if (s == INGOT_OK && !is_type(decoder, "ByteLevel"))
		return refuse(t, "decoder", get_text(decoder, "type"), err);
	return s;
}

/* ---- special ids ---- */

/* A post-processor may put one token before the text. */
static ingot_status
read_template(Tokenizer *t, const Value *o, Error *err)
{
	const Value *items, *first;
	size_t count;
	ingot_status s =
	    get_list(t, o, "single", VAL_ARRAY, &items, &count, err);

	if (s != INGOT_OK)
		return s;
	if (count == 1 && value_get(&items[0], "Sequence"))
		return INGOT_OK;
	first = count ? value_get(&items[0], "SpecialToken") : NULL;
	if (count != 2 || !first || !value_get(&items[1], "Sequence"))
		return refuse(t, "post-processor", "TemplateProcessing", err);
	t->bos = tok_id(t, get_text(first, "id"));
	if (t->bos < 0)
		return refuse(t, "token of the post-processor",
		    get_text(first, "id"), err);
	return INGOT_OK;
}

static ingot_status
read_post_processor(Tokenizer *t, const Value *part, Error *err)
{
	if (is_type(part, "ByteLevel"))
		return INGOT_OK;
	if (is_type(part, "TemplateProcessing"))
		return read_template(t, part, err);
	return refuse(t, "post-processor", get_text(part, "type"), err);
}

/* add_bos_token and bos_token (a string, or an object with content). */
static ingot_status
read_bos(Checkpoint *c, Tokenizer *t, Error *err)
{
	const Value *file, *bos;
	const char *text;
	bool add;
	ingot_status s = ckpt_json(c, "tokenizer_config.json", &file, err);

	if (s == INGOT_OK)
		s = tok_read_bool(t, "add_bos_token",
		    value_get(file, "add_bos_token"), false, &add, err);
	if (s != INGOT_OK || !add || t->bos >= 0)
		return s;
	bos = value_get(file, "bos_token");
	text = value_string(bos);
	if (!text)
		text = value_string(value_get(bos, "content"));
	if (text)
		t->bos = tok_id(t, text);
	return INGOT_OK;
}

static ingot_status
read_stops(Checkpoint *c, Tokenizer *t, Error *err)
{
	const Value *config = ckpt_config(c), *generation;
	ingot_status s =
	    ckpt_json(c, "generation_config.json", &generation, err);

	if (s == INGOT_OK)
		s = tok_read_stop(t, "eos_token_id of config.json",
		    value_get(config, "eos_token_id"), err);
	if (s == INGOT_OK)
		s = tok_read_stop(t, "eos_token_id of config.json",
		    value_get(value_get(config, "text_config"), "eos_token_id"),
		    err);
	if (s == INGOT_OK)
		s = tok_read_stop(t, "eos_token_id of generation_config.json",
		    value_get(generation, "eos_token_id"), err);
	return s;
}

static ingot_status
name_file(Checkpoint *c, Tokenizer *t, Error *err)
{
	const char *path = ckpt_path(c), *file = "/tokenizer.json";
	size_t n = strlen(path);
	char *where = pool_alloc(&t->pool, n + strlen(file) + 1, 1);

	if (!where)
		return fail(err, INGOT_NO_MEMORY, "no memory for a tokenizer");
	memcpy(where, path, n);
	strcpy(where + n, file);
	t->where = where;
	return INGOT_OK;
}

ingot_status
tok_read_folder(Checkpoint *c, Tokenizer *t, bool *found, Error *err)
{
	const Value *file = NULL;
	ingot_status s = ckpt_json(c, "tokenizer.json", &file, err);

	*found = file != NULL;
	if (s != INGOT_OK || !file)
		return s;
	s = name_file(c, t, err);
	if (s == INGOT_OK)
		s = read_parts(
		    t, file, "normalizer", "normalizers", read_normalizer, err);
	if (s == INGOT_OK)
		s = read_model(t, file, err);
	if (s == INGOT_OK)
		s = read_parts(t, file, "pre_tokenizer", "pretokenizers",
		    read_pre_tokenizer, err);
	if (s == INGOT_OK)
		s = check_byte_level(t, file, err);
	if (s == INGOT_OK)
		s = read_parts(t, file, "post_processor", "processors",
		    read_post_processor, err);
	if (s == INGOT_OK)
		s = read_bos(c, t, err);
	return s == INGOT_OK ? read_stops(c, t, err) : s;
}
