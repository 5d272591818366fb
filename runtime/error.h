/* Errors inside the runtime: a status and one sentence that names what was
 * wrong and where. Functions that can fail take an Error last and return its
 * status; INGOT_OK leaves it untouched. */
#ifndef RUNTIME_ERROR_H
#define RUNTIME_ERROR_H

#include "ingot.h"

typedef struct ingot_error Error;

/* Records the failure and returns status. e may be NULL. */
#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
ingot_status
fail(Error *e, ingot_status status, const char *fmt, ...);

#endif
