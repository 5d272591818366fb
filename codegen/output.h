/* Where results go: a name that is free, or that of a regular file, which the
 * new one then replaces. */
#ifndef CODEGEN_OUTPUT_H
#define CODEGEN_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

/* Whether a file can take the name path. A rename would put it in the place of
 * a link, a pipe or a device, which nobody means: false then, with the sentence
 * in why (size bytes). Says nothing of the folder that path is in. */
bool output_allowed(const char *path, char *why, size_t size);

#endif
