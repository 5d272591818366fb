/* Front of every kernel emitted for x86-64-v3, second part: packed weights
 * times activations. It follows prelude_cpu.h.
 *
 * Weights come in tiles of 8 rows, as runtime/pack.h lays them out; vector
 * lane r is row r of the tile. For each TYPE there are
 *
 *     size_t ig_tile_bytes_TYPE(int k)
 *     void ig_tile_TYPE(w, x, nt, k, out)
 *         out[j] = dot products of the 8 rows of tile w, k weights long, with
 *         the activations x[j], j < nt <= 8, in the order group256 (x is Q8A)
 *         or dot32 (x is float). Inlined: give it a constant nt.
 *     void ig_row_TYPE(packed, row, k, out)
 *         out[k] = the values of one row of a packed matrix
 */
#ifndef CODEGEN_PRELUDE_TILES_H
#define CODEGEN_PRELUDE_TILES_H

#ifndef IG_EMBEDDED
#include "prelude_cpu.h"
#endif

typedef int16_t ig_i16x16 __attribute__((vector_size(32)));
typedef int32_t ig_i32x8 __attribute__((vector_size(32)));

/* Rows of activations at a time; bytes that weights are fetched ahead. */
enum { IG_MAX_NT = 8, IG_AHEAD = 4096 };

IG_IN __m256i
ig_load_i8x32(const void *p)
{
	return _mm256_loadu_si256((const __m256i *)p);
}

/* 8 signed bytes, exact. */
IG_IN f32x8
ig_load_i8x8(const void *p)
{
	__m128i v = _mm_loadl_epi64((const __m128i *)p);

	return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(v));
}

/* 4 bytes in every lane. */
IG_IN __m256i
ig_splat4(const void *p)
{
	int32_t v;

	__builtin_memcpy(&v, p, 4);
	return _mm256_set1_epi32(v);
}

/* Fetches weights that are read soon: a tile is longer than what the
 * processor follows by itself, a page. Beyond the end nothing happens. */
IG_IN void
ig_fetch_ahead(const uint8_t *w, size_t bytes)
{
	uintptr_t p = (uintptr_t)w + IG_AHEAD;

	for (size_t i = 0; i < bytes; i += 64)
		_mm_prefetch((const char *)(p + i), _MM_HINT_T0);
}

/* ---- quantised weights: the order group256 ---- */

/* What the scales of a block are. */
enum {
	IG_D,    /* d */
	IG_DM,   /* d, m */
	IG_SC,   /* d of the group; signed sc */
	IG_SCM,  /* d, dmin of the group; sc, mn */
	IG_HALF, /* d of the group; signed sc of each half */
	IG_HALFM /* d, dmin of the group; sc and mn of each half */
};

/* A packed type. Codes have low + high bits; 8 bits are signed, and a format
 * with a table has signed values in their place. */
typedef struct IgFormat {
	int scales, low, high;
	int offset; /* subtracted from the codes */
	int table;
} IgFormat;

/* FORMAT(name, scales, low, high, offset, table) */
#define IG_FORMATS(FORMAT)                                                     \
	FORMAT(q4_0, IG_D, 4, 0, 8, 0)                                         \
	FORMAT(q4_1, IG_DM, 4, 0, 0, 0)                                        \
	FORMAT(q5_0, IG_D, 4, 1, 16, 0)                                        \
	FORMAT(q5_1, IG_DM, 4, 1, 0, 0)                                        \
	FORMAT(q8_0, IG_D, 8, 0, 0, 0)                                         \
	FORMAT(q2_k, IG_HALFM, 2, 0, 0, 0)                                     \
	FORMAT(q3_k, IG_HALF, 2, 1, 4, 0)                                      \
	FORMAT(q4_k, IG_SCM, 4, 0, 0, 0)                                       \
	FORMAT(q5_k, IG_SCM, 4, 1, 0, 0)                                       \
	FORMAT(q6_k, IG_HALF, 4, 2, 32, 0)                                     \
	FORMAT(iq4_nl, IG_D, 4, 0, 0, 1)                                       \
	FORMAT(iq4_xs, IG_SC, 4, 0, 0, 1)

