/* Ingot's float functions, Philox and rope tables. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "arith_cases.h"

#include "../numerics/angle.h"
#include "../numerics/philox.h"

#include <stdlib.h>

/* xorshift; the seed is any nonzero number. */
static uint32_t
draw(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return (uint32_t)(*state >> 32);
}

static int
same(float a, float b)
{
	return ig_bits(a) == ig_bits(b) || (isnan(a) && isnan(b));
}

static void
check_div(uint32_t a, uint32_t b)
{
	float x = ig_float(a), y = ig_float(b), got = ig_div(x, y);

	if (!same(got, x / y))
		fail_msg("%a / %a gave %a, not %a", (double)x, (double)y,
		    (double)got, (double)(x / y));
}

static void
div_edges(void **state)
{
	static const uint32_t edge[] = {0, 1, 2, 3, 0x00400000, 0x007FFFFE,
	    0x007FFFFF, 0x00800000, 0x00800001, 0x00FFFFFF, 0x01000000,
	    0x34000000, 0x3F7FFFFF, 0x3F800000, 0x3F800001, 0x3FFFFFFF,
	    0x40000000, 0x7EFFFFFF, 0x7F000000, 0x7F7FFFFF, 0x7F800000,
	    0x7F800001, 0x7FC00000};
	enum { N = sizeof edge / sizeof *edge };

	(void)state;
	for (unsigned i = 0; i < N * N * 4; i++)
		check_div(edge[i % N] | (i / (N * N) & 1) << 31,
		    edge[i / N % N] | (i / (N * N) & 2) << 30);
}

static void
div_random(void **state)
{
	uint64_t seed = 1;

	(void)state;
	for (int i = 0; i < 1000000; i++) {
		uint32_t a = draw(&seed), b = draw(&seed);

		check_div(a, b);
		/* the same significands with a denormal quotient */
		check_div((a & 0x807FFFFF) | (1 + draw(&seed) % 25) << 23,
		    (b & 0x807FFFFF) | 0x40000000);
	}
}

/* Every significand: ig_div is correctly rounded because this is. */
static void
reciprocal(void **state)
{
	(void)state;
	for (uint32_t u = 0x3F800000; u <= 0x40000000; u++)
		if (ig_reciprocal(ig_float(u)) != 1.0f / ig_float(u))
			fail_msg("1/%a", (double)ig_float(u));
}

static void
unary_errors(void **state)
{
	(void)state;
	for (size_t i = 0; i < NCASES; i++) {
		Worst w = {0};

		for (uint64_t u = 0; u <= UINT32_MAX; u += 32749) {
			float x = ig_float((uint32_t)u);

			judge(&w, x, cases[i].f(x), cases[i].ref(x));
		}
		if (w.wrong || w.ulp > cases[i].limit || w.ulp == 0)
			fail_msg("%s: %.4f ulp at %a, %lu wrong", cases[i].name,
			    w.ulp, (double)w.at, w.wrong);
	}
}

/* The bits of all results are the contract: one hash (FNV-1a, NaNs alike)
 * over every function and division by the next input. */
static void
fixed_bits(void **state)
{
	uint64_t hash = 0xCBF29CE484222325;
	float last = 1;

	(void)state;
	for (uint64_t u = 0; u <= UINT32_MAX; u += 65521) {
		float x = ig_float((uint32_t)u);

		for (size_t i = 0; i <= NCASES; i++) {
			float y = i < NCASES ? cases[i].f(x) : ig_div(last, x);

			hash ^= isnan(y) ? IG_NAN : ig_bits(y);
			hash *= 0x100000001B3;
		}
		last = x;
	}
	assert_true(hash == 0x726658E1B4923713);
}

typedef struct Point {
	float (*f)(float);
	float x, y;
} Point;

