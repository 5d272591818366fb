/* The evaluator: memory of values and state, and the walk over the graph.
 * eval_ops.c and eval_seq.c hold the ops. */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../numerics/angle.h"
#include "eval_impl.h"

static void
out_of_memory(void)
{
	fputs("ingot: out of memory\n", stderr);
	exit(70);
}

void *
eval_alloc(uint64_t count, uint64_t size)
{
	void *p = NULL;

	if (count < SIZE_MAX && size < SIZE_MAX)
		p = calloc(
		    count > 0 ? (size_t)count : 1, size > 0 ? (size_t)size : 1);
	if (p == NULL)
		out_of_memory();
	return p;
}

uint64_t
eval_rows(const Eval *e, const Type *t)
{
	if (t->dim[0] == DIM_T)
		return e->step->n_tokens;
	if (t->dim[0] == DIM_R)
		return e->step->n_rows;
	return (uint64_t)t->dim[0];
}

const void *
eval_in(const Eval *e, const Node *n, int i)
{
	return e->value[n->in[i]->id];
}

static bool
is_state(const Node *n)
{
	return n->type.dim[0] == DIM_B || n->type.dim[0] == DIM_C;
}

/* ---- state ---- */

/* Bytes of one slot; of one key where the first axis is C. */
static uint64_t
state_bytes(const Type *t)
{
	return dtype_bytes(t->dtype, type_row(t));
}

static size_t
state_at(const Eval *e, const Node *s, uint32_t slot)
{
	assert(s->op == OP_STATE && slot < e->o.max_seqs);
	return (size_t)s->id * e->o.max_seqs + slot;
}

float *
eval_recurrent(Eval *e, const Node *s, uint32_t slot)
{
	size_t at = state_at(e, s, slot);

	if (e->state[at] == NULL)
		e->state[at] = eval_alloc(1, state_bytes(&s->type));
	return e->state[at];
}

/* Memory doubles, so that a long context costs only what it holds. */
void *
eval_keys(Eval *e, const Node *s, uint32_t slot, uint32_t count)
{
	size_t at = state_at(e, s, slot);
	uint64_t bytes = state_bytes(&s->type);
	uint64_t have = e->keys[at], want = have > 128 ? have : 128;
	void *more;

	assert(count <= e->o.ctx);
	if (count <= have)
		return e->state[at];
	while (want < count)
		want *= 2;
	if (want > e->o.ctx)
		want = e->o.ctx;
	more = eval_alloc(want, bytes);
	if (have > 0)
		memcpy(more, e->state[at], (size_t)(have * bytes));
	free(e->state[at]);
	e->state[at] = more;
	e->keys[at] = (uint32_t)want;
	return more;
}

static void
state_drop(Eval *e, size_t at)
{
	free(e->state[at]);
	e->state[at] = NULL;
	e->keys[at] = 0;
}

void
eval_clear(Eval *e, uint32_t slot)
{
	uint32_t i;

	for (i = 0; i < e->graph->count; i++)
		if (e->graph->nodes[i]->op == OP_STATE)
			state_drop(e, state_at(e, e->graph->nodes[i], slot));
}

static void
copy_state(Eval *e, const Node *s, uint32_t from, uint32_t to, uint32_t length)
{
	const void *source = e->state[state_at(e, s, from)];
	uint64_t bytes = state_bytes(&s->type);
	uint32_t keys = e->keys[state_at(e, s, from)];

	state_drop(e, state_at(e, s, to));
	if (source == NULL)
		return;
	if (s->type.dim[0] == DIM_B)
		memcpy(eval_recurrent(e, s, to), source, (size_t)bytes);
	else if (length > 0 && keys > 0)
		memcpy(eval_keys(e, s, to, length), source,
		    (size_t)((length < keys ? length : keys) * bytes));
}

void
eval_copy(Eval *e, uint32_t from, uint32_t to, uint32_t length)
{
	uint32_t i;

	for (i = 0; i < e->graph->count && from != to; i++)
		if (e->graph->nodes[i]->op == OP_STATE)
			copy_state(e, e->graph->nodes[i], from, to, length);
}

/* ---- rope tables ---- */

static EvalRope *
find_rope(Eval *e, const Attrs *a)
{
	uint32_t i = 0;

	while (i < e->n_ropes &&
	       (e->ropes[i].theta != a->theta || e->ropes[i].rot != a->rot))
		i++;
	assert(i < e->n_ropes);
	return &e->ropes[i];
}

const float *
eval_angles(Eval *e, const Attrs *a, uint32_t position)
{
	EvalRope *r = find_rope(e, a);

	assert(position < e->o.ctx);
	if (position >= r->ctx) {
		uint64_t ctx = 256;

		while (ctx <= position)
			ctx *= 2;
		r->ctx = ctx < e->o.ctx ? (uint32_t)ctx : e->o.ctx;
		free(r->table);
		r->table = eval_alloc((uint64_t)r->ctx * r->rot, sizeof(float));
		rope_table(r->table, r->ctx, r->rot, r->theta);
	}
	return r->table + (size_t)position * r->rot;
}

