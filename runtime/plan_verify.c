/* The one verification of a plan's tables; everybody behind it trusts them. */
#include <math.h>
#include <string.h>

#include "../numerics/types.h"
#include "plan_impl.h"

enum { MAX_CHUNK = 1 << 20, MAX_ROT = 1 << 16 };

/* Nothing a plan asks for is larger: sums of a few such stay in 64 bits. */
#define MAX_BYTES ((uint64_t)1 << 46)

/* What is being checked; a check that fails says so through bad(). */
typedef struct Check {
	const Plan *p;
	const char *from;
	Error *err;
	const PlanTarget *target;
	uint64_t item; /* index of the element in its section */
} Check;

/* "from: target cpu: launch 3: what" */
static ingot_status
bad(const Check *c, const char *section, const char *what)
{
	const char *name;
	Quote q;

	if (!c->target)
		return fail(c->err, INGOT_BAD_FILE, "%s: %s %llu: %s", c->from,
		    section, (unsigned long long)c->item, what);
	name = plan_string(c->p, c->target->name);
	return fail(c->err, INGOT_BAD_FILE, "%s: target %s: %s %llu: %s",
	    c->from, quote(&q, name, strlen(name)), section,
	    (unsigned long long)c->item, what);
}

static bool
is_string(const Plan *p, uint32_t offset)
{
	return offset < p->n_strings;
}

/* A string that names something: not empty. */
static bool
is_name(const Plan *p, uint32_t offset)
{
	return is_string(p, offset) && p->strings[offset] != '\0';
}

static bool
in_range(uint64_t first, uint64_t n, uint64_t count)
{
	return first <= count && n <= count - first;
}

static bool
is_stored(uint32_t dtype)
{
	return dtype < DT_COUNT && dtypes[dtype].kind != DK_ACT;
}

/* Rows (all axes but the last) of a tensor or weight; false when the dims are
 * none, do not divide into blocks, or make too many bytes. */
static bool
shape_rows(uint32_t dtype, uint32_t n_dims, const uint64_t *dim, uint64_t *rows)
{
	uint64_t n = 1, k;

	if (n_dims < 1 || n_dims > 4)
		return false;
	for (uint32_t i = 0; i < 4; i++) {
		if (dim[i] == 0 || dim[i] > MAX_BYTES / n ||
		    (i >= n_dims && dim[i] != 1))
			return false;
		n *= dim[i];
	}
	k = dim[n_dims - 1];
	*rows = n / k;
	return k % dtypes[dtype].block == 0 &&
	       n / dtypes[dtype].block <= MAX_BYTES / dtypes[dtype].bytes;
}

static ingot_status
check_strings(Check *c)
{
	const Plan *p = c->p;

	if (p->n_strings > UINT32_MAX || p->strings[0] != '\0' ||
	    p->strings[p->n_strings - 1] != '\0')
		return fail(c->err, INGOT_BAD_FILE,
		    "%s: the plan's strings do not start and end with NUL",
		    c->from);
	return INGOT_OK;
}

static ingot_status
check_meta(Check *c)
{
	const PlanMeta *m = c->p->meta;
	const char *numerics;

	if (!is_name(c->p, m->arch) || !is_string(c->p, m->model_file) ||
	    !is_string(c->p, m->compiler) || !is_string(c->p, m->numerics))
		return bad(c, "meta", "a string is out of range");
	numerics = plan_string(c->p, m->numerics);
	if (strcmp(numerics, "exact") != 0 && strcmp(numerics, "fast") != 0)
		return bad(c, "meta", "numerics is neither exact nor fast");
	if (m->kv_dtype >= DT_COUNT || dtypes[m->kv_dtype].kind != DK_FLOAT)
		return bad(c, "meta", "the cache has no float type");
	if (m->vocab < 1 || m->ctx < 1 || m->max_chunk < 1 ||
	    m->max_chunk > MAX_CHUNK)
		return bad(
		    c, "meta", "vocab, ctx or max_chunk is out of range");
	return INGOT_OK;
}

