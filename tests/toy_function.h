/* What the toy model computes: shared by its kernels and by the test that
 * checks them from the history of a sequence. */
#ifndef TESTS_TOY_FUNCTION_H
#define TESTS_TOY_FUNCTION_H

#include <stdint.h>

enum {
	TOY_FAULT = 13, /* this token makes scan report a fault */
	TOY_NAN = 14,   /* this one gives a NaN as logit */
	TOY_COLUMNS = 40,
	TOY_COL_COUNT = 39,   /* workgroups of mark since slot 0 was cleared */
	TOY_COL_DENORMAL = 38 /* 1 when denormals are kept */
};

/* The state of a slot after one more token. */
static inline uint32_t
toy_scan(uint32_t state, uint32_t token)
{
	return state * 31u + token + 1u;
}

/* The sum over the history, with the token at position i. */
static inline uint32_t
toy_add(uint32_t sum, uint32_t token, uint32_t i)
{
	return sum + (token + 1u) * (i * 2654435761u + 97u);
}

static inline float
toy_logit(uint32_t sum, uint32_t v, float bias, float cosine)
{
	uint32_t x = (sum ^ v * 40503u) * 2246822519u;

	return (float)(x >> 20) * 0x1p-8f - 8.0f + bias + cosine;
}

#endif