static void
add_rope(Eval *e, const Attrs *a)
{
	uint32_t i;

	for (i = 0; i < e->n_ropes; i++)
		if (e->ropes[i].theta == a->theta && e->ropes[i].rot == a->rot)
			return;
	e->ropes[e->n_ropes++] = (EvalRope){a->theta, a->rot, 0, NULL};
}

/* ---- life ---- */

static void
prepare(Eval *e, const Node *n)
{
	int i;

	e->last[n->id] = n->id;
	for (i = 0; i < ops[n->op].inputs; i++)
		e->last[n->in[i]->id] = n->id;
	if (n->op == OP_ROPE)
		add_rope(e, &n->attr);
	if (n->op != OP_WEIGHT)
		return;
	/* Only read: weights are never written or freed here. */
	e->value[n->id] = (void *)(uintptr_t)e->o.weight(
	    e->o.user, graph_weight(e->graph, n->name));
	assert(e->value[n->id] != NULL);
}

Eval *
eval_new(const Graph *g, const EvalOptions *o)
{
	Eval *e = eval_alloc(1, sizeof *e);
	uint64_t slots = (uint64_t)g->count * o->max_seqs;
	uint32_t i;

	e->graph = g;
	e->o = *o;
	e->value = eval_alloc(g->count, sizeof *e->value);
	e->last = eval_alloc(g->count, sizeof *e->last);
	e->state = eval_alloc(slots, sizeof *e->state);
	e->keys = eval_alloc(slots, sizeof *e->keys);
	e->ropes = eval_alloc(g->count, sizeof *e->ropes);
	for (i = 0; i < g->count; i++)
		prepare(e, g->nodes[i]);
	return e;
}

void
eval_free(Eval *e)
{
	uint32_t i;

	if (e == NULL)
		return;
	for (i = 0; i < e->o.max_seqs; i++)
		eval_clear(e, i);
	for (i = 0; i < e->n_ropes; i++)
		free(e->ropes[i].table);
	free(e->ropes);
	free(e->keys);
	free(e->state);
	free(e->last);
	free(e->value);
	free(e);
}

/* ---- a step ---- */

static void
make_room(Eval *e, const Node *n)
{
	uint64_t count;

	if (n->op == OP_WEIGHT || is_state(n))
		return;
	count = eval_rows(e, &n->type) * type_row(&n->type);
	e->value[n->id] = eval_alloc(1, dtype_bytes(n->type.dtype, count));
}

static void
drop(Eval *e, const Node *n)
{
	if (n->op == OP_WEIGHT)
		return;
	free(e->value[n->id]);
	e->value[n->id] = NULL;
}

static void
drop_read(Eval *e, const Node *n)
{
	int i;

	for (i = 0; i < ops[n->op].inputs; i++)
		if (e->last[n->in[i]->id] == n->id)
			drop(e, n->in[i]);
	if (e->last[n->id] == n->id)
		drop(e, n);
}

static void
watch(Eval *e, const Node *n)
{
	uint64_t rows = eval_rows(e, &n->type);

	if (e->o.watch == NULL || is_state(n))
		return;
	if (n->type.dim[0] > 0)
		rows *= type_row(&n->type);
	e->o.watch(e->o.user, n, e->value[n->id], rows);
}

static bool
keep_logits(Eval *e, const Node *n)
{
	uint64_t i, count = eval_rows(e, &n->type) * type_row(&n->type);

	memcpy(e->logits, e->value[n->id], (size_t)count * sizeof(float));
	for (i = 0; i < count; i++)
		if (!isfinite(e->logits[i]))
			return false;
	return true;
}

static void
check_step(const Eval *e, const EvalStep *s)
{
	uint32_t i, row = 0;

	for (i = 0; i < s->n_seqs; i++) {
		assert(s->seqs[i].first == row && s->seqs[i].count > 0);
		assert(s->seqs[i].slot < e->o.max_seqs);
		assert(
		    (uint64_t)s->seqs[i].start + s->seqs[i].count <= e->o.ctx);
		row += s->seqs[i].count;
	}
	assert(row == s->n_tokens);
	(void)e;
}

/* A sequence that begins finds fresh state, whatever was in its slot. */
static void
begin(Eval *e, const EvalStep *s, float *logits)
{
	uint32_t i;

	check_step(e, s);
	e->step = s;
	e->logits = logits;
	for (i = 0; i < s->n_seqs; i++)
		if (s->seqs[i].start == 0)
			eval_clear(e, s->seqs[i].slot);
}

const Node *
eval_step(Eval *e, const EvalStep *s, float *logits)
{
	static bool (*const rules[OP_COUNT])(Eval *, const Node *) = {
#define OP(NAME, name, inputs, KIND, flags) [OP_##NAME] = eval_##NAME,
#include "ops.def"
#undef OP
	};
	const Graph *g = e->graph;
	const Node *bad = NULL;
	uint32_t i;

	begin(e, s, logits);
	for (i = 0; i < g->count && bad == NULL; i++) {
		const Node *n = g->nodes[i];

		make_room(e, n);
		if (!rules[n->op](e, n))
			bad = n;
		watch(e, n);
		if (n == g->result && !keep_logits(e, n) && bad == NULL)
			bad = n;
		drop_read(e, n);
	}
	for (i = 0; i < g->count; i++)
		drop(e, g->nodes[i]);
	e->step = NULL;
	return bad;
}