static ingot_status
check_tensor(Check *c)
{
	const PlanTensor *t = &c->p->tensors[c->item];
	uint64_t rows;

	if (!is_name(c->p, t->name) || !is_stored(t->dtype) || t->pad != 0)
		return bad(c, "tensor", "its name or type is out of range");
	if (!shape_rows(t->dtype, t->n_dims, t->dim, &rows))
		return bad(c, "tensor", "its shape is impossible");
	return INGOT_OK;
}

/* Whether rows of t can become rows of w. */
static bool
can_become(const PlanWeight *w, const PlanTensor *t)
{
	uint32_t from = t->dtype, to = w->dtype;

	if (t->dim[t->n_dims - 1] != w->dim[w->n_dims - 1])
		return false;
	return from == to ||
	       (to == DT_F32 && (from == DT_F16 || from == DT_BF16));
}

/* Adds the rows of one piece of w to *sum. */
static ingot_status
check_piece(
    Check *c, const PlanWeight *w, const PlanPiece *piece, uint64_t *sum)
{
	const PlanTensor *t;
	uint64_t rows;

	if (piece->tensor >= c->p->n_tensors || piece->pad != 0)
		return bad(c, "weight", "a piece names no tensor");
	t = &c->p->tensors[piece->tensor];
	if (!can_become(w, t))
		return bad(c, "weight",
		    "a piece differs from it in type or row length");
	shape_rows(t->dtype, t->n_dims, t->dim, &rows);
	if (piece->rows == 0 || !in_range(piece->row, piece->rows, rows))
		return bad(c, "weight", "a piece reaches beyond its tensor");
	if (piece->rows > MAX_BYTES - *sum)
		return bad(c, "weight", "its pieces are too many rows");
	*sum += piece->rows;
	return INGOT_OK;
}

static ingot_status
check_weight(Check *c)
{
	const PlanWeight *w = &c->p->weights[c->item];
	uint64_t rows, sum = 0;
	ingot_status status;

	if (!is_name(c->p, w->name) || !is_stored(w->dtype) || w->map > 2 ||
	    (w->map != 0 && w->dtype != DT_F32))
		return bad(
		    c, "weight", "its name, type or map is out of range");
	if (!shape_rows(w->dtype, w->n_dims, w->dim, &rows))
		return bad(c, "weight", "its shape is impossible");
	if (w->n_pieces == 0 ||
	    !in_range(w->first_piece, w->n_pieces, c->p->n_pieces))
		return bad(c, "weight", "its pieces are out of range");
	for (uint32_t i = 0; i < w->n_pieces; i++) {
		status =
		    check_piece(c, w, &c->p->pieces[w->first_piece + i], &sum);
		if (status)
			return status;
	}
	if (sum != rows)
		return bad(c, "weight", "its pieces do not make its rows");
	return INGOT_OK;
}

static ingot_status
check_state(Check *c)
{
	const PlanState *s = &c->p->states[c->item];

	if (!is_name(c->p, s->name) || s->kind > STATE_PAGED)
		return bad(c, "state", "its name or kind is out of range");
	if (s->bytes == 0 || s->bytes > MAX_BYTES)
		return bad(c, "state", "its size is impossible");
	return INGOT_OK;
}

static ingot_status
check_rope(Check *c)
{
	const PlanTable *t = &c->p->tables[c->item];

	if (t->rot == 0 || t->rot % 2 != 0 || t->rot > MAX_ROT || t->pad != 0)
		return bad(c, "table", "its width is impossible");
	if (!isfinite(t->theta) || t->theta <= 0)
		return bad(c, "table", "its theta is not a positive number");
	return INGOT_OK;
}

static ingot_status
check_region(Check *c)
{
	const PlanRegion *r = &c->p->regions[c->item];
	const Plan *p = c->p;

	if (!is_name(p, r->name) || !is_string(p, r->rules) ||
	    !is_string(p, r->ops) || !is_string(p, r->lines) ||
	    !is_string(p, r->why) || r->pad != 0)
		return bad(c, "region", "a string is out of range");
	return INGOT_OK;
}

