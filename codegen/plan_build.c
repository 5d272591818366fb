#include "plan_build.h"

#include <stdlib.h>
#include <string.h>

/* ---- what belongs to the graph ---- */

static void
add_state(PlanWriter *pw, const Node *n)
{
	PlanState *s = pw_add(pw, SEC_STATES, 1);
	uint64_t row = dtype_bytes(n->type.dtype, type_row(&n->type));

	s->name = pw_string(pw, n->name);
	s->kind = n->type.dim[0] == DIM_C ? STATE_PAGED : STATE_SLOT;
	s->bytes = s->kind == STATE_PAGED ? row * KV_PAGE : row;
}

static bool
same_table(const Node *a, const Node *b)
{
	return a->op == OP_ROPE && b->op == OP_ROPE &&
	       a->attr.rot == b->attr.rot && a->attr.theta == b->attr.theta;
}

/* Whether no rope before n asks for the same table. */
static bool
is_first_rope(const Graph *g, const Node *n)
{
	for (uint32_t i = 0; i < n->id; i++)
		if (same_table(g->nodes[i], n))
			return false;
	return n->op == OP_ROPE;
}

static void
add_table(PlanWriter *pw, const Node *n)
{
	PlanTable *t = pw_add(pw, SEC_TABLES, 1);

	t->rot = n->attr.rot;
	t->theta = n->attr.theta;
}

static void
add_graph_text(PlanWriter *pw, const Graph *g)
{
	char *text = NULL;
	size_t length = 0;
	FILE *f = open_memstream(&text, &length);

	graph_print(g, f);
	fclose(f);
	pw_blob(pw, SEC_GRAPH, text, length, 1);
	free(text);
}

void
plan_add_graph(PlanWriter *pw, Graph *g)
{
	for (uint32_t i = 0; i < g->count; i++) {
		if (g->nodes[i]->op == OP_STATE)
			add_state(pw, g->nodes[i]);
		if (is_first_rope(g, g->nodes[i]))
			add_table(pw, g->nodes[i]);
	}
	add_graph_text(pw, g);
}

/* ---- indices that arguments carry ---- */

static uint32_t
weight_index(const Graph *g, const Node *n)
{
	uint32_t i = 0;

	while (strcmp(g->weights[i].name, n->name) != 0)
		i++;
	return i;
}

static uint32_t
state_index(const Graph *g, const Node *n)
{
	uint32_t index = 0;

	for (uint32_t i = 0; i < n->id; i++)
		index += g->nodes[i]->op == OP_STATE;
	return index;
}

static uint32_t
table_index(const Graph *g, const Node *n)
{
	uint32_t index = 0;

	for (uint32_t i = 0; !same_table(g->nodes[i], n); i++)
		index += is_first_rope(g, g->nodes[i]);
	return index;
}

static uint32_t
arg_index(const Lowered *l, const Arg *a)
{
	switch (a->kind) {
	case ARG_BUFFER:
		return l->buffer_of[a->node->id];
	case ARG_WEIGHT:
		return weight_index(l->graph, a->node);
	case ARG_STATE:
		return state_index(l->graph, a->node);
	case ARG_TABLE:
		return table_index(l->graph, a->node);
	case ARG_INPUT:
		return a->input;
	default:
		return 0;
	}
}

/* ---- regions, for people ---- */

static const char *
rule_names(Arena *a, uint32_t rules)
{
	Text t = {.arena = a};

	text_add(&t, "%s", "");
	for (int i = 0; fuse_rules[i]; i++)
		if (rules & 1u << i)
			text_add(
			    &t, "%s%s", t.length ? "," : "", fuse_rules[i]);
	return t.at;
}

static const char *
model_lines(Arena *a, const Region *r)
{
	Text t = {.arena = a};

	text_add(&t, "%s", "");
	for (uint32_t i = 0; i < r->n_ops; i++)
		if (r->ops[i]->file)
			text_add(&t, "%s%s:%u", t.length ? "," : "",
			    r->ops[i]->file, r->ops[i]->line);
	return t.at;
}

static const char *
why_lines(Arena *a, const Region *r)
{
	Text t = {.arena = a};

	text_add(&t, "%s", "");
	for (const WhyNot *w = r->why; w; w = w->next)
		text_add(&t, "%s: %s: %s\n", w->rule, ops[w->op->op].name,
		    why_text[w->why]);
	return t.at;
}

