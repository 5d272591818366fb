/* The oracle as a backend: a plan's graph, run by ir/eval.h. The plan needs no
 * target. */
#ifndef COMPILER_ORACLE_H
#define COMPILER_ORACLE_H

#include "../runtime/backend.h"

/* Called in each step with each f32 value that the model has labelled. */
typedef struct OracleWatch {
	void (*call)(void *user, const char *label, const float *value,
	    uint64_t rows, uint64_t columns);
	void *user;
} OracleWatch;

/* watch may be NULL; it outlives the model. */
BackendFactory oracle_factory(OracleWatch *watch);

#endif
