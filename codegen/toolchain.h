/* Compilers of kernel text, behind one call. */
#ifndef CODEGEN_TOOLCHAIN_H
#define CODEGEN_TOOLCHAIN_H

#include <stdbool.h>
#include <stddef.h>

#include "../ir/arena.h"
#include "../lower/lower.h"

enum { TOOL_WHY = 1024 }; /* bytes of a sentence */

typedef enum ToolId {
#define TOOL(NAME, name, makes, source, compile) TOOL_##NAME,
#include "tools.def"
#undef TOOL
	TOOL_COUNT
} ToolId;

typedef struct ToolJob {
	Arena *arena;     /* of what is returned */
	const Target *to; /* compiled for */
	const char *text; /* the whole source */
	size_t length;
	const char *tmp; /* where a folder is made, and removed again */
} ToolJob;

typedef struct ToolResult {
	unsigned char *bytes; /* shared object, code object, cubin or PTX */
	size_t length;
	const char *toolchain; /* "clang 19.1.7" */
} ToolResult;

struct Scratch;

typedef struct Tool {
	const char *name;
	TargetTool makes;   /* kind of target that it compiles for */
	const char *source; /* name of its source file */
	bool (*compile)(
	    struct Scratch *s, const ToolJob *j, ToolResult *out, char *why);
} Tool;

/* By ToolId. */
extern const Tool tools[TOOL_COUNT];
/* The one that needs nothing of a GPU vendor's. */
const Tool *tool_for(const Target *t);

/* Compiles job->text; tool->makes is the target's kind. The bytes do not
 * depend on the folder, and no path is in them. On failure false and the
 * sentence in why (TOOL_WHY bytes): a compiler or library that is missing is
 * named together with the target. */
bool tool_compile(
    const Tool *tool, const ToolJob *job, ToolResult *out, char *why);

/* Instructions of a code object as llvm-objdump prints them, without addresses
 * and encodings; NULL and the sentence in why when that is not possible. */
const char *disassemble(
    Arena *a, const void *code, size_t length, const char *tmp, char *why);

#endif
