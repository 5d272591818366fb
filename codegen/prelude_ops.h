/* Front of every kernel emitted for x86-64-v3, third part: ops on rows and
 * along sequences. It follows prelude_tiles.h; the orders are those of
 * docs/numerics.md. */
#ifndef CODEGEN_PRELUDE_OPS_H
#define CODEGEN_PRELUDE_OPS_H

#ifndef IG_EMBEDDED
#include "prelude_tiles.h"
#endif

/* A function that the runtime looks up by name. */
#define IG_KERNEL __attribute__((visibility("default")))

enum { IG_PAGE = 64, IG_SPAN = 128, IG_MAX_EXPERTS = 1024 };

IG_IN void
ig_store_f32x8(float *p, f32x8 x)
{
	_mm256_storeu_ps(p, x);
}

IG_IN f32x8
ig_splat(float x)
{
	return _mm256_set1_ps(x);
}

/* The sum of 8 accumulators in the order of dot8. */
IG_IN f32x8
ig_sum8(const f32x8 a[8])
{
	return ((a[0] + a[1]) + (a[2] + a[3])) +
	       ((a[4] + a[5]) + (a[6] + a[7]));
}

IG_IN int
ig_is_finite(float x)
{
	return (ig_bits(x) & 0x7F800000u) != 0x7F800000u;
}

/* ---- rows ---- */

/* What rms_norm multiplies by; inv_n is 1/n rounded. */
static inline float
ig_rms_inv(const float *x, int n, float inv_n, float eps, const StepArgs *s)
{
	float ss = ig_sum_sq(x, n);

	if (!ig_is_finite(ss))
		ig_fault(s);
	return ig_rsqrt(ss * inv_n + eps);
}

static inline float
ig_l2_inv(const float *x, int n, float eps, const StepArgs *s)
{
	float ss = ig_sum_sq(x, n);

	if (!ig_is_finite(ss))
		ig_fault(s);
	return ig_rsqrt(ss + eps);
}

/* Rotates pairs (i, i + rot/2) by angles [rot/2][cos, sin]; the rest of the n
 * elements pass. */
static inline void
ig_rope(const float *x, const float *angles, int rot, int n, float *y)
{
	int half = rot / 2;

	for (int i = 0; i < half; i++) {
		float c = angles[2 * i], s = angles[2 * i + 1];

		y[i] = ig_fma(-x[i + half], s, x[i] * c);
		y[i + half] = ig_fma(x[i], s, x[i + half] * c);
	}
	for (int i = rot; i < n; i++)
		y[i] = x[i];
}

/* The k largest of n logits, descending; ties go to the lower index. */
static inline void
ig_top_k(const float *logits, int n, int k, uint32_t *ids)
{
	uint8_t taken[IG_MAX_EXPERTS] = {0};

	for (int j = 0; j < k; j++) {
		int best = -1;

		for (int i = 0; i < n; i++)
			if (!taken[i] && (best < 0 || logits[i] > logits[best]))
				best = i;
		taken[best] = 1;
		ids[j] = (uint32_t)best;
	}
}

/* Weights of the chosen, as shares of sum. */
IG_IN void
ig_shares(
    const float *logits, const uint32_t *ids, int k, float sum, float *weights)
{
	for (int j = 0; j < k; j++)
		weights[j] =
		    ig_div(ig_exp(logits[ids[j]] - logits[ids[0]]), sum);
}

static inline void
ig_route_renormalised(
    const float *logits, int n, const uint32_t *ids, int k, float *weights)
{
	float sum = 0.0f;

	(void)n;
	for (int j = 0; j < k; j++)
		sum += ig_exp(logits[ids[j]] - logits[ids[0]]);
	ig_shares(logits, ids, k, sum, weights);
}

static inline void
ig_route(const float *logits, int n, const uint32_t *ids, int k, float *weights)
{
	float e[IG_MAX_EXPERTS];

	for (int i = 0; i < n; i++)
		e[i] = ig_exp(logits[i] - logits[ids[0]]);
	ig_shares(logits, ids, k, ig_sum(e, n), weights);
}

/* ---- weights times rows ---- */

/* Rows of activations that go together, of the n that are left: 8, or at most
 * 4, so that no kernel carries code for 5 to 7. */
IG_IN int
ig_together(uint32_t n)
{
	if (n >= IG_MAX_NT)
		return IG_MAX_NT;
	return n < 4 ? (int)n : 4;
}

/* Elements of an activation in one X. */
#define IG_ELEMENTS(X) (sizeof(X) == sizeof(Q8A) ? 32 : 1)

