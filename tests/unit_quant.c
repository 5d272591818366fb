/* Weight blocks, the activation quantiser and the named orders.  Runs in the
 * repository's root: it reads tests/fixtures/blocks.bin. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../numerics/arith.h"
#include "../numerics/quant.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIXTURE "tests/fixtures/blocks.bin"
#define BIG 0x1p24f /* BIG + 1 rounds to BIG */

static void
read_exactly(FILE *f, void *p, size_t n)
{
	if (fread(p, 1, n, f) != n)
		fail_msg("%s is short", FIXTURE);
}

static void
check_blocks(FILE *f, DType t, uint32_t n)
{
	uint64_t k = (uint64_t)n * dtypes[t].block;
	uint8_t *blocks = malloc(dtype_bytes(t, k));
	float *want = malloc(k * 4), *got = malloc(k * 4);

	assert_true(blocks && want && got);
	read_exactly(f, blocks, dtype_bytes(t, k));
	read_exactly(f, want, k * 4);
	dequant_row(t, blocks, k, got);
	for (uint64_t i = 0; i < k; i++)
		if (ig_bits(got[i]) != ig_bits(want[i]))
			fail_msg("%s weight %d: %a, not %a", dtypes[t].name,
			    (int)i, (double)got[i], (double)want[i]);
	free(blocks);
	free(want);
	free(got);
}

/* Bit for bit against an independent dequantiser. */
static void
dequant_fixture(void **state)
{
	FILE *f = fopen(FIXTURE, "rb");
	uint32_t head[2];
	int seen = 0;

	(void)state;
	assert_non_null(f);
	for (; fread(head, 1, sizeof head, f) == sizeof head; seen++) {
		DType t = dtype_by_gguf(head[0]);

		assert_true(t < DT_COUNT && dtypes[t].kind == DK_QUANT);
		check_blocks(f, t, head[1]);
	}
	fclose(f);
	assert_int_equal(seen, 12);
}

static void
dequant_floats(void **state)
{
	static const uint8_t f16[] = {0x00, 0x3C, 0x01, 0x80};
	static const uint8_t bf16[] = {0x80, 0x3F, 0x49, 0xC0};
	static const float f32[] = {1.5f, -0.0f};
	float out[2];

	(void)state;
	dequant_row(DT_F16, f16, 2, out);
	assert_true(out[0] == 1 && out[1] == -0x1p-24f);
	dequant_row(DT_BF16, bf16, 2, out);
	assert_true(out[0] == 1 && out[1] == -3.140625f);
	dequant_row(DT_F32, f32, 2, out);
	assert_memory_equal(out, f32, sizeof out);
}

static uint32_t
draw(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return (uint32_t)(*state >> 32);
}

/* Uniform in [-1, 1). */
static float
uniform(uint64_t *state)
{
	return (float)(int32_t)draw(state) * 0x1p-31f;
}

/* Random bytes, then half-precision fields between 2^-10 and 2^-6. */
static void
random_row(DType t, uint8_t *row, uint64_t k, uint64_t *seed)
{
	static const int fields[DT_COUNT][2] = {[DT_Q4_1] = {0, 2},
	    [DT_Q5_1] = {0, 2},
	    [DT_Q2_K] = {80, 82},
	    [DT_Q3_K] = {108, 108},
	    [DT_Q4_K] = {0, 2},
	    [DT_Q5_K] = {0, 2},
	    [DT_Q6_K] = {208, 208}};
	uint32_t bytes = dtypes[t].bytes;

	for (uint64_t i = 0; i < dtype_bytes(t, k); i++)
		row[i] = (uint8_t)draw(seed);
	for (uint64_t b = 0; b < k / dtypes[t].block; b++)
		for (int i = 0; i < 2; i++)
			row[b * bytes + (uint64_t)fields[t][i] + 1] =
			    (uint8_t)(0x14 + draw(seed) % 16);
}

/* The dot product of the dequantised weights and activations in double, and
 * the sum of the terms' magnitudes. */
static double
dot_double(DType t, const uint8_t *row, const Q8A *a, uint64_t k, double *mag)
{
	float *w = malloc(k * 4);
	double sum = 0;

	assert_non_null(w);
	dequant_row(t, row, k, w);
	*mag = 0;
	for (uint64_t i = 0; i < k; i++) {
		double p =
		    (double)w[i] * (double)a[i / 32].s * a[i / 32].q[i % 32];

		sum += p;
		*mag += fabs(p);
	}
	free(w);
	return sum;
}

