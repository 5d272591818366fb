/* What every pass may rely on. Each rule is one function that returns NULL or
 * a sentence in the graph's arena. */
#include <string.h>

#include "ir_impl.h"

static const char *
wrong(const Graph *g, const Node *n, const char *what)
{
	return arena_printf(
	    g->arena, "%%%u %s: %s", n->id, ops[n->op].name, what);
}

static const char *
order(const Graph *g, uint32_t id)
{
	const Node *n = g->nodes[id];
	int i;

	if (n->id != id)
		return arena_printf(
		    g->arena, "node %u of the list calls itself %u", id, n->id);
	if (n->op >= OP_COUNT)
		return arena_printf(g->arena, "%%%u has no op", id);
	for (i = 0; i < MAX_INPUTS; i++) {
		const Node *in = n->in[i];

		if (i >= ops[n->op].inputs) {
			if (in != NULL)
				return wrong(g, n, "too many inputs");
		} else if (in == NULL) {
			return wrong(g, n, "an input is missing");
		} else if (in->id >= id || g->nodes[in->id] != in) {
			return wrong(g, n, "an input does not come before it");
		}
	}
	return NULL;
}

static const char *
typed(const Graph *g, const Node *n)
{
	char why[WHY_BYTES], got[TYPE_TEXT], want[TYPE_TEXT];
	Type t = n->type;

	if (!infer(n->op, n->in, &n->attr, &t, why))
		return arena_printf(g->arena, "%%%u %s", n->id, why);
	if (!type_equal(&t, &n->type))
		return arena_printf(g->arena, "%%%u %s: typed %s but is %s",
		    n->id, ops[n->op].name, type_text(&n->type, got),
		    type_text(&t, want));
	return NULL;
}

static bool
declares(Op op, size_t offset)
{
	size_t i;

	for (i = 0; i < attr_count; i++)
		if (attrs[i].op == op && attrs[i].offset == offset)
			return true;
	return false;
}

/* Attributes of other ops are zero. */
static const char *
attributes(const Graph *g, const Node *n)
{
	static const char zero[sizeof(Attrs)];
	size_t i;

	for (i = 0; i < attr_count; i++) {
		const char *x = (const char *)&n->attr + attrs[i].offset;

		if (memcmp(x, zero, attr_bytes(attrs[i].type)) != 0 &&
		    !declares(n->op, attrs[i].offset))
			return arena_printf(g->arena,
			    "%%%u %s: it has no attribute %s", n->id,
			    ops[n->op].name, attrs[i].name);
	}
	return NULL;
}

static const char *
leaf(const Graph *g, const Node *n)
{
	char why[WHY_BYTES];
	uint32_t i;

	if (ops[n->op].kind != KIND_LEAF)
		return NULL;
	if (!check_leaf(g, n->op, n->name, &n->type, why))
		return arena_printf(g->arena, "%%%u %s", n->id, why);
	if (n->op == OP_WEIGHT && graph_weight(g, n->name) == NULL)
		return wrong(g, n, "no weight has its name");
	for (i = 0; i < n->id; i++)
		if (g->nodes[i]->op == n->op &&
		    strcmp(g->nodes[i]->name, n->name) == 0)
			return wrong(g, n, "its name is taken");
	return NULL;
}

static const char *
weight(const Graph *g, uint32_t id)
{
	const Weight *w = &g->weights[id];
	const char *what = NULL;

	if (graph_weight(g, w->name) != w)
		what = "declared twice";
	else if (w->n_pieces == 0)
		what = "made of nothing";
	else if (w->map > MAP_NEG_EXP)
		what = "an unknown map";
	else if (w->map != MAP_NONE && w->type.dtype != DT_F32)
		what = "mapped, but not f32";
	return what == NULL
		   ? NULL
		   : arena_printf(g->arena, "weight \"%s\": %s", w->name, what);
}

/* A state that one node writes has no other reader: who comes first would be
 * left open. Marks count the readers. */
static const char *
states(const Graph *g)
{
	uint32_t i;
	int j;

	count_uses(g);
	for (i = 0; i < g->count; i++) {
		const Node *n = g->nodes[i];

		if ((ops[n->op].flags & EFFECT) == 0)
			continue;
		for (j = 0; j < ops[n->op].inputs; j++)
			if (n->in[j]->op == OP_STATE && n->in[j]->mark > 1)
				return wrong(g, n,
				    "the state it writes has another reader");
	}
	return NULL;
}

static const char *
result(const Graph *g)
{
	const Node *r = g->result;
	Type want = {DT_F32, 2, {DIM_R, g->vocab}};
	char text[TYPE_TEXT];

	if (r == NULL)
		return "the graph has no result";
	if (r->id >= g->count || g->nodes[r->id] != r)
		return "the result is not a node of the graph";
	if (!type_equal(&r->type, &want))
		return arena_printf(g->arena,
		    "%%%u %s: the result is %s, not f32[R,%u]", r->id,
		    ops[r->op].name, type_text(&r->type, text), g->vocab);
	return NULL;
}

const char *
verify(const Graph *g)
{
	const char *why = NULL;
	uint32_t i;

	for (i = 0; i < g->count && why == NULL; i++) {
		why = order(g, i);
		if (why == NULL)
			why = typed(g, g->nodes[i]);
		if (why == NULL)
			why = attributes(g, g->nodes[i]);
		if (why == NULL)
			why = leaf(g, g->nodes[i]);
	}
	for (i = 0; i < g->n_weights && why == NULL; i++)
		why = weight(g, i);
	if (why == NULL)
		why = states(g);
	return why == NULL ? result(g) : why;
}
