/* Memory plan: every value that leaves its region gets an offset in the arena
 * of its symbol; values whose lifetimes meet do not share bytes. Sizes count
 * bytes for one row, so one plan serves every chunk length. */
#include "lower.h"

static uint64_t
align64(uint64_t n)
{
	return (n + 63) & ~(uint64_t)63;
}

static bool
needs_buffer(const Lowered *l, const Node *n)
{
	return l->region_of[n->id] != NO_REGION && n->op != OP_APPEND &&
	       n != l->graph->result;
}

/* The region after which n is read no more; its own when nothing outside
 * reads it. */
static uint32_t *
find_last(const Lowered *l)
{
	const Graph *g = l->graph;
	uint32_t *last = arena_array(g->arena, g->count, sizeof *last);

	for (uint32_t i = 0; i < g->count; i++)
		last[i] = l->region_of[i];
	for (uint32_t i = 0; i < g->count; i++) {
		Node *n = g->nodes[i];

		if (l->region_of[i] == NO_REGION)
			continue;
		for (int k = 0; k < ops[n->op].inputs; k++) {
			uint32_t p = root_of(n->in[k])->id;

			if (last[p] != NO_REGION && last[p] < l->region_of[i])
				last[p] = l->region_of[i];
		}
	}
	return last;
}

static bool
meet(const Buffer *a, const Buffer *b)
{
	return a->sym == b->sym && a->first <= b->last && b->first <= a->last;
}

/* The lowest offset at which b overlaps none of the n buffers before it. */
static uint64_t
first_fit(const Buffer *all, uint32_t n, const Buffer *b)
{
	uint64_t at = 0;

	for (bool moved = true; moved;) {
		moved = false;
		for (uint32_t i = 0; i < n; i++) {
			uint64_t end = all[i].offset + all[i].row_bytes;

			if (meet(&all[i], b) && at < end &&
			    all[i].offset < at + b->row_bytes) {
				at = end;
				moved = true;
			}
		}
	}
	return at;
}

void
plan_memory(Lowered *l)
{
	Graph *g = l->graph;
	uint32_t *last = find_last(l);

	l->buffers = arena_array(g->arena, g->count, sizeof *l->buffers);
	l->buffer_of = arena_array(g->arena, g->count, sizeof *l->buffer_of);
	for (uint32_t i = 0; i < g->count; i++) {
		Node *n = g->nodes[i];
		Buffer *b = &l->buffers[l->n_buffers];

		l->buffer_of[i] = NO_BUFFER;
		if (!needs_buffer(l, n) || last[i] == l->region_of[i])
			continue;
		b->node = n;
		b->sym = n->type.dim[0];
		b->row_bytes = align64(row_bytes(n));
		b->first = l->region_of[i];
		b->last = last[i];
		b->offset = first_fit(l->buffers, l->n_buffers, b);
		l->buffer_of[i] = l->n_buffers++;
	}
}

const char *
check_memory(const Lowered *l)
{
	for (uint32_t i = 0; i < l->n_buffers; i++)
		for (uint32_t j = 0; j < i; j++) {
			const Buffer *a = &l->buffers[i], *b = &l->buffers[j];

			if (meet(a, b) &&
			    a->offset < b->offset + b->row_bytes &&
			    b->offset < a->offset + a->row_bytes)
				return arena_printf(l->graph->arena,
				    "%%%u and %%%u overlap in memory",
				    a->node->id, b->node->id);
		}
	return NULL;
}
