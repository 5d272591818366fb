#include "verify.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A state, and what the graph does with it. */
typedef struct Cache {
	const Node *append; /* NULL: it is not the cache of an attention */
	bool keys;
	uint32_t launch; /* the first that has it */
	Difference d;
} Cache;

/* The oracle's value of a node in this step. */
typedef struct Kept {
	bool kept;
	void *at; /* from malloc */
	uint64_t bytes;
	uint64_t count; /* elements */
} Kept;

struct Verify {
	const Plan *plan;
	const PlanTarget *target;
	Arena *arena;
	const Graph *graph;
	Kept *values;        /* by node */
	Difference *buffers; /* by buffer of the target */
	Difference logits;
	Cache *caches; /* by state of the plan */
	NodeWatch nodes;
	LaunchWatch launches;
};

/* ---- what the plan says, against its graph ---- */

static const PlanBuffer *
buffer_at(const Verify *v, uint32_t i)
{
	return &v->plan->buffers[v->target->first_buffer + i];
}

static const PlanLaunch *
launch_at(const Verify *v, uint32_t i)
{
	return &v->plan->launches[v->target->first_launch + i];
}

static bool
fits(const Verify *v, const PlanBuffer *b)
{
	const Type *t;

	if (b->node >= v->graph->count)
		return false;
	t = &v->graph->nodes[b->node]->type;
	return t->dim[0] == (b->sym == SYM_T ? DIM_T : DIM_R) &&
	       dtypes[t->dtype].kind != DK_QUANT &&
	       dtype_bytes(t->dtype, type_row(t)) <= b->row_bytes;
}

static ingot_status
keep_buffers(Verify *v, Error *err)
{
	uint32_t i;

	for (i = 0; i < v->target->n_buffers; i++) {
		const PlanBuffer *b = buffer_at(v, i);

		if (!fits(v, b))
			return fail(err, INGOT_BAD_FILE,
			    "buffer %u of the plan is not the value of its "
			    "graph's node %u",
			    i, b->node);
		v->values[b->node].kept = true;
	}
	v->values[v->graph->result->id].kept = true;
	return INGOT_OK;
}

/* The state of the plan that n appends to, or NULL. */
static Cache *
cache_of(Verify *v, const Node *n)
{
	const Type *t = &n->type;
	uint64_t i, bytes = dtype_bytes(t->dtype, type_row(t)) * KV_PAGE;

	for (i = 0; i < v->plan->n_states; i++) {
		const PlanState *s = &v->plan->states[i];

		if (s->kind == STATE_PAGED && s->bytes == bytes &&
		    strcmp(plan_string(v->plan, s->name), n->in[0]->name) == 0)
			return &v->caches[i];
	}
	return NULL;
}

static void
keep_appended(Verify *v, const Node *n, bool keys)
{
	Cache *c = n->op == OP_APPEND ? cache_of(v, n) : NULL;

	if (!c)
		return;
	c->append = n;
	c->keys = keys;
	v->values[n->in[1]->id].kept = true;
}

static void
find_caches(Verify *v)
{
	const PlanArg *args = v->plan->args;
	uint32_t i, k;

	for (i = 0; i < v->graph->count; i++) {
		const Node *n = v->graph->nodes[i];

		if (n->op != OP_ATTENTION)
			continue;
		keep_appended(v, n->in[1], true);
		keep_appended(v, n->in[2], false);
	}
	for (i = v->target->n_launches; i-- > 0;) {
		const PlanLaunch *l = launch_at(v, i);

		for (k = l->first_arg; k < l->first_arg + l->n_args; k++)
			if (args[k].kind == ARG_STATE)
				v->caches[args[k].index].launch = i;
	}
}

/* ---- comparing ---- */

static void
keep_value(void *user, const Node *n, const void *value, uint64_t rows)
{
	Verify *v = user;
	Kept *to = &v->values[n->id];

	if (!to->kept)
		return;
	to->count = n->type.dim[0] < 0 ? rows * type_row(&n->type) : rows;
	to->bytes = dtype_bytes(n->type.dtype, to->count);
	free(to->at);
	to->at = malloc((size_t)to->bytes + 1);
	if (to->at)
		memcpy(to->at, value, (size_t)to->bytes);
}

