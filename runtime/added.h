/* Added tokens: those that are cut out of a text before it is pre-tokenized. */
#ifndef RUNTIME_ADDED_H
#define RUNTIME_ADDED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "error.h"
#include "pool.h"

typedef struct Added {
	const char *text; /* not terminated, never empty */
	size_t length;
	uint32_t id;
	bool special; /* cut only where specials are asked for */
	bool lstrip;  /* takes the white space before it along */
	bool rstrip;  /* and behind it */
} Added;

/* All zero is empty. */
typedef struct AddedSet {
	Added *items; /* sorted by text once the set is complete */
	size_t count, capacity;
	uint32_t first[257]; /* items that start with byte b: first[b].. */
} AddedSet;

/* A token found in a text, with the white space that it takes along. */
typedef struct AddedMatch {
	size_t start, end;
	uint32_t id;
} AddedMatch;

/* Adds a token; text is copied to the pool. */
ingot_status added_add(AddedSet *a, Pool *pool, Added token, Error *err);
/* Sorts the set. Two tokens of the same text are an error. */
ingot_status added_complete(AddedSet *a, const char *where, Error *err);

/* The leftmost token at or after from, the longest of those that start there.
 * False when there is none. */
bool added_find(const AddedSet *a, const char *text, size_t length, size_t from,
    bool specials, AddedMatch *m);

/* The id of the token spelt text, or -1. */
int64_t added_id(const AddedSet *a, const char *text, size_t length);

#endif
