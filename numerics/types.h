/* Element types: the enum and facts expanded from types.def. */
#ifndef NUMERICS_TYPES_H
#define NUMERICS_TYPES_H

#include <stddef.h>
#include <stdint.h>

typedef enum DType {
#define TYPE(NAME, name, gguf, block, bytes, kind) DT_##NAME,
#include "types.def"
#undef TYPE
	DT_COUNT
} DType;

typedef enum DKind { DK_FLOAT, DK_INT, DK_QUANT, DK_ACT } DKind;

typedef struct DTypeInfo {
	const char *name;
	int gguf;       /* ggml type number or -1 */
	uint32_t block; /* elements per block */
	uint32_t bytes; /* bytes per block */
	DKind kind;
} DTypeInfo;

/* Indexed by DType. */
extern const DTypeInfo dtypes[DT_COUNT];

/* The type called name, or DT_COUNT. */
DType dtype_by_name(const char *name);
/* The type with this ggml number, or DT_COUNT when Ingot has none. */
DType dtype_by_gguf(int64_t number);
/* Bytes of n elements, n a multiple of the block length. */
uint64_t dtype_bytes(DType t, uint64_t n);

#endif