static ingot_status
check_pack(Check *c)
{
	const PlanWeight *w = &c->p->weights[c->item];
	const PlanPack *k = &c->p->packs[c->target->first_pack + c->item];
	uint64_t rows, n;

	shape_rows(w->dtype, w->n_dims, w->dim, &rows);
	n = rows * w->dim[w->n_dims - 1];
	if (k->pack > PACK_ROWS8 || k->pad != 0)
		return bad(c, "pack", "its kind is unknown");
	/* What ROWS8 comes to is compared where it is packed. */
	if (k->bytes > MAX_BYTES || k->bytes == 0 ||
	    (k->pack == PACK_PLAIN &&
		k->bytes != dtype_bytes((DType)w->dtype, n)))
		return bad(c, "pack", "its size does not fit the weight");
	return INGOT_OK;
}

static ingot_status
check_buffer(Check *c)
{
	const PlanBuffer *b = &c->p->buffers[c->target->first_buffer + c->item];
	uint64_t limit = MAX_BYTES / c->p->meta->max_chunk;

	if (!is_string(c->p, b->name) || (b->sym != SYM_T && b->sym != SYM_R))
		return bad(c, "buffer", "its name or symbol is out of range");
	if (b->pad != 0)
		return bad(c, "buffer", "its padding is not zero");
	if (b->row_bytes == 0 || b->row_bytes % PLAN_ALIGN != 0 ||
	    b->offset % PLAN_ALIGN != 0)
		return bad(c, "buffer", "its place is not a multiple of 64");
	if (b->row_bytes > limit || b->offset > limit - b->row_bytes)
		return bad(c, "buffer", "it is too large");
	if (b->first_launch > b->last_launch ||
	    b->last_launch >= c->target->n_launches)
		return bad(c, "buffer", "it lives beyond the last launch");
	return INGOT_OK;
}

static bool
collide(const PlanBuffer *a, const PlanBuffer *b)
{
	return a->sym == b->sym && a->first_launch <= b->last_launch &&
	       b->first_launch <= a->last_launch &&
	       a->offset < b->offset + b->row_bytes &&
	       b->offset < a->offset + a->row_bytes;
}

/* No two buffers that live at once share memory. */
static ingot_status
check_overlap(Check *c)
{
	const PlanBuffer *b = c->p->buffers + c->target->first_buffer;

	for (uint32_t i = 0; i < c->target->n_buffers; i++)
		for (uint32_t j = 0; j < i; j++)
			if (collide(&b[i], &b[j])) {
				c->item = i;
				return bad(c, "buffer",
				    "it shares memory with another one that "
				    "lives at the same time");
			}
	return INGOT_OK;
}

static ingot_status
check_kernel(Check *c)
{
	const PlanTarget *t = c->target;
	const PlanKernel *k = &c->p->kernels[t->first_kernel + c->item];

	if (!is_name(c->p, k->name) || !is_string(c->p, k->family))
		return bad(c, "kernel", "its name is out of range");
	if (!in_range(k->source, k->source_bytes, t->source_bytes))
		return bad(c, "kernel", "its source is out of range");
	return INGOT_OK;
}

static bool
arg_exists(const Check *c, const PlanArg *a)
{
	const uint64_t counts[] = {[ARG_BUFFER] = c->target->n_buffers,
	    [ARG_WEIGHT] = c->p->n_weights,
	    [ARG_STATE] = c->p->n_states,
	    [ARG_TABLE] = c->p->n_tables,
	    [ARG_INPUT] = IN_COUNT,
	    [ARG_LOGITS] = 1};

	return a->kind <= ARG_LOGITS && a->index < counts[a->kind];
}

static ingot_status
check_args(Check *c, const PlanLaunch *l)
{
	const PlanBuffer *b;

	for (uint32_t i = 0; i < l->n_args; i++) {
		const PlanArg *a = &c->p->args[l->first_arg + i];

		if (!arg_exists(c, a))
			return bad(c, "launch", "an argument does not exist");
		if (a->kind != ARG_BUFFER)
			continue;
		b = &c->p->buffers[c->target->first_buffer + a->index];
		if (c->item < b->first_launch || c->item > b->last_launch)
			return bad(c, "launch",
			    "it uses a buffer outside of its lifetime");
	}
	return INGOT_OK;
}

