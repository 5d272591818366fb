/* What the fixed order of arithmetic costs on cpu: the prelude's kernels
 * (`fixed`) beside the fastest form found of the same work in any order
 * (`free`); one thread, by this thread's CPU time, the two in turn, medians.
 *
 *     bench_order [WORD ...]     rows whose name contains a word
 *
 * Build it with clang, which also compiles the kernels of a plan; gcc's code
 * for them is several times slower.
 *
 * decode: 1 row of activations, 11008 x 4096 weights, beyond any L2 cache.
 * prefill: 256 rows of activations, 256 x 4096 weights, 32 rows at a time as
 * kernels take them.
 *
 * Free products with quantised weights read the same packed tiles. `a32` has
 * the activations of the rule, a scale for 32. `a256` has a scale for 256, so
 * that a type with a scale for 256 weights needs one conversion and one fma
 * for 256: those are other numbers, with 5 to 10 times the error.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#pragma GCC diagnostic ignored "-Wunused-function"
#include "../codegen/prelude_ops.h"

enum { K = 4096, GROUPS = K / 256, BLOCKS = K / 32 };
enum { DECODE_ROWS = 11008, PREFILL_ROWS = 256, TOKENS = 256 };
enum { ROW = 3072, KEYS = 1024, HEAD = 128 };
enum { ROUNDS = 11, WEIGHT_BYTES = DECODE_ROWS * K * 4 };

/* 256 activations of one scale. */
typedef struct Q8W {
	float s;
	int16_t sum[16]; /* of 16 codes each */
	int8_t q[256];
} Q8W;

typedef struct Input {
	const uint8_t *w;
	size_t tile; /* bytes of 8 rows */
	Q8A *a;
	Q8W *wide;
	float *x, *y;
	float *state; /* HEAD x HEAD */
	uint32_t page[KEYS / IG_PAGE];
} Input;

typedef void Kernel(const Input *in);

/* ---- quantised weights ---- */

/* One running sum takes every block: a group is no unit. */
IG_IN void
free_tile_a32(
    IgFormat f, const uint8_t *w, const Q8A *const *x, int nt, f32x8 *out)
{
	f32x8 t[IG_MAX_NT] = {{0}};
	const uint8_t *head = w;

	for (int b = 0; b < BLOCKS; b++, w += ig_block_bytes(f)) {
		if (b % 8 == 0) {
			head = w;
			w += ig_head_bytes(f);
		}
		ig_add_blocks(f, head, w, x, b, nt, t);
	}
	for (int j = 0; j < nt; j++)
		out[j] = t[j];
}

/* Sums of a group. */
typedef struct Wide {
	__m256i sum[IG_MAX_NT], min[IG_MAX_NT];
	f32x8 t[IG_MAX_NT]; /* IG_D only */
} Wide;

IG_IN __m256i
free_dot_a256(IgFormat f, const IgScales *s, const __m256i n[8],
    const int8_t *q, __m256i sum)
{
	int span = ig_span(f);

	IG_UNROLL
	for (int i = 0; i < 8; i += span) {
		__m256i p = ig_products(f, n[i], q + 4 * i);

		IG_UNROLL
		for (int e = i + 1; e < i + span; e++)
			p = _mm256_add_epi16(
			    p, ig_products(f, n[e], q + 4 * e));
		sum = _mm256_add_epi32(sum, _mm256_madd_epi16(p, s->sc[i / 4]));
	}
	return sum;
}

