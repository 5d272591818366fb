/* Packed weights and the kernels that read them, against numerics/quant.c:
 * every type, bit for bit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../numerics/quant.h"
#include "../runtime/pack.h"
#include "../runtime/plan.h"

/* The prelude repeats these two: its own ones get other names here. */
#define Q8A PreludeQ8A
#define StepArgs PreludeStepArgs
#include "../codegen/prelude_cpu.h"
#undef Q8A
#undef StepArgs

enum { MAX_ROWS = 17, MAX_NT = IG_MAX_NT };

typedef void QuantTile(
    const uint8_t *w, const PreludeQ8A *const *x, int k, f32x8 *out);
typedef void FloatTile(
    const uint8_t *w, const float *const *x, int k, f32x8 *out);
typedef void RowFn(const void *packed, uint64_t row, int k, float *out);

/* The kernels with nt a constant, as emitted code has it. */
#define EACH_NT(TILE, name, X)                                                 \
	TILE(name, X, 1)                                                       \
	TILE(name, X, 2)                                                       \
	TILE(name, X, 3)                                                       \
	TILE(name, X, 4)                                                       \
	TILE(name, X, 5) TILE(name, X, 6) TILE(name, X, 7) TILE(name, X, 8)
#define TILE(name, X, nt)                                                      \
	static void tile_##name##_##nt(                                        \
	    const uint8_t *w, const X *const *x, int k, f32x8 *out)            \
	{                                                                      \
		ig_tile_##name(w, x, nt, k, out);                              \
	}
/* clang-format off */
#define QUANT_TYPES(T)                                                         \
	T(Q4_0, q4_0)                                                          \
	T(Q4_1, q4_1)                                                          \
	T(Q5_0, q5_0)                                                          \
	T(Q5_1, q5_1)                                                          \
	T(Q8_0, q8_0) T(Q2_K, q2_k) T(Q3_K, q3_k) T(Q4_K, q4_k) T(Q5_K, q5_k)  \
	    T(Q6_K, q6_k) T(IQ4_NL, iq4_nl) T(IQ4_XS, iq4_xs)
/* clang-format on */
#define FLOAT_TYPES(T) T(F32, f32) T(F16, f16) T(BF16, bf16)

#define T(NAME, name) EACH_NT(TILE, name, PreludeQ8A)
QUANT_TYPES(T)
#undef T
#define T(NAME, name) EACH_NT(TILE, name, float)
FLOAT_TYPES(T)
#undef T

#define T(NAME, name)                                                          \
	[DT_##NAME] = {tile_##name##_1, tile_##name##_2, tile_##name##_3,      \
	    tile_##name##_4, tile_##name##_5, tile_##name##_6,                 \
	    tile_##name##_7, tile_##name##_8},
static QuantTile *const quant_tiles[DT_COUNT][MAX_NT] = {QUANT_TYPES(T)};
static FloatTile *const float_tiles[DT_COUNT][MAX_NT] = {FLOAT_TYPES(T)};
#undef T
#define T(NAME, name) [DT_##NAME] = ig_tile_bytes_##name,
typedef size_t BytesFn(int k);
static BytesFn *const bytes_fns[DT_COUNT] = {QUANT_TYPES(T) FLOAT_TYPES(T)};
#undef T
#define T(NAME, name) [DT_##NAME] = ig_row_##name,
static RowFn *const row_fns[DT_COUNT] = {QUANT_TYPES(T) FLOAT_TYPES(T)};
#undef T

/* ---- inputs ---- */

static uint64_t state = 1;

static uint32_t
any(void)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(state >> 32);
}

/* Magnitudes from 2^-9 to 2^6, both signs, sometimes zero. */
static float
any_float(void)
{
	float x = (float)(any() % 2001) - 1000.0f;

	return ldexpf(x / 1000.0f, (int)(any() % 16) - 9);
}

/* A finite half: any sign, denormals and zeros too. */
static void
put_half(uint8_t *p)
{
	uint16_t h = (uint16_t)any();

	if ((h & 0x7C00) == 0x7C00)
		h &= 0xBFFF;
	memcpy(p, &h, 2);
}

/* Offsets of the halves in a block of a QUANT type; -1: none. */
static void
half_offsets(DType t, int at[2])
{
	at[0] = 0;
	at[1] = -1;
	if (t == DT_Q4_1 || t == DT_Q5_1 || t == DT_Q4_K || t == DT_Q5_K)
		at[1] = 2;
	if (t == DT_Q2_K) {
		at[0] = 80;
		at[1] = 82;
	}
	if (t == DT_Q3_K)
		at[0] = 108;
	if (t == DT_Q6_K)
		at[0] = 208;
}

