/* Large zeroed memory. Pages cost nothing until they are touched. */
#ifndef RUNTIME_MEMORY_H
#define RUNTIME_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct Memory {
	unsigned char *data; /* page aligned; NULL when size is 0 */
	uint64_t size;
} Memory;

/* size zeroed bytes; false when the system has no room. */
bool memory_open(Memory *m, uint64_t size);
/* Leaves *m empty; an empty one is allowed. */
void memory_close(Memory *m);

/* *product = a * b, or false when that does not fit. */
static inline bool
size_mul(uint64_t a, uint64_t b, uint64_t *product)
{
	return !__builtin_mul_overflow(a, b, product);
}

#endif
