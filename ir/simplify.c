/* Rewrites that keep bits and never grow the graph. Each node is rewritten
 * after its inputs, so one sweep reaches the end. */
#include "ir_impl.h"

/* x seen in another shape is x's source seen in that shape. */
static Node *
reshape(Node *n)
{
	if (n->in[0]->op == OP_RESHAPE)
		n->in[0] = n->in[0]->in[0];
	return type_equal(&n->type, &n->in[0]->type) ? n->in[0] : n;
}

static Node *
slice(Node *n)
{
	Node *x = n->in[0];

	if (x->op == OP_SLICE) {
		n->attr.start += x->attr.start;
		n->in[0] = x->in[0];
	}
	return type_equal(&n->type, &n->in[0]->type) ? n->in[0] : n;
}

static Node *
cast(Node *n)
{
	return n->type.dtype == n->in[0]->type.dtype ? n->in[0] : n;
}

/* x * 1 is x, as long as nothing was widened on the way. */
static Node *
scale(Node *n)
{
	return n->attr.factor == 1 && n->in[0]->type.dtype == n->type.dtype
		   ? n->in[0]
		   : n;
}

static void
order_operands(Node *n)
{
	Node *first = n->in[0];

	if ((ops[n->op].flags & COMMUTES) && first->id > n->in[1]->id) {
		n->in[0] = n->in[1];
		n->in[1] = first;
	}
}

static Node *
rewrite(Node *n)
{
	switch (n->op) {
	case OP_RESHAPE:
		return reshape(n);
	case OP_SLICE:
		return slice(n);
	case OP_CAST:
		return cast(n);
	case OP_SCALE:
		return scale(n);
	default:
		order_operands(n);
		return n;
	}
}

void
simplify(Graph *g)
{
	uint32_t i;

	graph_reset(g);
	for (i = 0; i < g->count; i++) {
		node_redirect(g->nodes[i]);
		g->nodes[i]->to = rewrite(g->nodes[i]);
	}
	if (g->result != NULL)
		g->result = g->result->to;
}
