#include "tokenizer.h"

#include <stdlib.h>
#include <string.h>

#include "nfc.h"
#include "tokenizer_impl.h"
#include "utf8.h"

/* ---- opening ---- */

ingot_status
tok_read_bool(const Tokenizer *t, const char *key, const Value *v, bool absent,
    bool *out, Error *err)
{
	*out = absent;
	if (!v || v->kind == VAL_NULL)
		return INGOT_OK;
	if (v->kind != VAL_BOOL)
		return fail(err, INGOT_BAD_FILE, "%s: %s is not true or false",
		    t->where, key);
	*out = v->u.boolean;
	return INGOT_OK;
}

ingot_status
tok_read_id(const Tokenizer *t, const char *key, const Value *v, int64_t *id,
    Error *err)
{
	*id = -1;
	if (!v || v->kind == VAL_NULL)
		return INGOT_OK;
	if (v->kind != VAL_INT)
		return fail(err, INGOT_BAD_FILE, "%s: %s is not a token id",
		    t->where, key);
	if (v->u.integer < 0 || v->u.integer >= t->vocab.count)
		return fail(err, INGOT_BAD_FILE,
		    "%s: %s is %lld, but the vocabulary has %u tokens",
		    t->where, key, (long long)v->u.integer, t->vocab.count);
	*id = v->u.integer;
	return INGOT_OK;
}

static ingot_status
add_stop(Tokenizer *t, int64_t id, Error *err)
{
	size_t i;

	if (id < 0)
		return INGOT_OK;
	for (i = 0; i < t->stop_count; i++)
		if (t->stop_ids[i] == id)
			return INGOT_OK;
	if (t->stop_count == MAX_STOP_IDS)
		return fail(err, INGOT_UNSUPPORTED,
		    "%s: more than %d tokens end generation", t->where,
		    MAX_STOP_IDS);
	t->stop_ids[t->stop_count++] = (uint32_t)id;
	return INGOT_OK;
}

ingot_status
tok_read_stop(Tokenizer *t, const char *key, const Value *v, Error *err)
{
	bool list = v && v->kind == VAL_ARRAY;
	size_t i, count = list ? v->u.list.count : 1;
	ingot_status s = INGOT_OK;
	int64_t id;

	for (i = 0; s == INGOT_OK && i < count; i++) {
		s = tok_read_id(
		    t, key, list ? &v->u.list.items[i] : v, &id, err);
		if (s == INGOT_OK)
			s = add_stop(t, id, err);
	}
	return s;
}

static ingot_status
complete(Tokenizer *t, Error *err)
{
	ingot_status s = added_complete(&t->raw, t->where, err);

	if (s == INGOT_OK)
		s = added_complete(&t->normalized, t->where, err);
	if (s == INGOT_OK)
		s = add_stop(t, tok_id(t, "<|im_end|>"), err);
	if (s == INGOT_OK)
		s = add_stop(t, tok_id(t, "<|endoftext|>"), err);
	return s;
}

ingot_status
tok_open(Checkpoint *c, Tokenizer **out, Error *err)
{
	Tokenizer *t = calloc(1, sizeof *t);
	bool found = true;
	ingot_status s;

	*out = NULL;
	if (!t)
		return fail(err, INGOT_NO_MEMORY, "no memory for a tokenizer");
	t->bos = -1;
	if (ckpt_kind(c) == CKPT_GGUF)
		s = tok_read_gguf(c, t, &found, err);
	else
		s = tok_read_folder(c, t, &found, err);
	if (s == INGOT_OK && found)
		s = complete(t, err);
	if (s != INGOT_OK || !found) {
		tok_close(t);
		return s;
	}
	t->where = NULL; /* may be the checkpoint's, which may close first */
	*out = t;
	return INGOT_OK;
}

void
tok_close(Tokenizer *t)
{
	if (!t)
		return;
	pretok_free(&t->pretok);
	pool_free(&t->pool);
	free(t);
}

/* ---- questions ---- */

bool
tok_can_encode(const Tokenizer *t)
{
	return t->can_encode;
}

uint32_t
tok_count(const Tokenizer *t)
{
	return t->vocab.count;
}

bool
tok_is_token(const Tokenizer *t, uint32_t id)
{
	return vocab_has(&t->vocab, id);
}

bool
tok_is_control(const Tokenizer *t, uint32_t id)
{
	return vocab_has(&t->vocab, id) && vocab_special(&t->vocab, id);
}

