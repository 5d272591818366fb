#include "plan_json.h"

#include <string.h>

#include "../numerics/types.h"
#include "../runtime/footprint.h"
#include "../runtime/quote.h"

static const char *const symbols[SYM_COUNT] = {"one", "token", "row", "seq"};

json_t *
json_shown(const char *s, size_t n)
{
	Quote q;

	return is_printable(s, n) ? json_stringn(s, n)
				  : json_string(quote(&q, s, n));
}

static json_t *
string(const Plan *p, uint32_t offset)
{
	return json_shown(
	    plan_string(p, offset), strlen(plan_string(p, offset)));
}

/* The parts of a string between separators, as an array. */
static json_t *
parts(const Plan *p, uint32_t offset, const char *separator)
{
	const char *s = plan_string(p, offset);
	json_t *list = json_array();

	while (*s) {
		size_t n = strcspn(s, separator);

		if (n > 0)
			json_array_append_new(list, json_shown(s, n));
		s += n + (s[n] != '\0');
	}
	return list;
}

static json_t *
number(uint64_t n)
{
	return json_integer((json_int_t)n);
}

static const char *
dtype_name(uint32_t t)
{
	return t < DT_COUNT ? dtypes[t].name : "?";
}

const PlanKernel *
launch_kernel(const Plan *p, const PlanTarget *t, const PlanLaunch *l)
{
	return &p->kernels[t->first_kernel + l->kernel];
}

/* ---- the whole ---- */

static json_t *
target_summary(const Plan *p, const PlanTarget *t)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "name",
	    string(p, t->name), "toolchain", string(p, t->toolchain),
	    "launches", number(t->n_launches), "kernels", number(t->n_kernels),
	    "buffers", number(t->n_buffers), "source_bytes",
	    number(t->source_bytes), "object_bytes", number(t->object_bytes));
}

json_t *
plan_summary(const Plan *p)
{
	const PlanMeta *m = p->meta;
	json_t *list = json_array();
	uint64_t i;

	for (i = 0; i < p->n_targets; i++)
		json_array_append_new(list, target_summary(p, &p->targets[i]));
	return json_pack("{s:o, s:o, s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:o, "
			 "s:o}",
	    "arch", string(p, m->arch), "model", string(p, m->model_file),
	    "compiler", string(p, m->compiler), "numerics",
	    string(p, m->numerics), "kv", dtype_name(m->kv_dtype), "vocab",
	    number(m->vocab), "ctx", number(m->ctx), "max_chunk",
	    number(m->max_chunk), "tensors", number(p->n_tensors), "weights",
	    number(p->n_weights), "targets", list);
}

/* ---- launches and kernels ---- */

/* Workgroups: ceil(symbol * mul / div) + add. */
static json_t *
grid(const PlanLaunch *l)
{
	return json_pack("{s:s, s:o, s:o, s:o}", "symbol",
	    l->sym < SYM_COUNT ? symbols[l->sym] : "?", "mul", number(l->mul),
	    "div", number(l->div), "add", number(l->add));
}

json_t *
plan_launches(const Plan *p, uint32_t t)
{
	const PlanTarget *target = &p->targets[t];
	json_t *list = json_array();
	uint32_t i;

	for (i = 0; i < target->n_launches; i++) {
		const PlanLaunch *l = &p->launches[target->first_launch + i];
		const PlanRegion *r = &p->regions[l->region];
		const PlanKernel *k = launch_kernel(p, target, l);

		json_array_append_new(list,
		    json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, "
			      "s:o}",
			"target", string(p, target->name), "index", number(i),
			"region", string(p, r->name), "family",
			string(p, k->family), "kernel", string(p, k->name),
			"grid", grid(l), "ops", parts(p, r->ops, "\n"), "rules",
			parts(p, r->rules, ","), "lines",
			parts(p, r->lines, ","), "why_not",
			parts(p, r->why, "\n")));
	}
	return list;
}

/* The first launch of kernel k of the target, and how many there are. */
static uint32_t
count_launches(const Plan *p, const PlanTarget *target, uint32_t k,
    const PlanLaunch **first)
{
	uint32_t i, n = 0;

	*first = NULL;
	for (i = 0; i < target->n_launches; i++) {
		const PlanLaunch *l = &p->launches[target->first_launch + i];

		if (l->kernel != k)
			continue;
		if (n++ == 0)
			*first = l;
	}
	return n;
}

json_t *
plan_kernels(const Plan *p, uint32_t t)
{
	const PlanTarget *target = &p->targets[t];
	json_t *list = json_array();
	uint32_t i;

	for (i = 0; i < target->n_kernels; i++) {
		const PlanKernel *k = &p->kernels[target->first_kernel + i];
		const PlanLaunch *first;
		uint32_t n = count_launches(p, target, i, &first);

		json_array_append_new(list,
		    json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "name",
			string(p, k->name), "target", string(p, target->name),
			"family", string(p, k->family), "region",
			first ? string(p, p->regions[first->region].name)
			      : json_null(),
			"grid", first ? grid(first) : json_null(), "launches",
			number(n), "source_bytes", number(k->source_bytes)));
	}
	return list;
}

/* ---- memory ---- */

json_t *
plan_buffers(const Plan *p, uint32_t t)
{
	const PlanTarget *target = &p->targets[t];
	json_t *list = json_array();
	uint32_t i;

	for (i = 0; i < target->n_buffers; i++) {
		const PlanBuffer *b = &p->buffers[target->first_buffer + i];

		json_array_append_new(list,
		    json_pack("{s:o, s:o, s:s, s:o, s:o, s:o, s:o}", "target",
			string(p, target->name), "name", string(p, b->name),
			"for_each", symbols[b->sym], "bytes",
			number(b->row_bytes), "offset", number(b->offset),
			"first", number(b->first_launch), "last",
			number(b->last_launch)));
	}
	return list;
}

json_t *
plan_arenas(const Plan *p, uint32_t t)
{
	const PlanTarget *target = &p->targets[t];
	uint64_t weights = 0;
	uint32_t i;

	for (i = 0; i < target->n_packs; i++)
		weights += p->packs[target->first_pack + i].bytes;
	return json_pack("{s:o, s:o, s:o, s:o}", "target",
	    string(p, target->name), "token",
	    number(arena_row_bytes(p, target, SYM_T)), "row",
	    number(arena_row_bytes(p, target, SYM_R)), "weights",
	    number(weights));
}

json_t *
plan_states(const Plan *p)
{
	json_t *list = json_array();
	uint64_t i;

	for (i = 0; i < p->n_states; i++) {
		const PlanState *s = &p->states[i];

		json_array_append_new(
		    list, json_pack("{s:o, s:s, s:o}", "name",
			      string(p, s->name), "for_each",
			      s->kind == STATE_PAGED ? "64 tokens" : "seq",
			      "bytes", number(s->bytes)));
	}
	return list;
}
