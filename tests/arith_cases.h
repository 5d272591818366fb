/* The unary functions of numerics/arith.h beside double references, and the
 * error measure that unit_arith.c and sweep_arith.c share. */
#ifndef TESTS_ARITH_CASES_H
#define TESTS_ARITH_CASES_H

#include "../numerics/arith.h"

#include <math.h>
#include <string.h>

typedef struct Worst {
	double ulp;
	float at;
	unsigned long wrong; /* NaN or infinity where the other has none */
} Worst;

static double
ref_rsqrt(double x)
{
	return x == 0 ? INFINITY : 1 / sqrt(x);
}

static double
ref_sigmoid(double x)
{
	double e = exp(-fabs(x));

	return (x < 0 ? e : 1) / (1 + e);
}

static double
ref_silu(double x)
{
	return x < -700 ? -0.0 : x * ref_sigmoid(x);
}

static double
ref_softplus(double x)
{
	return x > 700 ? x : log1p(exp(x));
}

static double
ref_gelu(double x)
{
	double z = 1.5957691216057307 * (x + 0.044715 * x * x * x);

	return z < -700 ? -0.0 : x * ref_sigmoid(z);
}

/* UNARY(name, reference, limit): ig_name, and the largest error allowed, in
 * units of the last place: what was measured, rounded up. */
#define UNARY_CASES(UNARY)                                                     \
	UNARY(rsqrt, ref_rsqrt, 0.51)                                          \
	UNARY(sqrt, sqrt, 0.5)                                                 \
	UNARY(exp, exp, 0.98)                                                  \
	UNARY(log1p, log1p, 1.27)                                              \
	UNARY(sigmoid, ref_sigmoid, 0.98)                                      \
	UNARY(silu, ref_silu, 1.1)                                             \
	UNARY(softplus, ref_softplus, 1.68)                                    \
	UNARY(tanh, tanh, 1.5)                                                 \
	UNARY(gelu, ref_gelu, 213)

#define BATCH 4096

/* y[i] = ig_name(x[i]), a loop that a compiler may vectorise. */
#define UNARY(name, ref, limit)                                                \
	static inline void map_##name(float *y, const float *x)                \
	{                                                                      \
		for (int i = 0; i < BATCH; i++)                                \
			y[i] = ig_##name(x[i]);                                \
	}
UNARY_CASES(UNARY)
#undef UNARY

typedef struct Case {
	const char *name;
	float (*f)(float);
	void (*map)(float *, const float *);
	double (*ref)(double);
	double limit;
} Case;

static const Case cases[] = {
#define UNARY(name, ref, limit) {#name, ig_##name, map_##name, ref, limit},
    UNARY_CASES(UNARY)
#undef UNARY
};
#define NCASES (sizeof cases / sizeof *cases)

/* Distance of f32 values around |y|, 2^-149 at least. */
static double
ulp_of(double y)
{
	uint64_t u;
	int e;

	memcpy(&u, &y, sizeof u);
	e = (int)(u >> 52 & 0x7FF) - 1023 - 23;
	u = (uint64_t)((e < -149 ? -149 : e) + 1023) << 52;
	memcpy(&y, &u, sizeof y);
	return y;
}

static void
judge(Worst *w, float x, float got, double ref)
{
	double err;

	if (isnan(ref) || isnan(got) || isinf(got) || isinf((float)ref)) {
		w->wrong += isnan(ref) ? !isnan(got) : got != (float)ref;
		return;
	}
	err = fabs((double)got - ref) / ulp_of(ref);
	if (err > w->ulp) {
		w->ulp = err;
		w->at = x;
	}
}

#endif
