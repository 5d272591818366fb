/* The vocabulary of a byte-level tokenizer: the bytes that each id stands for,
 * and the id of a string of bytes. */
#ifndef RUNTIME_VOCAB_H
#define RUNTIME_VOCAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "error.h"
#include "pool.h"

enum { VOCAB_MAX = 1 << 21 }; /* ids of the largest vocabulary taken */
#define NO_TOKEN UINT32_MAX

/* As tokenizer.ggml.token_type numbers them. */
typedef enum TokenType {
	TOKEN_NORMAL = 1,
	TOKEN_UNKNOWN,
	TOKEN_CONTROL,
	TOKEN_USER,
	TOKEN_UNUSED, /* padding: an id without a token */
	TOKEN_BYTE,
	TOKEN_TYPE_END
} TokenType;

typedef struct Token {
	const char *bytes; /* not terminated */
	uint32_t length;
	uint8_t type;
	bool piece; /* its bytes can come out of a merge or of encoding */
} Token;

typedef struct VocabSlot {
	uint32_t tag; /* upper half of the hash */
	uint32_t id;  /* NO_TOKEN: free */
} VocabSlot;

typedef struct Vocab {
	Token *tokens; /* [count] */
	uint32_t count;
	uint32_t longest; /* bytes of the longest piece */
	VocabSlot *slots; /* [mask + 1], at most half of them used */
	size_t mask;
	uint32_t byte[256]; /* id of each single byte, or NO_TOKEN */
	char *next;         /* where the bytes of the next token go */
	size_t room;
} Vocab;

/* count ids, all unused; at most VOCAB_MAX. Memory is of the pool. */
ingot_status vocab_init(Vocab *v, Pool *pool, size_t count, Error *err);

/* Gives id its token. Normal and byte tokens are spelt in visible form (one
 * printable character for each byte), the others in plain text. where begins
 * the sentence of an error. */
ingot_status vocab_set(Vocab *v, Pool *pool, uint32_t id, const char *text,
    size_t length, TokenType type, const char *where, Error *err);

/* Builds the index, after the last vocab_set. Two ordinary tokens of the same
 * bytes are an error; an ordinary one hides a special or user-defined one. */
ingot_status vocab_index(Vocab *v, Pool *pool, const char *where, Error *err);

/* The id of the piece with these bytes, or NO_TOKEN. */
uint32_t vocab_find(const Vocab *v, const char *bytes, size_t length);

/* The same for a piece spelt in visible form. scratch has room for
 * v->longest bytes. */
uint32_t vocab_find_visible(
    const Vocab *v, const char *text, size_t length, char *scratch);

/* Whether id is in range and no padding. */
bool vocab_has(const Vocab *v, uint32_t id);
/* Whether id, in range, is special: control or unknown. */
bool vocab_special(const Vocab *v, uint32_t id);

#endif
