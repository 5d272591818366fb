/* Quantises what meets a quantised weight. */
#include "ir_impl.h"

static bool
meets_quant(const Node *n)
{
	return ops[n->op].kind == KIND_CONTRACT &&
	       n->in[0]->type.dtype == DT_F32 &&
	       dtypes[n->in[1]->type.dtype].kind == DK_QUANT;
}

/* The quantise node of x's value; x->to remembers it. */
static Node *
quantised(Graph *g, const Node *reader)
{
	Node *x = reader->in[0];
	Node *q;

	if (x->to != x)
		return x->to;
	q = arena_alloc(g->arena, sizeof *q);
	q->op = OP_QUANTISE;
	q->type = x->type;
	q->type.dtype = DT_Q8A;
	q->in[0] = x;
	q->file = reader->file;
	q->line = reader->line;
	q->to = q;
	x->to = q;
	graph_push(g, q);
	return q;
}

void
legalise(Graph *g)
{
	Node **old = g->nodes;
	uint32_t i, count = g->count;

	graph_reset(g);
	g->nodes = NULL;
	g->count = g->capacity = 0;
	for (i = 0; i < count; i++) {
		if (meets_quant(old[i]))
			old[i]->in[0] = quantised(g, old[i]);
		graph_push(g, old[i]);
	}
}
