/* Files that the build puts into the binary: the models and their library. */
#ifndef COMPILER_EMBED_H
#define COMPILER_EMBED_H

#include <stddef.h>

typedef struct EmbeddedFile {
	const char *name; /* under models/: "qwen3.lua", "lib/blocks.lua" */
	const unsigned char *data;
	size_t length;
} EmbeddedFile;

/* Ends with a file whose name is NULL. */
extern const EmbeddedFile embedded_models[];

#endif