/* sum[j][i] = row n0 + i of matrix expert of w, i < n <= 32, times row j < nt
 * of x. rows: rows of one matrix. */
#define IG_TILE(name, nt)                                                      \
	case nt:                                                               \
		ig_tile_##name(w, x, nt, k, y);                                \
		break;
#define IG_BLOCK(name, X)                                                      \
	static void ig_block_##name(const void *weight, uint64_t expert,       \
	    uint64_t rows, uint64_t n0, int n, const X *const x[IG_MAX_NT],    \
	    int nt, int k, float sum[IG_MAX_NT][32])                           \
	{                                                                      \
		size_t tile = ig_tile_bytes_##name(k);                         \
		const uint8_t *w =                                             \
		    (const uint8_t *)weight +                                  \
		    (expert * ((rows + 7) / 8) + n0 / 8) * tile;               \
                                                                               \
		for (int i = 0; i < n; i += 8, w += tile) {                    \
			f32x8 y[IG_MAX_NT];                                    \
                                                                               \
			switch (nt) {                                          \
				IG_TILE(name, 1)                               \
				IG_TILE(name, 2)                               \
				IG_TILE(name, 3)                               \
				IG_TILE(name, 4)                               \
				IG_TILE(name, 8)                               \
			}                                                      \
			for (int j = 0; j < nt; j++)                           \
				ig_store_f32x8(sum[j] + i, y[j]);              \
		}                                                              \
	}                                                                      \
                                                                               \
	/* y[t][n] = row n of w, of rows, times row t of x, of count, for the  \
	 * 32 rows n of a block. */                                            \
	static void ig_linear_##name(const void *w, uint32_t rows,             \
	    uint32_t block, const X *x, uint32_t count, int k, float *y)       \
	{                                                                      \
		const size_t stride = (size_t)k / IG_ELEMENTS(X);              \
		const uint32_t n0 = block * 32;                                \
		const int n = rows - n0 < 32 ? (int)(rows - n0) : 32;          \
		int nt;                                                        \
                                                                               \
		for (uint32_t t = 0; t < count; t += (uint32_t)nt) {           \
			const X *row[IG_MAX_NT];                               \
			float sum[IG_MAX_NT][32];                              \
                                                                               \
			nt = ig_together(count - t);                           \
			for (int j = 0; j < nt; j++)                           \
				row[j] = x + (size_t)(t + j) * stride;         \
			ig_block_##name(w, 0, rows, n0, n, row, nt, k, sum);   \
			for (int j = 0; j < nt; j++)                           \
				for (int i = 0; i < n; i++)                    \
					y[(size_t)(t + j) * rows + n0 + i] =   \
					    sum[j][i];                         \
		}                                                              \
	}

IG_BLOCK(f32, float)
IG_BLOCK(f16, float)
IG_BLOCK(bf16, float)
IG_BLOCK(q4_0, Q8A)
IG_BLOCK(q4_1, Q8A)
IG_BLOCK(q5_0, Q8A)
IG_BLOCK(q5_1, Q8A)
IG_BLOCK(q8_0, Q8A)
IG_BLOCK(q2_k, Q8A)
IG_BLOCK(q3_k, Q8A)
IG_BLOCK(q4_k, Q8A)
IG_BLOCK(q5_k, Q8A)
IG_BLOCK(q6_k, Q8A)
IG_BLOCK(iq4_nl, Q8A)
IG_BLOCK(iq4_xs, Q8A)
#undef IG_BLOCK
#undef IG_TILE

/* ---- experts ---- */

/* Whether a pair before p chose the same expert. */
IG_IN int
ig_chosen_before(const uint32_t *ids, uint32_t p)
{
	for (uint32_t i = 0; i < p; i++)
		if (ids[i] == ids[p])
			return 1;
	return 0;
}

/* The next pairs of n, from *p on, that chose expert, as many as go together;
 * *p moves behind them. */
IG_IN int
ig_pairs_of(const uint32_t *ids, uint32_t n, uint32_t expert, uint32_t *p,
    uint32_t pair[IG_MAX_NT])
{
	uint32_t found = 0;
	int nt;

	for (; *p < n && found < IG_MAX_NT; ++*p)
		if (ids[*p] == expert)
			pair[found++] = *p;
	nt = ig_together(found);
	if ((uint32_t)nt < found)
		*p = pair[nt];
	return nt;
}

/* ---- the key-value cache: pages of 64 positions ---- */

/* The page that holds position pos of the sequence in slot. */
IG_IN size_t
ig_page_of(
    const uint32_t *blocks, uint32_t slot, uint32_t pos, const StepArgs *s)
{
	return blocks[(size_t)slot * s->pages + pos / IG_PAGE];
}

