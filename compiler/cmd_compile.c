/* ingot compile */
#define _XOPEN_SOURCE 700 /* realpath */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "open.h"

/* NAME.plan for a file or folder called NAME or NAME.gguf, in this folder. From
 * malloc. */
static char *
name_of_plan(const char *checkpoint)
{
	size_t n = strlen(checkpoint), start;
	char *path;

	while (n > 1 && checkpoint[n - 1] == '/')
		n--;
	start = n;
	while (start > 0 && checkpoint[start - 1] != '/')
		start--;
	n -= start;
	checkpoint += start;
	if (n > 5 && strncmp(checkpoint + n - 5, ".gguf", 5) == 0)
		n -= 5;
	path = malloc(n + sizeof ".plan");
	if (path)
		sprintf(path, "%.*s.plan", (int)n, checkpoint);
	return path;
}

/* The same from a path that may end in . or .., which is no name. */
static char *
default_path(const char *checkpoint)
{
	size_t n = strlen(checkpoint), end;
	char *real = NULL, *path;

	while (n > 1 && checkpoint[n - 1] == '/')
		n--;
	end = n;
	while (end > 0 && checkpoint[end - 1] == '.')
		end--;
	if (n - end <= 2 && (end == 0 || checkpoint[end - 1] == '/'))
		real = realpath(checkpoint, NULL);
	path = name_of_plan(real ? real : checkpoint);
	free(real);
	return path;
}

/* Opens what was written, which only a fault of ours can prevent. */
static int
say_written(const char *path, double took)
{
	ingot_plan *p;
	Error e;

	if (ingot_plan_open(path, &p, &e)) {
		unlink(path);
		note("%s", e.text);
		return EXIT_OURS;
	}
	note("wrote %s: %llu kernels, %.1f KiB, in %.2f s", path,
	    (unsigned long long)p->n_kernels, (double)p->map.size / 1024, took);
	ingot_plan_close(p);
	return EXIT_DONE;
}

int
cmd_compile(const Options *o)
{
	CompileOptions co;
	char *path =
	    o->output ? strdup(o->output) : default_path(o->operand[0]);
	double start = seconds();
	int code;

	if (!path)
		return user_error("no memory");
	code = compile_options(o, &co);
	if (!code)
		code = open_output(o, path);
	if (!code)
		code = compile_checkpoint(
		    &co, o->operand[0], true, path, NULL, NULL);
	if (!code)
		code = say_written(path, seconds() - start);
	free(path);
	return code;
}
