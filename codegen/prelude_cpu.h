/* Front of every kernel emitted for x86-64-v3, first part: vectors, row sums
 * and the quantiser of activations. It follows the text of numerics/arith.h
 * and is compiled with -ffp-contract=off. Sums follow the named orders of
 * docs/numerics.md bit for bit.
 */
#ifndef CODEGEN_PRELUDE_CPU_H
#define CODEGEN_PRELUDE_CPU_H

#ifndef IG_EMBEDDED
#include "../numerics/arith.h"
#endif

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#define IG_IN static inline __attribute__((always_inline))
#if defined(__clang__)
#define IG_UNROLL _Pragma("clang loop unroll(full)")
#else
#define IG_UNROLL _Pragma("GCC unroll 8")
#endif

typedef __m256 f32x8;

/* 32 quantised activations: x = s*q. */
typedef struct Q8A {
	float s;        /* scale */
	float h;        /* s times the integer sum of q, rounded once */
	int16_t sum[2]; /* integer sums of the halves of q */
	int8_t q[32];   /* -127 .. 127 */
} Q8A;

/* What a kernel is told of the step. */
typedef struct StepArgs {
	uint32_t tokens, rows, seqs;
	uint32_t pages;
	uint32_t *fault;
} StepArgs;

/* Reports that a value was not finite. */
static inline void
ig_fault(const StepArgs *s)
{
	__atomic_store_n(s->fault, 1, __ATOMIC_RELAXED);
}

#ifdef IG_EMBEDDED
/* The compiler may call these by name; the object must not import them. */
__attribute__((visibility("hidden"))) void *
memcpy(void *to, const void *from, size_t n)
{
	void *p = to;

	__asm__ volatile("rep movsb" : "+D"(p), "+S"(from), "+c"(n)::"memory");
	return to;
}

__attribute__((visibility("hidden"))) void *
memset(void *to, int byte, size_t n)
{
	void *p = to;

	__asm__ volatile("rep stosb" : "+D"(p), "+c"(n) : "a"(byte) : "memory");
	return to;
}
#endif

/* ---- loads and stores ---- */

IG_IN f32x8
ig_load_f32x8(const void *p)
{
	return _mm256_loadu_ps((const float *)p);
}

IG_IN f32x8
ig_load_f16x8(const void *p)
{
	return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p));
}

IG_IN f32x8
ig_load_bf16x8(const void *p)
{
	__m128i v = _mm_loadu_si128((const __m128i *)p);

	return _mm256_castsi256_ps(
	    _mm256_slli_epi32(_mm256_cvtepu16_epi32(v), 16));
}

/* ---- row sums ---- */

