/* Memory that lives until its owner is closed: pieces of any size, given back
 * all at once. Pieces are zeroed and aligned for any type. */
#ifndef RUNTIME_POOL_H
#define RUNTIME_POOL_H

#include <stddef.h>

typedef struct PoolBlock PoolBlock;

/* All zero is an empty pool. */
typedef struct Pool {
	PoolBlock *blocks;
	size_t left; /* bytes free at the end of the first block */
} Pool;

/* count * size bytes (at least one), or NULL when memory ran out or the
 * product overflows. */
void *pool_alloc(Pool *p, size_t count, size_t size);
/* A copy of length bytes with a NUL after them, or NULL. */
char *pool_text(Pool *p, const char *text, size_t length);
void pool_free(Pool *p);

#endif
