#include "quant.h"

#include "arith.h"

#include <string.h>

/* 32 weights of any QUANT type in one form.  Weight e of half h = e/16 is
 * (s*sc[h])*n[e] + m[h]; without a minimum the last term is absent. */
typedef struct Block {
	float s;
	int32_t sc[2];
	float m[2];
	int8_t n[32];
} Block;

/* What a type is beside its bytes: how to read block b of a row, and how many
 * minima its blocks have (2: one for each half). */
typedef struct Format {
	void (*unpack)(const uint8_t *row, uint64_t b, Block *w);
	int minima;
} Format;

_Static_assert(sizeof(Q8A) == 44, "a Q8A block has 44 bytes");

static const int8_t iq4_values[16] = {
    -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

static float
half_at(const uint8_t *p)
{
	return ig_from_f16((uint16_t)(p[0] | p[1] << 8));
}

static uint32_t
word_at(const uint8_t *p)
{
	return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
	       (uint32_t)p[3] << 24;
}

static void
one_scale(Block *w, float s)
{
	w->s = s;
	w->sc[0] = w->sc[1] = 1;
}

static void
one_minimum(Block *w, float m)
{
	w->m[0] = w->m[1] = m;
}

/* Low halves of 16 bytes, then high halves. */
static int
nibble(const uint8_t *qs, int e)
{
	return e < 16 ? qs[e] & 15 : qs[e - 16] >> 4;
}

static void
unpack_nibbles(const uint8_t *qs, int offset, Block *w)
{
	for (int e = 0; e < 32; e++)
		w->n[e] = (int8_t)(nibble(qs, e) - offset);
}

/* Nibbles with a fifth bit from qh. */
static void
unpack_fives(const uint8_t *qs, uint32_t qh, int offset, Block *w)
{
	for (int e = 0; e < 32; e++)
		w->n[e] =
		    (int8_t)(nibble(qs, e) + (int)(qh >> e & 1) * 16 - offset);
}

static void
unpack_iq4(const uint8_t *qs, Block *w)
{
	for (int e = 0; e < 32; e++)
		w->n[e] = iq4_values[nibble(qs, e)];
}

static void
unpack_q4_0(const uint8_t *row, uint64_t b, Block *w)
{
	const uint8_t *p = row + b * 18;

	one_scale(w, half_at(p));
	unpack_nibbles(p + 2, 8, w);
}

static void
unpack_q4_1(const uint8_t *row, uint64_t b, Block *w)
{
	const uint8_t *p = row + b * 20;

	one_scale(w, half_at(p));
	one_minimum(w, half_at(p + 2));
	unpack_nibbles(p + 4, 0, w);
}

static void
unpack_q5_0(const uint8_t *row, uint64_t b, Block *w)
{
	const uint8_t *p = row + b * 22;

	one_scale(w, half_at(p));
	unpack_fives(p + 6, word_at(p + 2), 16, w);
}

static void
unpack_q5_1(const uint8_t *row, uint64_t b, Block *w)
{
	const uint8_t *p = row + b * 24;

	one_scale(w, half_at(p));
	one_minimum(w, half_at(p + 2));
	unpack_fives(p + 8, word_at(p + 4), 0, w);
}

static void
unpack_q8_0(const uint8_t *row, uint64_t b, Block *w)
{
	const uint8_t *p = row + b * 34;

	one_scale(w, half_at(p));
	memcpy(w->n, p + 2, 32);
}

static void
unpack_iq4_nl(const uint8_t *row, uint64_t b, Block *w)
{
	const uint8_t *p = row + b * 18;

	one_scale(w, half_at(p));
	unpack_iq4(p + 2, w);
}

/* Two bits each: 128 weights share 32 bytes. */
static void
unpack_twos(const uint8_t *qs, int ib, Block *w)
{
	for (int e = 0; e < 32; e++)
		w->n[e] = qs[32 * (ib / 4) + e] >> 2 * (ib % 4) & 3;
}

static void
unpack_q2_k(const uint8_t *row, uint64_t b, Block *w)
{
	const uint8_t *p = row + b / 8 * 84;
	int ib = (int)(b % 8);
	float dmin = half_at(p + 82);

	w->s = half_at(p + 80);
	for (int h = 0; h < 2; h++) {
		int scale = p[2 * ib + h];

		w->sc[h] = scale & 15;
		w->m[h] = -(dmin * (float)(scale >> 4));
	}
	unpack_twos(p + 16, ib, w);
}

/* Scale j of Q3_K: six bits in two places. */
static int
q3_k_scale(const uint8_t *s, int j)
{
	int low = j < 8 ? s[j] & 15 : s[j - 8] >> 4;

	return low | (s[8 + j % 4] >> 2 * (j / 4) & 3) << 4;
}

static void
unpack_q3_k(const uint8_t *row, uint64_t b, Block *w)
{
	const uint8_t *p = row + b / 8 * 110;
	int ib = (int)(b % 8);

	w->s = half_at(p + 108);
	w->sc[0] = q3_k_scale(p + 96, 2 * ib) - 32;
	w->sc[1] = q3_k_scale(p + 96, 2 * ib + 1) - 32;
	unpack_twos(p + 32, ib, w);
	for (int e = 0; e < 32; e++)
		if (!(p[e] >> ib & 1))
			w->n[e] -= 4;
}

/* Scale and minimum j of Q4_K and Q5_K: six bits each. */
static void
k_scale(const uint8_t *p, int j, Block *w)
{
	const uint8_t *s = p + 4;
	int sc, mn;

	if (j < 4) {
		sc = s[j] & 63;
		mn = s[j + 4] & 63;
	} else {
		sc = (s[j + 4] & 15) | s[j - 4] >> 6 << 4;
		mn = s[j + 4] >> 4 | s[j] >> 6 << 4;
	}
	one_scale(w, half_at(p) * (float)sc);
	one_minimum(w, -(half_at(p + 2) * (float)mn));
}

/* 32 bytes hold two blocks, low halves the first. */
static void
unpack_pair(const uint8_t *qs, int ib, Block *w)
{
	for (int e = 0; e < 32; e++)
		w->n[e] = qs[32 * (ib / 2) + e] >> 4 * (ib % 2) & 15;
}

static void
unpack_q4_k(const uint8_t *row, uint64_t b, Block *w)
{
	const uint8_t *p = row + b / 8 * 144;
	int ib = (int)(b % 8);

	k_scale(p, ib, w);
	unpack_pair(p + 16, ib, w);
}

static void
unpack_q5_k(const uint8_t *row, uint64_t b, Block *w)
{
	const uint8_t *p = row + b / 8 * 176;
	int ib = (int)(b % 8);

	k_scale(p, ib, w);
	unpack_pair(p + 48, ib, w);
	for (int e = 0; e < 32; e++)
		w->n[e] |= (int8_t)((p[16 + e] >> ib & 1) << 4);
}

static void
unpack_q6_k(const uint8_t *row, uint64_t b, Block *w)
{
	const uint8_t *p = row + b / 8 * 210;
	int ib = (int)(b % 8), g = ib % 4;
	const uint8_t *ql = p + 64 * (ib / 4) + 32 * (g & 1);
	const uint8_t *qh = p + 128 + 32 * (ib / 4);

	w->s = half_at(p + 208);
	w->sc[0] = (int8_t)p[192 + 2 * ib];
	w->sc[1] = (int8_t)p[192 + 2 * ib + 1];
	for (int e = 0; e < 32; e++) {
		int low = g < 2 ? ql[e] & 15 : ql[e] >> 4;

		w->n[e] = (int8_t)(low + (qh[e] >> 2 * g & 3) * 16 - 32);
	}
}

static void
unpack_iq4_xs(const uint8_t *row, uint64_t b, Block *w)
{
	const uint8_t *p = row + b / 8 * 136;
	int ib = (int)(b % 8);
	int low = p[4 + ib / 2] >> 4 * (ib % 2) & 15;
	int high = (p[2] | p[3] << 8) >> 2 * ib & 3;

	one_scale(w, half_at(p) * (float)((low | high << 4) - 32));
	unpack_iq4(p + 8 + 16 * ib, w);
}

static const Format formats[DT_COUNT] = {
    [DT_Q4_0] = {unpack_q4_0, 0},
    [DT_Q4_1] = {unpack_q4_1, 1},
    [DT_Q5_0] = {unpack_q5_0, 0},
    [DT_Q5_1] = {unpack_q5_1, 1},
    [DT_Q8_0] = {unpack_q8_0, 0},
    [DT_Q2_K] = {unpack_q2_k, 2},
    [DT_Q3_K] = {unpack_q3_k, 0},
    [DT_Q4_K] = {unpack_q4_k, 1},
    [DT_Q5_K] = {unpack_q5_k, 1},
    [DT_Q6_K] = {unpack_q6_k, 0},
    [DT_IQ4_NL] = {unpack_iq4_nl, 0},
    [DT_IQ4_XS] = {unpack_iq4_xs, 0},
};

/* Element i of a row of FLOAT type. */
static float
element(DType t, const uint8_t *row, uint64_t i)
{
	if (t == DT_F32)
		return ig_float(word_at(row + 4 * i));
	if (t == DT_F16)
		return half_at(row + 2 * i);
	return ig_from_bf16((uint16_t)(row[2 * i] | row[2 * i + 1] << 8));
}

/* Every product is exact, so at most the sum with the minimum rounds. */
static void
dequant_block(const Block *w, int minima, float *out)
{
	for (int e = 0; e < 32; e++) {
		int h = e / 16;

		out[e] = w->s * (float)w->sc[h] * (float)w->n[e];
		if (minima)
			out[e] += w->m[h];
	}
}

void
dequant_row(DType t, const void *row, uint64_t k, float *out)
{
	const Format *f = &formats[t];
	Block w;

	if (dtypes[t].kind == DK_FLOAT) {
		for (uint64_t i = 0; i < k; i++)
			out[i] = element(t, row, i);
		return;
	}
	for (uint64_t b = 0; b < k / 32; b++) {
		f->unpack(row, b, &w);
		dequant_block(&w, f->minima, out + 32 * b);
	}
}

/* Bits of the largest |x|; a NaN is larger than any number. */
static uint32_t
largest(const float *x)
{
	uint32_t max = 0;

	for (int e = 0; e < 32; e++) {
		uint32_t u = ig_bits(x[e]) & ~IG_SIGN;

		max = u > max ? u : max;
	}
	return max;
}

static void
quantise_block(const float *x, Q8A *out)
{
	uint32_t max = largest(x);
	float amax = ig_float(max), r;

	memset(out, 0, sizeof *out);
	if (max >= IG_INF)
		out->s = out->h = ig_float(IG_NAN);
	if (max >= IG_INF || amax < 0x1p-100f)
		return;
	r = ig_div(127.0f, amax);
	for (int e = 0; e < 32; e++) {
		out->q[e] = (int8_t)ig_rne_clamp(x[e] * r);
		out->sum[e / 16] = (int16_t)(out->sum[e / 16] + out->q[e]);
	}
	out->s = amax * 0x1.020408p-7f;
	out->h = out->s * (float)(out->sum[0] + out->sum[1]);
}

void
quantise_row(const float *x, uint64_t k, Q8A *out)
{
	for (uint64_t b = 0; b < k / 32; b++)
		quantise_block(x + 32 * b, out + b);
}

static int32_t
dot16(const int8_t *n, const int8_t *q)
{
	int32_t sum = 0;

	for (int e = 0; e < 16; e++)
		sum += n[e] * q[e];
	return sum;
}

static int32_t
sum16(const int8_t *q)
{
	int32_t sum = 0;

	for (int e = 0; e < 16; e++)
		sum += q[e];
	return sum;
}

/* t plus one block: the integer part in one fma, then the minima. */
static float
add_block(float t, const Block *w, int minima, const Q8A *a)
{
	int32_t i = w->sc[0] * dot16(w->n, a->q) +
		    w->sc[1] * dot16(w->n + 16, a->q + 16);

	t = ig_fma(w->s * a->s, (float)i, t);
	if (minima == 1)
		t = ig_fma(w->m[0], a->h, t);
	for (int h = 0; minima == 2 && h < 2; h++)
		t = ig_fma(w->m[h], a->s * (float)sum16(a->q + 16 * h), t);
	return t;
}

float
dot_group256(DType t, const void *w_row, const Q8A *a, uint64_t k)
{
	const Format *f = &formats[t];
	float chain[4] = {0};
	uint64_t blocks = k / 32;
	Block w;

	for (uint64_t b = 0; b < blocks;) {
		float *c = &chain[b / 8 % 4];
		float sum = 0;

		do {
			f->unpack(w_row, b, &w);
			sum = add_block(sum, &w, f->minima, &a[b]);
		} while (++b < blocks && b % 8 != 0);
		*c += sum;
	}
	return ((chain[0] + chain[1]) + chain[2]) + chain[3];
}

/* Element i goes to accumulator (i/8) mod n. */
static float
dot(DType t, const void *w_row, const float *x, uint64_t k, uint32_t n)
{
	float a[32] = {0};

	for (uint64_t i = 0; i < k; i++) {
		float *acc = &a[i / 8 % n];

		*acc = ig_fma(element(t, w_row, i), x[i], *acc);
	}
	return neighbour_tree(a, n);
}

float
dot8(DType t, const void *w_row, const float *x, uint64_t k)
{
	return dot(t, w_row, x, k, 8);
}

float
dot32(DType t, const void *w_row, const float *x, uint64_t k)
{
	return dot(t, w_row, x, k, 32);
}

float
neighbour_tree(float *v, uint32_t n)
{
	for (; n > 1; n /= 2)
		for (uint32_t i = 0; i < n / 2; i++)
			v[i] = v[2 * i] + v[2 * i + 1];
	return v[0];
}

float
row_sum(const float *x, uint64_t n)
{
	float acc[256] = {0};

	for (uint64_t i = 0; i < n; i++)
		acc[i % 256] += x[i];
	return neighbour_tree(acc, 256);
}

float
row_sum_sq(const float *x, uint64_t n)
{
	float acc[256] = {0};

	for (uint64_t i = 0; i < n; i++)
		acc[i % 256] = ig_fma(x[i], x[i], acc[i % 256]);
	return neighbour_tree(acc, 256);
}
