/* The plan executor: a target's launches, in order, on the CPU. All memory is
 * made and all argument pointers are found when it is opened; a step only
 * fills in its inputs and runs. */
#include <stdlib.h>
#include <string.h>

#include "../numerics/angle.h"
#include "device.h"
#include "footprint.h"
#include "memory.h"
#include "quote.h"

typedef struct Exec {
	Backend base;
	const Plan *plan;
	const PlanTarget *target;
	CpuDevice *device;
	const LaunchWatch *watch; /* or NULL */
	BackendLimits limits;
	Memory arena[SYM_COUNT]; /* SYM_T and SYM_R are used */
	Memory *states;          /* [n_states] */
	Memory *tables;          /* [n_tables] */
	Memory input[IN_COUNT];  /* IN_BLOCKS is the session's */
	void **args;             /* of all launches, one behind the other */
} Exec;

static ingot_status
no_room(Error *err, const char *what, uint64_t bytes)
{
	return fail(err, INGOT_NO_MEMORY,
	    "no memory for %s (%llu bytes): lower ctx or max_seqs", what,
	    (unsigned long long)bytes);
}

static ingot_status
reserve(Memory *m, uint64_t bytes, const char *what, Error *err)
{
	return bytes != UINT64_MAX && memory_open(m, bytes)
		   ? INGOT_OK
		   : no_room(err, what, bytes);
}

/* Most rows that sym can stand for. */
static uint32_t
most(const Exec *e, uint32_t sym)
{
	return sym == SYM_R ? e->limits.max_rows : e->limits.max_tokens;
}

static ingot_status
open_arena(Exec *e, uint32_t sym, Error *err)
{
	return reserve(&e->arena[sym],
	    arena_bytes(e->plan, e->target, sym, &e->limits), "activations",
	    err);
}

static ingot_status
open_states(Exec *e, Error *err)
{
	const Plan *p = e->plan;
	ingot_status status = INGOT_OK;

	e->states = calloc((size_t)p->n_states + 1, sizeof *e->states);
	if (!e->states)
		return no_room(err, "the states", p->n_states);
	for (uint64_t i = 0; i < p->n_states && !status; i++) {
		const PlanState *s = &p->states[i];

		status = reserve(&e->states[i], state_bytes(s, &e->limits),
		    s->kind == STATE_PAGED ? "the cache" : "the states", err);
	}
	return status;
}

static ingot_status
open_tables(Exec *e, Error *err)
{
	const Plan *p = e->plan;
	ingot_status status;

	e->tables = calloc((size_t)p->n_tables + 1, sizeof *e->tables);
	if (!e->tables)
		return no_room(err, "the tables", p->n_tables);
	for (uint64_t i = 0; i < p->n_tables; i++) {
		const PlanTable *t = &p->tables[i];

		status = reserve(
		    &e->tables[i], table_bytes(t, &e->limits), "a table", err);
		if (status)
			return status;
		rope_table((float *)(void *)e->tables[i].data, e->limits.ctx,
		    t->rot, t->theta);
	}
	return INGOT_OK;
}

static ingot_status
open_inputs(Exec *e, Error *err)
{
	ingot_status status = INGOT_OK;

	for (int i = 0; i < IN_COUNT && !status; i++)
		status = reserve(&e->input[i], input_bytes(i, &e->limits),
		    "the inputs", err);
	return status;
}

static void *
resolve(const Exec *e, const Weights *w, const PlanArg *a)
{
	const PlanBuffer *b;

	switch (a->kind) {
	case ARG_BUFFER:
		b = &e->plan->buffers[e->target->first_buffer + a->index];
		return e->arena[b->sym].data + b->offset * most(e, b->sym);
	case ARG_WEIGHT:
		return w->data[a->index];
	case ARG_STATE:
		return e->states[a->index].data;
	case ARG_TABLE:
		return e->tables[a->index].data;
	case ARG_INPUT:
		if (a->index == IN_BLOCKS)
			return (void *)e->limits.blocks;
		return e->input[a->index].data;
	default:
		return e->limits.logits;
	}
}

static ingot_status
resolve_args(Exec *e, const Weights *w, Error *err)
{
	const PlanLaunch *l = e->plan->launches + e->target->first_launch;
	size_t n = 0;

	for (uint32_t i = 0; i < e->target->n_launches; i++)
		n += l[i].n_args;
	e->args = calloc(n + 1, sizeof *e->args);
	if (!e->args)
		return no_room(err, "the arguments", n);
	n = 0;
	for (uint32_t i = 0; i < e->target->n_launches; i++)
		for (uint32_t k = 0; k < l[i].n_args; k++)
			e->args[n++] =
			    resolve(e, w, &e->plan->args[l[i].first_arg + k]);
	return INGOT_OK;
}

static uint32_t *
input(Exec *e, int which)
{
	return (uint32_t *)(void *)e->input[which].data;
}

