/* Byte-level BPE tokenizer of a checkpoint: GGUF metadata or tokenizer.json. */
#ifndef RUNTIME_TOKENIZER_H
#define RUNTIME_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "checkpoint.h"

typedef struct Tokenizer Tokenizer;

/* Inside a public ingot_tokenizer, which owns it. */
Tokenizer *tokenizer_of(const ingot_tokenizer *t);

/* Builds the tokenizer of c. *out is NULL with INGOT_OK when the checkpoint
 * carries none. A checkpoint whose merge list is missing can only decode
 * (tok_can_encode); an empty merge list is a tokenizer of single bytes. The
 * tokenizer keeps nothing of c, which may be closed first. */
ingot_status tok_open(Checkpoint *c, Tokenizer **out, Error *err);
void tok_close(Tokenizer *t);

/* Whether the tokenizer can encode text. */
bool tok_can_encode(const Tokenizer *t);
/* Number of ids; rows of the vocabulary at or beyond it are padding. */
uint32_t tok_count(const Tokenizer *t);
/* Whether id is a real token: inside the vocabulary and not of type unused. */
bool tok_is_token(const Tokenizer *t, uint32_t id);
/* The id of the special or ordinary token spelt text, or -1. */
int64_t tok_id(const Tokenizer *t, const char *text);

/* Encodes UTF-8 text. With specials, special tokens in the text become their
 * ids; without, they are ordinary characters (user-defined added tokens that
 * are not special are cut out in both cases), and no id of the result is a
 * special token's. The leftmost token is cut first, the longest of those that
 * start at the same place. No BOS is added (tok_bos). Invalid UTF-8 is an
 * error that names the byte.
 * *ids is allocated with malloc and is the caller's. */
ingot_status tok_encode(const Tokenizer *t, const char *text, size_t length,
    bool specials, uint32_t **ids, size_t *count, Error *err);

/* The bytes of one token (not terminated, owned by t); specials give their
 * text. *length is 0 for padding. Bytes may be part of a character. */
const char *tok_bytes(const Tokenizer *t, uint32_t id, size_t *length);
/* Whether id is a control token, which generated text leaves out. */
bool tok_is_control(const Tokenizer *t, uint32_t id);

/* Ids that end generation: the checkpoint's eos list (metadata, config.json
 * and generation_config.json), <|im_end|> and <|endoftext|>. */
const uint32_t *tok_stop_ids(const Tokenizer *t, size_t *count);
/* The id put first, or -1; only where the checkpoint asks for one. */
int64_t tok_bos(const Tokenizer *t);

/* Streaming detokenisation: holds back the tail of an unfinished character. */
typedef struct Utf8Stream {
	unsigned char held[4];
	unsigned count;
} Utf8Stream;

/* Appends length bytes and writes the whole characters that are now complete
 * to out (room for length + 16 bytes at least; bytes that can be no part of a
 * character become U+FFFD, so room for 3 * (length + 4) bytes is always
 * enough). Returns the number of bytes written. */
size_t utf8_push(Utf8Stream *s, const char *bytes, size_t length, char *out);
/* The end of the stream: a cut character becomes one U+FFFD. */
size_t utf8_finish(Utf8Stream *s, char *out);

#endif