/* The scales of a block, lane r for row r. */
typedef struct IgScales {
	f32x8 s;        /* of the integer part */
	f32x8 m[2];     /* of h: of the block, or of its halves */
	__m256i sc[2];  /* i16 pairs: integer scale of each half, or 1 */
	__m256i offset; /* i16 pairs: offset times scale of each half */
} IgScales;

IG_IN int
ig_has_halves(IgFormat f)
{
	return f.scales == IG_HALF || f.scales == IG_HALFM;
}

IG_IN int
ig_is_signed(IgFormat f)
{
	return f.low == 8 || f.table;
}

/* Bytes of the head of a group. */
IG_IN size_t
ig_head_bytes(IgFormat f)
{
	if (f.scales == IG_D || f.scales == IG_DM)
		return 0;
	return f.scales == IG_SCM || f.scales == IG_HALFM ? 32 : 16;
}

/* Bytes of the scales of a block. */
IG_IN size_t
ig_scale_bytes(IgFormat f)
{
	if (f.scales == IG_SC)
		return 8;
	return f.scales == IG_DM || f.scales == IG_HALFM ? 32 : 16;
}

IG_IN size_t
ig_block_bytes(IgFormat f)
{
	return ig_scale_bytes(f) + 32 * (size_t)(f.low + f.high);
}

/* Bytes of a tile of 8 rows of k weights. */
IG_IN size_t
ig_quant_bytes(IgFormat f, int k)
{
	return (size_t)((k + 255) / 256) * ig_head_bytes(f) +
	       (size_t)(k / 32) * ig_block_bytes(f);
}

/* 8 signed bytes of each of two rows of scales, as i16 pairs. */
IG_IN __m256i
ig_pairs(const uint8_t *a, const uint8_t *b)
{
	return _mm256_cvtepi8_epi16(
	    _mm_unpacklo_epi8(_mm_loadl_epi64((const __m128i *)a),
		_mm_loadl_epi64((const __m128i *)b)));
}

IG_IN IgScales
ig_scales(IgFormat f, const uint8_t *head, const uint8_t *block)
{
	const uint8_t *d = ig_head_bytes(f) ? head : block;
	f32x8 s = ig_load_f16x8(d), zero = _mm256_setzero_ps();
	__m256i one = _mm256_set1_epi16(1);
	__m256i offset = _mm256_set1_epi16((int16_t)f.offset);
	IgScales v = {s, {zero, zero}, {one, one}, offset};

	if (f.scales == IG_DM)
		v.m[0] = ig_load_f16x8(block + 16);
	if (f.scales == IG_SC || f.scales == IG_SCM)
		v.s = s * ig_load_i8x8(block);
	if (f.scales == IG_SCM)
		v.m[0] = -(ig_load_f16x8(head + 16) * ig_load_i8x8(block + 8));
	if (ig_has_halves(f)) {
		v.sc[0] = ig_pairs(block, block);
		v.sc[1] = ig_pairs(block + 8, block + 8);
		v.offset =
		    _mm256_mullo_epi16(offset, ig_pairs(block, block + 8));
	}
	if (f.scales == IG_HALFM) {
		f32x8 dmin = ig_load_f16x8(head + 16);

		v.m[0] = -(dmin * ig_load_i8x8(block + 16));
		v.m[1] = -(dmin * ig_load_i8x8(block + 24));
	}
	return v;
}

/* The high bits of quad j, in their place above the low ones. */
IG_IN __m256i
ig_high_bits(IgFormat f, const uint8_t *plane, int j)
{
	int at = f.high == 2 ? 2 * (j / 2) : j;
	int vector = f.high == 2 ? j % 2 : 0;
	__m256i v = ig_load_i8x32(plane + 32 * vector);

	v = at > f.low ? _mm256_srli_epi16(v, at - f.low)
		       : _mm256_slli_epi16(v, f.low - at);
	return _mm256_and_si256(
	    v, _mm256_set1_epi8((char)(((1 << f.high) - 1) << f.low)));
}

