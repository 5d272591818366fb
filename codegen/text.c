#include "text.h"

#include <stdio.h>
#include <string.h>

static void
reserve(Text *t, size_t more)
{
	char *bigger;

	if (t->length + more + 1 <= t->capacity)
		return;
	t->capacity = 2 * (t->length + more + 64);
	bigger = arena_alloc(t->arena, t->capacity);
	if (t->at)
		memcpy(bigger, t->at, t->length + 1);
	t->at = bigger;
}

static void
add(Text *t, const char *fmt, va_list args)
{
	va_list again;
	int n;

	va_copy(again, args);
	n = vsnprintf(NULL, 0, fmt, again);
	va_end(again);
	reserve(t, (size_t)n);
	vsnprintf(t->at + t->length, (size_t)n + 1, fmt, args);
	t->length += (size_t)n;
}

void
text_add(Text *t, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	add(t, fmt, args);
	va_end(args);
}

static void
line(Text *t, const char *fmt, va_list args)
{
	for (int i = 0; i < t->indent; i++)
		text_add(t, "\t");
	add(t, fmt, args);
}

void
text_line(Text *t, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	line(t, fmt, args);
	va_end(args);
	text_add(t, "\n");
}

void
text_open(Text *t, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	line(t, fmt, args);
	va_end(args);
	text_add(t, " {\n");
	t->indent++;
}

void
text_close(Text *t)
{
	t->indent--;
	text_line(t, "}");
}
