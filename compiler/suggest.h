/* "Did you mean": the candidate nearest to a misspelt word. */
#ifndef COMPILER_SUGGEST_H
#define COMPILER_SUGGEST_H

#include <stddef.h>

enum { SUGGEST_LENGTH = 128 }; /* longer words have no neighbours */

typedef struct Suggestion {
	const char *word;
	char best[SUGGEST_LENGTH];
	size_t distance; /* of best; nothing as far as this is taken */
} Suggestion;

/* Starts a search for word, which must outlive s. */
void suggest_start(Suggestion *s, const char *word);
/* Takes candidate (copied) when it is nearer than all before it, or as near
 * and first by name: the order of offers does not show. */
void suggest_offer(Suggestion *s, const char *candidate);
/* " (did you mean 'x'?)", or "" when nothing was near. text holds
 * SUGGEST_TEXT bytes. Returns text. */
enum { SUGGEST_TEXT = SUGGEST_LENGTH + 24 };
const char *suggest_text(const Suggestion *s, char *text);

/* Insertions, deletions, substitutions and swaps of neighbours that lead from
 * a to b; SUGGEST_LENGTH when either is too long. */
size_t edit_distance(const char *a, const char *b);

#endif
