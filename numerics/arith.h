/* Ingot's own float functions: one text for the oracle, the emitted CPU
 * kernels and the GPU prelude, so that every target computes the same bits.
 *
 * Only fma, mul, add, compare-and-select and 32-bit integer steps occur; no
 * division, square root or library call.  Every function is free of branches.
 * Requires: round to nearest even, denormals kept, no contraction.
 *
 * The text can be embedded in front of emitted code: define IG_EMBEDDED and
 * provide uint16_t, uint32_t and int32_t; nothing is included then.  IG_FN
 * holds the qualifiers of a function.  ig_bits, ig_float and ig_fma may be
 * macros naming a target's own bit casts and fused multiply-add.
 *
 * Errors are the worst found, in units of the last place of the exact
 * result (2^-149 where that is denormal), measured by
 * tests/sweep_arith.c; docs/numerics.md has the table.  A NaN result has no
 * defined sign or payload.
 */
#ifndef NUMERICS_ARITH_H
#define NUMERICS_ARITH_H

#ifndef IG_EMBEDDED
#include <stdint.h>
#endif

#ifndef IG_FN
#define IG_FN static inline
#endif

#define IG_INF 0x7F800000u
#define IG_NAN 0x7FC00000u
#define IG_SIGN 0x80000000u

/* Adding this to |v| < 2^22 leaves v, rounded half to even, in the low bits
 * of the sum. */
#define IG_ROUND 12582912.0f
#define IG_ROUND_BITS 0x4B400000u

#ifndef ig_bits
IG_FN uint32_t
ig_bits(float x)
{
	uint32_t u;

	__builtin_memcpy(&u, &x, 4);
	return u;
}
#endif

#ifndef ig_float
IG_FN float
ig_float(uint32_t u)
{
	float x;

	__builtin_memcpy(&x, &u, 4);
	return x;
}
#endif

#ifndef ig_fma
#define ig_fma(a, b, c) __builtin_fmaf(a, b, c)
#endif

/* The sign of a zero and a NaN must not matter to the caller. */
IG_FN float
ig_max(float a, float b)
{
	return a > b ? a : b;
}

/* x rounded half to even, clamped to [-127, 127]; NaN gives -127. */
IG_FN int32_t
ig_rne_clamp(float x)
{
	x = x > -127.0f ? x : -127.0f;
	x = x < 127.0f ? x : 127.0f;
	return (int32_t)(ig_bits(x + IG_ROUND) - IG_ROUND_BITS);
}

IG_FN float
ig_from_bf16(uint16_t h)
{
	return ig_float((uint32_t)h << 16);
}

/* Nearest even; overflow gives infinity, a NaN stays one. */
IG_FN uint16_t
ig_to_bf16(float x)
{
	uint32_t u = ig_bits(x);
	uint32_t r = (u + 0x7FFFu + ((u >> 16) & 1u)) >> 16;

	return (uint16_t)((u & ~IG_SIGN) > IG_INF ? u >> 16 | 0x40u : r);
}

/* Exact, denormals and infinities included; NaN keeps its payload. */
IG_FN float
ig_from_f16(uint16_t h)
{
	uint32_t m = h & 0x7FFFu;
	uint32_t n = (m << 13) + (m >= 0x7C00u ? 224u << 23 : 112u << 23);
	uint32_t d = ig_bits((float)(int32_t)m * 0x1p-24f);

	return ig_float((m < 0x400u ? d : n) | (uint32_t)(h & 0x8000u) << 16);
}

/* Bits of a positive finite float u as a normal float: u itself, or
 * u * 2^149 where u is denormal (or zero). */
IG_FN uint32_t
ig_normal(uint32_t u)
{
	return u < 0x00800000u ? ig_bits((float)(int32_t)u) : u;
}

/* The exponent of the float u, from n = ig_normal(u). */
IG_FN int32_t
ig_exponent(uint32_t u, uint32_t n)
{
	return (int32_t)(n >> 23) - (u < 0x00800000u ? 127 + 149 : 127);
}

/* 1/b correctly rounded for 1 <= b <= 2: a line through the reciprocal
 * (error 1/17) and Newton steps, which miss one value alone. */
