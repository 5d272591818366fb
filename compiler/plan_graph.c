#include "plan_graph.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../codegen/output.h"
#include "cli.h"
#include "plan_json.h"

/* ---- the text ---- */

/* s inside a quoted string of the dot language; control bytes are blanks. */
static void
put_escaped(FILE *out, const char *s)
{
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			putc('\\', out);
		putc((unsigned char)*s < ' ' ? ' ' : *s, out);
	}
}

static void
put_node(FILE *out, const Plan *p, const PlanTarget *t, uint32_t i)
{
	const PlanLaunch *l = &p->launches[t->first_launch + i];
	const PlanRegion *r = &p->regions[l->region];

	fprintf(out, "\tn%u [label=\"%u ", i, i);
	put_escaped(out, plan_string(p, r->name));
	fputs("\\n", out);
	put_escaped(out, plan_string(p, launch_kernel(p, t, l)->name));
	fputs("\" tooltip=\"", out);
	put_escaped(out, plan_string(p, r->ops));
	fputs("\"];\n", out);
}

/* The buffers that launch i reads come from the launch that begins them. */
static void
put_edges(FILE *out, const Plan *p, const PlanTarget *t, uint32_t i)
{
	const PlanLaunch *l = &p->launches[t->first_launch + i];
	uint32_t k;

	for (k = 0; k < l->n_args; k++) {
		const PlanArg *a = &p->args[l->first_arg + k];
		const PlanBuffer *b;

		if (a->kind != ARG_BUFFER)
			continue;
		b = &p->buffers[t->first_buffer + a->index];
		if (b->first_launch == i)
			continue;
		fprintf(out, "\tn%u -> n%u [label=\"", b->first_launch, i);
		put_escaped(out, plan_string(p, b->name));
		fputs("\"];\n", out);
	}
}

static void
put_graph(FILE *out, const Plan *p, const PlanTarget *t)
{
	uint32_t i;

	fputs("digraph plan {\n\tnode [shape=box, fontname=\"sans-serif\"];\n"
	      "\tedge [fontname=\"sans-serif\", fontsize=10];\n",
	    out);
	for (i = 0; i < t->n_launches; i++)
		put_node(out, p, t, i);
	for (i = 0; i < t->n_launches; i++)
		put_edges(out, p, t, i);
	fputs("}\n", out);
}

/* ---- the program ---- */

/* Starts dot reading from a pipe; its number or -1. */
static pid_t
start_dot(const char *path, int *input)
{
	int ends[2];
	pid_t child;

	if (pipe(ends) != 0)
		return -1;
	child = fork();
	if (child == 0) {
		int to = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);

		if (to < 0 || dup2(ends[0], 0) < 0 || dup2(to, 1) < 0)
			_exit(126);
		close(ends[0]);
		close(ends[1]);
		execlp("dot", "dot", "-Tsvg", (char *)NULL);
		_exit(errno == ENOENT ? 127 : 126);
	}
	close(ends[0]);
	if (child < 0)
		close(ends[1]);
	*input = ends[1];
	return child;
}

/* Exit status of dot, 127 when there is no such program. */
static int
run_dot(const Plan *p, const PlanTarget *t, const char *path)
{
	int input, status = -1;
	pid_t child = start_dot(path, &input);
	FILE *out;

	if (child < 0)
		return 126;
	out = fdopen(input, "w");
	if (out) {
		put_graph(out, p, t);
		fclose(out);
	} else {
		close(input);
	}
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 126;
}

static int
draw(const Plan *p, const PlanTarget *t, const char *path, const char *temp)
{
	int status = run_dot(p, t, temp);
	int code = EXIT_DONE;

	if (status == 127)
		code = user_error("--graph needs the program 'dot' of "
				  "Graphviz, which is not in PATH");
	else if (status != 0)
		code = user_error("cannot draw %s: 'dot -Tsvg' ended with "
				  "status %d",
		    path, status);
	else if (rename(temp, path) != 0)
		code = user_error("cannot write %s: %s", path, strerror(errno));
	if (code)
		unlink(temp);
	return code;
}

int
plan_graph(const Plan *p, uint32_t target, const char *path)
{
	size_t room = strlen(path) + 32;
	char *temp, why[512];
	FILE *probe;
	int code;

	if (!output_allowed(path, why, sizeof why))
		return user_error("%s", why);
	temp = malloc(room);
	if (!temp)
		return user_error("no memory");
	snprintf(temp, room, "%s.tmp%ld", path, (long)getpid());
	probe = fopen(temp, "wbx");
	if (!probe) {
		code = user_error("cannot write %s: %s", path, strerror(errno));
		free(temp);
		return code;
	}
	fclose(probe);
	signal(SIGPIPE, SIG_IGN); /* dot may be missing */
	code = draw(p, &p->targets[target], path, temp);
	free(temp);
	return code;
}