IG_IN void
free_block_a256(IgFormat f, const uint8_t *w, const uint8_t *head, int b,
    const Q8W *const *a, int nt, Wide *v)
{
	IgScales s = ig_scales(f, head, w);
	__m256i n[8], mn = ig_pairs(w + 8, w + 8);

	ig_fetch_ahead(w, ig_block_bytes(f));
	if (f.scales == IG_SCM)
		s.sc[0] = s.sc[1] = ig_pairs(w, w);
	IG_UNROLL
	for (int i = 0; i < 8; i++)
		n[i] = ig_quad(f, w + ig_scale_bytes(f), i);
	IG_UNROLL
	for (int j = 0; j < nt; j++) {
		__m256i sums = ig_splat4(a[j]->sum + 2 * b);
		__m256i sum = v->sum[j];

		if (f.scales == IG_D)
			sum = _mm256_setzero_si256();
		if (f.offset)
			sum = _mm256_sub_epi32(
			    sum, _mm256_madd_epi16(s.offset, sums));
		sum = free_dot_a256(f, &s, n, a[j]->q + 32 * b, sum);
		if (f.scales == IG_SCM)
			v->min[j] = _mm256_add_epi32(
			    v->min[j], _mm256_madd_epi16(mn, sums));
		if (f.scales == IG_D)
			v->t[j] = _mm256_fmadd_ps(
			    s.s, _mm256_cvtepi32_ps(sum), v->t[j]);
		else
			v->sum[j] = sum;
	}
}

/* out plus a group whose sums are v. */
IG_IN f32x8
free_add_group(
    IgFormat f, const uint8_t *head, float s, const Wide *v, int j, f32x8 out)
{
	if (f.scales == IG_D)
		return _mm256_fmadd_ps(ig_splat(s), v->t[j], out);
	out = _mm256_fmadd_ps(ig_splat(s) * ig_load_f16x8(head),
	    _mm256_cvtepi32_ps(v->sum[j]), out);
	if (f.scales == IG_SCM)
		out = _mm256_fnmadd_ps(ig_splat(s) * ig_load_f16x8(head + 16),
		    _mm256_cvtepi32_ps(v->min[j]), out);
	return out;
}

IG_IN void
free_tile_a256(
    IgFormat f, const uint8_t *w, const Q8W *const *x, int nt, f32x8 *out)
{
	for (int j = 0; j < nt; j++)
		out[j] = _mm256_setzero_ps();
	for (int g = 0; g < GROUPS; g++) {
		const uint8_t *head = w;
		const Q8W *a[IG_MAX_NT];
		Wide v = {{{0}}, {{0}}, {{0}}};

		w += ig_head_bytes(f);
		for (int j = 0; j < nt; j++)
			a[j] = x[j] + g;
		for (int b = 0; b < 8; b++, w += ig_block_bytes(f))
			free_block_a256(f, w, head, b, a, nt, &v);
		for (int j = 0; j < nt; j++)
			out[j] =
			    free_add_group(f, head, a[j]->s, &v, j, out[j]);
	}
}

#define FREE_FORMAT(name, ...)                                                 \
	IG_IN void a32_##name(                                                 \
	    const uint8_t *w, const Q8A *const *x, int nt, int k, f32x8 *out)  \
	{                                                                      \
		(void)k;                                                       \
		free_tile_a32((IgFormat){__VA_ARGS__}, w, x, nt, out);         \
	}                                                                      \
	IG_IN void a256_##name(                                                \
	    const uint8_t *w, const Q8W *const *x, int nt, int k, f32x8 *out)  \
	{                                                                      \
		(void)k;                                                       \
		free_tile_a256((IgFormat){__VA_ARGS__}, w, x, nt, out);        \
	}
FREE_FORMAT(q4_k, IG_SCM, 4, 0, 0, 0)
FREE_FORMAT(q6_k, IG_HALF, 4, 2, 32, 0)
FREE_FORMAT(q8_0, IG_D, 8, 0, 0, 0)
FREE_FORMAT(q4_0, IG_D, 4, 0, 8, 0)

/* ---- float weights ---- */

/* 8 sums in all: 8 for one row of activations, else one for each row. */
IG_IN void
free_float(
    int type, const uint8_t *w, const float *const *x, int nt, f32x8 *out)
{
	f32x8 a[8] = {{0}};

	for (int i = 0; i < K; i += 8) {
		size_t column = 8 * ig_float_bytes(type);

		ig_fetch_ahead(w + (size_t)i * column, 8 * column);
		IG_UNROLL
		for (int e = 0; e < 8; e++) {
			f32x8 v = ig_column(type, w, i + e);

			IG_UNROLL
			for (int j = 0; j < nt; j++) {
				int c = nt == 1 ? e : j;

				a[c] = _mm256_fmadd_ps(
				    v, ig_splat(x[j][i + e]), a[c]);
			}
		}
	}
	if (nt == 1)
		a[0] = ig_sum8(a);
	for (int j = 0; j < nt; j++)
		out[j] = a[j];
}