IG_FN float
ig_reciprocal(float b)
{
	float y = ig_fma(b, -0x1.E1E1E2p-2f, 0x1.69696Ap+0f);

	y = ig_fma(ig_fma(-b, y, 1.0f), y, y);
	y = ig_fma(ig_fma(-b, y, 1.0f), y, y);
	y = ig_fma(ig_fma(-b, y, 1.0f), y, y);
	y = ig_fma(ig_fma(-b, y, 1.0f), y, y);
	return b == 0x1.FFFFFEp+0f ? 0x1.000002p-1f : y;
}

/* The significand m, 2^23 <= m < 2^24, shifted right by n, 1 <= n <= 25, and
 * rounded half to even.  rest has the sign of what m itself was rounded by. */
IG_FN uint32_t
ig_shift_rne(uint32_t m, uint32_t n, float rest)
{
	m = 2u * m + (rest > 0.0f ? 1u : 0u) - (rest < 0.0f ? 1u : 0u);
	return (m + ((1u << n) - 1u) + ((m >> (n + 1u)) & 1u)) >> (n + 1u);
}

/* a/b correctly rounded, denormal operands and results, zeros, infinities
 * and NaN as IEEE 754 has them.
 *
 * The quotient q of the significands is correctly rounded because the
 * reciprocal is and the remainder is exact; the remainder's sign keeps a
 * denormal result from being rounded twice. */
IG_FN float
ig_div(float a, float b)
{
	uint32_t ua = ig_bits(a) & ~IG_SIGN, ub = ig_bits(b) & ~IG_SIGN;
	uint32_t sign = (ig_bits(a) ^ ig_bits(b)) & IG_SIGN;
	uint32_t na = ig_normal(ua), nb = ig_normal(ub);
	int32_t e = ig_exponent(ua, na) - ig_exponent(ub, nb);
	float x = ig_float((na & 0x007FFFFFu) | 0x3F800000u);
	float y = ig_float((nb & 0x007FFFFFu) | 0x3F800000u);
	float r = ig_reciprocal(y);
	float q = ig_fma(ig_fma(-(x * r), y, x), r, x * r);
	float rest = ig_fma(-q, y, x);
	int32_t biased = (int32_t)(ig_bits(q) >> 23) + e;
	int32_t lost = biased < 1 ? 1 - biased : 1;
	uint32_t m = (ig_bits(q) & 0x007FFFFFu) | 0x00800000u;
	uint32_t u = ig_bits(q) + ((uint32_t)e << 23), d;

	d = ig_shift_rne(m, (uint32_t)(lost > 25 ? 25 : lost), rest);
	u = biased < 1 ? d : u;
	u = ((biased > 254) | (ub == 0u) | (ua == IG_INF)) ? IG_INF : u;
	u = ((ua == 0u) | (ub == IG_INF)) ? 0u : u;
	u = ((ua == ub) & ((ua == 0u) | (ua == IG_INF))) ? IG_NAN : u;
	u = ((ua > IG_INF) | (ub > IG_INF)) ? IG_NAN : u;
	return ig_float(u | sign);
}

/* The significand of a positive x, times 2 where its exponent is odd. */
IG_FN float
ig_root_arg(uint32_t n, int32_t e)
{
	return ig_float((n & 0x007FFFFFu) | (uint32_t)(127 + (e & 1)) << 23);
}

/* m^-1/2 for 1 <= m < 4: an integer seed (error 0.035) and Newton steps, the
 * last with the rounding error of m*y put back. */
IG_FN float
ig_root(float m)
{
	float y = ig_float(0x5F375A86u - (ig_bits(m) >> 1));
	float s;

	y = y * ig_fma(-0.5f * m * y, y, 1.5f);
	y = y * ig_fma(-0.5f * m * y, y, 1.5f);
	s = m * y;
	y = ig_fma(0.5f * ig_fma(-s, y, 1.0f), y, y);
	s = m * y;
	return ig_fma(
	    0.5f * ig_fma(-ig_fma(m, y, -s), y, ig_fma(-s, y, 1.0f)), y, y);
}

