/* What the compiler says that each kernel of a code object takes. */
#ifndef CODEGEN_RESOURCES_H
#define CODEGEN_RESOURCES_H

#include "toolchain.h"

/* An argument's place in the block of arguments, in bytes. */
typedef struct ResourceArg {
	uint32_t offset, size;
} ResourceArg;

typedef struct Resources {
	const char *name;
	uint32_t vgpr, sgpr;             /* registers of a wave, per lane */
	uint32_t vgpr_spill, sgpr_spill; /* registers that did not fit */
	uint32_t lds;                    /* bytes per workgroup */
	uint32_t scratch;                /* bytes per lane */
	uint32_t wave;                   /* lanes */
	uint32_t group;                  /* threads of a workgroup, at most */
	uint32_t waves;          /* of a SIMD, as the vector registers allow */
	bool denormals;          /* of f32 are kept, going in and coming out */
	const ResourceArg *args; /* without those that the runtime adds */
	uint32_t n_args;
} Resources;

/* Reads the kernels of an AMD code object, in the order of its notes. All sizes
 * are checked: false and the sentence in why (TOOL_WHY bytes) when it is cut
 * off or not a code object. */
bool resources_read(Arena *a, const Target *t, const void *code, size_t length,
    const Resources **out, uint32_t *n, char *why);

#endif
