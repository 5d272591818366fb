/* The Lua front end: runs a model file, which builds a graph from the
 * configuration of a checkpoint. */
#ifndef COMPILER_FRONTEND_H
#define COMPILER_FRONTEND_H

#include "../ir/diag.h"
#include "../ir/ir.h"
#include "../runtime/checkpoint.h"

typedef struct FrontOptions {
	/* A Lua file; NULL: the built-in one named after the checkpoint's
	 * architecture. */
	const char *model;
	DType kv; /* of the KV cache: DT_BF16 or DT_F32 */
	/* Called with each tensor that the model lists as ignored. May be
	 * NULL. */
	void (*ignored)(void *user, const char *tensor);
	void *user;
	/* Asked now and then while the model runs; true ends it as a mistake.
	 * May be NULL. */
	bool (*stop)(void);
} FrontOptions;

/* The graph of c, in arena a, verified, no pass run on it yet. Mistakes in
 * the model and in the checkpoint end in err(d, 1, ...); a built-in model whose
 * graph the verifier refuses in err(d, 70, ...). Needs only the header of c. */
Graph *frontend_build(
    Arena *a, const Checkpoint *c, const FrontOptions *o, Diag *d);

#endif
