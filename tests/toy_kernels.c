/* Kernels of tests/toy_plan.h, built alone as a shared object:
 * clang-19 -std=c11 -O2 -fPIC -shared -nostdlib */
#include <stdint.h>

#include "../runtime/plan.h"
#include "toy_function.h"

/* Added to every logit: tells two objects apart. */
#ifndef TOY_SHIFT
#define TOY_SHIFT 0
#endif

/* Counts its workgroups. */
void
mark(void *const *arg, const StepArgs *s, uint32_t wg)
{
	(void)s;
	(void)wg;
	__atomic_fetch_add((uint32_t *)arg[0], 1, __ATOMIC_RELAXED);
}

/* One workgroup a sequence: writes tokens to the cache, moves the slot, and
 * fills a buffer that nobody reads and that is no neighbour's. */
void
scan(void *const *arg, const StepArgs *s, uint32_t wg)
{
	const uint32_t *tokens = arg[0];
	const uint32_t *seq = (const uint32_t *)arg[1] + 4 * wg;
	const uint32_t *blocks = (const uint32_t *)arg[2] + seq[0] * s->pages;
	uint32_t *cache = arg[3], *slot = (uint32_t *)arg[4] + seq[0];
	uint32_t *h = arg[5], *tmp = arg[6];

	for (uint32_t i = 0; i < seq[2]; i++) {
		uint32_t row = seq[1] + i, at = seq[3] + i;

		if (tokens[row] == TOY_FAULT)
			*s->fault = 1;
		cache[blocks[at / KV_PAGE] * KV_PAGE + at % KV_PAGE] =
		    tokens[row];
		*slot = toy_scan(*slot, tokens[row]);
		h[row * 16] = *slot;
	}
	for (uint32_t i = seq[1] * 16; i < (seq[1] + seq[2]) * 16; i++)
		tmp[i] = 0xAAAAAAAA;
}

/* By bits: a comparison would take denormals for zeros as well. */
static float
denormals_kept(void)
{
	volatile float tiny = 0x1p-140f;
	float half = tiny * 0.5f;
	uint32_t bits;

	__builtin_memcpy(&bits, &half, sizeof bits);
	return bits == 1u << 8 ? 1.0f : 0.0f;
}

/* One workgroup a row of logits. */
void
head(void *const *arg, const StepArgs *s, uint32_t wg)
{
	uint32_t row = ((const uint32_t *)arg[3])[wg];
	uint32_t at = ((const uint32_t *)arg[4])[row];
	uint32_t slot = ((const uint32_t *)arg[5])[row];
	const uint32_t *blocks = (const uint32_t *)arg[1] + slot * s->pages;
	const uint32_t *cache = arg[2];
	const float *table = arg[6], *bias = arg[7];
	float *logits = (float *)arg[10] + wg * TOY_COLUMNS;
	uint32_t sum = ((const uint32_t *)arg[0])[row * 16], token = 0;

	for (uint32_t i = 0; i <= at; i++) {
		token = cache[blocks[i / KV_PAGE] * KV_PAGE + i % KV_PAGE];
		sum = toy_add(sum, token, i);
	}
	for (uint32_t v = 0; v < TOY_COLUMNS; v++)
		logits[v] =
		    toy_logit(sum, v, bias[v], table[at * 4]) + TOY_SHIFT;
	logits[TOY_COL_COUNT] = (float)*(const uint32_t *)arg[8];
	logits[TOY_COL_DENORMAL] = denormals_kept();
	if (token == TOY_NAN)
		logits[5] = __builtin_nanf("");
	*(uint32_t *)arg[9] = 1;
}