static void
check_dot(DType t, uint64_t k, uint64_t *seed)
{
	uint8_t row[4096];
	float x[2048];
	Q8A a[64];
	double mag, want, got;

	assert_true(k <= 2048 && dtype_bytes(t, k) <= sizeof row);
	random_row(t, row, k, seed);
	for (uint64_t i = 0; i < k; i++)
		x[i] = uniform(seed);
	quantise_row(x, k, a);
	want = dot_double(t, row, a, k, &mag);
	got = (double)dot_group256(t, row, a, k);
	if (!(fabs(got - want) <= 2e-6 * mag) || mag == 0)
		fail_msg("%s k %d: %g, not %g (of %g)", dtypes[t].name, (int)k,
		    got, want, mag);
}

static void
dot_in_double(void **state)
{
	static const uint64_t lengths[] = {
	    32, 96, 256, 320, 512, 832, 1024, 1280, 1792, 2048};
	uint64_t seed = 7;
	int cases = 0;

	(void)state;
	for (int t = 0; t < DT_COUNT; t++)
		for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
			uint32_t block = dtypes[t].block;

			if (dtypes[t].kind != DK_QUANT || lengths[i] % block)
				continue;
			check_dot((DType)t, lengths[i], &seed);
			cases++;
		}
	assert_int_equal(cases, 6 * 10 + 6 * 6);
}

static void
put_half(uint8_t *p, uint16_t h)
{
	p[0] = (uint8_t)h;
	p[1] = (uint8_t)(h >> 8);
}

#define HALF_ONE 0x3C00

/* A block of scale 1 and one weight 1, whose activation is 1 with scale v:
 * its dot product is v. */
static void
q8_0_block(uint8_t *row, Q8A *a, uint64_t b, float v)
{
	uint8_t *p = row + 34 * b;

	memset(p, 0, 34);
	put_half(p, HALF_ONE);
	p[2 + 5] = 1;
	memset(&a[b], 0, sizeof *a);
	a[b].s = v;
	a[b].q[5] = 1;
}

/* Dot product of a Q8_0 row whose block b contributes v[b]. */
static float
dot_of_blocks(const float *v, uint64_t n)
{
	uint8_t row[34 * 64];
	Q8A a[64];

	assert_true(n <= 64);
	for (uint64_t b = 0; b < n; b++)
		q8_0_block(row, a, b, v[b]);
	return dot_group256(DT_Q8_0, row, a, n * 32);
}

/* Dot product of a row whose group g contributes v[g]. */
static float
dot_of_groups(const float *v, uint64_t n)
{
	float blocks[64] = {0};

	assert_true(n <= 8);
	for (uint64_t g = 0; g < n; g++)
		blocks[8 * g + 3] = v[g];
	return dot_of_blocks(blocks, 8 * n);
}

static void
chains(void **state)
{
	float blocks[34] = {0};

	(void)state;
	/* groups 0 and 4 share a chain */
	assert_true(dot_of_groups((float[]){BIG, 1, 1, 1, -BIG}, 5) == 3);
	assert_true(dot_of_groups((float[]){BIG, 1, 1, 1, 1, -BIG}, 6) ==
		    (BIG + (1 - BIG)) + 1 + 1);
	assert_true(
	    dot_of_groups((float[]){0, 0, 1, -BIG, 0, 0, 0, BIG}, 8) == 1);
	/* ((c0 + c1) + c2) + c3, not pairs */
	assert_true(dot_of_groups((float[]){BIG, 1, 1, 2}, 4) == BIG + 2);
	/* ascending inside a group, the group's sum from +0 */
	assert_true(dot_of_blocks((float[]){BIG, 1, -BIG}, 3) == 0);
	assert_true(dot_of_blocks((float[]){BIG, -BIG, 1}, 3) == 1);
	blocks[0] = BIG, blocks[32] = blocks[33] = 1;
	assert_true(dot_of_blocks(blocks, 34) == BIG + 2);
	/* block 8 opens the next group */
	assert_true(dot_of_blocks(
			(float[]){BIG, 0, 0, 0, 0, 0, 0, 1, 1, -BIG}, 10) == 1);
}

/* Q4_1: block 0 is BIG with minimum -BIG, block 1 is 1.  A minimum that
 * waited for the second block would swallow the 1. */
static void
minimum_at_once(void **state)
{
	uint8_t row[40] = {0};
	Q8A a[2];

	(void)state;
	memset(a, 0, sizeof a);
	put_half(row, HALF_ONE);
	put_half(row + 2, HALF_ONE);
	row[4] = 1;
	a[0].s = BIG;
	a[0].h = -BIG;
	a[0].q[0] = 1;
	put_half(row + 20, HALF_ONE);
	row[24] = 0x10;
	a[1].s = 1;
	a[1].q[16] = 1;
	assert_true(dot_group256(DT_Q4_1, row, a, 64) == 1);
}

/* Q2_K, first block: the integer part is BIG, all in the first half; the
 * minima give 1 and then 2. */
