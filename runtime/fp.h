/* The floating-point state in which every number of the runtime is computed:
 * round to nearest, denormals kept, no traps. An embedding program may run
 * with another one, so it is set on entry and put back on return. The x87
 * control word is part of it: strtod rounds as that says. */
#ifndef RUNTIME_FP_H
#define RUNTIME_FP_H

#include <stdint.h>
#include <xmmintrin.h>

static inline unsigned
fp_enter(void)
{
	const uint16_t plain = 0x037F;
	unsigned old = _mm_getcsr();
	uint16_t x87;

	__asm__ volatile("fnstcw %0" : "=m"(x87));
	__asm__ volatile("fldcw %0" : : "m"(plain));
	_mm_setcsr(0x1F80);
	return old | (unsigned)x87 << 16;
}

static inline void
fp_leave(unsigned old)
{
	uint16_t x87 = (uint16_t)(old >> 16);

	__asm__ volatile("fldcw %0" : : "m"(x87));
	_mm_setcsr(old & 0xFFFF);
}

#endif