enum Fill { FILL_ANY, FILL_ONES, FILL_ZERO, FILL_LOWEST, FILL_COUNT };

/* A row of k weights: random bytes, or all bits of codes and scales set, or
 * none, or the bytes 0x80 (the lowest code of Q8_0 and scale of Q6_K). */
static void
fill_row(DType t, enum Fill fill, uint64_t k, uint8_t *row)
{
	static const int bytes[] = {-1, 0xFF, 0x00, 0x80};
	uint64_t n = dtype_bytes(t, k);
	int at[2];

	for (uint64_t i = 0; i < n; i++)
		row[i] =
		    (uint8_t)(fill == FILL_ANY ? any() : (uint32_t)bytes[fill]);
	if (dtypes[t].kind == DK_QUANT) {
		half_offsets(t, at);
		for (uint64_t b = 0; b < n; b += dtypes[t].bytes)
			for (int i = 0; i < 2 && at[i] >= 0; i++)
				put_half(row + b + at[i]);
		return;
	}
	for (uint64_t i = 0; i < k; i++) {
		float x = any_float();

		if (t == DT_F32)
			memcpy(row + 4 * i, &x, 4);
		else if (t == DT_F16)
			put_half(row + 2 * i);
		else
			memcpy(row + 2 * i, (uint8_t *)&x + 2, 2);
	}
}

/* Quantised activations; extreme: codes of +-127 only, all of one sign in
 * rows 0 and 2. */
static void
fill_codes(int row, int extreme, int blocks, Q8A *a, PreludeQ8A *x)
{
	for (int b = 0; b < blocks; b++) {
		int sum[2] = {0};

		memset(&a[b], 0, sizeof a[b]);
		for (int e = 0; e < 32; e++) {
			int q = (int)(any() % 255) - 127;

			if (extreme)
				q = row % 2 == 0 || any() % 2 ? 127 : -127;
			if (extreme && row == 2)
				q = -127;
			a[b].q[e] = (int8_t)q;
			sum[e / 16] += q;
		}
		a[b].s = fabsf(any_float());
		a[b].h = a[b].s * (float)(sum[0] + sum[1]);
		x[b].s = a[b].s;
		x[b].h = a[b].h;
		x[b].sum[0] = (int16_t)sum[0];
		x[b].sum[1] = (int16_t)sum[1];
		memcpy(x[b].q, a[b].q, 32);
	}
}

/* ---- checks ---- */

static void
assert_bits(float a, float b)
{
	uint32_t u, v;

	memcpy(&u, &a, 4);
	memcpy(&v, &b, 4);
	if (isnan(a) && isnan(b))
		return;
	assert_int_equal(u, v);
}

typedef struct Matrix {
	DType type;
	int k, rows;
	uint8_t *row[MAX_ROWS]; /* each an allocation of its own */
	uint8_t *packed;        /* exactly as long as pack_bytes says */
} Matrix;

static void
make_matrix(Matrix *m, DType t, int k, int rows, enum Fill fill)
{
	uint64_t tile = pack_tile_bytes(t, (uint64_t)k), bytes;

	m->type = t;
	m->k = k;
	m->rows = rows;
	bytes = pack_bytes(PACK_ROWS8, t, 1, (uint64_t)rows, (uint64_t)k);
	assert_int_equal(tile, bytes_fns[t](k));
	assert_int_equal(bytes, tile * (uint64_t)((rows + 7) / 8));
	m->packed = malloc(bytes);
	memset(m->packed, 0xA5, bytes);
	for (int r = 0; r < rows; r++) {
		m->row[r] = malloc(dtype_bytes(t, (uint64_t)k));
		fill_row(t, fill, (uint64_t)k, m->row[r]);
	}
	for (int r = 0; r < rows; r += 8)
		pack_tile(t, (uint64_t)k, (const void *const *)&m->row[r],
		    rows - r < 8 ? rows - r : 8,
		    m->packed + (uint64_t)(r / 8) * tile);
}

static void
free_matrix(Matrix *m)
{
	for (int r = 0; r < m->rows; r++)
		free(m->row[r]);
	free(m->packed);
}

/* Rows beyond the last one are zero. */
static void
check_result(const Matrix *m, int r, const float *want, float got)
{
	if (r < m->rows)
		assert_bits(want[r], got);
	else
		assert_true(got == 0.0f);
}

