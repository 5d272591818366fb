/* Common subexpressions, by a hash table of the nodes seen so far. A merged
 * node stays in the list, unread; dce() drops it. */
#include <string.h>

#include "ir_impl.h"

static uint64_t
mix(uint64_t h, uint64_t x)
{
	h = (h ^ x) * 0x9E3779B97F4A7C15u;
	return h ^ h >> 29;
}

static uint64_t
hash(const Node *n)
{
	uint64_t h = mix(n->op, n->type.dtype);
	size_t i;

	for (i = 0; i < (size_t)ops[n->op].inputs; i++)
		h = mix(h, n->in[i]->id);
	for (i = 0; i < (size_t)n->type.n_dims; i++)
		h = mix(h, (uint64_t)n->type.dim[i]);
	for (i = 0; i < attr_count; i++) {
		uint64_t bits = 0;

		if (attrs[i].op != n->op)
			continue;
		memcpy(&bits, (const char *)&n->attr + attrs[i].offset,
		    attr_bytes(attrs[i].type));
		h = mix(h, bits);
	}
	return h;
}

static bool
same(const Node *a, const Node *b)
{
	return a->op == b->op && type_equal(&a->type, &b->type) &&
	       memcmp(a->in, b->in, sizeof a->in) == 0 &&
	       attrs_equal(a->op, &a->attr, &b->attr);
}

void
cse(Graph *g)
{
	size_t size = 64, at;
	Node **seen;
	uint32_t i;

	while (size < 2 * (size_t)g->count)
		size *= 2;
	seen = arena_array(g->arena, size, sizeof(Node *));
	graph_reset(g);
	for (i = 0; i < g->count; i++) {
		Node *n = g->nodes[i];

		node_redirect(n);
		if (ops[n->op].kind == KIND_LEAF ||
		    (ops[n->op].flags & EFFECT) != 0)
			continue;
		at = hash(n) & (size - 1);
		while (seen[at] != NULL && !same(seen[at], n))
			at = (at + 1) & (size - 1);
		if (seen[at] == NULL)
			seen[at] = n;
		n->to = seen[at];
	}
	if (g->result != NULL)
		g->result = g->result->to;
}
