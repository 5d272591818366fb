/* Pre-tokenizer: cuts text into the pieces inside which merges happen, by one
 * or more regular expressions. Letters, marks and numbers are those of the
 * Unicode version of the PCRE2 library (14 for 10.42): characters assigned
 * later are none of them. */
#ifndef RUNTIME_PRETOK_H
#define RUNTIME_PRETOK_H

#include <stddef.h>

#include "error.h"

enum { PRETOK_MAX_STAGES = 4 };

/* The pattern of ByteLevel pre-tokenizers with use_regex. */
extern const char pretok_gpt2[];

/* All zero cuts nothing. Each stage cuts the pieces of the one before; matches
 * and the text between them are pieces ("Isolated"). */
typedef struct Pretok {
	struct pcre2_real_code_8 *stages[PRETOK_MAX_STAGES];
	unsigned count;
} Pretok;

/* What one thread needs to cut. All zero is unprepared. */
typedef struct PretokScratch {
	struct pcre2_real_match_data_8 *match;
	struct pcre2_real_match_context_8 *context;
	struct pcre2_real_jit_stack_8 *stack;
} PretokScratch;

/* Called with each piece in order; a status other than INGOT_OK ends the cut
 * and is passed on. */
typedef ingot_status PieceFn(
    void *user, const char *piece, size_t length, Error *err);

/* The pattern of a value of tokenizer.ggml.pre, or NULL. */
const char *pretok_named(const char *pre);

ingot_status pretok_add(
    Pretok *p, const char *pattern, size_t length, Error *err);
void pretok_free(Pretok *p);

ingot_status pretok_begin(const Pretok *p, PretokScratch *s, Error *err);
void pretok_end(PretokScratch *s);
/* Cuts text, which is well-formed UTF-8. Time is linear in length for the
 * patterns of pretok_named; one that backtracks without end is an error. */
ingot_status pretok_cut(const Pretok *p, const PretokScratch *s,
    const char *text, size_t length, PieceFn *piece, void *user, Error *err);

#endif
