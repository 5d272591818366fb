/* ingot check */
#include <stdlib.h>
#include <string.h>

#include "../runtime/footprint.h"
#include "open.h"
#include "plan_json.h"
#include "table.h"

typedef struct Check {
	const Options *o;
	json_t *missing; /* an object for each op without a kernel */
	uint32_t n_missing;
	ingot_plan *plan;
	const PlanTarget *target; /* the one it has */
	BackendLimits limits;
	Footprint bytes;
	uint32_t max_ctx; /* with --vram */
} Check;

/* ---- missing ops ---- */

static json_t *
shape(const Type *t)
{
	static const char *const symbols[] = {"", "T", "R", "B", "C"};
	json_t *list = json_array();
	int i;

	for (i = 0; i < t->n_dims; i++)
		json_array_append_new(
		    list, t->dim[i] < 0 ? json_string(symbols[-t->dim[i]])
					: json_integer(t->dim[i]));
	return list;
}

static json_t *
model_line(const Node *n)
{
	char text[512];
	int length;

	if (!n->file)
		return json_null();
	length = snprintf(text, sizeof text, "%.480s:%u", n->file, n->line);
	return json_shown(text, (size_t)length);
}

/* Equal ops of many layers become one object with a count. */
static void
add_missing(void *user, const Node *op, const char *why)
{
	Check *c = user;
	json_t *new = json_pack("{s:s, s:s, s:o, s:o, s:s}", "op",
	    ops[op->op].name, "dtype", dtypes[op->type.dtype].name, "shape",
	    shape(&op->type), "line", model_line(op), "why", why);
	json_t *old;
	size_t i;

	c->n_missing++;
	json_array_foreach(c->missing, i, old)
	{
		json_t *count = json_object_get(old, "count");

		json_object_set(new, "count", count);
		if (json_equal(new, old)) {
			json_integer_set(count, json_integer_value(count) + 1);
			json_decref(new);
			return;
		}
	}
	json_object_set_new(new, "count", json_integer(1));
	json_array_append_new(c->missing, new);
}

/* ---- from the checkpoint to numbers ---- */

static int
check_usage(Check *c)
{
	const Options *o = c->o;

	if (o->target && strchr(o->target, ','))
		return usage_error(o, "check looks at one target");
	return EXIT_DONE;
}

static int
make_plan(Check *c)
{
	CompileOptions co;
	void *bytes = NULL;
	size_t length = 0;
	Error e;
	int code = compile_options(c->o, &co);

	if (code)
		return code;
	co.missing = add_missing;
	co.user = c;
	code = compile_checkpoint(
	    &co, c->o->operand[0], true, NULL, &bytes, &length);
	if (!code && ingot_plan_read(bytes, length, &c->plan, &e))
		code = library_error(&e);
	free(bytes);
	if (!code)
		c->target = c->plan->targets;
	return code;
}

/* The limits of a session with context ctx (0: the default), and what it
 * takes. */
static bool
size_session(
    const Check *c, uint32_t ctx, BackendLimits *l, Footprint *f, Error *e)
{
	ingot_session_options so = {
	    .size = sizeof so, .ctx = ctx, .max_seqs = c->o->max_seqs};

	if (session_limits(c->plan->meta, &so, l, e))
		return false;
	*f = footprint(c->plan, c->target, l);
	return true;
}

static int
size_up(Check *c)
{
	Error e;

	if (!size_session(c, c->o->ctx, &c->limits, &c->bytes, &e))
		return library_error(&e);
	if (c->bytes.total > INT64_MAX)
		return user_error("the session would take more than 2^63 "
				  "bytes: lower --ctx or --max-seqs");
	return EXIT_DONE;
}

static bool
fits(const Check *c, uint32_t ctx)
{
	BackendLimits l = {0};
	Footprint f;
	Error e;

	return size_session(c, ctx, &l, &f, &e) && f.total <= c->o->vram;
}

/* The longest context that fits, 0 when none does. */
static int
find_max_ctx(Check *c)
{
	uint32_t low = 0, high = session_most_ctx(c->plan->meta);

	while (c->o->vram && low < high) {
		uint32_t room = high - low, middle = high - room / 2;

		if (fits(c, middle))
			low = middle;
		else
			high = middle - 1;
	}
	c->max_ctx = low;
	return EXIT_DONE;
}

/* Launches of a step of one sequence, whose last row of logits is wanted. */
static uint32_t
launches(const Check *c, uint32_t tokens)
{
	const PlanLaunch *l = c->plan->launches + c->target->first_launch;
	StepArgs s = {.tokens = tokens, .rows = 1, .seqs = 1};
	uint32_t i, n = 0;

	for (i = 0; i < c->target->n_launches; i++)
		n += workgroups(&l[i], &s) > 0;
	return n;
}

