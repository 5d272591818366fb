#include "types.h"

#include <string.h>

const DTypeInfo dtypes[DT_COUNT] = {
#define TYPE(NAME, name, gguf, block, bytes, kind)                             \
	{name, gguf, block, bytes, DK_##kind},
#include "types.def"
#undef TYPE
};

DType
dtype_by_name(const char *name)
{
	int t = 0;

	while (t < DT_COUNT && strcmp(dtypes[t].name, name) != 0)
		t++;
	return (DType)t;
}

DType
dtype_by_gguf(int64_t number)
{
	int t = 0;

	while (t < DT_COUNT && (number < 0 || dtypes[t].gguf != number))
		t++;
	return (DType)t;
}

uint64_t
dtype_bytes(DType t, uint64_t n)
{
	return n / dtypes[t].block * dtypes[t].bytes;
}