static void
minima_of_halves(void **state)
{
	uint8_t row[84] = {0};
	Q8A a[8];

	(void)state;
	memset(a, 0, sizeof a);
	row[0] = 8 | 1 << 4;
	row[1] = 8 | 2 << 4;
	for (int e = 0; e < 16; e++)
		row[16 + e] = 2;
	put_half(row + 80, 0x6400); /* d = 2^10 */
	put_half(row + 82, 0x9400); /* dmin = -2^-10 */
	a[0].s = 1;
	memset(a[0].q, 64, 32);
	assert_true(dot_group256(DT_Q2_K, row, a, 256) == BIG + 2);
	memset(row + 16, 0, 16);
	assert_true(dot_group256(DT_Q2_K, row, a, 256) == 3);
}

/* s_w*s_a is rounded before the fma: (1 + 2^-10)*(1 + 2^-14), times 127. */
static void
scale_product(void **state)
{
	uint8_t row[34] = {0};
	Q8A a = {.s = 0x1.0004p0f, .q = {127}};

	(void)state;
	put_half(row, 0x3C01);
	row[2] = 1;
	assert_true(dot_group256(DT_Q8_0, row, &a, 32) ==
		    (float)(127 * (double)(0x1.004p0f * 0x1.0004p0f)));
	assert_true((float)(127 * (0x1.004p0 * 0x1.0004p0)) !=
		    (float)(127 * (double)(0x1.004p0f * 0x1.0004p0f)));
}

static void
zero_scales(void **state)
{
	uint8_t row[4 * 210] = {0};
	Q8A a[32];
	float x[1024];

	(void)state;
	for (int i = 0; i < 1024; i++)
		x[i] = (float)(i % 7) - 3;
	quantise_row(x, 1024, a);
	for (int t = 0; t < DT_COUNT; t++)
		if (dtypes[t].kind == DK_QUANT)
			assert_int_equal(
			    ig_bits(dot_group256((DType)t, row, a, 512)), 0);
	memset(x, 0, sizeof x);
	quantise_row(x, 1024, a);
	memset(row, 0x11, sizeof row);
	for (int t = 0; t < DT_COUNT; t++)
		if (dtypes[t].kind == DK_QUANT)
			assert_true(dot_group256((DType)t, row, a, 512) == 0);
	assert_int_equal(ig_bits(dot_group256(DT_Q8_0, row, a, 0)), 0);
}

static void
quantise_exact(void **state)
{
	float x[32] = {127, 0.5f, 1.5f, 2.5f, -0.5f, -1.5f, -127, 126.5f};
	static const int8_t want[8] = {127, 0, 2, 2, 0, -2, -127, 126};
	Q8A a;

	(void)state;
	quantise_row(x, 32, &a);
	assert_memory_equal(a.q, want, 8);
	assert_true(a.s == 127 * 0x1.020408p-7f);
	assert_true(a.h == a.s * 128);
}

static void
quantise_edges(void **state)
{
	float x[32] = {0}, huge = 0x1.FFFFFEp127f;
	Q8A a;

	(void)state;
	x[3] = 0x1.FFFFFEp-101f;
	quantise_row(x, 32, &a);
	assert_true(a.s == 0 && a.h == 0 && a.q[3] == 0);
	x[3] = -0x1p-100f;
	quantise_row(x, 32, &a);
	assert_true(a.s > 0 && a.q[3] == -127 && a.h == a.s * -127);
	x[4] = huge;
	quantise_row(x, 32, &a);
	assert_true(isfinite(a.s) && a.q[3] == 0 && a.q[4] == 127);
	x[5] = -INFINITY;
	quantise_row(x, 32, &a);
	assert_true(isnan(a.s) && isnan(a.h) && a.q[4] == 0);
	x[5] = NAN;
	quantise_row(x, 32, &a);
	assert_true(isnan(a.s) && isnan(a.h) && a.q[4] == 0);
}

static void
quantise_random(void **state)
{
	uint64_t seed = 3;
	float x[320];
	Q8A a[10];

	(void)state;
	for (int i = 0; i < 320; i++)
		x[i] = ldexpf(uniform(&seed), i / 32 * 9 - 40);
	quantise_row(x, 320, a);
	for (int b = 0; b < 10; b++) {
		int sum = 0;

		for (int e = 0; e < 32; e++) {
			double s = (double)a[b].s;

			sum += a[b].q[e];
			assert_true(fabs((double)x[32 * b + e] -
					 s * a[b].q[e]) <= 0.50001 * s);
		}
		assert_true(a[b].h == a[b].s * (float)sum);
	}
}

