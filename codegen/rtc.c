/* hipRTC and NVRTC: compilers in the vendors' libraries, which have the same
 * calls under other names. They run in a process of their own, because some
 * versions abort where others answer. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "scratch.h"

typedef struct Library {
	const char *name;          /* in the plan */
	const char *const *files;  /* where it may be */
	const char *prefix, *code; /* of its functions' names */
} Library;

static const Library hip = {"hiprtc",
    (const char *const[]){"libhiprtc.so.7", "libhiprtc.so.6", "libhiprtc.so",
	"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5",
	"libamdhip64.so", NULL},
    "hiprtc", "GetCode"};

static const Library nvidia = {"nvrtc",
    (const char *const[]){
	"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so", NULL},
    "nvrtc", "GetCUBIN"};

static const char *const comgr_files[] = {
    "libamd_comgr.so.3", "libamd_comgr.so.2", "libamd_comgr.so", NULL};

/* What the child is to do. */
typedef struct Work {
	Scratch *s;
	const Library *library;
	const ToolJob *job;
	const char *const *options;
	int n_options;
} Work;

/* Exit statuses of the child; what it has to say is on stderr. */
enum { DONE, REFUSED, CANNOT };

typedef struct Calls {
	int (*version)(int *, int *);
	int (*create)(void **, const char *, const char *, int,
	    const char *const *, const char *const *);
	int (*compile)(void *, int, const char *const *);
	int (*log_size)(void *, size_t *);
	int (*log)(void *, char *);
	int (*code_size)(void *, size_t *);
	int (*code)(void *, char *);
} Calls;

/* The first library that can be opened with mode, or NULL. */
static void *
open_first(const char *const *files, int mode)
{
	void *library = NULL;

	for (; *files && !library; files++)
		library = dlopen(*files, RTLD_NOW | RTLD_GLOBAL | mode);
	return library;
}

/* Stores the function prefix+name at to, a pointer to a function pointer. */
static bool
find(void *library, const char *prefix, const char *name, void *to)
{
	char symbol[64];
	void *found;

	snprintf(symbol, sizeof symbol, "%s%s", prefix, name);
	found = dlsym(library, symbol);
	memcpy(to, &found, sizeof found);
	if (!found)
		fprintf(stderr, "the library has no %s", symbol);
	return found != NULL;
}

static bool
find_calls(void *library, const Library *l, Calls *c)
{
	char size[32];

	snprintf(size, sizeof size, "%sSize", l->code);
	return find(library, l->prefix, "Version", &c->version) &&
	       find(library, l->prefix, "CreateProgram", &c->create) &&
	       find(library, l->prefix, "CompileProgram", &c->compile) &&
	       find(library, l->prefix, "GetProgramLogSize", &c->log_size) &&
	       find(library, l->prefix, "GetProgramLog", &c->log) &&
	       find(library, l->prefix, size, &c->code_size) &&
	       find(library, l->prefix, l->code, &c->code);
}

/* Whether comgr, which hipRTC compiles by, knows the isa: asked for another
 * one, old versions of it crash. Says so when not. */
static bool
comgr_knows(const char *isa)
{
	void *library = open_first(comgr_files, RTLD_NOLOAD);
	int (*count)(size_t *), (*name)(size_t, const char **);
	const char *text, *end;
	size_t n;

	if (!library)
		library = open_first(comgr_files, 0);
	if (!library) {
		fprintf(stderr,
		    "%s of hipRTC is not there; install it to "
		    "compile for %s",
		    comgr_files[0], isa);
		return false;
	}
	if (!find(library, "amd_comgr_", "get_isa_count", &count) ||
	    !find(library, "amd_comgr_", "get_isa_name", &name) ||
	    count(&n) != 0)
		return false;
	for (size_t i = 0; i < n; i++)
		if (name(i, &text) == 0 && (end = strrchr(text, '-')) &&
		    strcmp(end + 1, isa) == 0)
			return true;
	fprintf(stderr,
	    "the hipRTC that is installed does not know %s; install a newer "
	    "one, or let clang compile for it",
	    isa);
	return false;
}

