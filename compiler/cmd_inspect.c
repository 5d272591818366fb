/* ingot inspect */
#include <string.h>

#include "open.h"
#include "plan_graph.h"
#include "plan_json.h"
#include "suggest.h"
#include "table.h"

typedef struct Inspect {
	const Options *o;
	const Plan *p;
	uint32_t first, last; /* targets to show: first .. last-1 */
	json_t *json;         /* the result with --json */
} Inspect;

/* ---- choosing ---- */

static int
choose_targets(Inspect *in)
{
	char text[SUGGEST_TEXT];
	const char *name = in->o->target;
	Suggestion s;
	uint64_t i;
	int64_t t;

	in->last = (uint32_t)in->p->n_targets;
	if (!name)
		return EXIT_DONE;
	t = plan_target(in->p, name);
	if (t >= 0) {
		in->first = (uint32_t)t;
		in->last = in->first + 1;
		return EXIT_DONE;
	}
	suggest_start(&s, name);
	for (i = 0; i < in->p->n_targets; i++)
		suggest_offer(&s, plan_string(in->p, in->p->targets[i].name));
	return user_error("the plan has no code for '%.100s'%s", name,
	    suggest_text(&s, text));
}

/* What make gives for each target chosen, in one array. */
static json_t *
gather(const Inspect *in, json_t *(*make)(const Plan *, uint32_t))
{
	json_t *all = json_array();
	uint32_t t;

	for (t = in->first; t < in->last; t++) {
		json_t *part = make(in->p, t);

		if (json_is_array(part))
			json_array_extend(all, part);
		else
			json_array_append(all, part);
		json_decref(part);
	}
	return all;
}

/* Puts value (taken over) under key, or prints it as a table. */
static void
show(Inspect *in, const char *key, json_t *value, const Column *columns,
    size_t n)
{
	if (in->json)
		json_object_set(in->json, key, value);
	else if (json_array_size(value) > 0) {
		table_print(stdout, value, columns, n);
		putchar('\n');
	}
	json_decref(value);
}

#define COUNT(columns) (sizeof columns / sizeof columns[0])

/* ---- what there is to show ---- */

static void
print_fact(const char *key, const json_t *value)
{
	if (json_is_string(value))
		printf("%-10s %s\n", key, json_string_value(value));
	else if (json_is_integer(value))
		printf("%-10s %" JSON_INTEGER_FORMAT "\n", key,
		    json_integer_value(value));
}

static void
show_summary(Inspect *in)
{
	static const Column columns[] = {{"name", "target"},
	    {"toolchain", "toolchain"}, {"launches", "launches"},
	    {"kernels", "kernels"}, {"buffers", "buffers"},
	    {"source_bytes", "source"}, {"object_bytes", "code"}};
	json_t *all = plan_summary(in->p), *value;
	const char *key;

	if (in->json) {
		json_object_update(in->json, all);
	} else {
		json_object_foreach(all, key, value) print_fact(key, value);
		putchar('\n');
		table_print(stdout, json_object_get(all, "targets"), columns,
		    COUNT(columns));
	}
	json_decref(all);
}

/* A line for each text, with what is in beside at the same place, if it has as
 * many. */
static void
print_list(const char *title, const json_t *list, const json_t *beside)
{
	size_t i, n = json_array_size(list);

	for (i = 0; i < n; i++) {
		printf("      %-6s %s", i ? "" : title,
		    json_string_value(json_array_get(list, i)));
		if (json_array_size(beside) == n)
			printf("  ; %s",
			    json_string_value(json_array_get(beside, i)));
		putchar('\n');
	}
}

static void
print_launch(const json_t *launch)
{
	static const char *const names[] = {
	    "target", "region", "family", "kernel"};
	const json_t *ops, *lines;
	const char *text[4];
	size_t i;

	for (i = 0; i < 4; i++)
		text[i] = json_string_value(json_object_get(launch, names[i]));
	printf("%4" JSON_INTEGER_FORMAT "  %s  (%s, %s, %s)\n",
	    json_integer_value(json_object_get(launch, "index")), text[1],
	    text[2], text[3], text[0]);
	ops = json_object_get(launch, "ops");
	lines = json_object_get(launch, "lines");
	print_list("ops", ops, lines);
	if (json_array_size(lines) != json_array_size(ops))
		print_list("model", lines, NULL);
	print_list("fused", json_object_get(launch, "rules"), NULL);
	print_list("not", json_object_get(launch, "why_not"), NULL);
}

static void
show_ops(Inspect *in)
{
	json_t *all = gather(in, plan_launches);
	size_t i;

	if (in->json)
		json_object_set(in->json, "launches", all);
	else
		for (i = 0; i < json_array_size(all); i++)
			print_launch(json_array_get(all, i));
	json_decref(all);
}

