/* Random valid graphs, the same for the same seed. */
#ifndef TESTS_RANDOM_GRAPH_H
#define TESTS_RANDOM_GRAPH_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "../ir/ir.h"

enum { RANDOM_VOCAB = 5, RANDOM_ROWS = 16 };
/* Ids of leaves that are hard to meet by chance. */
enum {
	RANDOM_POSITIONS = 1,
	RANDOM_TABLES = 2,
	RANDOM_EXPERTS = 11,
	RANDOM_TAPS = 12,
	RANDOM_KEYS = 13,
	RANDOM_RING = 14,
	RANDOM_X4 = 18,
	RANDOM_X32 = 19,
	RANDOM_Q = 21,
	RANDOM_K = 22
};

typedef struct Random {
	uint64_t state;
} Random;

/* 0 .. n-1. */
static uint32_t
random_below(Random *r, uint32_t n)
{
	r->state = r->state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((r->state >> 33) % n);
}

static Node *
random_node(Random *r, const Graph *g)
{
	return g->nodes[random_below(r, g->count)];
}

static Node *
random_leaf(Graph *g, Op op, Type type, const char *name)
{
	WeightPiece piece = {"piece of it", 0, 0};
	Weight w = {name, type, MAP_NONE, 1, &piece};
	char why[512];

	if (op == OP_WEIGHT)
		graph_add_weight(g, &w);
	return graph_add(g, op, NULL, NULL, &type, name, why);
}

static void
random_leaves(Random *r, Graph *g)
{
	static const DType float_types[] = {DT_F32, DT_BF16};
	static const int64_t sizes[] = {1, 4, 32, 64};
	DType cache = float_types[random_below(r, 2)];
	char name[32];
	int i;

	random_leaf(g, OP_INPUT, (Type){DT_I32, 1, {DIM_T}}, "tokens");
	random_leaf(g, OP_INPUT, (Type){DT_I32, 1, {DIM_T}}, "positions");
	for (i = 0; i < 4; i++) {
		DType t = float_types[random_below(r, 2)];

		snprintf(name, sizeof name, "table \"%d\\\n", i);
		random_leaf(
		    g, OP_WEIGHT, (Type){t, 2, {RANDOM_ROWS, sizes[i]}}, name);
		snprintf(name, sizeof name, "vector %d", i);
		random_leaf(g, OP_WEIGHT, (Type){t, 1, {sizes[i]}}, name);
	}
	random_leaf(
	    g, OP_WEIGHT, (Type){DT_Q8_0, 2, {RANDOM_ROWS, 64}}, "quant");
	random_leaf(g, OP_WEIGHT, (Type){DT_F32, 3, {4, 8, 32}}, "experts");
	random_leaf(g, OP_WEIGHT, (Type){DT_F32, 2, {32, 3}}, "taps");
	for (i = 0; i < 2; i++) {
		snprintf(name, sizeof name, "keys %d", i);
		random_leaf(
		    g, OP_STATE, (Type){cache, 3, {DIM_C, 2, 32}}, name);
		snprintf(name, sizeof name, "ring %d", i);
		random_leaf(
		    g, OP_STATE, (Type){DT_F32, 3, {DIM_B, 3, 32}}, name);
	}
}

static Attrs
random_attrs(Random *r, Op op)
{
	Attrs a = {0};

	if (op == OP_SLICE) {
		a.start = random_below(r, 3);
		a.count = 1 + random_below(r, 32);
	} else if (op == OP_TOP_K) {
		a.k = 1 + random_below(r, 3);
	} else if (op == OP_ROPE) {
		a.rot = 2 + 2 * random_below(r, 8);
		a.theta = 1e4 / (1 + random_below(r, 7));
	} else if (op == OP_SCALE) {
		a.factor = random_below(r, 3) == 0
			       ? 1
			       : -1.0f / (float)(1 + random_below(r, 99));
	} else if (op == OP_RMS_NORM || op == OP_L2_NORM) {
		a.eps = 1e-6f * (float)(1 + random_below(r, 99));
	} else if (op == OP_ROUTE) {
		a.renormalise = random_below(r, 2) != 0;
	} else if (op == OP_DELTA_RULE) {
		a.tiled = random_below(r, 2) != 0;
	} else if (op == OP_ATTENTION) {
		a.scale = 1 / (float)(1 + random_below(r, 9));
	}
	return a;
}

/* What reshape and cast ask for. */
static Type
random_type(Random *r, const Node *x)
{
	Type t = x->type;
	int i;

	t.dtype = random_below(r, 2) != 0 ? DT_F32 : DT_BF16;
	if (t.n_dims == 2 && t.dim[1] > 1 && t.dim[1] % 2 == 0) {
		t.n_dims = 3;
		t.dim[2] = t.dim[1] / 2;
		t.dim[1] = 2;
	} else {
		for (i = 2; i < t.n_dims; i++)
			t.dim[1] *= t.dim[i];
		t.n_dims = t.n_dims > 1 ? 2 : 1;
	}
	return t;
}

