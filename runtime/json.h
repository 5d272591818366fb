/* JSON text as a tree of Values. */
#ifndef RUNTIME_JSON_H
#define RUNTIME_JSON_H

#include "checkpoint.h"
#include "pool.h"

/* Parses text, which must be one object, into *out; everything lives in pool.
 * file names it in errors. Members keep their order; a key twice in an object
 * is refused, and so is nesting deeper than 64. A number without fraction
 * and exponent is VAL_INT while it fits; one beyond 64 bits is VAL_FLOAT (and
 * then whole floats of the same text up to 2^53 are VAL_INT as well). */
ingot_status json_read(Pool *pool, const char *file, const char *text,
    size_t length, const Value **out, Error *err);

#endif
