/* Philox 4x32-10, a counter-based generator: draws depend on a key and a
 * counter alone, so no state is kept. */
#ifndef NUMERICS_PHILOX_H
#define NUMERICS_PHILOX_H

#include <stdint.h>

/* Ten rounds over a 128-bit counter and a 64-bit key, words ascending. */
static inline void
philox4x32_10(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
	uint32_t c0 = counter[0], c1 = counter[1];
	uint32_t c2 = counter[2], c3 = counter[3];
	uint32_t k0 = key[0], k1 = key[1];

	for (int round = 0; round < 10; round++) {
		uint64_t p0 = (uint64_t)0xD2511F53u * c0;
		uint64_t p1 = (uint64_t)0xCD9E8D57u * c2;

		c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
		c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
		c1 = (uint32_t)p1;
		c3 = (uint32_t)p0;
		k0 += 0x9E3779B9u;
		k1 += 0xBB67AE85u;
	}
	out[0] = c0;
	out[1] = c1;
	out[2] = c2;
	out[3] = c3;
}

/* The low words of key and counter come first; the counter's upper 64 bits
 * are zero. */
static inline void
philox4x32(uint64_t key, uint64_t counter, uint32_t out[4])
{
	uint32_t c[4] = {(uint32_t)counter, (uint32_t)(counter >> 32), 0, 0};
	uint32_t k[2] = {(uint32_t)key, (uint32_t)(key >> 32)};

	philox4x32_10(c, k, out);
}

/* Uniform in [0, 1): the upper 24 bits of the first word, times 2^-24. */
static inline float
philox_uniform(uint64_t key, uint64_t counter)
{
	uint32_t word[4];

	philox4x32(key, counter, word);
	return (float)(word[0] >> 8) * 0x1p-24f;
}

#endif
