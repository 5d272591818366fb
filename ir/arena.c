#include "arena.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 64 << 10 };

/* Chunks hang on a list, the one being filled in front. */
typedef struct Chunk Chunk;
struct Chunk {
	Chunk *next;
	size_t used, size;
	_Alignas(max_align_t) char data[];
};

struct Arena {
	Chunk *chunks;
};

static _Noreturn void
out_of_memory(void)
{
	fputs("ingot: out of memory\n", stderr);
	exit(70);
}

Arena *
arena_new(void)
{
	Arena *a = calloc(1, sizeof *a);

	if (a == NULL)
		out_of_memory();
	return a;
}

void
arena_free(Arena *a)
{
	Chunk *c, *next;

	if (a == NULL)
		return;
	for (c = a->chunks; c != NULL; c = next) {
		next = c->next;
		free(c);
	}
	free(a);
}

static Chunk *
add_chunk(Arena *a, size_t size)
{
	Chunk *c;

	if (size > SIZE_MAX - sizeof *c)
		out_of_memory();
	c = calloc(1, sizeof *c + size);
	if (c == NULL)
		out_of_memory();
	c->size = size;
	c->next = a->chunks;
	a->chunks = c;
	return c;
}

void *
arena_alloc(Arena *a, size_t n)
{
	const size_t unit = _Alignof(max_align_t);
	Chunk *c = a->chunks;
	void *p;

	if (n > SIZE_MAX - unit)
		out_of_memory();
	n = (n + unit - 1) / unit * unit;
	if (c == NULL || n > c->size - c->used)
		c = add_chunk(a, n > CHUNK ? n : CHUNK);
	p = c->data + c->used;
	c->used += n;
	return p;
}

void *
arena_array(Arena *a, size_t count, size_t size)
{
	if (size != 0 && count > SIZE_MAX / size)
		out_of_memory();
	return arena_alloc(a, count * size);
}

char *
arena_strndup(Arena *a, const char *s, size_t n)
{
	char *copy;

	if (n == SIZE_MAX)
		out_of_memory();
	copy = arena_alloc(a, n + 1);
	memcpy(copy, s, n);
	return copy;
}

char *
arena_strdup(Arena *a, const char *s)
{
	return arena_strndup(a, s, strlen(s));
}

char *
arena_printf(Arena *a, const char *fmt, ...)
{
	va_list args, again;
	char *s;
	int n;

	va_start(args, fmt);
	va_copy(again, args);
	n = vsnprintf(NULL, 0, fmt, args);
	va_end(args);
	if (n < 0)
		out_of_memory();
	s = arena_alloc(a, (size_t)n + 1);
	vsnprintf(s, (size_t)n + 1, fmt, again);
	va_end(again);
	return s;
}
