/* The floating-point state in which every number of the runtime is computed:
 * round to nearest, denormals kept, no traps. An embedding program may run
 * with another one, so it is set on entry and put back on return. */
#ifndef RUNTIME_FP_H
#define RUNTIME_FP_H

#include <xmmintrin.h>

static inline unsigned
fp_enter(void)
{
	unsigned old = _mm_getcsr();

	_mm_setcsr(0x1F80);
	return old;
}

static inline void
fp_leave(unsigned old)
{
	_mm_setcsr(old);
}

#endif