static void
special_values(void **state)
{
	static const Point points[] = {
	    {ig_exp, 0.0f, 1.0f},
	    {ig_exp, -INFINITY, 0.0f},
	    {ig_exp, -1e30f, 0.0f},
	    {ig_exp, INFINITY, INFINITY},
	    {ig_exp, 0x1.62E42Ep+6f, 0x1.FFFF08p+127f},
	    {ig_exp, 0x1.62E430p+6f, INFINITY},
	    {ig_exp, -103.0f, 0x1p-149f},
	    {ig_exp, NAN, NAN},
	    {ig_log1p, 0.0f, 0.0f},
	    {ig_log1p, 0x1p-149f, 0x1p-149f},
	    {ig_log1p, -1.0f, -INFINITY},
	    {ig_log1p, -1.5f, NAN},
	    {ig_log1p, INFINITY, INFINITY},
	    {ig_rsqrt, 4.0f, 0.5f},
	    {ig_rsqrt, 0.0f, INFINITY},
	    {ig_rsqrt, -0.0f, INFINITY},
	    {ig_rsqrt, INFINITY, 0.0f},
	    {ig_rsqrt, -1.0f, NAN},
	    {ig_rsqrt, 0x1p-148f, 0x1p+74f},
	    {ig_sqrt, 9.0f, 3.0f},
	    {ig_sqrt, -0.0f, -0.0f},
	    {ig_sqrt, INFINITY, INFINITY},
	    {ig_sqrt, -0x1p-149f, NAN},
	    {ig_sqrt, NAN, NAN},
	    {ig_sigmoid, 0.0f, 0.5f},
	    {ig_sigmoid, -INFINITY, 0.0f},
	    {ig_sigmoid, INFINITY, 1.0f},
	    {ig_sigmoid, NAN, NAN},
	    {ig_silu, 0.0f, 0.0f},
	    {ig_silu, -1e30f, -0.0f},
	    {ig_silu, 1e38f, 1e38f},
	    {ig_silu, INFINITY, INFINITY},
	    {ig_silu, NAN, NAN},
	    {ig_softplus, -INFINITY, 0.0f},
	    {ig_softplus, 20.5f, 20.5f},
	    {ig_softplus, NAN, NAN},
	    {ig_tanh, INFINITY, 1.0f},
	    {ig_tanh, -INFINITY, -1.0f},
	    {ig_tanh, -0.0f, -0.0f},
	    {ig_tanh, NAN, NAN},
	    {ig_gelu, 0.0f, 0.0f},
	    {ig_gelu, -1e20f, -0.0f},
	    {ig_gelu, 50.0f, 50.0f},
	    {ig_gelu, NAN, NAN},
	};

	(void)state;
	for (size_t i = 0; i < sizeof points / sizeof *points; i++) {
		const Point *p = &points[i];

		if (!same(p->f(p->x), p->y))
			fail_msg("point %zu: f(%a) = %a, not %a", i,
			    (double)p->x, (double)p->f(p->x), (double)p->y);
	}
}

static void
rounding(void **state)
{
	(void)state;
	for (int i = -1200; i <= 1200; i++) {
		float x = (float)i * 0.125f;
		double y = x < -127 ? -127 : x > 127 ? 127 : (double)x;

		assert_int_equal(ig_rne_clamp(x), lrint(y));
	}
	assert_int_equal(ig_rne_clamp(2.5f), 2);
	assert_int_equal(ig_rne_clamp(-3.5f), -4);
	assert_int_equal(ig_rne_clamp(INFINITY), 127);
	assert_int_equal(ig_rne_clamp(-1e30f), -127);
	assert_int_equal(ig_rne_clamp(NAN), -127);
	assert_true(ig_max(1, 2) == 2 && ig_max(2, 1) == 2);
}

static void
half_precision(void **state)
{
	(void)state;
	for (uint32_t h = 0; h < 0x10000; h++) {
		int e = h >> 10 & 31, m = h & 0x3FF;
		float x = e == 31 ? (m ? NAN : INFINITY)
			  : e     ? ldexpf((float)(m + 1024), e - 25)
				  : ldexpf((float)m, -24);

		x = h & 0x8000 ? -x : x;
		assert_true(same(ig_from_f16((uint16_t)h), x));
	}
}

