/* Growing text with indentation, for emitted code. */
#ifndef CODEGEN_TEXT_H
#define CODEGEN_TEXT_H

#include <stddef.h>

#include "../ir/arena.h"

#if defined(__GNUC__)
#define TEXT_PRINTF __attribute__((format(printf, 2, 3)))
#else
#define TEXT_PRINTF
#endif

typedef struct Text {
	Arena *arena;
	char *at; /* NUL terminated */
	size_t length, capacity;
	int indent;
} Text;

/* Appends as is. */
void text_add(Text *t, const char *fmt, ...) TEXT_PRINTF;
/* Appends a line at the current indentation. */
void text_line(Text *t, const char *fmt, ...) TEXT_PRINTF;
/* A line that ends in an opening brace; what follows is indented. */
void text_open(Text *t, const char *fmt, ...) TEXT_PRINTF;
/* The matching closing brace. */
void text_close(Text *t);

#endif