/* A second reader of a state that is written would not be valid. */
static bool
state_is_free(const Graph *g, Op op, Node *const *in)
{
	uint32_t i;
	int j, k;

	for (j = 0; j < ops[op].inputs; j++)
		for (i = 0; in[j]->op == OP_STATE && i < g->count; i++)
			for (k = 0; k < ops[g->nodes[i]->op].inputs; k++)
				if (g->nodes[i]->in[k] == in[j])
					return false;
	return true;
}

/* Operands that chance alone would not find. */
static void
steer(Random *r, Graph *g, Op op, Node **in)
{
	uint32_t second = 2 * random_below(r, 2), i;
	Node *chosen = random_node(r, g);

	if (op == OP_ROPE) {
		in[1] = g->nodes[RANDOM_POSITIONS];
	} else if (op == OP_EXPERTS) {
		in[1] = g->nodes[RANDOM_EXPERTS];
		in[2] = chosen;
	} else if (op == OP_ROUTE && chosen->op == OP_TOP_K) {
		in[0] = chosen->in[0];
		in[1] = chosen;
	} else if (op == OP_TOP_K && second > 0) {
		in[0] = g->nodes[RANDOM_X4];
	} else if (op == OP_APPEND) {
		in[0] = g->nodes[RANDOM_KEYS + second];
		in[1] = g->nodes[RANDOM_K];
	} else if (op == OP_CONV) {
		in[0] = g->nodes[RANDOM_X32];
		in[1] = g->nodes[RANDOM_TAPS];
		in[2] = g->nodes[RANDOM_RING + second];
	} else if (op == OP_ATTENTION) {
		in[0] = g->nodes[RANDOM_Q];
		in[1] = g->nodes[RANDOM_KEYS + second];
		for (i = 0; i < g->count; i++)
			if (g->nodes[i]->op == OP_APPEND)
				in[1] = g->nodes[i];
		in[2] = in[1];
	}
}

static void
random_op(Random *r, Graph *g)
{
	Op op = (Op)random_below(r, OP_COUNT);
	Node *in[MAX_INPUTS] = {0}, *n;
	Attrs a = random_attrs(r, op);
	char why[512];
	Type type;
	int i;

	if (ops[op].kind == KIND_LEAF)
		return;
	for (i = 0; i < ops[op].inputs; i++)
		in[i] = random_node(r, g);
	steer(r, g, op, in);
	type = random_type(r, in[0]);
	if (!state_is_free(g, op, in))
		return;
	n = graph_add(g, op, in, &a, &type,
	    random_below(r, 9) == 0 ? "a \x01label\"" : NULL, why);
	if (n != NULL && random_below(r, 2) != 0) {
		n->file = "models/a b.lua";
		n->line = random_below(r, 1000);
	}
}

/* About tries nodes' worth of attempts, then a head over one of the values. */
static Graph *
random_graph(Arena *a, uint64_t seed, int tries)
{
	Random r = {seed};
	Graph *g = graph_new(a);
	Type heads = {DT_F32, 3, {DIM_T, 2, 32}};
	Node *x, *rows, *in[2];
	char why[512];
	int i;

	g->arch = "random";
	g->vocab = RANDOM_VOCAB;
	g->ctx = 64;
	random_leaves(&r, g);
	in[1] = g->nodes[0];
	for (i = 0; i < 4; i++) {
		in[0] = g->nodes[RANDOM_TABLES + 2 * i];
		x = graph_add(g, OP_EMBED, in, NULL, NULL, NULL, why);
	}
	heads.dtype = g->nodes[RANDOM_KEYS]->type.dtype;
	in[0] = graph_add(g, OP_RESHAPE, &x, NULL, &heads, NULL, why);
	graph_add(g, OP_CAST, in, NULL, &heads, NULL, why);
	for (i = 0; i < tries; i++)
		random_op(&r, g);
	for (i = 0; i < 200; i++) {
		Node *n = random_node(&r, g);

		if (n->type.dtype == DT_F32 && n->type.n_dims == 2 &&
		    n->type.dim[0] == DIM_T)
			x = n;
	}
	rows = random_leaf(g, OP_INPUT, (Type){DT_I32, 1, {DIM_R}}, "rows");
	in[0] = x;
	in[1] = rows;
	in[0] = graph_add(g, OP_TAKE, in, NULL, NULL, NULL, why);
	in[1] = random_leaf(g, OP_WEIGHT,
	    (Type){DT_F32, 2, {RANDOM_VOCAB, x->type.dim[1]}}, "head");
	g->result = graph_add(g, OP_LINEAR, in, NULL, NULL, NULL, why);
	return g;
}

#endif
