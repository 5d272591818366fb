/* Runs self-checking lowering files: run_lower [-w] FILE...
 *
 *	lower: regions|kernels all|none|RULE...
 *	<a graph>
 *	----
 *	<its regions in launch order and its memory, or its emitted kernels>
 *
 * The graph is legalised first, then lowered for cpu with the fusion rules
 * named. -w writes what came out into the files, for reading before it is
 * committed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../codegen/emit.h"

static const char first[] = "lower: ", line[] = "\n----\n";

static char *
read_file(Arena *a, const char *path)
{
	FILE *in = fopen(path, "rb");
	char *text = NULL;
	long size;

	if (!in)
		return NULL;
	if (fseek(in, 0, SEEK_END) == 0 && (size = ftell(in)) >= 0) {
		rewind(in);
		text = arena_alloc(a, (size_t)size + 1);
		if (fread(text, 1, (size_t)size, in) != (size_t)size)
			text = NULL;
	}
	fclose(in);
	return text;
}

/* ---- what is shown ---- */

static void
show_region(const Lowered *l, uint32_t r, FILE *f)
{
	const Region *region = &l->regions[r];

	fprintf(f, "%u %s:", r, family_names[region->family]);
	for (uint32_t i = 0; i < region->n_ops; i++)
		fprintf(f, " %s%%%u", ops[region->ops[i]->op].name,
		    region->ops[i]->id);
	fprintf(f, "\n");
	for (int i = 0; fuse_rules[i]; i++)
		if (region->rules & 1u << i)
			fprintf(f, "  by %s\n", fuse_rules[i]);
	for (const WhyNot *w = region->why; w; w = w->next)
		fprintf(f, "  not %s at %s%%%u: %s\n", w->rule,
		    ops[w->op->op].name, w->op->id, why_text[w->why]);
}

static void
show_regions(const Lowered *l, FILE *f)
{
	for (uint32_t r = 0; r < l->n_regions; r++)
		show_region(l, r, f);
	for (uint32_t i = 0; i < l->n_buffers; i++) {
		const Buffer *b = &l->buffers[i];

		fprintf(f, "%%%u at %llu, %llu bytes a row, regions %u to %u\n",
		    b->node->id, (unsigned long long)b->offset,
		    (unsigned long long)b->row_bytes, b->first, b->last);
	}
}

static void
show_kernels(const Emitted *e, FILE *f)
{
	static const char *const sym[] = {"1", "T", "R", "B"};

	for (uint32_t i = 0; i < e->n_launches; i++) {
		const Launch *l = &e->launches[i];

		fprintf(f, "launch %s on %s*%u/%u+%u\n", e->codes[l->code].name,
		    sym[l->grid.sym], l->grid.mul, l->grid.div, l->grid.add);
	}
	for (uint32_t i = 0; i < e->n_codes; i++)
		fprintf(f, "\n%s", e->codes[i].text);
}

/* ---- running ---- */

/* The bits of the rules in a list of names; a wrong one ends in err. */
static uint32_t
parse_rules(char *names, Diag *d)
{
	uint32_t bits = 0;
	char *rest = NULL;

	for (char *n = strtok_r(names, " ", &rest); n;
	     n = strtok_r(NULL, " ", &rest)) {
		uint32_t bit =
		    strcmp(n, "all") == 0 ? (uint32_t)FUSE_ALL : fuse_bit(n);

		if (bit == 0 && strcmp(n, "none") != 0)
			err(d, 2, NULL, "no rule %s", n);
		bits |= bit;
	}
	return bits;
}

static void
run(Arena *a, char *head, const char *text, size_t length, FILE *f)
{
	char why[512], *rules = strchr(head, ' ');
	LowerOptions o;
	Lowered *l;
	Graph *g;
	Diag d;

	if (setjmp(d.jump)) {
		fprintf(f, "%s\n", d.text);
		return;
	}
	if (!rules)
		err(&d, 2, NULL, "nothing to show");
	o.rules = parse_rules(rules + 1, &d);
	g = graph_parse(a, text, length, why);
	if (!g)
		err(&d, 1, NULL, "%s", why);
	legalise(g);
	if (verify(g))
		err(&d, 1, NULL, "%s", verify(g));
	l = lower(g, target_by_name("cpu"), &o, &d);
	if (strncmp(head, "regions ", 8) == 0)
		show_regions(l, f);
	else
		show_kernels(emit(l, &d), f);
}

static bool
write_outcome(const char *path, const char *input, const char *got)
{
	FILE *f = fopen(path, "wb");

	if (!f)
		return false;
	fprintf(f, "%s%s%s", input, line, got);
	return fclose(f) == 0;
}

static bool
run_file(Arena *a, const char *path, bool write)
{
	char *text = read_file(a, path), *end, *graph, *head, *got = NULL;
	size_t size;
	FILE *f = open_memstream(&got, &size);
	bool ok;

	end = text ? strstr(text, line) : NULL;
	if (!f || !end || strncmp(text, first, strlen(first)) != 0) {
		printf("%s: not a test\n", path);
		return false;
	}
	*end = '\0';
	head = arena_strdup(a, text + strlen(first));
	graph = strchr(head, '\n');
	*graph++ = '\0';
	run(a, head, graph, strlen(graph), f);
	fclose(f);
	ok = write ? write_outcome(path, text, got)
		   : strcmp(got, end + strlen(line)) == 0;
	if (!ok)
		printf("%s: got\n%s", path, got);
	free(got);
	return ok;
}

int
main(int argc, char **argv)
{
	bool write = argc > 1 && strcmp(argv[1], "-w") == 0;
	int failed = 0, passed = 0;

	for (int i = write ? 2 : 1; i < argc; i++) {
		Arena *a = arena_new();

		if (run_file(a, argv[i], write))
			passed++;
		else
			failed++;
		arena_free(a);
	}
	printf("%d passed, %d failed\n", passed, failed);
	return passed == 0 || failed > 0;
}
