/* From a checkpoint to a plan: the front end, the passes, lowering, emission
 * and the toolchain, in that order. */
#ifndef COMPILER_COMPILE_H
#define COMPILER_COMPILE_H

#include "../ir/diag.h"
#include "../runtime/checkpoint.h"

typedef struct CompileOptions {
	const char *model;    /* Lua file, or NULL: picked by architecture */
	const char *targets;  /* comma separated names of targets.def */
	const char *numerics; /* "exact", "fast" or NULL: the default */
	DType kv;             /* DT_BF16 or DT_F32 */
	uint32_t max_chunk;   /* most rows of a step */
	bool fusion;
	uint32_t rules; /* fusion rules allowed; FUSE_ALL but in tests */
	/* Called with each tensor that the model ignores, when not NULL. */
	void (*ignored)(void *user, const char *tensor);
	/* When not NULL, called with each op that a target has no kernel for,
	 * which is no mistake then; and the plans get no object code: they can
	 * be looked at, but not run. op lives during the call, why longer. */
	void (*missing)(void *user, const Node *op, const char *why);
	void *user;
	bool (*stop)(void); /* see FrontOptions */
} CompileOptions;

/* The defaults of the command line. */
CompileOptions compile_defaults(void);

/* A plan in memory: *bytes from malloc. Mistakes end in err on d. */
void compile_plan(Checkpoint *c, const CompileOptions *o, Diag *d, void **bytes,
    size_t *length);
/* The same, written to path by a temporary file and a rename. */
void compile_to_file(
    Checkpoint *c, const CompileOptions *o, Diag *d, const char *path);

#endif
