#include "oracle.h"

#include <stdlib.h>
#include <string.h>

#include "../ir/eval.h"

typedef struct Oracle {
	Backend base;
	const Plan *plan;
	const Weights *weights;
	const OracleWatch *labels; /* or NULL */
	const NodeWatch *nodes;    /* or NULL */
	float *logits;
	Arena *arena;
	Eval *eval;
	EvalSeq *seqs; /* [max_seqs] */
} Oracle;

_Static_assert(sizeof(EvalSeq) == sizeof(StepSeq), "the same fields");

/* The plan's weight called name, or NULL. */
static const void *
find_weight(const Oracle *o, const char *name, uint64_t *bytes)
{
	uint64_t i;

	for (i = 0; i < o->plan->n_weights; i++)
		if (strcmp(plan_string(o->plan, o->plan->weights[i].name),
			name) == 0) {
			*bytes = o->weights->bytes[i];
			return o->weights->data[i];
		}
	return NULL;
}

static const void *
weight_data(void *user, const Weight *w)
{
	uint64_t bytes;

	return find_weight(user, w->name, &bytes);
}

static void
watch_label(void *user, const Node *n, const void *value, uint64_t rows)
{
	const Oracle *o = user;

	if (n->name != NULL && ops[n->op].kind != KIND_LEAF &&
	    n->type.dtype == DT_F32 && n->type.dim[0] < 0)
		o->labels->call(
		    o->labels->user, n->name, value, rows, type_row(&n->type));
}

static void
watch_node(void *user, const Node *n, const void *value, uint64_t rows)
{
	const Oracle *o = user;

	o->nodes->call(o->nodes->user, n, value, rows);
}

static ingot_status
oracle_step(Backend *b, const StepDesc *d, Error *err)
{
	Oracle *o = (Oracle *)b;
	EvalStep step = {
	    d->n_tokens, d->tokens, d->n_seqs, o->seqs, d->n_rows, d->rows};
	const Node *bad;
	uint32_t i;

	for (i = 0; i < d->n_seqs; i++)
		o->seqs[i] = (EvalSeq){d->seqs[i].slot, d->seqs[i].first,
		    d->seqs[i].count, d->seqs[i].start};
	bad = eval_step(o->eval, &step, o->logits);
	if (bad == NULL)
		return INGOT_OK;
	return fail(err, INGOT_NOT_FINITE,
	    "%s (%s:%u) met a value that is not finite", ops[bad->op].name,
	    bad->file ? bad->file : "graph", bad->file ? bad->line : bad->id);
}

static void
oracle_copy_slot(Backend *b, uint32_t from, uint32_t to, uint32_t length)
{
	eval_copy(((Oracle *)b)->eval, from, to, length);
}

static void
oracle_clear_slot(Backend *b, uint32_t slot)
{
	eval_clear(((Oracle *)b)->eval, slot);
}

/* Keys lie with their slot. */
static void
oracle_copy_page(Backend *b, uint32_t from, uint32_t to)
{
	(void)b;
	(void)from;
	(void)to;
}

static void
oracle_close(Backend *b)
{
	Oracle *o = (Oracle *)b;

	eval_free(o->eval);
	if (o->arena)
		arena_free(o->arena);
	free(o->seqs);
	free(o);
}

/* What verify cannot know: that graph and plan are about the same model. */
static ingot_status
check_graph(const Oracle *o, const Graph *g, Error *err)
{
	uint32_t i;
	uint64_t bytes;

	for (i = 0; i < g->n_weights; i++) {
		const Weight *w = &g->weights[i];
		uint64_t want =
		    dtype_bytes(w->type.dtype, type_count(&w->type));

		if (!find_weight(o, w->name, &bytes) || bytes != want)
			return fail(err, INGOT_BAD_FILE,
			    "weight %s of the plan's graph is not the one of "
			    "its tables",
			    w->name);
	}
	if (g->vocab != o->plan->meta->vocab)
		return fail(err, INGOT_BAD_FILE,
		    "the plan's graph has a vocabulary of %u, its tables of %u",
		    g->vocab, o->plan->meta->vocab);
	return INGOT_OK;
}

ingot_status
oracle_graph(Arena *a, const Plan *plan, const Graph **out, Error *err)
{
	char why[512];
	const char *fault;
	Graph *g = graph_parse(a, plan->graph, (size_t)plan->n_graph, why);

	if (!g)
		return fail(err, INGOT_BAD_FILE, "the plan's graph: %s", why);
	fault = verify(g);
	if (fault)
		return fail(err, INGOT_BAD_FILE, "the plan's graph: %s", fault);
	legalise(g);
	*out = g;
	return INGOT_OK;
}

static const BackendOps oracle_ops = {oracle_step, oracle_copy_slot,
    oracle_clear_slot, oracle_copy_page, oracle_close};

/* Everything but what is watched. */
static Oracle *
oracle_new(const Plan *plan, const Weights *w, const BackendLimits *limits)
{
	Oracle *o = calloc(1, sizeof *o);
	EvalSeq *seqs = calloc(limits->max_seqs, sizeof *seqs);

	if (!o || !seqs) {
		free(o);
		free(seqs);
		return NULL;
	}
	o->base.ops = &oracle_ops;
	o->plan = plan;
	o->weights = w;
	o->logits = limits->logits;
	o->arena = arena_new();
	o->seqs = seqs;
	return o;
}

static ingot_status
start(Oracle *o, const BackendLimits *limits, Backend **out, Error *err)
{
	EvalOptions options = {
	    limits->ctx, limits->max_seqs, weight_data, NULL, o};
	const Graph *g;
	ingot_status status = oracle_graph(o->arena, o->plan, &g, err);

	if (!status)
		status = check_graph(o, g, err);
	if (status) {
		oracle_close(&o->base);
		return status;
	}
	if (o->labels)
		options.watch = watch_label;
	if (o->nodes)
		options.watch = watch_node;
	o->eval = eval_new(g, &options);
	*out = &o->base;
	return INGOT_OK;
}

static ingot_status
open_labels(void *user, const Plan *plan, const Weights *w,
    const BackendLimits *limits, Backend **out, Error *err)
{
	Oracle *o = oracle_new(plan, w, limits);

	if (!o)
		return fail(err, INGOT_NO_MEMORY, "no memory for the oracle");
	o->labels = user;
	return start(o, limits, out, err);
}

static ingot_status
open_nodes(void *user, const Plan *plan, const Weights *w,
    const BackendLimits *limits, Backend **out, Error *err)
{
	Oracle *o = oracle_new(plan, w, limits);

	if (!o)
		return fail(err, INGOT_NO_MEMORY, "no memory for the oracle");
	o->nodes = user;
	return start(o, limits, out, err);
}

BackendFactory
oracle_factory(OracleWatch *watch)
{
	return (BackendFactory){open_labels, watch, "oracle"};
}

BackendFactory
oracle_factory_nodes(NodeWatch *watch)
{
	return (BackendFactory){open_nodes, watch, "oracle"};
}