/* x^-1/2.  0.51 ulp.  Either zero gives +inf, +inf gives +0, x < 0 NaN. */
IG_FN float
ig_rsqrt(float x)
{
	uint32_t u = ig_bits(x), n = ig_normal(u);
	int32_t e = ig_exponent(u, n);
	uint32_t half = (uint32_t)(e - (e & 1)) << 22;
	float y = ig_float(ig_bits(ig_root(ig_root_arg(n, e))) - half);

	y = u == IG_INF ? 0.0f : y;
	y = u > IG_INF ? ig_float(IG_NAN) : y;
	return (u & ~IG_SIGN) == 0u ? ig_float(IG_INF) : y;
}

/* Square root, correctly rounded; zeros and +inf give themselves, x < 0
 * NaN. */
IG_FN float
ig_sqrt(float x)
{
	uint32_t u = ig_bits(x), n = ig_normal(u);
	int32_t e = ig_exponent(u, n);
	uint32_t half = (uint32_t)(e - (e & 1)) << 22;
	float m = ig_root_arg(n, e), y = ig_root(m), s = m * y;

	s = ig_fma(ig_fma(-s, s, m), 0.5f * y, s);
	s = ig_float(ig_bits(s) + half);
	s = u > IG_INF ? ig_float(IG_NAN) : s;
	return (((u & ~IG_SIGN) == 0u) | (u == IG_INF)) ? x : s;
}

/* The exponential in three parts: x = n*log(2) + r, |r| <= 0.347, so that
 * exp(x) = 2^n * (1 + (exp(r) - 1)).  |x| is at most 111; n travels as the
 * float t = IG_ROUND + n. */
IG_FN float
ig_exp_split(float x)
{
	return ig_fma(x, 0x1.715476p+0f, IG_ROUND);
}

/* exp(r) - 1. */
IG_FN float
ig_exp_rest(float x, float t)
{
	float n = t - IG_ROUND;
	float r = ig_fma(n, -0x1.7F7D1Cp-20f, ig_fma(n, -0x1.62E4p-1f, x));
	float p = 0x1.A23ECCp-13f;

	p = ig_fma(p, r, 0x1.6D4D1Ep-10f);
	p = ig_fma(p, r, 0x1.111006p-7f);
	p = ig_fma(p, r, 0x1.5554E8p-5f);
	p = ig_fma(p, r, 0x1.555556p-3f);
	p = ig_fma(p, r, 0.5f);
	return ig_fma(r * r, p, r);
}

/* y * 2^n by two powers of two, so that a denormal result rounds once. */
IG_FN float
ig_exp_scale(float y, float t)
{
	uint32_t n = ig_bits(t) - IG_ROUND_BITS;
	uint32_t h = (uint32_t)((int32_t)n >> 1);

	return y * ig_float((h + 127u) << 23) * ig_float((n - h + 127u) << 23);
}

/* e^x.  0.98 ulp.  +0 below -103.98, +inf above 88.722839; NaN gives NaN. */
IG_FN float
ig_exp(float x)
{
	float t;

	x = x < -104.0f ? -104.0f : x;
	x = x > 89.0f ? 89.0f : x;
	t = ig_exp_split(x);
	return ig_exp_scale(1.0f + ig_exp_rest(x, t), t);
}

/* log(1 + x).  1.27 ulp.  -0 gives +0, -1 gives -inf, x < -1 NaN.
 *
 * 1 + x = 2^k * (1 + f) with -1/4 <= f < 1/2; f is made from x, not from the
 * rounded 1 + x.  k stands in the exponent's bits. */