static void
compare_value(Verify *v, const Node *n, void *got, Difference *d)
{
	const Kept *want = &v->values[n->id];
	uint64_t wrong = d->wrong;

	if (!want->at)
		return;
	difference_add(d, n->type.dtype, got, want->at, want->count);
	if (d->wrong > wrong)
		memcpy(got, want->at, (size_t)want->bytes);
}

/* Where element i of head h at position pos lies in a page: keys 8 to a
 * vector, [h][KV_PAGE/8][d][8]; values [h][KV_PAGE][d]. */
static uint64_t
place(const Cache *c, uint64_t h, uint32_t pos, uint64_t i, uint64_t d)
{
	uint64_t at = h * KV_PAGE + pos % KV_PAGE;

	return c->keys ? (at / 8 * d + i) * 8 + at % 8 : at * d + i;
}

/* One position in a page of the device. */
static void
compare_position(Cache *c, char *page, uint32_t pos, const char *want)
{
	const Type *t = &c->append->type;
	uint64_t head = (uint64_t)t->dim[2], n = type_row(t), i;
	uint32_t bytes = dtypes[t->dtype].bytes;

	for (i = 0; i < n; i++, want += bytes) {
		char *got =
		    page + place(c, i / head, pos, i % head, head) * bytes;

		difference_add(&c->d, t->dtype, got, want, 1);
		memcpy(got, want, bytes);
	}
}

static void
compare_cache(Verify *v, uint32_t state, char *pages, const uint32_t *blocks,
    const StepArgs *s, const StepDesc *d)
{
	Cache *c = &v->caches[state];
	const char *want = v->values[c->append->in[1]->id].at;
	uint64_t page = v->plan->states[state].bytes, row = page / KV_PAGE;
	uint32_t i, k;

	if (!want)
		return;
	for (i = 0; i < d->n_seqs; i++) {
		const StepSeq *q = &d->seqs[i];
		const uint32_t *of = blocks + (uint64_t)q->slot * s->pages;

		for (k = 0; k < q->count; k++) {
			uint32_t pos = q->start + k;

			compare_position(c, pages + of[pos / KV_PAGE] * page,
			    pos, want + (q->first + k) * row);
		}
	}
}

/* The pages of each slot, where the launch has them. */
static const uint32_t *
blocks_of(const Verify *v, const PlanLaunch *l, void *const *arg)
{
	const PlanArg *a = v->plan->args + l->first_arg;
	uint32_t i;

	for (i = 0; i < l->n_args; i++)
		if (a[i].kind == ARG_INPUT && a[i].index == IN_BLOCKS)
			return arg[i];
	return NULL;
}

static void
compare_launch(void *user, uint32_t launch, void *const *arg, const StepArgs *s,
    const StepDesc *d)
{
	Verify *v = user;
	const PlanLaunch *l = launch_at(v, launch);
	const uint32_t *blocks = blocks_of(v, l, arg);
	uint32_t i;

	for (i = 0; i < l->n_args; i++) {
		const PlanArg *a = &v->plan->args[l->first_arg + i];
		const PlanBuffer *b;

		if (a->kind == ARG_LOGITS)
			compare_value(v, v->graph->result, arg[i], &v->logits);
		if (a->kind == ARG_STATE && v->caches[a->index].append &&
		    v->caches[a->index].launch == launch && blocks)
			compare_cache(v, a->index, arg[i], blocks, s, d);
		if (a->kind != ARG_BUFFER)
			continue;
		b = buffer_at(v, a->index);
		if (b->first_launch == launch)
			compare_value(v, v->graph->nodes[b->node], arg[i],
			    &v->buffers[a->index]);
	}
}

/* ---- judging ---- */

/* Whether the order of l's sums is free: attention and float weights of a plan
 * compiled with fast. */
static bool
is_free(const Verify *v, const PlanLaunch *l)
{
	const Plan *p = v->plan;
	const PlanKernel *k = &p->kernels[v->target->first_kernel + l->kernel];
	const char *family = plan_string(p, k->family);
	uint32_t i;

	if (strcmp(plan_string(p, p->meta->numerics), "fast") != 0)
		return false;
	for (i = l->first_arg; i < l->first_arg + l->n_args; i++)
		if (p->args[i].kind == ARG_WEIGHT &&
		    dtypes[p->weights[p->args[i].index].dtype].kind == DK_QUANT)
			return false;
	return strcmp(family, "attention") == 0 ||
	       strcmp(family, "matmul") == 0 || strcmp(family, "experts") == 0;
}

