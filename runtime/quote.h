/* Text from outside (paths, names, keys of files), made fit for a sentence. */
#ifndef RUNTIME_QUOTE_H
#define RUNTIME_QUOTE_H

#include <stdbool.h>
#include <stddef.h>

enum { QUOTE_TEXT = 128 };

typedef struct Quote {
	char text[QUOTE_TEXT];
} Quote;

/* Writes text into *q: bytes that are no UTF-8 and invisible characters
 * (controls, marks of direction) become '?', and the middle of a long text
 * becomes "...". Returns q->text. */
const char *quote(Quote *q, const char *text, size_t length);

/* Whether quote would change nothing but the length. */
bool is_printable(const char *text, size_t length);

#endif