/* All tiles of m, with the first nt activation rows. */
static void
check_tiles(
    const Matrix *m, int nt, const void *const *x, float want[][MAX_ROWS])
{
	const uint8_t *w = m->packed;

	for (int r = 0; r < m->rows; r += 8) {
		f32x8 out[MAX_NT];

		if (dtypes[m->type].kind == DK_QUANT)
			quant_tiles[m->type][nt - 1](
			    w, (const PreludeQ8A *const *)x, m->k, out);
		else
			float_tiles[m->type][nt - 1](
			    w, (const float *const *)x, m->k, out);
		for (int i = 0; i < 8 * nt; i++)
			check_result(
			    m, r + i % 8, want[i / 8], out[i / 8][i % 8]);
		w += pack_tile_bytes(m->type, (uint64_t)m->k);
	}
}

/* Row j of the activations, an allocation of its own; want gets its dot
 * products. */
static void *
quant_activations(const Matrix *m, int j, int extreme, float *want)
{
	size_t blocks = (size_t)m->k / 32;
	Q8A *a = calloc(blocks, sizeof *a);
	PreludeQ8A *x = calloc(blocks, sizeof *x);

	fill_codes(j, extreme, (int)blocks, a, x);
	for (int r = 0; r < m->rows; r++)
		want[r] = dot_group256(m->type, m->row[r], a, (uint64_t)m->k);
	free(a);
	return x;
}

static void *
float_activations(const Matrix *m, float *want)
{
	float *x = calloc((size_t)m->k, sizeof *x);

	for (int i = 0; i < m->k; i++)
		x[i] = any_float();
	for (int r = 0; r < m->rows; r++)
		want[r] = dot32(m->type, m->row[r], x, (uint64_t)m->k);
	return x;
}

static void
check_products(const Matrix *m, int extreme)
{
	float want[MAX_NT][MAX_ROWS];
	void *x[MAX_NT];

	for (int j = 0; j < MAX_NT; j++)
		x[j] = dtypes[m->type].kind == DK_QUANT
			   ? quant_activations(m, j, extreme, want[j])
			   : float_activations(m, want[j]);
	for (int nt = 1; nt <= MAX_NT; nt++)
		check_tiles(m, nt, (const void *const *)x, want);
	for (int j = 0; j < MAX_NT; j++)
		free(x[j]);
}

static void
check_rows(const Matrix *m)
{
	float *want = calloc((size_t)m->k, sizeof *want);
	float *got = calloc((size_t)m->k, sizeof *got);

	for (int r = 0; r < m->rows; r++) {
		dequant_row(m->type, m->row[r], (uint64_t)m->k, want);
		row_fns[m->type](m->packed, (uint64_t)r, m->k, got);
		for (int i = 0; i < m->k; i++)
			assert_bits(want[i], got[i]);
	}
	free(want);
	free(got);
}

static void
check_shape(DType t, int k, int rows, enum Fill fill)
{
	Matrix m;

	make_matrix(&m, t, k, rows, fill);
	for (int extreme = 0; extreme < 2; extreme++)
		check_products(&m, extreme);
	check_rows(&m);
	free_matrix(&m);
}

static void
test_tiles_and_rows(void **unused)
{
	static const int ks[] = {
	    32, 64, 96, 256, 320, 512, 832, 2048, 100, 7, 8, 1, 72};
	int cases = 0;

	(void)unused;
	for (int t = 0; t < DT_COUNT; t++) {
		if (!row_fns[t])
			continue;
		for (size_t i = 0; i < sizeof ks / sizeof *ks; i++) {
			if (ks[i] % (int)dtypes[t].block != 0)
				continue;
			for (int rows = 1; rows <= MAX_ROWS; rows++)
				check_shape((DType)t, ks[i], rows, FILL_ANY);
			for (int f = 1; f < FILL_COUNT; f++)
				check_shape((DType)t, ks[i], 8, (enum Fill)f);
			cases++;
		}
	}
	assert_int_equal(cases, 3 * 13 + 6 * 8 + 6 * 3);
}

static void
test_sizes(void **unused)
{
	(void)unused;
	assert_int_equal(pack_tile_bytes(DT_Q4_K, 512), 2 * (32 + 8 * 144));
	assert_int_equal(pack_tile_bytes(DT_Q8_0, 320), 10 * (16 + 256));
	assert_int_equal(pack_tile_bytes(DT_F16, 100), 1600);
	assert_int_equal(
	    pack_bytes(PACK_ROWS8, DT_Q6_K, 3, 9, 256), 6 * (16 + 8 * 208));
	assert_int_equal(pack_bytes(PACK_PLAIN, DT_Q6_K, 3, 9, 256), 27 * 210);
	assert_true(pack_bytes(PACK_ROWS8, DT_F32, 1u << 20, 1ull << 40, 64) ==
		    UINT64_MAX);
	assert_true(
	    pack_bytes(PACK_PLAIN, DT_F32, 1, 1, 1ull << 60) == UINT64_MAX);
	assert_true(
	    pack_bytes(PACK_ROWS8, DT_F32, 1, UINT64_MAX, 64) == UINT64_MAX);
}

