/* Makes the checksums of a damaged plan right again, so that what they would
 * have hidden is looked at. */
#ifndef TESTS_PLAN_SIGN_H
#define TESTS_PLAN_SIGN_H

#include <stddef.h>
#include <string.h>
#include <xxhash.h>

#include "../runtime/plan.h"

static inline void
plan_sign(unsigned char *bytes, size_t size)
{
	PlanHeader h;
	PlanSection s;
	uint64_t seed, table;
	unsigned char *at = bytes + sizeof h;

	if (size < sizeof h)
		return;
	memcpy(&h, bytes, sizeof h);
	memcpy(h.magic, PLAN_MAGIC, sizeof h.magic);
	h.file_bytes = size;
	table = h.n_sections * (uint64_t)sizeof s;
	if (table <= size - sizeof h) {
		for (uint32_t i = 0; i < h.n_sections; i++) {
			memcpy(&s, at + i * sizeof s, sizeof s);
			if (s.offset <= size && s.bytes <= size - s.offset)
				s.check =
				    XXH64(bytes + s.offset, (size_t)s.bytes, 0);
			memcpy(at + i * sizeof s, &s, sizeof s);
		}
		seed = XXH64(&h, offsetof(PlanHeader, check), 0);
		h.check = XXH64(at, (size_t)table, seed);
	}
	memcpy(bytes, &h, sizeof h);
}

#endif