#define FREE_FLOAT(name, TYPE)                                                 \
	IG_IN void any_##name(const uint8_t *w, const float *const *x, int nt, \
	    int k, f32x8 *out)                                                 \
	{                                                                      \
		(void)k;                                                       \
		free_float(TYPE, w, x, nt, out);                               \
	}
FREE_FLOAT(bf16, IG_BF16)
FREE_FLOAT(f32, IG_F32)

/* ---- both, over a matrix ---- */

#define DECODE(F, name, X, field)                                              \
	static void decode_##F##_##name(const Input *in)                       \
	{                                                                      \
		const X *x[1] = {in->field};                                   \
                                                                               \
		for (int i = 0; i < DECODE_ROWS / 8; i++) {                    \
			f32x8 y;                                               \
                                                                               \
			F##_##name(in->w + (size_t)i * in->tile, x, 1, K, &y); \
			ig_store_f32x8(in->y + 8 * i, y);                      \
		}                                                              \
	}
#define PREFILL(F, name, X, field, per, nt)                                    \
	static void prefill_##F##_##name(const Input *in)                      \
	{                                                                      \
		for (int i = 0; i < PREFILL_ROWS / 8 * TOKENS / nt; i++) {     \
			int t = i / 4 * nt % TOKENS;                           \
			int r = i / 4 * nt / TOKENS * 4 + i % 4;               \
			const X *x[nt];                                        \
			f32x8 y[nt];                                           \
                                                                               \
			for (int j = 0; j < nt; j++)                           \
				x[j] = in->field + (t + j) * (K / per);        \
			F##_##name(in->w + (size_t)r * in->tile, x, nt, K, y); \
			for (int j = 0; j < nt; j++)                           \
				ig_store_f32x8(                                \
				    in->y + (t + j) * PREFILL_ROWS + 8 * r,    \
				    y[j]);                                     \
		}                                                              \
	}
#define BOTH(F, name, X, field, per, nt)                                       \
	DECODE(F, name, X, field) PREFILL(F, name, X, field, per, nt)
/* wide_nt: the number of rows at which a256 is fastest. */
#define QUANT(name, wide_nt)                                                   \
	BOTH(ig_tile, name, Q8A, a, 32, 8)                                     \
	BOTH(a32, name, Q8A, a, 32, 8)                                         \
	BOTH(a256, name, Q8W, wide, 256, wide_nt)
#define FLOAT(name)                                                            \
	BOTH(ig_tile, name, float, x, 1, 8) BOTH(any, name, float, x, 1, 8)

QUANT(q4_k, 4)
QUANT(q6_k, 8)
QUANT(q8_0, 8)
QUANT(q4_0, 8)
FLOAT(bf16)
FLOAT(f32)

/* ---- functions ---- */

/* e^x, about 1 ulp, for -87 < x < 88. */
IG_IN f32x8
free_exp(f32x8 x)
{
	f32x8 n = _mm256_round_ps(x * ig_splat(0x1.715476p+0f),
	    _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
	f32x8 r = _mm256_fnmadd_ps(n, ig_splat(0x1.62E4p-1f), x), p;

	r = _mm256_fnmadd_ps(n, ig_splat(0x1.7F7D1Cp-20f), r);
	p = _mm256_fmadd_ps(
	    ig_splat(0x1.6D4D1Ep-10f), r, ig_splat(0x1.111006p-7f));
	p = _mm256_fmadd_ps(p, r, ig_splat(0x1.5554E8p-5f));
	p = _mm256_fmadd_ps(p, r, ig_splat(0x1.555556p-3f));
	p = _mm256_fmadd_ps(p, r, ig_splat(0.5f));
	p = _mm256_fmadd_ps(r * r, p, r) + ig_splat(1.0f);
	return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(p),
	    _mm256_slli_epi32(_mm256_cvtps_epi32(n), 23)));
}

