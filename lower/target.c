#include <assert.h>
#include <string.h>

#include "lower.h"

const Target targets[] = {
#define TARGET(NAME, name, isa, tool, kernels, lanes, tile, lds, regs,         \
    granule, max_regs, matrix, dot, bandwidth, launch)                         \
	{name, isa, TARGET_##tool, kernels, lanes, tile, lds, regs, granule,   \
	    max_regs, MATRIX_##matrix, DOT_##dot, bandwidth, launch},
#include "targets.def"
#undef TARGET
};

/* What the rows promise each other. */
#define TARGET(NAME, name, isa, tool, kernels, lanes, tile, lds, regs,         \
    granule, max_regs, matrix, dot, bandwidth, launch)                         \
	static_assert((kernels) == ((tile) > 0) && (tile) % 32 == 0,           \
	    name ": kernels need a tile of 32 rows or more");                  \
	static_assert((TARGET_##tool == TARGET_CPU) == ((lds) == 0) &&         \
			  ((lds) == 0) == ((regs) == 0) &&                     \
			  ((lds) == 0) == (DOT_##dot == DOT_NONE),             \
	    name ": GPUs alone have LDS, registers and a dot product");        \
	static_assert((lds) == 0 || (lanes) == 32, name ": a wave is 32");     \
	static_assert((lds) % 1024 == 0, name ": LDS is in KiB");              \
	static_assert(                                                         \
	    (regs) == 0 || ((regs) % (granule) == 0 && (max_regs) <= (regs)),  \
	    name ": a wave's registers are part of the SIMD's");               \
	static_assert(                                                         \
	    (TARGET_##tool == TARGET_PTX) == (DOT_##dot == DOT_DP4A),          \
	    name ": dp4a is NVIDIA's");                                        \
	static_assert(MATRIX_##matrix == MATRIX_NONE ||                        \
			  (TARGET_##tool == TARGET_PTX) ==                     \
			      (MATRIX_##matrix == MATRIX_MMA),                 \
	    name ": mma is NVIDIA's, WMMA is AMD's");
#include "targets.def"
#undef TARGET

const size_t target_count = sizeof targets / sizeof targets[0];

const char *const family_names[FAM_COUNT] = {
#define FAMILY(NAME, name) name,
#include "families.def"
#undef FAMILY
};

const char *const why_text[WHY_COUNT] = {
    "",
#define WHY(NAME, text) text,
#include "why.def"
#undef WHY
};

const Target *
target_by_name(const char *name)
{
	for (size_t i = 0; i < target_count; i++)
		if (strcmp(targets[i].name, name) == 0)
			return &targets[i];
	return NULL;
}

uint32_t
target_waves(const Target *t, uint32_t regs)
{
	uint32_t given, waves;

	if (regs > t->max_regs)
		return 0;
	given = regs ? (regs + t->granule - 1) / t->granule : 1;
	waves = t->regs / (given * t->granule);
	return waves < MAX_WAVES ? waves : MAX_WAVES;
}
