/* NumPy .npy files: matrices of f32 out, lists of ids in. */
#ifndef COMPILER_NPY_H
#define COMPILER_NPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { NPY_WHY = 512 };

/* A file being written. It has a temporary name until npy_commit, so that path
 * is either as before or whole. */
typedef struct Npy {
	FILE *out; /* NULL: not open */
	char *path, *temporary;
	uint64_t columns;
} Npy;

/* Starts path as f32 [rows, columns]. False and a sentence in why (NPY_WHY
 * bytes), here and below, when the system refuses, or path is a link, a folder
 * or a device; nothing is then left. */
bool npy_create(
    Npy *f, const char *path, uint64_t rows, uint64_t columns, char *why);
/* Appends rows; exactly as many as npy_create was told must come in all. */
bool npy_rows(Npy *f, const float *data, uint64_t rows, char *why);
bool npy_commit(Npy *f, char *why);
/* Gives up a file that is open, or does nothing. */
void npy_abandon(Npy *f);

/* Whether bytes are those of a .npy file. */
bool npy_is(const char *bytes, size_t length);
/* Reads a vector of int32, int64 or uint32 as ids: *ids is from malloc. False
 * and why when it is something else or holds what no id can be. */
bool npy_ids(
    const char *bytes, size_t length, uint32_t **ids, size_t *count, char *why);

#endif
