#include "pool.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_BYTES = 64 * 1024, ALIGN = _Alignof(max_align_t) };

struct PoolBlock {
	PoolBlock *next;
	size_t size; /* of bytes */
	max_align_t bytes[];
};

/* A piece larger than a quarter of a block gets a block of its own, put
 * behind the first one, which stays in use. */
static void *
alloc_own(Pool *p, size_t n)
{
	PoolBlock *b = calloc(1, sizeof *b + n);

	if (!b)
		return NULL;
	b->size = n;
	if (p->blocks) {
		b->next = p->blocks->next;
		p->blocks->next = b;
	} else {
		p->blocks = b;
	}
	return b->bytes;
}

void *
pool_alloc(Pool *p, size_t count, size_t size)
{
	size_t n;
	PoolBlock *b;

	if (size && count > (SIZE_MAX - BLOCK_BYTES) / size)
		return NULL;
	n = count * size;
	n = n ? (n + ALIGN - 1) / ALIGN * ALIGN : ALIGN;
	if (n > BLOCK_BYTES / 4)
		return alloc_own(p, n);
	if (n > p->left) {
		b = calloc(1, sizeof *b + BLOCK_BYTES);
		if (!b)
			return NULL;
		b->size = BLOCK_BYTES;
		b->next = p->blocks;
		p->blocks = b;
		p->left = BLOCK_BYTES;
	}
	b = p->blocks;
	p->left -= n;
	return (char *)b->bytes + (b->size - p->left - n);
}

char *
pool_text(Pool *p, const char *text, size_t length)
{
	char *copy = length < SIZE_MAX ? pool_alloc(p, length + 1, 1) : NULL;

	if (copy && length)
		memcpy(copy, text, length);
	return copy;
}

void
pool_free(Pool *p)
{
	PoolBlock *b, *next;

	for (b = p->blocks; b; b = next) {
		next = b->next;
		free(b);
	}
	*p = (Pool){0};
}