IG_IN f32x8
free_silu(f32x8 x)
{
	f32x8 z = _mm256_min_ps(_mm256_setzero_ps() - x, ig_splat(87.0f));

	return x / (ig_splat(1.0f) + free_exp(z));
}

static void
silu_fixed(const Input *in)
{
	const float *up = in->x + ROW;

	for (int i = 0; i < ROW; i++)
		in->y[i] = ig_silu(in->x[i]) * up[i];
}

static void
silu_free(const Input *in)
{
	for (int i = 0; i < ROW; i += 8)
		ig_store_f32x8(in->y + i, free_silu(ig_load_f32x8(in->x + i)) *
					      ig_load_f32x8(in->x + ROW + i));
}

static void
softmax_fixed(const Input *in)
{
	memcpy(in->y, in->x, IG_SPAN * sizeof(float));
	in->y[IG_SPAN] = ig_span_exp(in->y, IG_SPAN);
	in->y[IG_SPAN + 1] = ig_tree128(in->y);
}

IG_IN float
free_sum(f32x8 v)
{
	__m128 s =
	    _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));

	s = _mm_add_ps(s, _mm_movehl_ps(s, s));
	return s[0] + s[1];
}

static void
softmax_free(const Input *in)
{
	f32x8 m = ig_load_f32x8(in->x), sum = {0};
	float most;

	for (int i = 8; i < IG_SPAN; i += 8)
		m = _mm256_max_ps(m, ig_load_f32x8(in->x + i));
	m = _mm256_max_ps(m, _mm256_permute2f128_ps(m, m, 1));
	m = _mm256_max_ps(m, _mm256_permute_ps(m, 0x4E));
	m = _mm256_max_ps(m, _mm256_permute_ps(m, 0xB1));
	most = m[0];
	for (int i = 0; i < IG_SPAN; i += 8) {
		f32x8 p = free_exp(_mm256_max_ps(
		    ig_load_f32x8(in->x + i) - m, ig_splat(-87.0f)));

		ig_store_f32x8(in->y + i, p);
		sum = _mm256_add_ps(sum, p);
	}
	in->y[IG_SPAN] = most;
	in->y[IG_SPAN + 1] = free_sum(sum);
}

/* ---- rows ---- */

static void
squares_fixed(const Input *in)
{
	in->y[0] = ig_sum_sq(in->x, ROW);
}

static void
squares_free(const Input *in)
{
	f32x8 a[8] = {{0}};

	for (int i = 0; i < ROW; i += 64) {
		IG_UNROLL
		for (int c = 0; c < 8; c++) {
			f32x8 v = ig_load_f32x8(in->x + i + 8 * c);

			a[c] = _mm256_fmadd_ps(v, v, a[c]);
		}
	}
	in->y[0] = free_sum(ig_sum8(a));
}

static void
quantise_fixed(const Input *in)
{
	ig_quantise(in->x, ROW, (Q8A *)(void *)in->y);
}

/* No division, no look at what is not finite or tiny. */
static void
quantise_free(const Input *in)
{
	Q8A *out = (Q8A *)(void *)in->y;

	for (int i = 0; i < ROW; i += 32, out++) {
		float amax = ig_float(ig_largest32(in->x + i));
		float r = _mm_cvtss_f32(_mm_rcp_ss(_mm_set_ss(amax)));

		r = r * (2.0f - amax * r) * 127.0f;
		ig_quantise32(in->x + i, amax, r, out);
	}
}

/* ---- along sequences ---- */

static void
scores_fixed(const Input *in)
{
	for (int i = 0; i < KEYS; i += IG_SPAN)
		ig_scores_bf16(in->x, (const uint16_t *)in->w,
		    in->page + i / IG_PAGE, 1, 0, IG_SPAN, HEAD, 0.125f,
		    in->y + i);
}

