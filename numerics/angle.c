/* Doubles in +, -, * and / alone, which IEEE rounds correctly everywhere;
 * contraction must be off. */
#include "angle.h"

#include <string.h>

#define LN2 0x1.62E42FEFA39EFp-1
#define TWO_OVER_PI 0x1.45F306DC9C883p-1

/* pi/2 in three parts; a multiple of either of the first two by an integer
 * below 2^20 is exact. */
#define PIO2_1 0x1.921FB544p+0
#define PIO2_2 0x1.0B4611A6p-34
#define PIO2_3 0x1.3198A2E037073p-69

/* Adding this to |v| < 2^51 rounds v to an integer, half to even. */
#define ROUND 0x1.8p+52

static double
power_of_two(int n)
{
	uint64_t u = (uint64_t)(n + 1023) << 52;
	double x;

	memcpy(&x, &u, sizeof x);
	return x;
}

/* log2(x) of a normal x: with x = 2^n * m, 0.7 < m < 1.5,
 * log(m) = 2 * (s + s^3/3 + s^5/5 + ...), s = (m - 1)/(m + 1), |s| < 0.2. */
static double
log2_of(double x)
{
	int n = 0;
	double s, z, sum = 0;

	for (; x >= 1.5; n++)
		x *= 0.5;
	for (; x < 0.75; n--)
		x *= 2;
	s = (x - 1) / (x + 1);
	z = s * s;
	for (int k = 25; k >= 1; k -= 2)
		sum = sum * z + 1.0 / k;
	return n + 2 * s * sum / LN2;
}

/* 2^x for |x| < 1000: the Taylor series of exp over +-log(2)/2. */
static double
exp2_of(double x)
{
	double n = (x + ROUND) - ROUND;
	double r = (x - n) * LN2, sum = 1;

	for (int k = 15; k >= 1; k--)
		sum = 1 + sum * r / k;
	return sum * power_of_two((int)n);
}

/* Taylor series over |r| <= pi/4. */
static double
sin_near(double r)
{
	double z = r * r, sum = 1;

	for (int k = 18; k >= 2; k -= 2)
		sum = 1 - sum * z / (k * (k + 1));
	return r * sum;
}

static double
cos_near(double r)
{
	double z = r * r, sum = 1;

	for (int k = 19; k >= 1; k -= 2)
		sum = 1 - sum * z / (k * (k + 1));
	return sum;
}

/* out[0] = cos(x), out[1] = sin(x), x >= 0. */
static void
cos_sin(float *out, double x)
{
	double n = (x * TWO_OVER_PI + ROUND) - ROUND;
	double r = ((x - n * PIO2_1) - n * PIO2_2) - n * PIO2_3;
	double c = cos_near(r), s = sin_near(r);

	switch ((uint64_t)n & 3) {
	case 0:
		out[0] = (float)c, out[1] = (float)s;
		break;
	case 1:
		out[0] = (float)-s, out[1] = (float)c;
		break;
	case 2:
		out[0] = (float)-c, out[1] = (float)-s;
		break;
	default:
		out[0] = (float)s, out[1] = (float)-c;
		break;
	}
}

void
rope_table(float *out, uint32_t ctx, uint32_t rot, double theta)
{
	uint32_t pairs = rot / 2;
	double slope = -2 * log2_of(theta) / rot;

	for (uint32_t i = 0; i < pairs; i++) {
		double freq = exp2_of(slope * i);

		for (uint64_t pos = 0; pos < ctx; pos++)
			cos_sin(
			    out + (pos * pairs + i) * 2, (double)pos * freq);
	}
}