int64_t
tok_id(const Tokenizer *t, const char *text)
{
	size_t length = strlen(text);
	int64_t id = added_id(&t->raw, text, length);
	uint32_t piece;

	if (id < 0)
		id = added_id(&t->normalized, text, length);
	if (id >= 0)
		return id;
	piece = vocab_find(&t->vocab, text, length);
	return piece == NO_TOKEN ? -1 : (int64_t)piece;
}

const char *
tok_bytes(const Tokenizer *t, uint32_t id, size_t *length)
{
	*length = 0;
	if (!vocab_has(&t->vocab, id))
		return "";
	*length = t->vocab.tokens[id].length;
	return t->vocab.tokens[id].bytes;
}

const uint32_t *
tok_stop_ids(const Tokenizer *t, size_t *count)
{
	*count = t->stop_count;
	return t->stop_ids;
}

int64_t
tok_bos(const Tokenizer *t)
{
	return t->bos;
}

/* ---- encoding ---- */

/* One call of tok_encode. */
typedef struct Encoder {
	const Tokenizer *t;
	bool specials;
	PretokScratch pretok;
	BpeScratch bpe;
	Ids ids;
} Encoder;

static ingot_status
encode_word(void *user, const char *word, size_t length, Error *err)
{
	Encoder *e = user;
	const Tokenizer *t = e->t;
	uint32_t id;

	if (t->ignore_merges) {
		id = vocab_find(&t->vocab, word, length);
		if (id != NO_TOKEN && !vocab_special(&t->vocab, id))
			return ids_add(&e->ids, id, err);
	}
	return bpe_word(&t->bpe, &e->bpe, word, length, &e->ids, err);
}

static ingot_status
encode_words(Encoder *e, const char *text, size_t length, Error *err)
{
	return pretok_cut(
	    &e->t->pretok, &e->pretok, text, length, encode_word, e, err);
}

typedef ingot_status EncodeFn(
    Encoder *e, const char *text, size_t length, Error *err);

/* Cuts the tokens of a set out of text; what lies between goes to rest. */
static ingot_status
cut_out(Encoder *e, const AddedSet *set, const char *text, size_t length,
    EncodeFn *rest, Error *err)
{
	size_t at = 0;
	AddedMatch m;
	ingot_status s = INGOT_OK;

	while (s == INGOT_OK &&
	       added_find(set, text, length, at, e->specials, &m)) {
		s = rest(e, text + at, m.start - at, err);
		if (s == INGOT_OK)
			s = ids_add(&e->ids, m.id, err);
		at = m.end;
	}
	return s == INGOT_OK ? rest(e, text + at, length - at, err) : s;
}

static ingot_status
encode_normalized(Encoder *e, const char *text, size_t length, Error *err)
{
	return cut_out(e, &e->t->normalized, text, length, encode_words, err);
}

static ingot_status
encode_raw(Encoder *e, const char *text, size_t length, Error *err)
{
	char *normal;
	size_t n;
	ingot_status s;

	if (!e->t->nfc || nfc_trivial(text, length))
		return encode_normalized(e, text, length, err);
	s = nfc_text(text, length, &normal, &n, err);
	if (s != INGOT_OK)
		return s;
	s = encode_normalized(e, normal, n, err);
	free(normal);
	return s;
}

ingot_status
tok_encode(const Tokenizer *t, const char *text, size_t length, bool specials,
    uint32_t **ids, size_t *count, Error *err)
{
	Encoder e = {.t = t, .specials = specials};
	size_t valid = utf8_valid(text, length);
	ingot_status s;

	*ids = NULL;
	*count = 0;
	if (!t->can_encode)
		return fail(err, INGOT_UNSUPPORTED,
		    "the checkpoint has no merge list, so text cannot be "
		    "encoded: give token ids");
	if (valid != length)
		return fail(err, INGOT_BAD_ARG,
		    "the text is not UTF-8 at byte %zu", valid);
	s = pretok_begin(&t->pretok, &e.pretok, err);
	if (s == INGOT_OK)
		s = cut_out(&e, &t->raw, text, length, encode_raw, err);
	pretok_end(&e.pretok);
	bpe_scratch_free(&e.bpe);
	if (s != INGOT_OK) {
		free(e.ids.items);
		return s;
	}
	*ids = e.ids.items;
	*count = e.ids.count;
	return INGOT_OK;
}
