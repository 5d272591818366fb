#include "pack.h"

#include <string.h>

#include "plan.h"

enum { TILE = 8 }; /* rows */

/* What the scales of a block are, and what of them stands in the head of its
 * group. */
typedef enum Scales {
	SCALE_D,    /* d */
	SCALE_DM,   /* d, m */
	SCALE_SC,   /* head d; sc */
	SCALE_SCM,  /* head d, m; sc, mn */
	SCALE_HALF, /* head d; sc of both halves */
	SCALE_HALFM /* head d, m; sc and mn of both halves */
} Scales;

/* 32 weights of a row of any QUANT type; m is what multiplies mn. Codes are
 * bytes in the order of the row, quad j in quad[j]. */
typedef struct Block {
	uint16_t d, m;
	uint8_t sc[2], mn[2];
	union {
		uint8_t code[32];
		uint64_t eight[4];
		uint32_t quad[8];
	} u;
} Block;

typedef struct Format {
	/* Reads block b of a row; codes must be zero before. */
	void (*read)(const uint8_t *row, uint64_t b, Block *out);
	Scales scales;
	int low, high; /* bits of the planes */
} Format;

/* ---- reading blocks ---- */

static uint16_t
half_at(const uint8_t *p)
{
	return (uint16_t)(p[0] | p[1] << 8);
}

static uint64_t
eight_at(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, 8);
	return v;
}

/* v in each of 8 bytes. */
static uint64_t
spread(uint64_t v)
{
	return v * 0x0101010101010101u;
}

/* Adds to 8*n codes a field of 8*n bytes: width bits from bit `from` on, put
 * at bit `to`. */
static void
add_field(uint64_t *codes, int n, const uint8_t *p, int from, int width, int to)
{
	uint64_t mask = spread((1u << width) - 1);

	for (int i = 0; i < n; i++)
		codes[i] |= (eight_at(p + 8 * i) >> from & mask) << to;
}

/* Low halves of 16 bytes, then high halves. */
static void
read_nibbles(const uint8_t *p, Block *out)
{
	add_field(out->u.eight, 2, p, 0, 4, 0);
	add_field(out->u.eight + 2, 2, p, 4, 4, 0);
}

/* Adds bit e of 4 bytes to code e as its bit 4: each byte is spread, bit i
 * kept in byte i, and brought to the top by an addition. */
static void
read_fifth_bits(const uint8_t *p, Block *out)
{
	for (int i = 0; i < 4; i++) {
		uint64_t v = spread(p[i]) & 0x8040201008040201u;

		v = (v + spread(0x7F)) >> 7 & spread(1);
		out->u.eight[i] |= v << 4;
	}
}

static void
read_q4_0(const uint8_t *row, uint64_t b, Block *out)
{
	const uint8_t *p = row + b * 18;

	out->d = half_at(p);
	read_nibbles(p + 2, out);
}

static void
read_q4_1(const uint8_t *row, uint64_t b, Block *out)
{
	const uint8_t *p = row + b * 20;

	out->d = half_at(p);
	out->m = half_at(p + 2);
	read_nibbles(p + 4, out);
}

static void
read_q5_0(const uint8_t *row, uint64_t b, Block *out)
{
	const uint8_t *p = row + b * 22;

	out->d = half_at(p);
	read_nibbles(p + 6, out);
	read_fifth_bits(p + 2, out);
}

static void
read_q5_1(const uint8_t *row, uint64_t b, Block *out)
{
	const uint8_t *p = row + b * 24;

	out->d = half_at(p);
	out->m = half_at(p + 2);
	read_nibbles(p + 8, out);
	read_fifth_bits(p + 4, out);
}

static void
read_q8_0(const uint8_t *row, uint64_t b, Block *out)
{
	const uint8_t *p = row + b * 34;

	out->d = half_at(p);
	memcpy(out->u.code, p + 2, 32);
}

static void
read_q2_k(const uint8_t *row, uint64_t b, Block *out)
{
	const uint8_t *p = row + b / 8 * 84;
	int i = (int)(b % 8);

	out->d = half_at(p + 80);
	out->m = half_at(p + 82);
	for (int h = 0; h < 2; h++) {
		out->sc[h] = p[2 * i + h] & 15;
		out->mn[h] = p[2 * i + h] >> 4;
	}
	add_field(out->u.eight, 4, p + 16 + 32 * (i / 4), 2 * (i % 4), 2, 0);
}

/* Scale j of Q3_K, six bits in two places, less 32. */
static uint8_t
q3_k_scale(const uint8_t *s, int j)
{
	int low = j < 8 ? s[j] & 15 : s[j - 8] >> 4;
	int high = s[8 + j % 4] >> 2 * (j / 4) & 3;

	return (uint8_t)((low | high << 4) - 32);
}

