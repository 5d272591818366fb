#include "open.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../codegen/output.h"
#include "../lower/lower.h"
#include "../runtime/mapping.h"
#include "suggest.h"

/* ---- compiling ---- */

int
check_target(const char *name, size_t length)
{
	char text[SUGGEST_TEXT], word[SUGGEST_LENGTH];
	const Target *t;
	Suggestion s;
	size_t i;

	snprintf(word, sizeof word, "%.*s", (int)length, name);
	t = target_by_name(word);
	if (t && t->kernels)
		return EXIT_DONE;
	if (t) {
		note("target %s has no kernels yet", word);
		return EXIT_USAGE;
	}
	suggest_start(&s, word);
	for (i = 0; i < target_count; i++)
		if (targets[i].kernels)
			suggest_offer(&s, targets[i].name);
	note("there is no target '%s'%s; see 'ingot targets'", word,
	    suggest_text(&s, text));
	return EXIT_USAGE;
}

/* Whether the name at s, of n bytes, stands in the list in front of s. */
static bool
is_repeated(const char *list, const char *s, size_t n)
{
	for (; list < s; list += strcspn(list, ",") + 1)
		if (strcspn(list, ",") == n && strncmp(list, s, n) == 0)
			return true;
	return false;
}

static int
check_targets(const char *names)
{
	const char *s = names;

	for (;;) {
		size_t n = strcspn(s, ",");

		if (check_target(s, n))
			return EXIT_USAGE;
		if (is_repeated(names, s, n)) {
			note("target '%.*s' is there twice", (int)n, s);
			return EXIT_USAGE;
		}
		if (s[n] == '\0')
			return EXIT_DONE;
		s += n + 1;
	}
}

static void
note_ignored(void *user, const char *tensor)
{
	(void)user;
	note("tensor %s is ignored", tensor);
}

int
compile_options(const Options *o, CompileOptions *out)
{
	*out = compile_defaults();
	out->stop = interrupted;
	if (o->verbose)
		out->ignored = note_ignored;
	out->model = o->model;
	if ((o->command == CMD_COMPILE || o->command == CMD_CHECK) && o->target)
		out->targets = o->target;
	if (o->numerics)
		out->numerics = o->numerics;
	if (o->kv)
		out->kv = strcmp(o->kv, "f32") == 0 ? DT_F32 : DT_BF16;
	if (o->max_chunk)
		out->max_chunk = o->max_chunk;
	if (o->no_fusion)
		out->fusion = false;
	return check_targets(out->targets);
}

/* The part that mistakes jump out of. */
static int
try_compile(Checkpoint *c, const CompileOptions *o, const char *path,
    void **bytes, size_t *length)
{
	Diag d = {0};

	if (setjmp(d.jump) != 0) {
		if (!interrupted())
			note("%s", d.text);
		return d.exit_code;
	}
	if (path)
		compile_to_file(c, o, &d, path);
	else
		compile_plan(c, o, &d, bytes, length);
	return EXIT_DONE;
}

int
compile_checkpoint(const CompileOptions *o, const char *checkpoint,
    bool header_only, const char *path, void **bytes, size_t *length)
{
	Checkpoint *c;
	Error e;
	int code;

	if (ckpt_open(checkpoint, header_only, &c, &e))
		return library_error(&e);
	code = try_compile(c, o, path, bytes, length);
	ckpt_close(c);
	return code;
}

/* ---- plans ---- */

/* Tells a plan from a checkpoint by its first bytes. */
static int
recognise(const char *path, bool *plan)
{
	char magic[8] = {0};
	struct stat st;
	FILE *in = NULL;

	*plan = false;
	if (stat(path, &st) != 0)
		return user_error(
		    "cannot open %.300s: %s", path, strerror(errno));
	if (S_ISDIR(st.st_mode))
		return EXIT_DONE;
	if (S_ISREG(st.st_mode)) { /* a FIFO would keep us waiting */
		in = fopen(path, "rb");
		if (!in)
			return user_error(
			    "cannot open %.300s: %s", path, strerror(errno));
		*plan = fread(magic, 1, sizeof magic, in) == sizeof magic &&
			memcmp(magic, PLAN_MAGIC, sizeof magic) == 0;
		fclose(in);
	}
	if (*plan || memcmp(magic, "GGUF", 4) == 0)
		return EXIT_DONE;
	return user_error("%.300s is neither a plan nor a checkpoint: it is %s",
	    path,
	    S_ISREG(st.st_mode) && st.st_size == 0
		? "empty"
		: "not a GGUF file, nor a folder");
}

static bool
is_oracle(const Options *o)
{
	return o->device && strcmp(o->device, "oracle") == 0;
}

static int
compile_here(const Options *o, Opened *out)
{
	char label[] = "compiling";
	CompileOptions co;
	void *bytes = NULL;
	size_t length = 0;
	double start = seconds();
	Error e;
	int code = compile_options(o, &co);

	if (code)
		return code;
	if (is_oracle(o))
		co.targets = ""; /* it runs the graph */
	show_progress(label, 0, 1);
	code = compile_checkpoint(&co, o->operand[0], o->command == CMD_INSPECT,
	    NULL, &bytes, &length);
	show_progress(label, 1, 1);
	if (code)
		return code;
	if (o->verbose)
		note("compiled in %.2f s", seconds() - start);
	if (ingot_plan_read(bytes, length, &out->plan, &e))
		code = library_error(&e);
	free(bytes);
	out->compiled = true;
	return code;
}