/* Quad j of each row: 4 codes, or values of the table, a lane. */
IG_IN __m256i
ig_quad(IgFormat f, const uint8_t *codes, int j)
{
	int vectors = f.low; /* of the low plane */
	__m256i v = ig_load_i8x32(codes + 32 * (j % vectors));

	if (f.low == 8)
		return v;
	v = _mm256_and_si256(_mm256_srli_epi16(v, f.low * (j / vectors)),
	    _mm256_set1_epi8((char)((1 << f.low) - 1)));
	if (f.high)
		v = _mm256_or_si256(
		    v, ig_high_bits(f, codes + 32 * vectors, j));
	if (f.table)
		v = _mm256_shuffle_epi8(
		    _mm256_broadcastsi128_si256(
			_mm_setr_epi8(-127, -104, -83, -65, -49, -35, -22, -10,
			    1, 13, 25, 38, 53, 69, 89, 113)),
		    v);
	return v;
}

/* Products of a quad with 4 activations, neighbours added: i16, never
 * saturated, since two products are at most
 *     2 * 127 * 128 = 32512   signed (|w| unsigned, its sign moved to q)
 *     2 * 127 * 63  = 16002   6 bits
 *     2 * 127 * 31  =  7874   5 bits
 *     2 * 127 * 15  =  3810   4 bits */
IG_IN __m256i
ig_products(IgFormat f, __m256i w, const int8_t *q)
{
	__m256i a = ig_splat4(q);

	if (ig_is_signed(f))
		return _mm256_maddubs_epi16(
		    _mm256_abs_epi8(w), _mm256_sign_epi8(a, w));
	return _mm256_maddubs_epi16(w, a);
}

/* How many quads of products an i16 holds: 1 * 32512, 2 * 16002, 4 * 7874,
 * 8 * 3810 are all below 32768. Halves have 4 quads. */
IG_IN int
ig_span(IgFormat f)
{
	int bits = f.low + f.high;

	if (ig_is_signed(f))
		return 1;
	if (bits > 4)
		return bits == 6 ? 2 : 4;
	return ig_has_halves(f) ? 4 : 8;
}

/* Integer part of a block: quads n of weights, activations a. */
IG_IN __m256i
ig_block_dot(IgFormat f, const IgScales *s, const __m256i n[8], const Q8A *a)
{
	__m256i sum = _mm256_setzero_si256();
	int span = ig_span(f);

	if (f.offset)
		sum = _mm256_sub_epi32(
		    sum, _mm256_madd_epi16(s->offset, ig_splat4(a->sum)));
	IG_UNROLL
	for (int i = 0; i < 8; i += span) {
		__m256i acc = ig_products(f, n[i], a->q + 4 * i);

		IG_UNROLL
		for (int e = i + 1; e < i + span; e++)
			acc = _mm256_add_epi16(
			    acc, ig_products(f, n[e], a->q + 4 * e));
		sum =
		    _mm256_add_epi32(sum, _mm256_madd_epi16(acc, s->sc[i / 4]));
	}
	return sum;
}

/* t plus one block: the integer part, then the minima. */
IG_IN f32x8
ig_add_block(
    IgFormat f, const IgScales *s, const __m256i n[8], const Q8A *a, f32x8 t)
{
	f32x8 scale = s->s * _mm256_set1_ps(a->s);
	__m256i sum = ig_block_dot(f, s, n, a);

	t = _mm256_fmadd_ps(scale, _mm256_cvtepi32_ps(sum), t);
	if (f.scales == IG_DM || f.scales == IG_SCM)
		t = _mm256_fmadd_ps(s->m[0], _mm256_set1_ps(a->h), t);
	for (int h = 0; f.scales == IG_HALFM && h < 2; h++)
		t = _mm256_fmadd_ps(
		    s->m[h], _mm256_set1_ps(a->s * (float)a->sum[h]), t);
	return t;
}