static void
scores_free(const Input *in)
{
	const uint16_t *key = (const uint16_t *)in->w;

	for (int g = 0; g < KEYS; g += 8, key += 8 * HEAD) {
		f32x8 a[4] = {{0}};

		for (int i = 0; i < HEAD; i += 4) {
			IG_UNROLL
			for (int c = 0; c < 4; c++)
				a[c] = _mm256_fmadd_ps(
				    ig_load_bf16x8(key + 8 * (i + c)),
				    ig_splat(in->x[i + c]), a[c]);
		}
		ig_store_f32x8(in->y + g,
		    ((a[0] + a[1]) + (a[2] + a[3])) * ig_splat(0.125f));
	}
}

static void
values_fixed(const Input *in)
{
	for (int i = 0; i < KEYS; i += IG_SPAN)
		ig_values_bf16(in->x, (const uint16_t *)in->w,
		    in->page + i / IG_PAGE, 1, 0, IG_SPAN, HEAD, in->y);
}

/* All keys in one pass, no spans. */
static void
values_free(const Input *in)
{
	const uint16_t *v = (const uint16_t *)in->w;

	for (int i = 0; i < HEAD; i += 64) {
		f32x8 a[8] = {{0}};

		for (int j = 0; j < KEYS; j++) {
			IG_UNROLL
			for (int c = 0; c < 8; c++)
				a[c] = _mm256_fmadd_ps(ig_splat(in->x[j]),
				    ig_load_bf16x8(v + j * HEAD + i + 8 * c),
				    a[c]);
		}
		IG_UNROLL
		for (int c = 0; c < 8; c++)
			ig_store_f32x8(in->y + i + 8 * c, a[c]);
	}
}

static void
delta_fixed(const Input *in)
{
	const float *k = in->x, *q = in->x + HEAD, *v = in->x + 2 * HEAD;

	for (int j = 0; j < HEAD; j += 8) {
		float *column = in->state + j * HEAD;
		f32x8 kv = ig_decay_dot(column, k, 0.5f, HEAD);
		f32x8 u = ig_splat(1e-6f) * (ig_load_f32x8(v + j) - kv);

		ig_store_f32x8(in->y + j, ig_update_dot(column, k, q, u, HEAD));
	}
}

/* The decay enters the second pass; the first one stores nothing. */
static void
delta_free(const Input *in)
{
	const float *k = in->x, *q = in->x + HEAD, *v = in->x + 2 * HEAD;

	for (int j = 0; j < HEAD; j += 8) {
		float *column = in->state + j * HEAD;
		f32x8 a[8] = {{0}}, o[8] = {{0}}, u;

		for (int i = 0; i < HEAD; i += 8) {
			IG_UNROLL
			for (int c = 0; c < 8; c++)
				a[c] = _mm256_fmadd_ps(
				    ig_load_f32x8(column + 8 * (i + c)),
				    ig_splat(k[i + c]), a[c]);
		}
		u = ig_load_f32x8(v + j) - ig_splat(0.5f) * ig_sum8(a);
		u *= ig_splat(1e-6f);
		for (int i = 0; i < HEAD; i += 8) {
			IG_UNROLL
			for (int c = 0; c < 8; c++) {
				float *at = column + 8 * (i + c);
				f32x8 s = _mm256_fmadd_ps(ig_splat(k[i + c]), u,
				    ig_load_f32x8(at) * ig_splat(0.5f));

				ig_store_f32x8(at, s);
				o[c] = _mm256_fmadd_ps(
				    s, ig_splat(q[i + c]), o[c]);
			}
		}
		ig_store_f32x8(in->y + j, ig_sum8(o));
	}
}

/* ---- measuring ---- */

static double
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double
seconds(Kernel *f, const Input *in, int n)
{
	double start = now();

	for (int i = 0; i < n; i++)
		f(in);
	return (now() - start) / n;
}

static int
by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Sorts v. */
static double
median(double *v)
{
	qsort(v, ROUNDS, sizeof *v, by_value);
	return v[ROUNDS / 2];
}

/* One row: microseconds of either, and how much longer the fixed order takes,
 * the median of the rounds' own quotients. */