IG_FN float
ig_log1p(float x)
{
	uint32_t k = (ig_bits(1.0f + x) - 0x3F400000u) & 0xFF800000u;
	float unit = ig_fma(0.25f, ig_float(0x40800000u - k), -1.0f);
	float f = ig_float(ig_bits(x) - k) + unit;
	float n = (float)((int32_t)k >> 23);
	float p = 0x1.34459Ap-5f;

	p = ig_fma(p, f, -0x1.752324p-4f);
	p = ig_fma(p, f, 0x1.DF2760p-4f);
	p = ig_fma(p, f, -0x1.04AC98p-3f);
	p = ig_fma(p, f, 0x1.2462F2p-3f);
	p = ig_fma(p, f, -0x1.5519D2p-3f);
	p = ig_fma(p, f, 0x1.999768p-3f);
	p = ig_fma(p, f, -0x1.00006Ep-2f);
	p = ig_fma(p, f, 0x1.55555Ap-2f);
	p = ig_fma(p, f, -0.5f);
	p = ig_fma(f * f, p, f);
	p = ig_fma(n, 0x1.62E430p-1f, ig_fma(n, -0x1.05C610p-29f, p));
	p = ig_bits(x) == IG_INF ? x : p;
	p = x == -1.0f ? -ig_float(IG_INF) : p;
	return x >= -1.0f ? p : ig_float(IG_NAN);
}

/* x * sigmoid(z), x and z of one sign or x = 1.
 *
 * Where z < 0 it is x*e^z/(1 + e^z), else x/(1 + e^-z), so that neither end
 * overflows.  The rounding errors of both sides of the division are kept and
 * put back with its remainder; the power of two in e^z is applied last, so
 * that a denormal result rounds once. */
IG_FN float
ig_gate(float x, float z)
{
	float w = ig_float(ig_bits(z) | IG_SIGN);
	float a = x < -110.0f ? -110.0f : x;
	float t, rest, s, e, num, den, tail, r, q;

	w = w < -110.0f ? -110.0f : w;
	t = ig_exp_split(w);
	rest = ig_exp_rest(w, t);
	s = ig_exp_scale(1.0f, t);
	e = ig_fma(s, rest, s);
	den = 1.0f + e;
	tail = (e - (den - 1.0f)) + ig_fma(s, rest, s - e);
	rest = z < 0.0f ? rest : 0.0f;
	num = ig_fma(a, rest, a);
	r = ig_reciprocal(den);
	q = num * r;
	e = ig_fma(-q, den, num) + ig_fma(-q, tail, ig_fma(a, rest, a - num));
	q = ig_fma(e, r, q);
	q = z < 0.0f ? ig_exp_scale(q, t) : q;
	return z > 20.0f ? x : q;
}

/* 1/(1 + e^-x).  0.98 ulp. */
IG_FN float
ig_sigmoid(float x)
{
	return ig_gate(1.0f, x);
}

/* x * sigmoid(x).  1.07 ulp.  -inf gives -0. */
IG_FN float
ig_silu(float x)
{
	return ig_gate(x, x);
}

/* log(1 + e^x), x itself above 20.  1.68 ulp. */
IG_FN float
ig_softplus(float x)
{
	return x > 20.0f ? x : ig_log1p(ig_exp(x));
}

/* Hyperbolic tangent.  1.34 ulp.  An odd polynomial below 0.625, above it
 * 1 - 2/(e^2|x| + 1). */
IG_FN float
ig_tanh(float x)
{
	float a = ig_float(ig_bits(x) & ~IG_SIGN), z = x * x;
	float p = 0x1.1A2816p-9f, y;

	p = ig_fma(p, z, -0x1.0C5ED0p-7f);
	p = ig_fma(p, z, 0x1.63A550p-6f);
	p = ig_fma(p, z, -0x1.B9F188p-5f);
	p = ig_fma(p, z, 0x1.11107Ap-3f);
	p = ig_fma(p, z, -0x1.555554p-2f);
	p = ig_fma(p * z, a, a);
	y = 1.0f - ig_div(2.0f, ig_exp(2.0f * a) + 1.0f);
	y = a < 0.625f ? p : y;
	return ig_float(ig_bits(y) | (ig_bits(x) & IG_SIGN));
}

/* 0.5*x*(1 + tanh(z/2)), which is x * sigmoid(z), with
 * z = 2*sqrt(2/pi)*(x + 0.044715*x^3).  213 ulp, far in the negative tail;
 * see docs/numerics.md. */
IG_FN float
ig_gelu(float x)
{
	float z = x * ig_fma(0x1.2444F2p-4f * x, x, 0x1.988454p+0f);

	return ig_gate(x, z);
}

#endif