/* The neighbour sums of 4 vectors, in order. */
IG_IN __m128
ig_tree_4x8(const float *p)
{
	f32x8 low = _mm256_hadd_ps(ig_load_f32x8(p), ig_load_f32x8(p + 8));
	f32x8 high =
	    _mm256_hadd_ps(ig_load_f32x8(p + 16), ig_load_f32x8(p + 24));
	f32x8 v = _mm256_hadd_ps(low, high);

	return _mm_add_ps(
	    _mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
}

/* Neighbour tree over p[128]. */
static inline float
ig_tree128(const float *p)
{
	__m128 low = _mm_hadd_ps(ig_tree_4x8(p), ig_tree_4x8(p + 32));
	__m128 high = _mm_hadd_ps(ig_tree_4x8(p + 64), ig_tree_4x8(p + 96));
	__m128 v = _mm_hadd_ps(low, high);

	v = _mm_hadd_ps(v, v);
	return v[0] + v[1];
}

/* 8 values from p on, of which n are there; the others are +0. */
IG_IN f32x8
ig_load_up_to_8(const float *p, int n)
{
	float v[8] = {0};

	if (n >= 8)
		return ig_load_f32x8(p);
	for (int i = 0; i < n; i++)
		v[i] = p[i];
	return ig_load_f32x8(v);
}

/* A sum that starts at +0 is never -0, so adding +0 to it changes nothing:
 * the end of a short vector and untouched halves of the tree need no care. */
IG_IN float
ig_row_sum(const float *x, int n, int square)
{
	_Alignas(32) float acc[256] = {0};

	for (int i = 0; i < n; i += 8) {
		float *a = acc + i % 256;
		f32x8 v = ig_load_up_to_8(x + i, n - i);
		f32x8 sum = _mm256_load_ps(a);

		sum =
		    square ? _mm256_fmadd_ps(v, v, sum) : _mm256_add_ps(sum, v);
		_mm256_store_ps(a, sum);
	}
	if (n <= 128)
		return ig_tree128(acc);
	return ig_tree128(acc) + ig_tree128(acc + 128);
}

/* Row sum of x[n]. */
static inline float
ig_sum(const float *x, int n)
{
	return ig_row_sum(x, n, 0);
}

/* Row sum of the squares of x[n]. */
static inline float
ig_sum_sq(const float *x, int n)
{
	return ig_row_sum(x, n, 1);
}

/* ---- quantised activations ---- */

/* Bits of the largest |x| of 32; a NaN is larger than any number. */
IG_IN uint32_t
ig_largest32(const float *x)
{
	__m256i mask = _mm256_set1_epi32(0x7FFFFFFF);
	__m256i max = _mm256_setzero_si256();
	__m128i m;

	IG_UNROLL
	for (int i = 0; i < 4; i++)
		max = _mm256_max_epu32(
		    max, _mm256_and_si256(mask,
			     _mm256_loadu_si256((const __m256i *)(x + 8 * i))));
	m = _mm_max_epu32(
	    _mm256_castsi256_si128(max), _mm256_extracti128_si256(max, 1));
	m = _mm_max_epu32(m, _mm_shuffle_epi32(m, 0x4E));
	m = _mm_max_epu32(m, _mm_shuffle_epi32(m, 0xB1));
	return (uint32_t)_mm_cvtsi128_si32(m);
}

/* ig_rne_clamp(x*r) of 8 values. */
IG_IN __m256i
ig_codes8(const float *x, f32x8 r)
{
	f32x8 v = ig_load_f32x8(x) * r;

	v = _mm256_max_ps(v, _mm256_set1_ps(-127.0f));
	v = _mm256_min_ps(v, _mm256_set1_ps(127.0f));
	return _mm256_cvtps_epi32(v);
}

/* One block with the largest magnitude amax >= 2^-100 and r = 127/amax. */
IG_IN void
ig_quantise32(const float *x, float amax, float r, Q8A *out)
{
	f32x8 r8 = _mm256_set1_ps(r);
	__m256i a = ig_codes8(x, r8), b = ig_codes8(x + 8, r8);
	__m256i c = ig_codes8(x + 16, r8), d = ig_codes8(x + 24, r8);
	__m256i q = _mm256_packs_epi16(
	    _mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d));
	__m256i sums =
	    _mm256_hadd_epi32(_mm256_add_epi32(a, b), _mm256_add_epi32(c, d));
	__m128i s;
	int s0, s1;

	q = _mm256_permutevar8x32_epi32(
	    q, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
	_mm256_storeu_si256((__m256i *)out->q, q);
	s = _mm_add_epi32(
	    _mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
	s = _mm_hadd_epi32(s, s);
	s0 = _mm_extract_epi32(s, 0);
	s1 = _mm_extract_epi32(s, 1);
	out->sum[0] = (int16_t)s0;
	out->sum[1] = (int16_t)s1;
	out->s = amax * 0x1.020408p-7f;
	out->h = out->s * (float)(s0 + s1);
}

/* x[n] to out[n/32], n a multiple of 32. A block below 2^-100 becomes zero.
 * Nonzero if a value is not finite: its block then has NaN for s and h. The
 * vector division is correctly rounded, as ig_div is. */
static inline int
ig_quantise(const float *x, int n, Q8A *out)
{
	int blocks = n / 32, bad = 0;

	for (int b = 0; b < blocks; b += 8) {
		int count = blocks - b < 8 ? blocks - b : 8;
		_Alignas(32) float amax[8] = {0}, r[8];

		for (int i = 0; i < count; i++)
			amax[i] = ig_float(ig_largest32(x + 32 * (b + i)));
		_mm256_store_ps(r, _mm256_div_ps(_mm256_set1_ps(127.0f),
				       _mm256_load_ps(amax)));
		for (int i = 0; i < count; i++) {
			Q8A *o = out + b + i;

			if (amax[i] >= 0x1p-100f && ig_bits(amax[i]) < IG_INF) {
				ig_quantise32(
				    x + 32 * (b + i), amax[i], r[i], o);
				continue;
			}
			*o = (Q8A){0};
			if (ig_bits(amax[i]) >= IG_INF) {
				o->s = o->h = ig_float(IG_NAN);
				bad = 1;
			}
		}
	}
	return bad;
}

#ifndef IG_EMBEDDED
#include "prelude_tiles.h"
#endif

#endif