static void
read_q3_k(const uint8_t *row, uint64_t b, Block *out)
{
	const uint8_t *p = row + b / 8 * 110;
	int i = (int)(b % 8);

	out->d = half_at(p + 108);
	out->sc[0] = q3_k_scale(p + 96, 2 * i);
	out->sc[1] = q3_k_scale(p + 96, 2 * i + 1);
	add_field(out->u.eight, 4, p + 32 + 32 * (i / 4), 2 * (i % 4), 2, 0);
	add_field(out->u.eight, 4, p, i, 1, 2);
}

/* Scales of Q4_K and Q5_K: six bits each. */
static void
read_six_bits(const uint8_t *p, int j, Block *out)
{
	const uint8_t *s = p + 4;

	out->d = half_at(p);
	out->m = half_at(p + 2);
	if (j < 4) {
		out->sc[0] = s[j] & 63;
		out->mn[0] = s[j + 4] & 63;
	} else {
		out->sc[0] = (uint8_t)((s[j + 4] & 15) | s[j - 4] >> 6 << 4);
		out->mn[0] = (uint8_t)(s[j + 4] >> 4 | s[j] >> 6 << 4);
	}
}

static void
read_q4_k(const uint8_t *row, uint64_t b, Block *out)
{
	const uint8_t *p = row + b / 8 * 144;
	int i = (int)(b % 8);

	read_six_bits(p, i, out);
	add_field(out->u.eight, 4, p + 16 + 32 * (i / 2), 4 * (i % 2), 4, 0);
}

static void
read_q5_k(const uint8_t *row, uint64_t b, Block *out)
{
	const uint8_t *p = row + b / 8 * 176;
	int i = (int)(b % 8);

	read_six_bits(p, i, out);
	add_field(out->u.eight, 4, p + 48 + 32 * (i / 2), 4 * (i % 2), 4, 0);
	add_field(out->u.eight, 4, p + 16, i, 1, 4);
}

static void
read_q6_k(const uint8_t *row, uint64_t b, Block *out)
{
	const uint8_t *p = row + b / 8 * 210;
	int i = (int)(b % 8), g = i % 4;

	out->d = half_at(p + 208);
	out->sc[0] = p[192 + 2 * i];
	out->sc[1] = p[192 + 2 * i + 1];
	add_field(out->u.eight, 4, p + 64 * (i / 4) + 32 * (g & 1),
	    g < 2 ? 0 : 4, 4, 0);
	add_field(out->u.eight, 4, p + 128 + 32 * (i / 4), 2 * g, 2, 4);
}

static void
read_iq4_xs(const uint8_t *row, uint64_t b, Block *out)
{
	const uint8_t *p = row + b / 8 * 136;
	int i = (int)(b % 8);
	int low = p[4 + i / 2] >> 4 * (i % 2) & 15;
	int high = half_at(p + 2) >> 2 * i & 3;

	out->d = half_at(p);
	out->sc[0] = (uint8_t)((low | high << 4) - 32);
	read_nibbles(p + 8 + 16 * i, out);
}

/* IQ4_NL lies as Q4_0 does. */
static const Format formats[DT_COUNT] = {
    [DT_Q4_0] = {read_q4_0, SCALE_D, 4, 0},
    [DT_Q4_1] = {read_q4_1, SCALE_DM, 4, 0},
    [DT_Q5_0] = {read_q5_0, SCALE_D, 4, 1},
    [DT_Q5_1] = {read_q5_1, SCALE_DM, 4, 1},
    [DT_Q8_0] = {read_q8_0, SCALE_D, 8, 0},
    [DT_Q2_K] = {read_q2_k, SCALE_HALFM, 2, 0},
    [DT_Q3_K] = {read_q3_k, SCALE_HALF, 2, 1},
    [DT_Q4_K] = {read_q4_k, SCALE_SCM, 4, 0},
    [DT_Q5_K] = {read_q5_k, SCALE_SCM, 4, 1},
    [DT_Q6_K] = {read_q6_k, SCALE_HALF, 4, 2},
    [DT_IQ4_NL] = {read_q4_0, SCALE_D, 4, 0},
    [DT_IQ4_XS] = {read_iq4_xs, SCALE_SC, 4, 0},
};

/* Bytes of the head of a group and of the scales of a block, by Scales. */
static const uint8_t head_bytes[] = {0, 0, 16, 32, 16, 32};
static const uint8_t scale_bytes[] = {16, 32, 8, 16, 16, 32};

/* ---- writing tiles ---- */

static uint8_t *
put_halves(uint8_t *out, const Block *rows, int minimum)
{
	for (int r = 0; r < TILE; r++) {
		uint16_t v = minimum ? rows[r].m : rows[r].d;

		memcpy(out + 2 * r, &v, 2);
	}
	return out + 2 * TILE;
}