static uint32_t
add_region(PlanWriter *pw, const Emitted *e, const Launch *l)
{
	Arena *a = e->l->graph->arena;
	uint32_t index = pw_count(pw, SEC_REGIONS);
	PlanRegion r = {0}, *at;

	r.name = pw_string(pw, e->codes[l->code].name);
	r.rules = pw_string(pw, rule_names(a, l->region->rules));
	r.ops = pw_string(pw, l->ops);
	r.lines = pw_string(pw, model_lines(a, l->region));
	r.why = pw_string(pw, why_lines(a, l->region));
	at = pw_add(pw, SEC_REGIONS, 1);
	*at = r;
	return index;
}

/* ---- a target ---- */

static void
add_launch(PlanWriter *pw, const Emitted *e, const Launch *l)
{
	PlanLaunch p = {0}, *at;

	p.kernel = l->code;
	p.region = add_region(pw, e, l);
	p.sym = l->grid.sym;
	p.mul = l->grid.mul;
	p.div = l->grid.div;
	p.add = l->grid.add;
	p.first_arg = pw_count(pw, SEC_ARGS);
	p.n_args = l->n_args;
	for (uint32_t i = 0; i < l->n_args; i++) {
		PlanArg *arg = pw_add(pw, SEC_ARGS, 1);

		arg->kind = l->args[i].kind;
		arg->index = arg_index(e->l, &l->args[i]);
	}
	at = pw_add(pw, SEC_LAUNCHES, 1);
	*at = p;
}

static void
add_buffer(PlanWriter *pw, const Buffer *b)
{
	PlanBuffer *p = pw_add(pw, SEC_BUFFERS, 1);
	char name[32];

	snprintf(
	    name, sizeof name, "%s %%%u", ops[b->node->op].name, b->node->id);
	p->name = pw_string(pw, name);
	p->sym = b->sym == DIM_T ? SYM_T : SYM_R;
	p->node = b->node->id;
	p->row_bytes = b->row_bytes;
	p->offset = b->offset;
	p->first_launch = b->first;
	p->last_launch = b->last;
}

static void
add_kernel(PlanWriter *pw, const Code *c, uint64_t source)
{
	PlanKernel *p = pw_add(pw, SEC_KERNELS, 1);

	p->name = pw_string(pw, c->name);
	p->family = pw_string(pw, family_names[c->family]);
	p->source = source;
	p->source_bytes = strlen(c->text);
}

const char *
target_source(const Emitted *e, size_t *length)
{
	Text t = {.arena = e->l->graph->arena};

	text_add(&t, "%s", prelude_text);
	for (uint32_t i = 0; i < e->n_codes; i++)
		text_add(&t, "\n%s", e->codes[i].text);
	*length = t.length;
	return t.at;
}

void
plan_add_target(
    PlanWriter *pw, const Emitted *e, const ToolResult *o, uint32_t first_pack)
{
	PlanTarget t = {0}, *at;
	size_t length;
	const char *source = target_source(e, &length);
	uint64_t offset = strlen(prelude_text);

	t.name = pw_string(pw, e->l->target->name);
	t.toolchain = pw_string(pw, o->toolchain);
	t.first_pack = first_pack;
	t.n_packs = e->l->graph->n_weights;
	t.first_buffer = pw_count(pw, SEC_BUFFERS);
	t.n_buffers = e->l->n_buffers;
	t.first_kernel = pw_count(pw, SEC_KERNELS);
	t.n_kernels = e->n_codes;
	t.first_launch = pw_count(pw, SEC_LAUNCHES);
	t.n_launches = e->n_launches;
	t.source = pw_blob(pw, SEC_SOURCES, source, length, 1);
	t.source_bytes = length;
	t.object = pw_blob(pw, SEC_OBJECTS, o->bytes, o->length, 64);
	t.object_bytes = o->length;
	for (uint32_t i = 0; i < e->l->n_buffers; i++)
		add_buffer(pw, &e->l->buffers[i]);
	for (uint32_t i = 0; i < e->n_codes; i++) {
		add_kernel(pw, &e->codes[i], t.source + offset + 1);
		offset += 1 + strlen(e->codes[i].text);
	}
	for (uint32_t i = 0; i < e->n_launches; i++)
		add_launch(pw, e, &e->launches[i]);
	at = pw_add(pw, SEC_TARGETS, 1);
	*at = t;
}