/* t[j] plus block b of x[j]. The weights are unpacked once, and one row of
 * activations after the other takes its turn with them in registers. */
IG_IN void
ig_add_blocks(IgFormat f, const uint8_t *head, const uint8_t *block,
    const Q8A *const *x, int b, int nt, f32x8 *t)
{
	IgScales s = ig_scales(f, head, block);
	__m256i n[8];

	ig_fetch_ahead(block, ig_block_bytes(f));
	IG_UNROLL
	for (int i = 0; i < 8; i++)
		n[i] = ig_quad(f, block + ig_scale_bytes(f), i);
	IG_UNROLL
	for (int j = 0; j < nt; j++)
		t[j] = ig_add_block(f, &s, n, x[j] + b, t[j]);
}

IG_IN void
ig_tile_quant(IgFormat f, const uint8_t *w, const Q8A *const *x, int nt, int k,
    f32x8 *out)
{
	f32x8 chain[4][IG_MAX_NT] = {{{0}}};
	int blocks = k / 32;

	for (int first = 0; first < blocks; first += 8) {
		f32x8 *c = chain[first / 8 % 4];
		int end = first + 8 < blocks ? first + 8 : blocks;
		const uint8_t *head = w;
		f32x8 t[IG_MAX_NT] = {{0}};

		w += ig_head_bytes(f);
		for (int b = first; b < end; b++, w += ig_block_bytes(f))
			ig_add_blocks(f, head, w, x, b, nt, t);
		for (int j = 0; j < nt; j++)
			c[j] += t[j];
	}
	for (int j = 0; j < nt; j++)
		out[j] =
		    ((chain[0][j] + chain[1][j]) + chain[2][j]) + chain[3][j];
}

/* out[32] = the values of one lane of a block. */
IG_IN void
ig_block_values(
    IgFormat f, const uint8_t *head, const uint8_t *block, int lane, float *out)
{
	IgScales s = ig_scales(f, head, block);
	int8_t n[32];

	IG_UNROLL
	for (int j = 0; j < 8; j++) {
		ig_i32x8 v = (ig_i32x8)ig_quad(f, block + ig_scale_bytes(f), j);
		int32_t quad = v[lane];

		__builtin_memcpy(n + 4 * j, &quad, 4);
	}
	for (int h = 0; h < 2; h++) {
		ig_i16x16 sc = (ig_i16x16)s.sc[h];
		float scale = s.s[lane] * (float)sc[2 * lane];
		float m = s.m[f.scales == IG_HALFM ? h : 0][lane];
		int has_min = f.scales == IG_DM || f.scales == IG_SCM ||
			      f.scales == IG_HALFM;

		for (int e = 16 * h; e < 16 * h + 16; e++) {
			float y = scale * (float)(n[e] - f.offset);

			out[e] = has_min ? y + m : y;
		}
	}
}

IG_IN void
ig_row_quant(IgFormat f, const void *packed, uint64_t row, int k, float *out)
{
	const uint8_t *w =
	    (const uint8_t *)packed + row / 8 * ig_quant_bytes(f, k);
	const uint8_t *head = w;

	for (int b = 0; b < k / 32; b++, w += ig_block_bytes(f)) {
		if (b % 8 == 0) {
			head = w;
			w += ig_head_bytes(f);
		}
		ig_block_values(f, head, w, (int)(row % 8), out + 32 * b);
	}
}

#define IG_QUANT(name, ...)                                                    \
	IG_IN size_t ig_tile_bytes_##name(int k)                               \
	{                                                                      \
		return ig_quant_bytes((IgFormat){__VA_ARGS__}, k);             \
	}                                                                      \
	IG_IN void ig_tile_##name(                                             \
	    const uint8_t *w, const Q8A *const *x, int nt, int k, f32x8 *out)  \
	{                                                                      \
		ig_tile_quant((IgFormat){__VA_ARGS__}, w, x, nt, k, out);      \
	}                                                                      \
	static inline void ig_row_##name(                                      \
	    const void *packed, uint64_t row, int k, float *out)               \
	{                                                                      \
		ig_row_quant((IgFormat){__VA_ARGS__}, packed, row, k, out);    \
	}
