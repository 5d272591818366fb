/* From the operand of a command to a plan, a model and a session. */
#ifndef COMPILER_OPEN_H
#define COMPILER_OPEN_H

#include "cli.h"
#include "compile.h"
#include "oracle.h"

typedef struct Opened {
	ingot_plan *plan;
	ingot_model *model; /* of open_model */
	bool compiled;      /* the operand was a checkpoint */
	double load_ms;     /* opening and binding, compiling apart */
} Opened;

/* Each returns EXIT_DONE, or an exit status after printing the sentence; *out
 * is to be closed in both cases. */

/* Whether operand 0, --weights and --device go together; *checkpoint is where
 * the weights are. Looks at the first bytes of operand 0 and opens nothing
 * else, so that what depends on the checkpoint alone can fail before the work
 * of loading. */
int open_check(const Options *o, const char **checkpoint);
/* The plan that operand 0 names: recognised by its first bytes. A checkpoint,
 * which is a folder or has those of GGUF, is compiled in memory. */
int open_plan(const Options *o, Opened *out);
/* The plan and its weights on o->device; open_check has passed. watch, which
 * may be NULL, is for the oracle alone. */
int open_model(const Options *o, OracleWatch *watch, Opened *out);
void open_close(Opened *out);

/* The context of a session with these options. */
uint32_t open_ctx(const Options *o, const Opened *m);
int open_session(
    const Opened *m, const ingot_session_options *so, ingot_session **out);

/* Whether a result can go to path: a name that is free or that of a regular
 * file, and of none that the command reads. */
int open_output(const Options *o, const char *path);

/* EXIT_DONE, or EXIT_USAGE after a sentence when the first length bytes of name
 * are no target. */
int check_target(const char *name, size_t length);
/* What the command line says about compiling; EXIT_USAGE after a sentence for
 * a name of a target that there is not. */
int compile_options(const Options *o, CompileOptions *out);
/* Runs compile_to_file or, without a path, compile_plan. The checkpoint may be
 * a header alone when header_only is set. */
int compile_checkpoint(const CompileOptions *o, const char *checkpoint,
    bool header_only, const char *path, void **bytes, size_t *length);

#endif
