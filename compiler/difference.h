/* How far values are from what they should be, over any number of parts. */
#ifndef COMPILER_DIFFERENCE_H
#define COMPILER_DIFFERENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "../numerics/types.h"

typedef struct Difference {
	uint64_t count;      /* elements compared */
	uint64_t wrong;      /* of them, those that are not the same bits */
	double error, power; /* sums of squares: got - want, and want */
	double max_abs;      /* of got - want; infinite where that is NaN */
	/* The worst element, when wrong is not 0: its number, counted from the
	 * first call, and both values. */
	uint64_t worst;
	double got, want;
} Difference;

/* Adds count elements of type t, whole blocks of a FLOAT, INT or ACT type.
 * Quantised activations are compared by the bytes of their blocks, and in size
 * by the values that they stand for. */
void difference_add(
    Difference *d, DType t, const void *got, const void *want, uint64_t count);
/* error / power, 0 where nothing differs; infinite where it is no number. */
double difference_nmse(const Difference *d);

#endif
