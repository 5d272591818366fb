/* Tables of rotary position embedding.  Host only. */
#ifndef NUMERICS_ANGLE_H
#define NUMERICS_ANGLE_H

#include <stdint.h>

/* Writes cos and sin of pos * theta^(-2i/rot) for every position pos < ctx
 * and pair i < rot/2:
 *
 *	out[(pos * rot/2 + i) * 2]      cos
 *	out[(pos * rot/2 + i) * 2 + 1]  sin
 *
 * rot is even and positive, theta positive and finite.  The caller owns out,
 * ctx * rot floats.  Angles are doubles, each value is rounded to f32 once;
 * the result depends on IEEE double arithmetic alone, never on libm.  The
 * error is stated for ctx up to 2^20; beyond it grows. */
void rope_table(float *out, uint32_t ctx, uint32_t rot, double theta);

#endif