int
open_plan(const Options *o, Opened *out)
{
	const char *fixed = options_of_compile(o);
	char why[OPTIONS_WHY];
	Error e;
	bool plan;
	int code = recognise(o->operand[0], &plan);

	*out = (Opened){0};
	if (code)
		return code;
	if (!plan)
		return compile_here(o, out);
	if (fixed) {
		snprintf(why, sizeof why,
		    "%s is for compiling, and %.200s is "
		    "a plan already",
		    fixed, o->operand[0]);
		return usage_error(o, why);
	}
	if (ingot_plan_open(o->operand[0], &out->plan, &e))
		return library_error(&e);
	return EXIT_DONE;
}

/* ---- results ---- */

static bool
is_same_file(const struct stat *st, const char *path)
{
	struct stat other;

	return path && stat(path, &other) == 0 && other.st_dev == st->st_dev &&
	       other.st_ino == st->st_ino;
}

int
open_output(const Options *o, const char *path)
{
	char why[OPTIONS_WHY];
	struct stat st;
	bool input;
	size_t i;

	if (path[0] == '\0')
		return usage_error(o, "the name of the file to write is empty");
	if (!output_allowed(path, why, sizeof why))
		return user_error("%s", why);
	if (stat(path, &st) != 0)
		return EXIT_DONE;
	input = is_same_file(&st, o->operand[0]) ||
		is_same_file(&st, o->weights) || is_same_file(&st, o->model);
	for (i = 0; i < o->tokens.count && !input; i++)
		input = is_same_file(&st, o->tokens.at[i]);
	return input ? user_error("cannot write %.300s: it is what the command "
				  "reads",
			   path)
		     : EXIT_DONE;
}

/* ---- models ---- */

static int
check_device(const Options *o)
{
	const char *d = o->device;
	char why[OPTIONS_WHY];

	if (!d || strcmp(d, "auto") == 0 || strcmp(d, "cpu") == 0 ||
	    strcmp(d, "oracle") == 0)
		return EXIT_DONE;
	if (strncmp(d, "hip:", 4) == 0 || strncmp(d, "sim:", 4) == 0)
		return user_error("--device %.100s: this version of Ingot "
				  "runs on cpu and oracle alone",
		    d);
	snprintf(why, sizeof why,
	    "--device '%.100s': auto, cpu or oracle is expected", d);
	return usage_error(o, why);
}

int
open_check(const Options *o, const char **checkpoint)
{
	bool plan;
	int code = recognise(o->operand[0], &plan);

	if (code)
		return code;
	*checkpoint = plan ? o->weights : o->operand[0];
	if (plan && !o->weights)
		return usage_error(o, "a plan needs --weights CHECKPOINT");
	if (!plan && o->weights)
		return usage_error(
		    o, "--weights is for a plan; a checkpoint has its own");
	return check_device(o);
}

static int
bind(const Options *o, OracleWatch *watch, Opened *out)
{
	char label[] = "reading weights";
	ingot_model_options mo = {
	    sizeof mo, o->device, o->threads, show_progress, label};
	BackendFactory oracle = oracle_factory(watch);
	const char *path = out->compiled ? o->operand[0] : o->weights;
	Error e;
	ingot_status status;

	if (is_oracle(o))
		status = model_open_custom(
		    out->plan, path, &oracle, &mo, &out->model, &e);
	else
		status =
		    ingot_model_open(out->plan, path, &mo, &out->model, &e);
	return status ? library_error(&e) : EXIT_DONE;
}

int
open_model(const Options *o, OracleWatch *watch, Opened *out)
{
	double start;
	int code;

	code = open_plan(o, out);
	if (!code && interrupted())
		code = EXIT_INTERRUPTED;
	if (code)
		return code;
	start = seconds();
	code = bind(o, watch, out);
	out->load_ms = (seconds() - start) * 1e3;
	if (!code && (!o->device || strcmp(o->device, "auto") == 0))
		note("running on the CPU; this version of Ingot looks for no "
		     "GPU");
	if (!code && ingot_model_get_info(out->model).other_data)
		note("warning: the plan was compiled beside other weights of "
		     "the same layout");
	if (!code && o->verbose)
		note("loaded in %.0f ms: %.1f MiB of weights on %s",
		    out->load_ms,
		    (double)ingot_model_get_info(out->model).weight_bytes /
			(1 << 20),
		    ingot_model_get_info(out->model).device);
	return code;
}

void
open_close(Opened *m)
{
	ingot_model_close(m->model);
	if (m->plan)
		ingot_plan_close(m->plan);
	*m = (Opened){0};
}

uint32_t
open_ctx(const Options *o, const Opened *m)
{
	uint32_t trained = ingot_model_get_info(m->model).ctx;

	if (o->ctx)
		return o->ctx;
	return trained < 8192 ? trained : 8192;
}

int
open_session(
    const Opened *m, const ingot_session_options *so, ingot_session **out)
{
	Error e;

	*out = NULL;
	return ingot_session_open(m->model, so, out, &e) ? library_error(&e)
							 : EXIT_DONE;
}