static void
show_log(const Work *w, const Calls *c, void *program)
{
	size_t n;
	char *text;

	if (c->log_size(program, &n) != 0)
		return;
	text = arena_alloc(w->s->arena, n + 1);
	if (c->log(program, text) == 0)
		fputs(text, stderr);
}

static int
compile(const Work *w, const Calls *c)
{
	const char *text =
	    arena_strndup(w->s->arena, w->job->text, w->job->length);
	int major, minor;
	void *program;
	size_t n;
	char *code;

	if (c->version(&major, &minor) != 0 ||
	    c->create(&program, text, "kernels", 0, NULL, NULL) != 0)
		return CANNOT;
	if (c->compile(program, w->n_options, w->options) != 0) {
		show_log(w, c, program);
		return REFUSED;
	}
	if (c->code_size(program, &n) != 0)
		return CANNOT;
	code = arena_alloc(w->s->arena, n);
	if (c->code(program, code) != 0 ||
	    !scratch_write(w->s, "kernels.out", code, n))
		return CANNOT;
	text = arena_printf(
	    w->s->arena, "%s %d.%d", w->library->name, major, minor);
	return scratch_write(w->s, "version", text, strlen(text)) ? DONE
								  : CANNOT;
}

/* The child. It leaves stdout alone, where the parent's own words may wait. */
static int
work(void *user)
{
	const Work *w = user;
	const Target *t = w->job->to;
	void *library = open_first(w->library->files, 0);
	Calls c;
	int status = CANNOT;

	if (!library)
		fprintf(stderr, "%s is not there; install it to compile for %s",
		    w->library->files[0], t->name);
	else if (find_calls(library, w->library, &c) &&
		 (t->tool != TARGET_AMDGCN || comgr_knows(t->isa)))
		status = compile(w, &c);
	return status;
}

static bool
run(const Work *w, ToolResult *out, char *why)
{
	int status = scratch_child(w->s, work, (void *)w);
	const char *name = w->library->name, *target = w->job->to->name;
	size_t length;

	if (status == DONE) {
		out->toolchain = scratch_read(w->s, "version", &length);
		out->bytes = (unsigned char *)scratch_read(
		    w->s, "kernels.out", &out->length);
		if (out->toolchain && out->bytes)
			return true;
		snprintf(why, TOOL_WHY, "%s left no code for %s", name, target);
	} else if (status == REFUSED) {
		snprintf(why, TOOL_WHY,
		    "%s refused the emitted kernels for %s: %s", name, target,
		    scratch_messages(w->s));
	} else if (status == CANNOT) {
		snprintf(why, TOOL_WHY, "%s for %s: %s", name, target,
		    scratch_messages(w->s));
	} else {
		snprintf(why, TOOL_WHY, "%s died compiling for %s (status %d)",
		    name, target, status);
	}
	return false;
}

bool
rtc_hip(Scratch *s, const ToolJob *j, ToolResult *out, char *why)
{
	const char *const options[] = {
	    arena_printf(j->arena, "--offload-arch=%s", j->to->isa),
	    "-std=c++17", "-O3", "-ffp-contract=off",
	    "-fno-gpu-flush-denormals-to-zero", "-mno-wavefrontsize64"};
	Work w = {s, &hip, j, options, sizeof options / sizeof *options};

	return run(&w, out, why);
}

bool
rtc_nvidia(Scratch *s, const ToolJob *j, ToolResult *out, char *why)
{
	const char *const options[] = {
	    arena_printf(j->arena, "--gpu-architecture=%s", j->to->isa),
	    "--std=c++17", "--fmad=false", "--ftz=false", "--prec-div=true",
	    "--prec-sqrt=true"};
	Work w = {s, &nvidia, j, options, sizeof options / sizeof *options};

	return run(&w, out, why);
}