static void
brain_float(void **state)
{
	static const struct {
		uint32_t u;
		uint16_t h;
	} narrow[] = {{0x3F800000, 0x3F80}, {0x3F808000, 0x3F80},
	    {0x3F808001, 0x3F81}, {0x3F818000, 0x3F82}, {0x3F817FFF, 0x3F81},
	    {0x7F7FFFFF, 0x7F80}, {0xFF800000, 0xFF80}, {0x7F800001, 0x7FC0},
	    {0xFFFFFFFF, 0xFFFF}, {0x00008000, 0x0000}, {0x00018000, 0x0002},
	    {0x80000000, 0x8000}};

	(void)state;
	for (size_t i = 0; i < sizeof narrow / sizeof *narrow; i++)
		assert_int_equal(
		    ig_to_bf16(ig_float(narrow[i].u)), narrow[i].h);
	for (uint32_t h = 0; h < 0x10000; h++) {
		float x = ig_from_bf16((uint16_t)h);

		assert_int_equal(ig_bits(x), h << 16);
		if (!isnan(x))
			assert_int_equal(ig_to_bf16(x), h);
	}
}

/* The known-answer vectors published with the generator. */
static void
philox_vectors(void **state)
{
	static const struct {
		uint32_t counter[4], key[2], out[4];
	} v[] = {
	    {{0, 0, 0, 0}, {0, 0},
		{0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8}},
	    {{~0u, ~0u, ~0u, ~0u}, {~0u, ~0u},
		{0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD}},
	    {{0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344},
		{0xA4093822, 0x299F31D0},
		{0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1}},
	};
	uint32_t out[4], wide[4];

	(void)state;
	for (size_t i = 0; i < sizeof v / sizeof *v; i++) {
		philox4x32_10(v[i].counter, v[i].key, out);
		assert_memory_equal(out, v[i].out, sizeof out);
	}
	philox4x32(0x0123456789ABCDEF, 0xFEDCBA9876543210, out);
	philox4x32_10((uint32_t[]){0x76543210, 0xFEDCBA98, 0, 0},
	    (uint32_t[]){0x89ABCDEF, 0x01234567}, wide);
	assert_memory_equal(out, wide, sizeof out);
	assert_true(philox_uniform(0, 0) == 0x6627E8 * 0x1p-24f);
}

/* Absolute error of a value rounded once: 2^-25 and a little. */
static void
check_rope(const float *table, uint32_t ctx, uint32_t rot, double theta)
{
	for (uint32_t i = 0; i < rot / 2; i++) {
		long double f = powl(theta, -2.0L * i / rot);

		for (uint32_t pos = 0; pos < ctx; pos += pos < 64 ? 1 : 997) {
			const float *v =
			    table + ((size_t)pos * rot / 2 + i) * 2;

			assert_true(fabsl(v[0] - cosl(pos * f)) < 0x1.01p-25L);
			assert_true(fabsl(v[1] - sinl(pos * f)) < 0x1.01p-25L);
		}
	}
}

static void
rope(void **state)
{
	static const struct {
		uint32_t ctx, rot;
		double theta;
	} t[] = {
	    {40000, 128, 1e6}, {262144, 64, 1e7}, {300, 6, 10000}, {3, 2, 0.5}};

	(void)state;
	for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
		float *table = malloc(sizeof(float) * t[i].ctx * t[i].rot);

		assert_non_null(table);
		rope_table(table, t[i].ctx, t[i].rot, t[i].theta);
		check_rope(table, t[i].ctx, t[i].rot, t[i].theta);
		free(table);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(div_edges),
	    cmocka_unit_test(div_random),
	    cmocka_unit_test(reciprocal),
	    cmocka_unit_test(unary_errors),
	    cmocka_unit_test(fixed_bits),
	    cmocka_unit_test(special_values),
	    cmocka_unit_test(rounding),
	    cmocka_unit_test(half_precision),
	    cmocka_unit_test(brain_float),
	    cmocka_unit_test(philox_vectors),
	    cmocka_unit_test(rope),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
