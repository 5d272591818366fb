/* Picking a token from logits: docs/numerics.md, Sampling. */
#ifndef RUNTIME_SAMPLE_H
#define RUNTIME_SAMPLE_H

#include "error.h"
#include "memory.h"

/* Scratch for a vocabulary; picking allocates nothing. */
typedef struct Sampler {
	uint32_t vocab;
	Memory memory;
	uint32_t *key[2], *id[2]; /* candidates, and room to sort them */
	float *p;                 /* [vocab] by rank */
} Sampler;

/* Bytes of it. */
uint64_t sampler_bytes(uint32_t vocab);
/* False when memory ran out. */
bool sampler_open(Sampler *s, uint32_t vocab);
void sampler_close(Sampler *s);

/* min-p keeps the ranks with p >= min_p * p_0; top-p then keeps those up to
 * the first whose running sum reaches top_p. Where rounding lets no running
 * sum exceed u, the last rank kept is taken.
 *
 * Picks from logits f32 [vocab], all finite. The floating-point state is set
 * (fp.h). INGOT_BAD_ARG when how makes no sense or leaves no candidate. */
ingot_status sampler_pick(Sampler *s, const float *logits,
    const ingot_sampling *how, uint32_t *token, Error *err);

#endif
