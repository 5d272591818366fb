/* SHA-256 (FIPS 180-4) of byte strings, in pieces. */
#ifndef TESTS_SHA256_H
#define TESTS_SHA256_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { SHA256_TEXT = 65 }; /* hexadecimal digits and the end */

typedef struct Sha256 {
	uint32_t h[8];
	uint64_t length; /* bytes taken so far */
	unsigned char block[64];
} Sha256;

static const uint32_t sha256_k[64] = {0x428a2f98, 0x71374491, 0xb5c0fbcf,
    0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98,
    0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7,
    0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
    0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8,
    0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85,
    0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e,
    0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819,
    0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c,
    0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3, 0x748f82ee,
    0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
    0xc67178f2};

static inline uint32_t
sha256_turn(uint32_t x, int n)
{
	return x >> n | x << (32 - n);
}

/* The message schedule of a block. */
static inline void
sha256_schedule(const unsigned char *b, uint32_t w[64])
{
	for (int i = 0; i < 16; i++, b += 4)
		w[i] = (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 |
		       (uint32_t)b[2] << 8 | b[3];
	for (int i = 16; i < 64; i++) {
		uint32_t x = w[i - 15], y = w[i - 2];

		x = sha256_turn(x, 7) ^ sha256_turn(x, 18) ^ x >> 3;
		y = sha256_turn(y, 17) ^ sha256_turn(y, 19) ^ y >> 10;
		w[i] = w[i - 16] + x + w[i - 7] + y;
	}
}

static inline void
sha256_block(Sha256 *s)
{
	uint32_t w[64], v[8];

	sha256_schedule(s->block, w);
	memcpy(v, s->h, sizeof v);
	for (int i = 0; i < 64; i++) {
		uint32_t a = v[0], e = v[4];
		uint32_t t = v[7] +
			     (sha256_turn(e, 6) ^ sha256_turn(e, 11) ^
				 sha256_turn(e, 25)) +
			     ((e & v[5]) ^ (~e & v[6])) + sha256_k[i] + w[i];
		uint32_t u = (sha256_turn(a, 2) ^ sha256_turn(a, 13) ^
				 sha256_turn(a, 22)) +
			     ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));

		memmove(v + 1, v, 7 * sizeof *v);
		v[4] += t;
		v[0] = t + u;
	}
	for (int i = 0; i < 8; i++)
		s->h[i] += v[i];
}

static inline Sha256
sha256_start(void)
{
	return (Sha256){.h = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
			    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
}

static inline void
sha256_add(Sha256 *s, const void *bytes, size_t n)
{
	const unsigned char *from = bytes;

	while (n > 0) {
		size_t at = s->length % 64;
		size_t take = n < 64 - at ? n : 64 - at;

		memcpy(s->block + at, from, take);
		s->length += take;
		if (at + take == 64)
			sha256_block(s);
		from += take;
		n -= take;
	}
}

/* Ends the string; text gets its hash in lower case. */
static inline void
sha256_end(Sha256 *s, char text[SHA256_TEXT])
{
	static const unsigned char pad[64] = {0x80};
	unsigned char length[8];
	uint64_t bits = s->length * 8;

	for (int i = 0; i < 8; i++)
		length[i] = (unsigned char)(bits >> (56 - 8 * i));
	sha256_add(s, pad, 64 - (s->length + 8) % 64);
	sha256_add(s, length, sizeof length);
	for (int i = 0; i < 8; i++)
		snprintf(text + 8 * i, 9, "%08x", (unsigned)s->h[i]);
}

#endif