/* All kernels, or the one that --kernel names. */
static json_t *
chosen_kernels(const Inspect *in)
{
	json_t *all = gather(in, plan_kernels);
	const char *name = in->o->kernel;
	size_t i = 0;

	while (name && i < json_array_size(all)) {
		const json_t *k = json_array_get(all, i);

		if (strcmp(json_string_value(json_object_get(k, "name")),
			name) == 0)
			i++;
		else
			json_array_remove(all, i);
	}
	return all;
}

static void
show_kernels(Inspect *in)
{
	static const Column columns[] = {{"name", "kernel"},
	    {"target", "target"}, {"family", "family"},
	    {"region", "first region"}, {"launches", "launches"},
	    {"source_bytes", "source"}};

	show(in, "kernels", chosen_kernels(in), columns, COUNT(columns));
}

static void
show_memory(Inspect *in)
{
	static const Column arenas[] = {{"target", "target"},
	    {"weights", "weights"}, {"token", "for each token"},
	    {"row", "for each row of logits"}};
	static const Column buffers[] = {{"target", "target"},
	    {"name", "buffer"}, {"for_each", "for each"}, {"bytes", "bytes"},
	    {"offset", "offset"}, {"first", "first launch"},
	    {"last", "last launch"}};
	static const Column states[] = {
	    {"name", "state"}, {"for_each", "for each"}, {"bytes", "bytes"}};

	show(in, "arenas", gather(in, plan_arenas), arenas, COUNT(arenas));
	show(in, "buffers", gather(in, plan_buffers), buffers, COUNT(buffers));
	show(in, "states", plan_states(in->p), states, COUNT(states));
}

/* ---- source ---- */

static int
no_kernel(const Inspect *in)
{
	char text[SUGGEST_TEXT];
	Suggestion s;
	uint64_t i;

	suggest_start(&s, in->o->kernel);
	for (i = 0; i < in->p->n_kernels; i++)
		suggest_offer(&s, plan_string(in->p, in->p->kernels[i].name));
	return user_error("the plan has no kernel '%.100s'%s", in->o->kernel,
	    suggest_text(&s, text));
}

static bool
has_kernel(const Inspect *in)
{
	json_t *found = chosen_kernels(in);
	bool yes = json_array_size(found) > 0;

	json_decref(found);
	return yes;
}

/* The kernel's text in each target, or the whole of each. */
static void
print_source(const Inspect *in)
{
	const Plan *p = in->p;
	const char *name = in->o->kernel;
	uint32_t t, i;

	for (t = in->first; t < in->last; t++) {
		const PlanTarget *target = &p->targets[t];
		const char *all = p->sources + target->source;

		if (!name)
			fwrite(all, 1, (size_t)target->source_bytes, stdout);
		for (i = 0; name && i < target->n_kernels; i++) {
			const PlanKernel *k =
			    &p->kernels[target->first_kernel + i];

			if (strcmp(plan_string(p, k->name), name) == 0)
				fwrite(all + k->source, 1,
				    (size_t)k->source_bytes, stdout);
		}
	}
}

/* ---- the command ---- */

static int
draw(const Inspect *in)
{
	int code;

	if (in->last - in->first != 1)
		return user_error("--graph draws one target: the plan has %u, "
				  "choose with --target",
		    in->last - in->first);
	code = open_output(in->o, in->o->graph);
	return code ? code : plan_graph(in->p, in->first, in->o->graph);
}

static int
inspect(Inspect *in)
{
	const Options *o = in->o;
	bool chosen = o->show_ops || o->show_kernels || o->kernel ||
		      o->show_memory || o->source || o->graph;
	int code = choose_targets(in);

	if (!code && o->kernel && !has_kernel(in))
		code = no_kernel(in);
	if (code)
		return code;
	if (!chosen)
		show_summary(in);
	if (o->show_ops)
		show_ops(in);
	if (o->show_kernels || (o->kernel && !o->source))
		show_kernels(in);
	if (o->show_memory)
		show_memory(in);
	if (o->source)
		print_source(in);
	return o->graph ? draw(in) : EXIT_DONE;
}

int
cmd_inspect(const Options *o)
{
	Opened m;
	Inspect in = {.o = o};
	int code;

	if (o->json && o->source)
		return usage_error(o, "--source is text and has no JSON");
	code = open_plan(o, &m);
	if (!code) {
		in.p = m.plan;
		in.json = o->json ? json_object() : NULL;
		code = inspect(&in);
	}
	if (in.json && !code) {
		json_dumpf(in.json, stdout, JSON_INDENT(2));
		putchar('\n');
	}
	json_decref(in.json);
	open_close(&m);
	return code;
}