static ingot_status
check_launch(Check *c)
{
	const PlanTarget *t = c->target;
	const PlanLaunch *l = &c->p->launches[t->first_launch + c->item];
	uint64_t most;

	if (l->kernel >= t->n_kernels || l->region >= c->p->n_regions)
		return bad(c, "launch", "its kernel or region does not exist");
	if (l->sym >= SYM_COUNT || l->div == 0)
		return bad(c, "launch", "its size has no meaning");
	/* No symbol is larger than max_chunk. */
	most = (uint64_t)c->p->meta->max_chunk * l->mul;
	most = most / l->div + (most % l->div != 0) + l->add;
	if (most > UINT32_MAX)
		return bad(c, "launch", "it has too many workgroups");
	if (!in_range(l->first_arg, l->n_args, c->p->n_args))
		return bad(c, "launch", "its arguments are out of range");
	return check_args(c, l);
}

/* Runs check on items 0 .. n-1. */
static ingot_status
each(Check *c, uint64_t n, ingot_status (*check)(Check *c))
{
	ingot_status status = INGOT_OK;

	for (c->item = 0; c->item < n && !status; c->item++)
		status = check(c);
	return status;
}

static bool
target_ranges(const Plan *p, const PlanTarget *t)
{
	return in_range(t->first_pack, t->n_packs, p->n_packs) &&
	       in_range(t->first_buffer, t->n_buffers, p->n_buffers) &&
	       in_range(t->first_kernel, t->n_kernels, p->n_kernels) &&
	       in_range(t->first_launch, t->n_launches, p->n_launches) &&
	       in_range(t->source, t->source_bytes, p->n_sources) &&
	       in_range(t->object, t->object_bytes, p->n_objects);
}

static ingot_status
check_target_row(Check *c)
{
	const Plan *p = c->p;
	const PlanTarget *t = &p->targets[c->item];

	if (!is_name(p, t->name) || !is_string(p, t->toolchain))
		return bad(c, "target", "its name is out of range");
	if (plan_target(p, plan_string(p, t->name)) != (int64_t)c->item)
		return bad(c, "target", "it is there twice");
	if (!target_ranges(p, t))
		return bad(c, "target", "a range is beyond its section");
	if (t->n_packs != p->n_weights)
		return bad(c, "target", "it does not pack each weight once");
	if (t->n_buffers > PLAN_MAX_BUFFERS)
		return bad(c, "target", "it has too many buffers");
	return INGOT_OK;
}

static ingot_status
check_target(Check *c, const PlanTarget *t)
{
	ingot_status status;

	c->target = t;
	status = each(c, t->n_packs, check_pack);
	if (!status)
		status = each(c, t->n_buffers, check_buffer);
	if (!status)
		status = check_overlap(c);
	if (!status)
		status = each(c, t->n_kernels, check_kernel);
	if (!status)
		status = each(c, t->n_launches, check_launch);
	c->target = NULL;
	return status;
}

/* All that does not belong to a target. */
static ingot_status
check_model(Check *c)
{
	const Plan *p = c->p;
	ingot_status status = check_strings(c);

	if (!status)
		status = check_meta(c);
	if (!status)
		status = each(c, p->n_tensors, check_tensor);
	if (!status)
		status = each(c, p->n_weights, check_weight);
	if (!status)
		status = each(c, p->n_states, check_state);
	if (!status)
		status = each(c, p->n_tables, check_rope);
	if (!status)
		status = each(c, p->n_regions, check_region);
	return status;
}

ingot_status
plan_verify(const Plan *p, const char *from, Error *err)
{
	Check c = {.p = p, .from = from, .err = err};
	ingot_status status = check_model(&c);

	if (!status && p->n_targets > PLAN_MAX_TARGETS)
		return fail(err, INGOT_BAD_FILE,
		    "%s: the plan has %llu targets, more than %d", from,
		    (unsigned long long)p->n_targets, PLAN_MAX_TARGETS);
	if (!status)
		status = each(&c, p->n_targets, check_target_row);
	for (uint64_t i = 0; i < p->n_targets && !status; i++)
		status = check_target(&c, &p->targets[i]);
	return status;
}