IG_FORMATS(IG_QUANT)
#undef IG_QUANT

/* ---- float weights: the order dot32 ---- */

enum { IG_F32, IG_F16, IG_BF16 };

IG_IN size_t
ig_float_bytes(int type)
{
	return type == IG_F32 ? 4 : 2;
}

/* Element i of the 8 rows of a tile. */
IG_IN f32x8
ig_column(int type, const uint8_t *w, int i)
{
	const uint8_t *p = w + (size_t)i * 8 * ig_float_bytes(type);

	if (type == IG_F32)
		return ig_load_f32x8(p);
	return type == IG_F16 ? ig_load_f16x8(p) : ig_load_bf16x8(p);
}

/* acc[j] plus elements i to i+n-1 of the tile times those of x[j]. */
IG_IN void
ig_add_run(int type, const uint8_t *w, const float *const *x, int nt, int i,
    int n, f32x8 *acc)
{
	size_t column = 8 * ig_float_bytes(type);
	f32x8 sum[IG_MAX_NT];

	ig_fetch_ahead(w + (size_t)i * column, 8 * column);
	for (int j = 0; j < nt; j++)
		sum[j] = acc[j];
	for (int e = i; e < i + n; e++) {
		f32x8 v = ig_column(type, w, e);

		IG_UNROLL
		for (int j = 0; j < nt; j++)
			sum[j] =
			    _mm256_fmadd_ps(v, _mm256_set1_ps(x[j][e]), sum[j]);
	}
	for (int j = 0; j < nt; j++)
		acc[j] = sum[j];
}

IG_IN void
ig_tile_float(int type, const uint8_t *w, const float *const *x, int nt, int k,
    f32x8 *out)
{
	f32x8 acc[32][IG_MAX_NT] = {{{0}}};
	int i = 0;

	for (; i + 8 <= k; i += 8)
		ig_add_run(type, w, x, nt, i, 8, acc[i / 8 % 32]);
	if (i < k)
		ig_add_run(type, w, x, nt, i, k - i, acc[i / 8 % 32]);
	for (int n = 32; n > 1; n /= 2)
		for (int c = 0; c < n / 2; c++)
			for (int j = 0; j < nt; j++)
				acc[c][j] = acc[2 * c][j] + acc[2 * c + 1][j];
	for (int j = 0; j < nt; j++)
		out[j] = acc[0][j];
}

IG_IN void
ig_row_float(int type, const void *packed, uint64_t row, int k, float *out)
{
	size_t bytes = ig_float_bytes(type);
	const uint8_t *w = (const uint8_t *)packed +
			   (row / 8 * 8 * (size_t)k + row % 8) * bytes;

	for (int i = 0; i < k; i++, w += 8 * bytes) {
		uint16_t half;

		__builtin_memcpy(&half, w, 2);
		if (type == IG_F32)
			__builtin_memcpy(&out[i], w, 4);
		else
			out[i] = type == IG_F16 ? ig_from_f16(half)
						: ig_from_bf16(half);
	}
}

#define IG_FLOAT(name, TYPE)                                                   \
	IG_IN size_t ig_tile_bytes_##name(int k)                               \
	{                                                                      \
		return (size_t)k * 8 * ig_float_bytes(TYPE);                   \
	}                                                                      \
	IG_IN void ig_tile_##name(const uint8_t *w, const float *const *x,     \
	    int nt, int k, f32x8 *out)                                         \
	{                                                                      \
		ig_tile_float(TYPE, w, x, nt, k, out);                         \
	}                                                                      \
	static inline void ig_row_##name(                                      \
	    const void *packed, uint64_t row, int k, float *out)               \
	{                                                                      \
		ig_row_float(TYPE, packed, row, k, out);                       \
	}
IG_FLOAT(f32, IG_F32)
IG_FLOAT(f16, IG_F16)
IG_FLOAT(bf16, IG_BF16)
#undef IG_FLOAT

#endif
