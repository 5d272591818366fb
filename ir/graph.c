/* The op table, and building a graph. */
#include <stdio.h>
#include <string.h>

#include "ir_impl.h"

const OpInfo ops[OP_COUNT] = {
#define OP(NAME, name, inputs, KIND, flags)                                    \
	[OP_##NAME] = {name, inputs, KIND_##KIND, flags},
#include "ops.def"
#undef OP
};

const AttrInfo attrs[] = {
#define OP(NAME, name, inputs, KIND, flags)
#define ATTR(NAME, type, field, required)                                      \
	{OP_##NAME, #field, ATTR_##type, offsetof(Attrs, field), required},
#include "ops.def"
#undef ATTR
#undef OP
};

const size_t attr_count = sizeof attrs / sizeof attrs[0];
_Static_assert(sizeof attrs / sizeof attrs[0] <= 32,
    "parse.c keeps one bit for each attribute");

#define OP(NAME, name, inputs, KIND, flags)                                    \
	_Static_assert((inputs) <= MAX_INPUTS, name ": too many inputs");      \
	_Static_assert(((flags)&COMMUTES) == 0 || (inputs) == 2,               \
	    name ": only two operands commute");
#define ATTR(NAME, type, field, required)                                      \
	_Static_assert(sizeof((Attrs){0}.field) == sizeof(attr_##type),        \
	    #field ": another type in Attrs");
#include "ops.def"
#undef ATTR
#undef OP

const char *const weight_maps[WEIGHT_MAPS] = {
    [MAP_NONE] = NULL, [MAP_ONE_PLUS] = "one_plus", [MAP_NEG_EXP] = "neg_exp"};

Op
op_by_name(const char *name)
{
	int op = 0;

	while (op < OP_COUNT && strcmp(ops[op].name, name) != 0)
		op++;
	return (Op)op;
}

size_t
attr_bytes(AttrType t)
{
	switch (t) {
	case ATTR_u32:
		return sizeof(attr_u32);
	case ATTR_f32:
		return sizeof(attr_f32);
	case ATTR_f64:
		return sizeof(attr_f64);
	case ATTR_flag:
		return sizeof(attr_flag);
	}
	return 0;
}

bool
attrs_equal(Op op, const Attrs *a, const Attrs *b)
{
	size_t i;

	for (i = 0; i < attr_count; i++) {
		const char *x = (const char *)a + attrs[i].offset;
		const char *y = (const char *)b + attrs[i].offset;

		if (attrs[i].op == op &&
		    memcmp(x, y, attr_bytes(attrs[i].type)) != 0)
			return false;
	}
	return true;
}

/* ---- types ---- */

bool
type_equal(const Type *a, const Type *b)
{
	int i;

	if (a->dtype != b->dtype || a->n_dims != b->n_dims)
		return false;
	for (i = 0; i < a->n_dims; i++)
		if (a->dim[i] != b->dim[i])
			return false;
	return true;
}

uint64_t
type_row(const Type *t)
{
	uint64_t n = 1;
	int i;

	for (i = 1; i < t->n_dims; i++)
		n *= (uint64_t)t->dim[i];
	return n;
}

uint64_t
type_count(const Type *t)
{
	return t->n_dims > 0 ? (uint64_t)t->dim[0] * type_row(t) : 1;
}

char *
type_text(const Type *t, char *out)
{
	static const char symbols[] = "?TRBC";
	size_t used;
	int i;

	used = (size_t)snprintf(out, TYPE_TEXT, "%s[",
	    t->dtype < DT_COUNT ? dtypes[t->dtype].name : "?");
	for (i = 0; i < t->n_dims && i < MAX_DIMS; i++) {
		int64_t d = t->dim[i];
		const char *comma = i > 0 ? "," : "";

		if (d <= DIM_T && d >= DIM_C)
			used += (size_t)snprintf(out + used, TYPE_TEXT - used,
			    "%s%c", comma, symbols[-d]);
		else
			used += (size_t)snprintf(out + used, TYPE_TEXT - used,
			    "%s%lld", comma, (long long)d);
	}
	snprintf(out + used, TYPE_TEXT - used, "]");
	return out;
}

/* ---- weights ---- */

const Weight *
graph_weight(const Graph *g, const char *name)
{
	uint32_t i;

	for (i = 0; i < g->n_weights; i++)
		if (strcmp(g->weights[i].name, name) == 0)
			return &g->weights[i];
	return NULL;
}

void
graph_add_weight(Graph *g, const Weight *w)
{
	Weight *copy;
	uint32_t i;

	if (g->n_weights == g->cap_weights) {
		uint32_t cap = g->cap_weights ? 2 * g->cap_weights : 64;
		Weight *more = arena_array(g->arena, cap, sizeof *more);

		if (g->n_weights > 0)
			memcpy(more, g->weights, g->n_weights * sizeof *more);
		g->weights = more;
		g->cap_weights = cap;
	}
	copy = &g->weights[g->n_weights++];
	*copy = *w;
	copy->name = arena_strdup(g->arena, w->name);
	copy->pieces = arena_array(g->arena, w->n_pieces, sizeof *copy->pieces);
	for (i = 0; i < w->n_pieces; i++) {
		copy->pieces[i] = w->pieces[i];
		copy->pieces[i].tensor =
		    arena_strdup(g->arena, w->pieces[i].tensor);
	}
}

/* ---- nodes ---- */

Graph *
graph_new(Arena *a)
{
	Graph *g = arena_alloc(a, sizeof *g);

	g->arena = a;
	return g;
}

void
graph_push(Graph *g, Node *n)
{
	if (g->count == g->capacity) {
		uint32_t cap = g->capacity ? 2 * g->capacity : 256;
		Node **more = arena_array(g->arena, cap, sizeof *more);

		if (g->count > 0)
			memcpy(more, g->nodes, g->count * sizeof *more);
		g->nodes = more;
		g->capacity = cap;
	}
	n->id = g->count;
	g->nodes[g->count++] = n;
}

static bool
check_input(const char *name, const Type *type, char *why)
{
	bool rows = strcmp(name, "rows") == 0;
	char text[TYPE_TEXT];

	if (!rows && strcmp(name, "tokens") != 0 &&
	    strcmp(name, "positions") != 0) {
		snprintf(why, WHY_BYTES,
		    "input: there is no input \"%.99s\"; there are tokens, "
		    "positions and rows",
		    name);
		return false;
	}
	if (type->dim[0] != (rows ? DIM_R : DIM_T)) {
		snprintf(why, WHY_BYTES, "input: \"%s\" is %s, not i32[%c]",
		    name, type_text(type, text), rows ? 'R' : 'T');
		return false;
	}
	return true;
}

bool
check_leaf(const Graph *g, Op op, const char *name, const Type *type, char *why)
{
	char got[TYPE_TEXT], want[TYPE_TEXT];
	const Weight *w;

	if (name == NULL || *name == '\0') {
		snprintf(why, WHY_BYTES, "%s: it has no name", ops[op].name);
		return false;
	}
	if (op == OP_INPUT)
		return check_input(name, type, why);
	w = op == OP_WEIGHT ? graph_weight(g, name) : NULL;
	if (w != NULL && !type_equal(&w->type, type)) {
		snprintf(why, WHY_BYTES,
		    "weight: \"%.99s\" is declared %s but used as %s", name,
		    type_text(&w->type, want), type_text(type, got));
		return false;
	}
	return true;
}

Node *
graph_add(Graph *g, Op op, Node *const *in, const Attrs *attr, const Type *type,
    const char *name, char *why)
{
	static const Attrs none;
	Type t = {0};
	Node *n;

	if (attr == NULL)
		attr = &none;
	if (type != NULL)
		t = *type;
	if (!infer(op, in, attr, &t, why))
		return NULL;
	if (ops[op].kind == KIND_LEAF && !check_leaf(g, op, name, &t, why))
		return NULL;
	n = arena_alloc(g->arena, sizeof *n);
	n->op = op;
	n->type = t;
	n->attr = *attr;
	if (ops[op].inputs > 0)
		memcpy(n->in, in, (size_t)ops[op].inputs * sizeof n->in[0]);
	n->name = name != NULL ? arena_strdup(g->arena, name) : NULL;
	graph_push(g, n);
	return n;
}

/* ---- for passes ---- */

void
graph_reset(Graph *g)
{
	uint32_t i;

	for (i = 0; i < g->count; i++)
		g->nodes[i]->to = g->nodes[i];
}

void
node_redirect(Node *n)
{
	int i;

	for (i = 0; i < ops[n->op].inputs; i++)
		n->in[i] = n->in[i]->to;
}

void
count_uses(const Graph *g)
{
	uint32_t i;
	int j;

	for (i = 0; i < g->count; i++)
		g->nodes[i]->mark = 0;
	for (i = 0; i < g->count; i++)
		for (j = 0; j < ops[g->nodes[i]->op].inputs; j++)
			g->nodes[i]->in[j]->mark++;
	if (g->result != NULL)
		g->result->mark++;
}
