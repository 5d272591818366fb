/* Options structs of the public interface, which may be older or newer than
 * this library. */
#ifndef RUNTIME_OPTIONS_H
#define RUNTIME_OPTIONS_H

#include <string.h>

#include "error.h"

/* Copies options (a struct that starts with its size, or NULL) to own, of
 * own_size bytes; fields that the caller does not have are 0. Fields that this
 * library does not have must be 0. name is for the error. */
static inline ingot_status
options_read(void *own, size_t own_size, const void *options, const char *name,
    Error *err)
{
	const unsigned char *bytes = options;
	size_t size;

	memset(own, 0, own_size);
	if (!options)
		return INGOT_OK;
	memcpy(&size, options, sizeof size);
	if (size < sizeof size || size > 4096)
		return fail(err, INGOT_BAD_ARG,
		    "%s.size is %zu: set it to sizeof (%s)", name, size, name);
	for (size_t i = own_size; i < size; i++)
		if (bytes[i] != 0)
			return fail(err, INGOT_BAD_ARG,
			    "%s has a field that this library is too old for",
			    name);
	memcpy(own, options, size < own_size ? size : own_size);
	return INGOT_OK;
}

#endif