/* What launch made as argument a, and the node it is the value of; NULL where
 * it made nothing or nothing was compared. */
static const Difference *
part(const Verify *v, uint32_t launch, const PlanArg *a, const Node **node)
{
	const Difference *d = NULL;
	const Cache *c;

	if (a->kind == ARG_LOGITS) {
		*node = v->graph->result;
		d = &v->logits;
	} else if (a->kind == ARG_BUFFER &&
		   buffer_at(v, a->index)->first_launch == launch) {
		*node = v->graph->nodes[buffer_at(v, a->index)->node];
		d = &v->buffers[a->index];
	} else if (a->kind == ARG_STATE) {
		c = &v->caches[a->index];
		*node = c->append ? c->append->in[1] : NULL;
		d = c->launch == launch ? &c->d : NULL;
	}
	return d && d->count > 0 ? d : NULL;
}

/* Whether a is worse than b, which may be NULL. */
static bool
is_worse(const Difference *a, const Difference *b)
{
	double x, y;

	if (!b)
		return true;
	x = difference_nmse(a);
	y = difference_nmse(b);
	return x > y || (x == y && a->wrong > b->wrong);
}

Judgement
verify_judge(const Verify *v, uint32_t launch)
{
	const PlanLaunch *l = launch_at(v, launch);
	Judgement j = {VERDICT_STATE, NULL, NULL};
	uint64_t wrong = 0;
	uint32_t i;

	for (i = l->first_arg; i < l->first_arg + l->n_args; i++) {
		const Node *node = NULL;
		const Difference *d = part(v, launch, &v->plan->args[i], &node);

		if (!d)
			continue;
		wrong += d->wrong;
		if (is_worse(d, j.worst)) {
			j.worst = d;
			j.node = node;
		}
	}
	if (j.worst)
		j.verdict =
		    wrong == 0 ? VERDICT_EQUAL
		    : is_free(v, l) && difference_nmse(j.worst) <= FAST_NMSE
			? VERDICT_WITHIN
			: VERDICT_DIFFERS;
	return j;
}

/* ---- life ---- */

static ingot_status
fill(Verify *v, Error *err)
{
	ingot_status status = oracle_graph(v->arena, v->plan, &v->graph, err);

	if (status)
		return status;
	v->values = calloc(v->graph->count, sizeof *v->values);
	v->buffers =
	    calloc((size_t)v->target->n_buffers + 1, sizeof *v->buffers);
	v->caches = calloc((size_t)v->plan->n_states + 1, sizeof *v->caches);
	if (!v->values || !v->buffers || !v->caches)
		return fail(err, INGOT_NO_MEMORY, "no memory to verify with");
	status = keep_buffers(v, err);
	if (!status)
		find_caches(v);
	return status;
}

ingot_status
verify_new(const Plan *plan, uint32_t target, Verify **out, Error *err)
{
	Verify *v = calloc(1, sizeof *v);
	ingot_status status;

	*out = NULL;
	if (!v)
		return fail(err, INGOT_NO_MEMORY, "no memory to verify with");
	v->plan = plan;
	v->target = &plan->targets[target];
	v->arena = arena_new();
	v->nodes = (NodeWatch){keep_value, v};
	v->launches = (LaunchWatch){compare_launch, v};
	status = fill(v, err);
	if (status)
		verify_free(v);
	else
		*out = v;
	return status;
}

void
verify_free(Verify *v)
{
	uint32_t i;

	if (!v)
		return;
	for (i = 0; v->values && i < v->graph->count; i++)
		free(v->values[i].at);
	free(v->values);
	free(v->buffers);
	free(v->caches);
	arena_free(v->arena);
	free(v);
}

NodeWatch *
verify_oracle_watch(Verify *v)
{
	return &v->nodes;
}

const LaunchWatch *
verify_launch_watch(Verify *v)
{
	return &v->launches;
}
