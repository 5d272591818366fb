/* Runs self-checking graph files: run_ir FILE...
 *
 *	passes: simplify dce
 *	<a graph>
 *	----
 *	<the graph after the passes, or one sentence: why it was refused>
 *
 * Every pass is followed by the verifier. With no pass the text must come back
 * as it was read. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../ir/ir.h"

static const struct {
	const char *name;
	void (*run)(Graph *);
} passes[] = {
    {"simplify", simplify},
    {"cse", cse},
    {"dce", dce},
    {"legalise", legalise},
};

static char *
read_file(Arena *a, const char *path)
{
	FILE *in = fopen(path, "rb");
	char *text;
	long size;

	if (in == NULL || fseek(in, 0, SEEK_END) != 0 || (size = ftell(in)) < 0)
		return NULL;
	rewind(in);
	text = arena_alloc(a, (size_t)size + 1);
	if (fread(text, 1, (size_t)size, in) != (size_t)size)
		text = NULL;
	fclose(in);
	return text;
}

/* Runs the passes named in list; the verifier's sentence, or NULL. */
static const char *
run_passes(Graph *g, char *list)
{
	const char *why = verify(g);
	char *rest, *name;
	size_t i;

	for (name = strtok_r(list, " ", &rest); name != NULL && why == NULL;
	     name = strtok_r(NULL, " ", &rest)) {
		for (i = 0; i < sizeof passes / sizeof passes[0]; i++)
			if (strcmp(passes[i].name, name) == 0)
				break;
		if (i == sizeof passes / sizeof passes[0])
			return "no such pass";
		passes[i].run(g);
		why = verify(g);
	}
	return why;
}

/* What the file's graph turns into; freed by the caller. */
static char *
outcome(Arena *a, char *list, const char *text, size_t length)
{
	char why[512], *out = NULL;
	const char *sentence = why;
	size_t size;
	FILE *f = open_memstream(&out, &size);
	Graph *g;

	if (f == NULL)
		return NULL;
	g = graph_parse(a, text, length, why);
	if (g != NULL)
		sentence = run_passes(g, list);
	if (sentence != NULL)
		fprintf(f, "%s\n", sentence);
	else
		graph_print(g, f);
	fclose(f);
	return out;
}

static int
run_file(Arena *a, const char *path)
{
	static const char first[] = "passes:", line[] = "\n----\n";
	char *text = read_file(a, path), *graph, *end, *got;
	int bad;

	graph = text != NULL ? strchr(text, '\n') : NULL;
	end = graph != NULL ? strstr(graph, line) : NULL;
	if (end == NULL || strncmp(text, first, strlen(first)) != 0) {
		printf("%s: not a test\n", path);
		return 1;
	}
	*graph++ = '\0';
	got =
	    outcome(a, text + strlen(first), graph, (size_t)(end + 1 - graph));
	bad = got == NULL || strcmp(got, end + strlen(line)) != 0;
	if (bad)
		printf("%s: got\n%s", path, got != NULL ? got : "nothing\n");
	free(got);
	return bad;
}

int
main(int argc, char **argv)
{
	int i, failed = 0;

	for (i = 1; i < argc; i++) {
		Arena *a = arena_new();

		failed += run_file(a, argv[i]);
		arena_free(a);
	}
	printf("%d passed, %d failed\n", argc - 1 - failed, failed);
	return argc < 2 || failed > 0;
}