/* Where element i of head h at position pos lies in a page of keys, and of
 * values. */
IG_IN size_t
ig_key(int h, uint32_t pos, int i, int d)
{
	return ((size_t)(h * (IG_PAGE / 8) + (int)(pos % IG_PAGE / 8)) *
		       (size_t)d +
		   (size_t)i) *
		   8 +
	       pos % 8;
}

IG_IN size_t
ig_value(int h, uint32_t pos, int i, int d)
{
	return (size_t)(h * IG_PAGE + (int)(pos % IG_PAGE)) * (size_t)d +
	       (size_t)i;
}

/* p[j] = scale * (q . key j) of a span's first count keys, 8 keys at a time.
 * Keys behind count in the last 8 give numbers that nothing reads. */
#define IG_SCORES(name, T)                                                     \
	IG_IN f32x8 ig_key_run_##name(                                         \
	    const T *key, const float *q, int i, int n, f32x8 acc)             \
	{                                                                      \
		for (int e = i; e < i + n; e++)                                \
			acc = _mm256_fmadd_ps(ig_load_##name##x8(key + e * 8), \
			    ig_splat(q[e]), acc);                              \
		return acc;                                                    \
	}                                                                      \
                                                                               \
	static inline void ig_scores_##name(const float *q, const T *keys,     \
	    const uint32_t *page, uint32_t heads, uint32_t head, int count,    \
	    int d, float scale, float *p)                                      \
	{                                                                      \
		for (int g = 0; g * 8 < count; g++) {                          \
			const T *key =                                         \
			    keys + (((size_t)page[g / 8] * heads + head) * 8 + \
				       (size_t)(g % 8)) *                      \
				       (size_t)d * 8;                          \
			f32x8 acc[8] = {{0}};                                  \
			int i = 0;                                             \
                                                                               \
			for (; i + 64 <= d; i += 64) {                         \
				IG_UNROLL                                      \
				for (int c = 0; c < 8; c++)                    \
					acc[c] = ig_key_run_##name(            \
					    key, q, i + 8 * c, 8, acc[c]);     \
			}                                                      \
			for (; i < d; i += 8)                                  \
				acc[i / 8 % 8] = ig_key_run_##name(key, q, i,  \
				    d - i < 8 ? d - i : 8, acc[i / 8 % 8]);    \
			ig_store_f32x8(                                        \
			    p + g * 8, ig_sum8(acc) * ig_splat(scale));        \
		}                                                              \
	}
IG_SCORES(f32, float)
IG_SCORES(bf16, uint16_t)
#undef IG_SCORES

/* The largest of p[n], n > 0. */
IG_IN float
ig_largest(const float *p, int n)
{
	f32x8 most = ig_splat(p[0]);
	float m = p[0];
	int i = 0;

	for (; i + 8 <= n; i += 8)
		most = _mm256_max_ps(most, ig_load_f32x8(p + i));
	for (; i < n; i++)
		m = ig_max(m, p[i]);
	for (int e = 0; e < 8; e++)
		m = ig_max(m, most[e]);
	return m;
}

/* p = exp(p - max) over count scores, +0 behind; returns the maximum. Whole
 * vectors of p are read and written. */
static inline float
ig_span_exp(float *p, int count)
{
	float m = ig_largest(p, count);

	for (int i = 0; i < count; i += 8)
		for (int e = i; e < i + 8; e++)
			p[e] = ig_exp(p[e] - m);
	for (int i = count; i < IG_SPAN; i++)
		p[i] = 0.0f;
	return m;
}

/* o[i] = chain of p[j] * value j over ascending keys: 64 elements at a time
 * stay in registers. */
