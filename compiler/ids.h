/* Token ids from the command line: lists, files, and texts encoded. */
#ifndef COMPILER_IDS_H
#define COMPILER_IDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../runtime/tokenizer.h"

typedef struct Ids {
	uint32_t *at; /* from malloc */
	size_t count;
} Ids;

/* Each leaves *out to be freed; false after printing the sentence. */

/* What --tokens says: digits and commas are ids, all else names a file with
 * ids, text (whitespace or commas) or .npy. At least one. */
bool ids_read(const char *argument, Ids *out);
/* Whether all are below vocab. */
bool ids_check(const Ids *ids, const char *argument, uint32_t vocab);
/* A prompt: what the checkpoint puts first, then text with its specials. */
bool ids_of_text(const Tokenizer *t, const char *text, size_t length, Ids *out);
/* One user's turn in ChatML and the head of the answer. No byte of text
 * becomes a special token. */
bool ids_of_chat(const Tokenizer *t, const char *text, size_t length, Ids *out);
void ids_free(Ids *ids);

#endif