static void
dot8_order(void **state)
{
	float w[80] = {0}, one[80];

	(void)state;
	for (int i = 0; i < 80; i++)
		one[i] = 1;
	/* elements 0..7 and 64..71 share accumulator 0, ascending */
	w[0] = BIG, w[7] = 1, w[64] = -BIG, w[71] = 1;
	assert_true(dot8(DT_F32, w, one, 80) == 1);
	/* (a0 + a1) + (a2 + a3): the 1s meet before they meet BIG */
	memset(w, 0, sizeof w);
	w[0] = BIG, w[16] = 1, w[24] = 1;
	assert_true(dot8(DT_F32, w, one, 80) == BIG + 2);
	w[24] = 0, w[8] = 1;
	assert_true(dot8(DT_F32, w, one, 80) == BIG);
	/* fma: the product is not rounded */
	w[0] = 1 + 0x1p-12f, w[8] = w[16] = 0, w[1] = -1 - 0x1p-11f;
	one[0] = 1 + 0x1p-12f;
	assert_true(dot8(DT_F32, w, one, 80) == 0);
	w[2] = w[0], w[0] = w[1], w[1] = 0;
	one[2] = one[0], one[0] = 1;
	assert_true(dot8(DT_F32, w, one, 3) == 0x1p-24f);
}

/* As above, with 32 accumulators: 0..7 and 256..263 share the first, and the
 * tree takes neighbours. */
static void
dot32_order(void **state)
{
	float w[272] = {0}, one[272];

	(void)state;
	for (int i = 0; i < 272; i++)
		one[i] = 1;
	w[0] = BIG, w[7] = 1, w[256] = -BIG, w[263] = 1;
	assert_true(dot32(DT_F32, w, one, 272) == 1);
	memset(w, 0, sizeof w);
	w[0] = BIG, w[64] = -BIG, w[8] = 1;
	assert_true(dot32(DT_F32, w, one, 272) == 0);
	w[8] = 0, w[128] = 1;
	assert_true(dot32(DT_F32, w, one, 272) == 1);
	memset(w, 0, sizeof w);
	w[0] = BIG, w[16] = 1, w[24] = 1;
	assert_true(dot32(DT_F32, w, one, 272) == BIG + 2);
}

static void
dot8_types(void **state)
{
	static const uint16_t f16[3] = {0x3C00, 0x4000, 0x4200};
	static const uint16_t bf16[3] = {0x3F80, 0x4000, 0x4040};
	static const float f32[3] = {1, 2, 3}, x[3] = {10, 100, 1000};

	(void)state;
	assert_true(dot8(DT_F16, f16, x, 3) == 3210);
	assert_true(dot8(DT_BF16, bf16, x, 3) == 3210);
	assert_true(dot8(DT_F32, f32, x, 3) == 3210);
	assert_true(dot32(DT_F16, f16, x, 3) == 3210);
	assert_true(dot32(DT_BF16, bf16, x, 3) == 3210);
	assert_int_equal(ig_bits(dot8(DT_F32, f32, x, 0)), 0);
}

static void
row_sums(void **state)
{
	float x[600] = {0};

	(void)state;
	for (int i = 0; i < 600; i++)
		x[i] = (float)(i % 5);
	assert_true(row_sum(x, 600) == 1200);
	assert_true(row_sum_sq(x, 600) == 3600);
	/* 0, 256 and 512 share an accumulator */
	memset(x, 0, sizeof x);
	x[0] = BIG, x[1] = 1, x[256] = 1, x[512] = -BIG;
	assert_true(row_sum(x, 600) == 1);
	x[1] = 0, x[128] = 1, x[256] = -BIG, x[512] = 0;
	assert_true(row_sum(x, 600) == 1);
	/* neighbours meet first */
	memset(x, 0, sizeof x);
	x[0] = BIG, x[2] = 1, x[3] = 1;
	assert_true(row_sum(x, 600) == BIG + 2);
	x[3] = 0, x[1] = 1;
	assert_true(row_sum(x, 600) == BIG);
	/* squares enter by fma */
	memset(x, 0, sizeof x);
	x[0] = 1, x[256] = 1 + 0x1p-12f;
	assert_true(row_sum_sq(x, 257) == 2 + 0x1p-11f);
	x[0] = 0x1p-12f, x[256] = 1 + 0x1p-12f;
	assert_true(row_sum_sq(x, 257) ==
		    (float)(0x1p-24 + (1 + 0x1p-12) * (1 + 0x1p-12)));
	assert_true(row_sum(x, 0) == 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(dequant_fixture),
	    cmocka_unit_test(dequant_floats),
	    cmocka_unit_test(dot_in_double),
	    cmocka_unit_test(chains),
	    cmocka_unit_test(minimum_at_once),
	    cmocka_unit_test(minima_of_halves),
	    cmocka_unit_test(scale_product),
	    cmocka_unit_test(zero_scales),
	    cmocka_unit_test(quantise_exact),
	    cmocka_unit_test(quantise_edges),
	    cmocka_unit_test(quantise_random),
	    cmocka_unit_test(dot8_order),
	    cmocka_unit_test(dot32_order),
	    cmocka_unit_test(dot8_types),
	    cmocka_unit_test(row_sums),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
