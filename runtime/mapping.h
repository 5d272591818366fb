/* Files mapped read-only into memory. */
#ifndef RUNTIME_MAPPING_H
#define RUNTIME_MAPPING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "error.h"

typedef enum FileKind {
	FILE_MISSING, /* nothing there, or no way to look */
	FILE_REGULAR,
	FILE_FOLDER,
	FILE_OTHER
} FileKind;

typedef struct Mapping {
	const unsigned char *data; /* NULL when size is 0 */
	uint64_t size;
} Mapping;

/* What path is; symbolic links are followed. */
FileKind file_kind(const char *path);
/* Where the symbolic link path leads, as it stands in the link; false when
 * path is none or more than size - 1 bytes stand there. */
bool link_target(const char *path, char *out, size_t size);

/* Maps the whole of a regular file. The file must not shrink while it is
 * mapped. INGOT_IO when the system refuses; *out is then untouched. */
ingot_status map_file(const char *path, Mapping *out, Error *err);
/* Leaves *m empty. */
void unmap_file(Mapping *m);

#endif