static void
row(char **words, const char *name, Kernel *fixed, Kernel *other,
    const Input *in)
{
	double a[ROUNDS], b[ROUNDS], ratio[ROUNDS];
	int n, wanted = *words == NULL;

	for (; *words; words++)
		wanted |= strstr(name, *words) != NULL;
	if (!wanted)
		return;
	seconds(fixed, in, 1);
	n = 1 + (int)(0.02 / (seconds(other, in, 1) + 1e-9));
	for (int i = 0; i < ROUNDS; i++) {
		a[i] = seconds(fixed, in, n);
		b[i] = seconds(other, in, n);
		ratio[i] = a[i] / b[i];
	}
	printf("%-22s %11.2f %11.2f %+8.1f\n", name, 1e6 * median(a),
	    1e6 * median(b), 100 * median(ratio) - 100);
}

/* Any values whose sums stay normal numbers: halves and bf16 near 1, codes of
 * every kind. */
static void
fill(Input *in)
{
	uint32_t state = 1;
	uint8_t *w = aligned_alloc(64, WEIGHT_BYTES);

	in->x = calloc(TOKENS * K, sizeof *in->x);
	in->y = calloc(TOKENS * K, sizeof *in->y);
	in->a = calloc(TOKENS * BLOCKS, sizeof *in->a);
	in->wide = calloc(TOKENS * GROUPS, sizeof *in->wide);
	in->state = calloc(HEAD * HEAD, sizeof *in->state);
	if (!w || !in->x || !in->y || !in->a || !in->wide || !in->state)
		exit(1);
	for (size_t i = 0; i < WEIGHT_BYTES; i += 2) {
		uint16_t v;

		state = state * 1664525u + 1013904223u;
		v = (uint16_t)((state >> 16 & 0x83FF) | 0x3C00);
		memcpy(w + i, &v, 2);
	}
	in->w = w;
	for (int i = 0; i < TOKENS * K; i++)
		in->x[i] = (float)(i * 37 % 1001 - 500) * 0.01f;
	ig_quantise(in->x, TOKENS * K, in->a);
	for (int i = 0; i < TOKENS * BLOCKS; i++) {
		Q8W *o = in->wide + i / 8;

		o->s = in->a[i].s;
		memcpy(o->q + i % 8 * 32, in->a[i].q, 32);
		memcpy(o->sum + i % 8 * 2, in->a[i].sum, 4);
	}
	for (int i = 0; i < HEAD * HEAD; i++)
		in->state[i] = in->x[i];
	for (uint32_t i = 0; i < KEYS / IG_PAGE; i++)
		in->page[i] = i;
}

#define ROW2(stage, name, F)                                                   \
	row(words, #stage " " #name " " #F, stage##_ig_tile_##name,            \
	    stage##_##F##_##name, &in);
#define QUANT_ROWS(name)                                                       \
	in.tile = ig_tile_bytes_##name(K);                                     \
	ROW2(decode, name, a32)                                                \
	ROW2(decode, name, a256)                                               \
	ROW2(prefill, name, a32)                                               \
	ROW2(prefill, name, a256)
#define FLOAT_ROWS(name)                                                       \
	in.tile = ig_tile_bytes_##name(K);                                     \
	ROW2(decode, name, any)                                                \
	ROW2(prefill, name, any)
#define OTHER_ROW(name) row(words, #name, name##_fixed, name##_free, &in);

int
main(int argc, char **argv)
{
	char **words = argv + (argc > 0);
	static Input in;

	fill(&in);
	printf("%-22s %11s %11s %8s\n", "", "fixed us", "free us", "%");
	QUANT_ROWS(q4_k)
	QUANT_ROWS(q6_k)
	QUANT_ROWS(q8_0)
	QUANT_ROWS(q4_0)
	FLOAT_ROWS(bf16)
	FLOAT_ROWS(f32)
	OTHER_ROW(scores)
	OTHER_ROW(values)
	OTHER_ROW(softmax)
	OTHER_ROW(silu)
	OTHER_ROW(squares)
	OTHER_ROW(quantise)
	OTHER_ROW(delta)
	return 0;
}
