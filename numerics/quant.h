/* Rows of weights and activations: dequantisation, the activation quantiser,
 * and the named orders of summation.  docs/numerics.md states the rules; this
 * is their plainest form and the yardstick of every kernel.
 *
 * A row is k elements in file order, any alignment, dtype_bytes(t, k) bytes;
 * k is a multiple of the type's block.  Nothing is allocated or can fail.
 */
#ifndef NUMERICS_QUANT_H
#define NUMERICS_QUANT_H

#include "types.h"

/* 32 quantised activations, one block of DT_Q8A: x = s*q. */
typedef struct Q8A {
	float s;        /* scale */
	float h;        /* s times the integer sum of q, rounded once */
	int16_t sum[2]; /* integer sums of the halves of q */
	int8_t q[32];   /* -127 .. 127 */
} Q8A;

/* out[k] = the row's values; t is a FLOAT or QUANT type. */
void dequant_row(DType t, const void *row, uint64_t k, float *out);

/* x[k] to out[k/32], k a multiple of 32.  A block whose largest magnitude is
 * below 2^-100 becomes all zero; one with an infinity or a NaN gets NaN for s
 * and h and zeros for q. */
void quantise_row(const float *x, uint64_t k, Q8A *out);

/* The order group256: dot product of a row of QUANT type t with k quantised
 * activations, k a multiple of 32. */
float dot_group256(DType t, const void *w_row, const Q8A *a, uint64_t k);

/* The orders dot8 (parts of heads) and dot32 (weights): dot product of a row of
 * FLOAT type t with x[k], any k. */
float dot8(DType t, const void *w_row, const float *x, uint64_t k);
float dot32(DType t, const void *w_row, const float *x, uint64_t k);

/* Adds neighbours, then neighbours of the sums, and so on.  n is a power of
 * two; v is overwritten. */
float neighbour_tree(float *v, uint32_t n);

/* Row sums: x[i] or x[i]^2 into accumulator i mod 256, then the neighbour
 * tree over all 256. */
float row_sum(const float *x, uint64_t n);
float row_sum_sq(const float *x, uint64_t n);

#endif
