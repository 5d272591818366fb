#include "suggest.h"

#include <stdio.h>
#include <string.h>

static size_t
least(size_t a, size_t b)
{
	return a < b ? a : b;
}

size_t
edit_distance(const char *a, const char *b)
{
	/* Rows i-2, i-1 and i of the table, taken in turn. */
	size_t row[3][SUGGEST_LENGTH + 1];
	size_t n = strlen(a), m = strlen(b), i, j;

	if (n >= SUGGEST_LENGTH || m >= SUGGEST_LENGTH)
		return SUGGEST_LENGTH;
	for (j = 0; j <= m; j++)
		row[0][j] = j;
	for (i = 1; i <= n; i++) {
		const size_t *up2 = row[(i + 1) % 3], *up = row[(i - 1) % 3];
		size_t *at = row[i % 3];

		at[0] = i;
		for (j = 1; j <= m; j++) {
			at[j] = least(up[j], at[j - 1]) + 1;
			at[j] =
			    least(at[j], up[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] &&
			    a[i - 2] == b[j - 1])
				at[j] = least(at[j], up2[j - 2] + 1);
		}
	}
	return row[n % 3][m];
}

void
suggest_start(Suggestion *s, const char *word)
{
	size_t n = strlen(word);

	s->word = word;
	s->best[0] = '\0';
	/* A third of the word may be wrong, and one letter always. */
	s->distance = n < 2 ? n : (n < 6 ? 2 : n / 3 + 1);
}

void
suggest_offer(Suggestion *s, const char *candidate)
{
	size_t d = edit_distance(s->word, candidate);

	if (d > s->distance ||
	    (d == s->distance &&
		(s->best[0] == '\0' || strcmp(candidate, s->best) >= 0)))
		return;
	s->distance = d;
	memcpy(s->best, candidate, strlen(candidate) + 1);
}

const char *
suggest_text(const Suggestion *s, char *text)
{
	text[0] = '\0';
	if (s->best[0] != '\0')
		snprintf(text, SUGGEST_TEXT, " (did you mean '%s'?)", s->best);
	return text;
}