/* d, and m where the type has one. */
static uint8_t *
put_factors(uint8_t *out, const Block *rows, int minimum)
{
	out = put_halves(out, rows, 0);
	return minimum ? put_halves(out, rows, 1) : out;
}

/* sc of count parts of the block, then mn. */
static uint8_t *
put_scales(uint8_t *out, const Block *rows, int count, int minimum)
{
	for (int i = 0; i < count; i++, out += TILE)
		for (int r = 0; r < TILE; r++)
			out[r] = rows[r].sc[i];
	for (int i = 0; minimum && i < count; i++, out += TILE)
		for (int r = 0; r < TILE; r++)
			out[r] = rows[r].mn[i];
	return out;
}

/* A plane of width bits, from bit `from` of the codes: as many vectors, quad
 * v + width*i in field i of vector v. */
static inline uint8_t *
put_plane(uint8_t *out, const Block *rows, int from, int width)
{
	uint32_t mask = (uint32_t)spread((1u << width) - 1);

	for (int v = 0; v < width; v++)
		for (int r = 0; r < TILE; r++, out += 4) {
			const uint32_t *q = rows[r].u.quad + v;
			uint32_t word = 0;

			for (int i = 0; i < 8 / width; i++)
				word |= (q[width * i] >> from & mask)
					<< width * i;
			memcpy(out, &word, 4);
		}
	return out;
}

/* The width as a constant makes the loops above straight code. */
static uint8_t *
put_bits(uint8_t *out, const Block *rows, int from, int width)
{
	switch (width) {
	case 1:
		return put_plane(out, rows, from, 1);
	case 2:
		return put_plane(out, rows, from, 2);
	case 4:
		return put_plane(out, rows, from, 4);
	case 8:
		return put_plane(out, rows, from, 8);
	default:
		return out;
	}
}

static uint8_t *
put_block(const Format *f, const Block *rows, uint8_t *out)
{
	int halves = f->scales == SCALE_HALF || f->scales == SCALE_HALFM;
	int minimum = f->scales == SCALE_SCM || f->scales == SCALE_HALFM;

	if (head_bytes[f->scales])
		out = put_scales(out, rows, 1 + halves, minimum);
	else
		out = put_factors(out, rows, f->scales == SCALE_DM);
	out = put_bits(out, rows, 0, f->low);
	return put_bits(out, rows, f->low, f->high);
}

static void
pack_quant(
    const Format *f, uint64_t k, const void *const *src, int n, uint8_t *out)
{
	for (uint64_t b = 0; b < k / 32; b++) {
		Block rows[TILE] = {{0}};

		for (int r = 0; r < n; r++)
			f->read(src[r], b, &rows[r]);
		if (b % 8 == 0 && head_bytes[f->scales])
			out =
			    put_factors(out, rows, head_bytes[f->scales] == 32);
		out = put_block(f, rows, out);
	}
}

/* Elements of size bytes, one after the other of each row. */
static inline void
pack_elements(
    size_t size, uint64_t k, const void *const *src, int n, uint8_t *out)
{
	for (uint64_t i = 0; i < k; i++)
		for (int r = 0; r < n; r++)
			memcpy(out + (i * TILE + (uint64_t)r) * size,
			    (const uint8_t *)src[r] + i * size, size);
}

void
pack_tile(DType t, uint64_t k, const void *const *src, int n, void *out)
{
	if (dtypes[t].kind == DK_QUANT) {
		pack_quant(&formats[t], k, src, n, out);
		return;
	}
	if (n < TILE)
		memset(out, 0, pack_tile_bytes(t, k));
	if (dtypes[t].bytes == 2)
		pack_elements(2, k, src, n, out);
	else
		pack_elements(4, k, src, n, out);
}

/* ---- sizes ---- */

uint64_t
pack_tile_bytes(DType t, uint64_t k)
{
	const Format *f = &formats[t];

	if (dtypes[t].kind != DK_QUANT)
		return k * TILE * dtypes[t].bytes;
	return (k + 255) / 256 * head_bytes[f->scales] +
	       k / 32 *
		   (uint64_t)(scale_bytes[f->scales] + 32 * (f->low + f->high));
}

/* a*b, or UINT64_MAX when that does not fit 63 bits. */
static uint64_t
product(uint64_t a, uint64_t b)
{
	return b != 0 && a > (uint64_t)INT64_MAX / b ? UINT64_MAX : a * b;
}

uint64_t
pack_bytes(uint32_t pack, DType t, uint64_t experts, uint64_t rows, uint64_t k)
{
	uint64_t tiles = rows / TILE + (rows % TILE != 0);

	if (k >= (uint64_t)1 << 56)
		return UINT64_MAX;
	if (pack == PACK_ROWS8)
		return product(product(experts, tiles), pack_tile_bytes(t, k));
	return product(product(experts, rows), dtype_bytes(t, k));
}