/* ---- the result ---- */

static json_t *
number(uint64_t n)
{
	return json_integer((json_int_t)n);
}

static json_t *
result(const Check *c)
{
	const Plan *p = c->plan;
	const Footprint *f = &c->bytes;
	const char *arch = plan_string(p, p->meta->arch);
	bool vram = c->o->vram != 0;

	return json_pack("{s:o, s:s, s:s, s:O, s:o, s:o, s:o, s:o,"
			 " s:{s:o, s:o, s:o, s:o, s:o}, s:o, s:o, s:o}",
	    "arch", json_shown(arch, strlen(arch)), "target",
	    plan_string(p, c->target->name), "numerics",
	    plan_string(p, p->meta->numerics), "missing", c->missing,
	    "launches_decode", number(launches(c, 1)), "launches_prefill",
	    number(launches(c, c->limits.max_tokens)), "ctx",
	    number(c->limits.ctx), "max_seqs", number(c->limits.max_seqs),
	    "bytes", "weights", number(f->weights), "kv", number(f->kv),
	    "state", number(f->state), "scratch", number(f->scratch), "total",
	    number(f->total), "vram", vram ? number(c->o->vram) : json_null(),
	    "fits", vram ? json_boolean(f->total <= c->o->vram) : json_null(),
	    "max_ctx", vram ? number(c->max_ctx) : json_null());
}

static void
print_size(const char *name, const json_t *bytes)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
	double size = (double)json_integer_value(bytes);
	size_t u = 0;

	while (size >= 1024 && u + 1 < sizeof units / sizeof units[0]) {
		size /= 1024;
		u++;
	}
	printf("%-10s %.*f %s\n", name, u > 0, size, units[u]);
}

static void
print_text(const char *name, const json_t *text)
{
	printf("%-10s %s\n", name, json_string_value(text));
}

static void
print_result(const Check *c, const json_t *j)
{
	static const Column columns[] = {{"op", "op"}, {"dtype", "dtype"},
	    {"shape", "shape"}, {"line", "line"}, {"count", "times"},
	    {"why", "no kernel because"}};
	const BackendLimits *l = &c->limits;
	json_t *size;
	const char *name;

	print_text("arch", json_object_get(j, "arch"));
	print_text("target", json_object_get(j, "target"));
	print_text("numerics", json_object_get(j, "numerics"));
	if (c->n_missing > 0)
		printf("%-10s missing for %u\n", "kernels", c->n_missing);
	else
		printf("%-10s for every op\n", "kernels");
	printf("%-10s %u a decoded token, %u a prefill chunk of %u tokens\n",
	    "launches", launches(c, 1), launches(c, l->max_tokens),
	    l->max_tokens);
	printf("%-10s %u tokens, sequences: %u\n", "ctx", l->ctx, l->max_seqs);
	json_object_foreach(json_object_get(j, "bytes"), name, size)
	    print_size(name, size);
	if (c->o->vram) {
		print_size("vram", json_object_get(j, "vram"));
		printf("%-10s %s\n", "fits",
		    c->bytes.total <= c->o->vram ? "yes" : "no");
		printf("%-10s %u tokens\n", "max ctx", c->max_ctx);
	}
	if (c->n_missing > 0) {
		putchar('\n');
		table_print(stdout, c->missing, columns,
		    sizeof columns / sizeof columns[0]);
	}
}

static int
report(Check *c)
{
	json_t *j = result(c);

	if (!j)
		return user_error("no memory for the result");
	if (c->o->json) {
		json_dumpf(j, stdout, JSON_INDENT(2));
		putchar('\n');
	} else {
		print_result(c, j);
	}
	json_decref(j);
	return EXIT_DONE;
}

/* Says what is wrong with the model on the target, if anything is. */
static int
judge(Check *c)
{
	if (c->n_missing > 0) {
		note("not every op has a kernel on target %s",
		    plan_string(c->plan, c->target->name));
		return EXIT_NO_KERNEL;
	}
	if (c->o->vram && c->bytes.total > c->o->vram) {
		note("%llu bytes are needed, but --vram has %llu",
		    (unsigned long long)c->bytes.total,
		    (unsigned long long)c->o->vram);
		return EXIT_NO_ROOM;
	}
	return EXIT_DONE;
}

int
cmd_check(const Options *o)
{
	static int (*const phases[])(Check *) = {
	    check_usage, make_plan, size_up, find_max_ctx, report, judge};
	Check c = {.o = o, .missing = json_array()};
	int code = EXIT_DONE;
	size_t i;

	for (i = 0; i < sizeof phases / sizeof phases[0] && !code; i++)
		code = phases[i](&c);
	json_decref(c.missing);
	if (c.plan)
		ingot_plan_close(c.plan);
	return code;
}
