/* Inside the tokenizer: what its two readers fill in. */
#ifndef RUNTIME_TOKENIZER_IMPL_H
#define RUNTIME_TOKENIZER_IMPL_H

#include "added.h"
#include "bpe.h"
#include "pool.h"
#include "pretok.h"
#include "tokenizer.h"
#include "vocab.h"

enum { MAX_STOP_IDS = 64 };

struct Tokenizer {
	Pool pool;
	const char *where; /* the file, for sentences */
	Vocab vocab;
	Bpe bpe;
	Pretok pretok;
	AddedSet raw;        /* looked for in the text as it came */
	AddedSet normalized; /* looked for in the normalised text */
	bool can_encode;
	bool nfc;
	bool ignore_merges; /* a word that is a token is that token */
	int64_t bos;
	uint32_t stop_ids[MAX_STOP_IDS];
	size_t stop_count;
};

/* Fill in t from a checkpoint of their kind, all but the index of added tokens
 * and the stop tokens known by spelling. *found is false when the checkpoint
 * carries no tokenizer. */
ingot_status tok_read_gguf(
    Checkpoint *c, Tokenizer *t, bool *found, Error *err);
ingot_status tok_read_folder(
    Checkpoint *c, Tokenizer *t, bool *found, Error *err);

/* Reads the value of key as a token id; *id is -1 when v is NULL or null. */
ingot_status tok_read_id(const Tokenizer *t, const char *key, const Value *v,
    int64_t *id, Error *err);
/* Adds an id, or a list of ids, to the stop ids. */
ingot_status tok_read_stop(
    Tokenizer *t, const char *key, const Value *v, Error *err);
/* Reads a boolean; absent and null are the given default. */
ingot_status tok_read_bool(const Tokenizer *t, const char *key, const Value *v,
    bool absent, bool *out, Error *err);

#endif
