#include "difference.h"

#include <math.h>
#include <string.h>

#include "../numerics/quant.h"

/* Element i of a block of type t. */
static double
value_in(DType t, const void *block, uint32_t i)
{
	float f;
	int32_t n;
	Q8A a;

	switch (t) {
	case DT_I32:
		memcpy(&n, block, sizeof n);
		return n;
	case DT_Q8A:
		memcpy(&a, block, sizeof a);
		return (double)a.s * a.q[i];
	default:
		dequant_row(t, block, 1, &f);
		return (double)f;
	}
}

static void
add_element(Difference *d, uint64_t at, double got, double want, bool differs)
{
	double error = got - want, size = fabs(error);

	d->power += want * want;
	if (!differs)
		return;
	d->wrong++;
	d->error += error * error;
	if (isnan(size))
		size = INFINITY;
	if (d->wrong > 1 && size <= d->max_abs)
		return;
	d->max_abs = size;
	d->worst = at;
	d->got = got;
	d->want = want;
}

void
difference_add(
    Difference *d, DType t, const void *got, const void *want, uint64_t count)
{
	const char *g = got, *w = want;
	uint32_t block = dtypes[t].block, bytes = dtypes[t].bytes, k;
	uint64_t i;

	for (i = 0; i < count; i += block, g += bytes, w += bytes) {
		bool differs = memcmp(g, w, bytes) != 0;

		for (k = 0; k < block; k++)
			add_element(d, d->count + i + k, value_in(t, g, k),
			    value_in(t, w, k), differs);
	}
	d->count += count;
}

double
difference_nmse(const Difference *d)
{
	double nmse = d->power > 0 ? d->error / d->power : INFINITY;

	if (d->error == 0)
		return 0;
	return isnan(nmse) ? INFINITY : nmse;
}
