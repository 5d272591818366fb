/* Dead nodes and weights. */
#include "ir_impl.h"

static void
drop_weights(Graph *g)
{
	uint32_t i, kept = 0;
	int *live = arena_array(g->arena, g->n_weights, sizeof *live);

	for (i = 0; i < g->count; i++)
		if (g->nodes[i]->op == OP_WEIGHT)
			live[graph_weight(g, g->nodes[i]->name) - g->weights] =
			    1;
	for (i = 0; i < g->n_weights; i++)
		if (live[i])
			g->weights[kept++] = g->weights[i];
	g->n_weights = kept;
}

/* Marks are 1 for what is needed, from the roots backwards. */
void
dce(Graph *g)
{
	uint32_t i, kept = 0;
	int j;

	for (i = 0; i < g->count; i++)
		g->nodes[i]->mark = g->nodes[i] == g->result ||
				    (ops[g->nodes[i]->op].flags & EFFECT) != 0;
	for (i = g->count; i-- > 0;)
		for (j = 0; j < ops[g->nodes[i]->op].inputs; j++)
			g->nodes[i]->in[j]->mark |= g->nodes[i]->mark;
	for (i = 0; i < g->count; i++) {
		Node *n = g->nodes[i];

		if (n->mark == 0)
			continue;
		n->id = kept;
		g->nodes[kept++] = n;
	}
	g->count = kept;
	drop_weights(g);
}