static void
check_quantise(const float *x, int n, int bad)
{
	Q8A *want = calloc((size_t)n / 32, sizeof *want);
	PreludeQ8A *got = calloc((size_t)n / 32, sizeof *got);

	memset(got, 0xA5, (size_t)n / 32 * sizeof *got);
	quantise_row(x, (uint64_t)n, want);
	assert_int_equal(ig_quantise(x, n, got) != 0, bad);
	for (int b = 0; b < n / 32; b++) {
		int sum[2] = {0};

		assert_bits(want[b].s, got[b].s);
		assert_bits(want[b].h, got[b].h);
		assert_memory_equal(want[b].q, got[b].q, 32);
		for (int e = 0; e < 32; e++)
			sum[e / 16] += want[b].q[e];
		assert_int_equal(sum[0], got[b].sum[0]);
		assert_int_equal(sum[1], got[b].sum[1]);
	}
	free(want);
	free(got);
}

static void
test_quantise(void **unused)
{
	float x[832];

	(void)unused;
	for (int n = 32; n <= 832; n += 32) {
		for (int i = 0; i < n; i++)
			x[i] = any_float();
		check_quantise(x, n, 0);
		for (int i = 0; i < n; i++)
			x[i] = ldexpf(any_float(), -(int)(any() % 140));
		check_quantise(x, n, 0);
		/* Ties: amax is 127, so r is 1. */
		for (int i = 0; i < n; i++)
			x[i] = (float)(any() % 509) / 2.0f - 127.0f;
		for (int i = 0; i < n; i += 32)
			x[i] = 127.0f;
		check_quantise(x, n, 0);
		x[any() % (uint32_t)n] = n % 64 ? INFINITY : -NAN;
		check_quantise(x, n, 1);
	}
	for (int i = 0; i < 64; i++)
		x[i] = i < 32 ? -0x1p-100f : 0x1.FFFFFEp-101f;
	check_quantise(x, 64, 0);
	for (int i = 0; i < 64; i++)
		x[i] = i % 2 ? 3.4e38f : -0.0f;
	check_quantise(x, 64, 0);
}

static void
test_sums(void **unused)
{
	static const int ns[] = {1, 7, 8, 32, 64, 100, 128, 129, 136, 200, 256,
	    257, 300, 512, 1000, 2048};
	float x[2048], p[128];

	(void)unused;
	for (size_t c = 0; c < sizeof ns / sizeof *ns; c++)
		for (int zero = 0; zero < 3; zero++) {
			int n = ns[c];

			for (int i = 0; i < n; i++)
				x[i] = zero && any() % 3 ? -0.0f : any_float();
			for (int i = 0; zero == 2 && i < n; i++)
				x[i] = -0.0f;
			assert_bits(row_sum(x, (uint64_t)n), ig_sum(x, n));
			assert_bits(
			    row_sum_sq(x, (uint64_t)n), ig_sum_sq(x, n));
		}
	for (int i = 0; i < 128; i++)
		p[i] = x[i] = any_float();
	assert_bits(neighbour_tree(p, 128), ig_tree128(x));
	for (int i = 0; i < 128; i++)
		p[i] = x[i] = -0.0f;
	assert_bits(neighbour_tree(p, 128), ig_tree128(x));
}

static void
test_bf16(void **unused)
{
	uint16_t h[8];

	(void)unused;
	for (int n = 0; n < 2000; n++) {
		for (int i = 0; i < 8; i++)
			h[i] = (uint16_t)any();
		for (int i = 0; i < 8; i++) {
			f32x8 v = ig_load_bf16x8(h);

			assert_bits(v[i], ig_from_bf16(h[i]));
		}
	}
}

static void
test_shared_structs(void **unused)
{
	uint32_t fault = 0;
	PreludeStepArgs s = {.fault = &fault};

	(void)unused;
	assert_int_equal(sizeof(PreludeQ8A), dtypes[DT_Q8A].bytes);
	assert_int_equal(sizeof(PreludeStepArgs), sizeof(StepArgs));
	assert_int_equal(
	    offsetof(PreludeStepArgs, pages), offsetof(StepArgs, pages));
	assert_int_equal(
	    offsetof(PreludeStepArgs, fault), offsetof(StepArgs, fault));
	ig_fault(&s);
	assert_int_equal(fault, 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_tiles_and_rows),
	    cmocka_unit_test(test_sizes),
	    cmocka_unit_test(test_quantise),
	    cmocka_unit_test(test_sums),
	    cmocka_unit_test(test_bf16),
	    cmocka_unit_test(test_shared_structs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