static void
set_inputs(Exec *e, const StepDesc *d)
{
	uint32_t *positions = input(e, IN_POSITIONS);
	uint32_t *slots = input(e, IN_ROW_SLOT);

	memcpy(input(e, IN_TOKENS), d->tokens, d->n_tokens * sizeof(uint32_t));
	memcpy(input(e, IN_SEQS), d->seqs, d->n_seqs * sizeof *d->seqs);
	if (d->n_rows > 0)
		memcpy(
		    input(e, IN_ROWS), d->rows, d->n_rows * sizeof(uint32_t));
	for (uint32_t i = 0; i < d->n_seqs; i++) {
		const StepSeq *s = &d->seqs[i];

		for (uint32_t k = 0; k < s->count; k++) {
			positions[s->first + k] = s->start + k;
			slots[s->first + k] = s->slot;
		}
	}
}

static ingot_status
not_finite(const Exec *e, const PlanLaunch *l, Error *err)
{
	const char *name =
	    plan_string(e->plan, e->plan->regions[l->region].name);
	Quote q;

	return fail(err, INGOT_NOT_FINITE,
	    "region %s computed a value that is not finite",
	    quote(&q, name, strlen(name)));
}

static ingot_status
exec_step(Backend *b, const StepDesc *d, Error *err)
{
	Exec *e = (Exec *)b;
	const PlanLaunch *l = e->plan->launches + e->target->first_launch;
	void *const *arg = e->args;
	uint32_t fault = 0;
	StepArgs s = {
	    d->n_tokens, d->n_rows, d->n_seqs, e->limits.seq_pages, &fault};

	set_inputs(e, d);
	for (uint32_t i = 0; i < e->target->n_launches; i++) {
		uint32_t n = workgroups(&l[i], &s);

		if (n > 0)
			cpu_run(e->device, l[i].kernel, arg, &s, n);
		if (e->watch)
			e->watch->after(e->watch->user, i, arg, &s, d);
		if (fault)
			return not_finite(e, &l[i], err);
		arg += l[i].n_args;
	}
	return INGOT_OK;
}

/* Copies unit from to unit to in every state of a kind. */
static void
copy_states(Exec *e, uint32_t kind, uint32_t from, uint32_t to)
{
	for (uint64_t i = 0; i < e->plan->n_states; i++) {
		const PlanState *s = &e->plan->states[i];

		if (s->kind == kind)
			memcpy(e->states[i].data + to * s->bytes,
			    e->states[i].data + from * s->bytes,
			    (size_t)s->bytes);
	}
}

static void
exec_copy_slot(Backend *b, uint32_t from, uint32_t to, uint32_t length)
{
	(void)length;
	copy_states((Exec *)b, STATE_SLOT, from, to);
}

static void
exec_copy_page(Backend *b, uint32_t from, uint32_t to)
{
	copy_states((Exec *)b, STATE_PAGED, from, to);
}

static void
exec_clear_slot(Backend *b, uint32_t slot)
{
	Exec *e = (Exec *)b;

	for (uint64_t i = 0; i < e->plan->n_states; i++) {
		const PlanState *s = &e->plan->states[i];

		if (s->kind == STATE_SLOT)
			memset(e->states[i].data + slot * s->bytes, 0,
			    (size_t)s->bytes);
	}
}

static void
exec_close(Backend *b)
{
	Exec *e = (Exec *)b;

	for (int i = 0; i < SYM_COUNT; i++)
		memory_close(&e->arena[i]);
	for (int i = 0; i < IN_COUNT; i++)
		memory_close(&e->input[i]);
	for (uint64_t i = 0; e->states && i < e->plan->n_states; i++)
		memory_close(&e->states[i]);
	for (uint64_t i = 0; e->tables && i < e->plan->n_tables; i++)
		memory_close(&e->tables[i]);
	free(e->states);
	free(e->tables);
	free(e->args);
	free(e);
}

static const BackendOps exec_ops = {
    exec_step, exec_copy_slot, exec_clear_slot, exec_copy_page, exec_close};

static ingot_status
fill(Exec *e, const Weights *w, Error *err)
{
	ingot_status status = open_arena(e, SYM_T, err);

	if (!status)
		status = open_arena(e, SYM_R, err);
	if (!status)
		status = open_states(e, err);
	if (!status)
		status = open_tables(e, err);
	if (!status)
		status = open_inputs(e, err);
	if (!status)
		status = resolve_args(e, w, err);
	return status;
}

ingot_status
exec_open(void *user, const Plan *plan, const Weights *w,
    const BackendLimits *limits, Backend **out, Error *err)
{
	const CpuTarget *cpu = user;
	Exec *e = calloc(1, sizeof *e);
	ingot_status status;

	*out = NULL;
	if (!e)
		return no_room(err, "the executor", sizeof *e);
	e->base.ops = &exec_ops;
	e->plan = plan;
	e->target = &plan->targets[cpu->target];
	e->device = cpu->device;
	e->watch = cpu->watch;
	e->limits = *limits;
	status = fill(e, w, err);
	if (status)
		exec_close(&e->base);
	else
		*out = &e->base;
	return status;
}