#define IG_VALUES(name, T, widen)                                              \
	IG_IN void ig_value_run_##name(                                        \
	    const float *p, const T *v, int n, int d, float *o)                \
	{                                                                      \
		int i = 0;                                                     \
                                                                               \
		for (; i + 64 <= d; i += 64) {                                 \
			f32x8 a[8];                                            \
                                                                               \
			IG_UNROLL                                              \
			for (int c = 0; c < 8; c++)                            \
				a[c] = ig_load_f32x8(o + i + 8 * c);           \
			for (int j = 0; j < n; j++) {                          \
				const T *from = v + (size_t)j * (size_t)d + i; \
                                                                               \
				IG_UNROLL                                      \
				for (int c = 0; c < 8; c++)                    \
					a[c] = _mm256_fmadd_ps(ig_splat(p[j]), \
					    ig_load_##name##x8(from + 8 * c),  \
					    a[c]);                             \
			}                                                      \
			IG_UNROLL                                              \
			for (int c = 0; c < 8; c++)                            \
				ig_store_f32x8(o + i + 8 * c, a[c]);           \
		}                                                              \
		for (int j = 0; j < n; j++)                                    \
			for (int e = i; e < d; e++)                            \
				o[e] = ig_fma(p[j],                            \
				    widen(v[(size_t)j * (size_t)d + e]),       \
				    o[e]);                                     \
	}                                                                      \
                                                                               \
	static inline void ig_values_##name(const float *p, const T *values,   \
	    const uint32_t *page, uint32_t heads, uint32_t head, int count,    \
	    int d, float *o)                                                   \
	{                                                                      \
		for (int i = 0; i < d; i++)                                    \
			o[i] = 0.0f;                                           \
		for (int j = 0; j < count; j += IG_PAGE) {                     \
			const T *v =                                           \
			    values +                                           \
			    ((size_t)page[j / IG_PAGE] * heads + head) *       \
				IG_PAGE * (size_t)d;                           \
			int n = count - j < IG_PAGE ? count - j : IG_PAGE;     \
                                                                               \
			ig_value_run_##name(p + j, v, n, d, o);                \
		}                                                              \
	}
IG_VALUES(f32, float, )
IG_VALUES(bf16, uint16_t, ig_from_bf16)
#undef IG_VALUES

/* Merges a span's (m, l, o) into (max, sum, out). */
static inline void
ig_merge_span(int first, float m, float l, const float *o, int d, float *max,
    float *sum, float *out)
{
	float top, a, b;

	if (first) {
		*max = m;
		*sum = l;
		for (int i = 0; i < d; i++)
			out[i] = o[i];
		return;
	}
	top = ig_max(*max, m);
	a = ig_exp(*max - top);
	b = ig_exp(m - top);
	*max = top;
	*sum = ig_fma(b, l, a * *sum);
	for (int i = 0; i < d; i++)
		out[i] = ig_fma(b, o[i], a * out[i]);
}

/* ---- delta rule: 8 columns of a head's state, [dk][8] ---- */

/* acc plus rows i to i+n-1, decayed, times those of k. */
IG_IN f32x8
ig_decay_run(
    float *column, const float *k, float decay, int i, int n, f32x8 acc)
{
	for (int e = i; e < i + n; e++) {
		f32x8 s = ig_load_f32x8(column + e * 8) * ig_splat(decay);

		ig_store_f32x8(column + e * 8, s);
		acc = _mm256_fmadd_ps(s, ig_splat(k[e]), acc);
	}
	return acc;
}

/* Decays the columns and returns their dot products with k. */
IG_IN f32x8
ig_decay_dot(float *column, const float *k, float decay, int dk)
{
	f32x8 acc[8] = {{0}};
	int i = 0;

	for (; i + 64 <= dk; i += 64) {
		IG_UNROLL
		for (int c = 0; c < 8; c++)
			acc[c] = ig_decay_run(
			    column, k, decay, i + 8 * c, 8, acc[c]);
	}
	for (; i < dk; i += 8)
		acc[i / 8 % 8] = ig_decay_run(column, k, decay, i,
		    dk - i < 8 ? dk - i : 8, acc[i / 8 % 8]);
	return ig_sum8(acc);
}

/* acc plus rows i to i+n-1, k u added, times those of q. */
IG_IN f32x8
ig_update_run(float *column, const float *k, const float *q, f32x8 u, int i,
    int n, f32x8 acc)
{
	for (int e = i; e < i + n; e++) {
		f32x8 s = _mm256_fmadd_ps(
		    ig_splat(k[e]), u, ig_load_f32x8(column + e * 8));

		ig_store_f32x8(column + e * 8, s);
		acc = _mm256_fmadd_ps(s, ig_splat(q[e]), acc);
	}
	return acc;
}

/* Adds k u to the columns and returns their dot products with q. */
IG_IN f32x8
ig_update_dot(float *column, const float *k, const float *q, f32x8 u, int dk)
{
	f32x8 acc[8] = {{0}};
	int i = 0;

	for (; i + 64 <= dk; i += 64) {
		IG_UNROLL
		for (int c = 0; c < 8; c++)
			acc[c] = ig_update_run(
			    column, k, q, u, i + 8 * c, 8, acc[c]);
	}
	for (; i < dk; i += 8)
		acc[i / 8 % 8] = ig_update_run(column, k, q, u, i,
		    dk - i < 8 ? dk - i : 8, acc[i / 8 % 8]);
	return ig_sum8(acc);
}

#endif
