/* The statistic behind ingot perplexity. It judges models and is no part of
 * docs/numerics.md: doubles and libm. */
#ifndef COMPILER_PERPLEXITY_H
#define COMPILER_PERPLEXITY_H

#include <stdint.h>

/* Zero at the start. */
typedef struct Perplexity {
	uint64_t count;     /* tokens */
	double sum, sum_sq; /* of their negative log probabilities */
} Perplexity;

/* Counts token, which came where the model gave these finite logits. */
void perplexity_add(
    Perplexity *p, const float *logits, uint32_t vocab, uint32_t token);
/* exp of the mean; NaN when nothing was counted. */
double perplexity_value(const Perplexity *p);
/* Its standard error, to first order that of the mean times the value; 0 for
 * fewer than two tokens. */
double perplexity_error(const Perplexity *p);

#endif
