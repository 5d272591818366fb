/* clang and lld as the toolchain of the cpu target. */
#ifndef CODEGEN_CLANG_H
#define CODEGEN_CLANG_H

#include <stdbool.h>
#include <stddef.h>

#include "../ir/arena.h"

typedef struct Object {
	unsigned char *bytes;
	size_t length;
	const char *toolchain; /* "clang 19.1.7" */
} Object;

enum { TOOL_WHY = 1024 };

/* Compiles C text for isa into a shared object without undefined symbols.
 * Temporary files go to a new folder under tmp and are removed. The bytes do
 * not depend on where that is. On failure false, and the sentence in why
 * (TOOL_WHY bytes). */
bool clang_compile(Arena *a, const char *text, size_t length, const char *isa,
    const char *tmp, Object *out, char *why);

#endif
