/* Byte pair encoding: the merges of a vocabulary, applied to single words. */
#ifndef RUNTIME_BPE_H
#define RUNTIME_BPE_H

#include <stddef.h>
#include <stdint.h>

#include "checkpoint.h"
#include "error.h"
#include "pool.h"
#include "vocab.h"

/* A list of ids that grows. All zero is empty. */
typedef struct Ids {
	uint32_t *items; /* malloc */
	size_t count, capacity;
} Ids;

ingot_status ids_add(Ids *ids, uint32_t id, Error *err);

typedef struct Merge {
	uint32_t left, right, result;
} Merge;

typedef struct BpeSlot {
	uint32_t left, right;
	uint32_t place; /* rank + 1, or 0: free */
} BpeSlot;

typedef struct Bpe {
	const Vocab *vocab;
	Merge *merges;  /* by rank */
	BpeSlot *slots; /* [mask + 1], at most half of them used */
	size_t mask;
	uint32_t count;
} Bpe;

/* Working memory of bpe_word, kept between words. All zero is empty. */
typedef struct BpeScratch {
	struct Symbol *symbols;
	uint64_t *heap;
	size_t capacity; /* bytes of the longest word there is room for */
	size_t heap_count;
} BpeScratch;

/* Reads a merge list: "left right" strings or pairs of strings, lowest rank
 * first. Every piece and every result must be in the vocabulary, and no pair
 * may come twice. A merge that would make a special token is left out: text
 * never becomes one by merging. where begins the sentence of an error. */
ingot_status bpe_init(Bpe *b, Pool *pool, const Vocab *vocab,
    const Value *merges, const char *where, Error *err);

/* Appends the ids of one word: the adjacent pair of lowest rank is merged,
 * the leftmost first, until no pair has a merge. O(n log n), no recursion. */
ingot_status bpe_word(const Bpe *b, BpeScratch *s, const char *bytes,
    size_t length, Ids *ids, Error *err);
void bpe_scratch_free(BpeScratch *s);

#endif
