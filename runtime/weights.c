#include "weights.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../numerics/arith.h"
#include "fingerprint.h"
#include "memory.h"
#include "pack.h"
#include "quote.h"

enum { TILE = 8, ALIGN = 64, SHAPE_TEXT = 192 };

/* PlanWeight.map */
enum { MAP_NONE, MAP_ONE_PLUS, MAP_MINUS_EXP };

/* A weight being made. */
typedef struct Source {
	const Plan *plan;
	const CkptTensor *const *tensors; /* of each PlanTensor */
	const PlanWeight *weight;
	DType type;             /* of the weight */
	uint64_t experts, rows; /* of each expert */
	uint64_t k;             /* elements of a row */
	uint32_t pack;
	/* The next row: within piece, counted from its first row. */
	uint32_t piece;
	uint64_t row;
} Source;

/* The whole binding. */
typedef struct Binding {
	const Plan *plan;
	const CkptTensor **tensors;
	WeightProgress progress;
	Weights *out;
	uint64_t done, reported;
} Binding;

/* ---- the checkpoint is the plan's ---- */

static const char *
plan_name(const Plan *p, uint32_t offset, Quote *q)
{
	const char *name = plan_string(p, offset);

	return quote(q, name, strlen(name));
}

/* "f32 [2, 3]" */
static const char *
shape_text(const char *type, const uint64_t *dims, size_t n, char *out)
{
	size_t at = (size_t)snprintf(out, SHAPE_TEXT, "%.20s [", type);

	for (size_t i = 0; i < n && at < SHAPE_TEXT; i++)
		at += (size_t)snprintf(out + at, SHAPE_TEXT - at, "%s%" PRIu64,
		    i ? ", " : "", dims[i]);
	if (at < SHAPE_TEXT)
		snprintf(out + at, SHAPE_TEXT - at, "]");
	return out;
}

static bool
same_shape(const PlanTensor *want, const CkptTensor *have)
{
	if (have->type == DT_COUNT || have->type != (DType)want->dtype ||
	    have->n_dims < 0 || (uint32_t)have->n_dims != want->n_dims)
		return false;
	return memcmp(have->dims, want->dim,
		   want->n_dims * sizeof want->dim[0]) == 0;
}

static ingot_status
check_tensor(const Plan *p, const PlanTensor *want, const CkptTensor *have,
    const Checkpoint *c, Error *err)
{
	char a[SHAPE_TEXT], b[SHAPE_TEXT];
	Quote q;

	shape_text(dtypes[want->dtype].name, want->dim, want->n_dims, a);
	if (!have)
		return fail(err, INGOT_MISMATCH,
		    "%.150s: the plan needs tensor %s, %s, which this "
		    "checkpoint does not have; bind the one the plan was "
		    "compiled for",
		    ckpt_path(c), plan_name(p, want->name, &q), a);
	if (!same_shape(want, have))
		return fail(err, INGOT_MISMATCH,
		    "%.100s: tensor %s is %s but the plan was compiled for %s",
		    ckpt_path(c), plan_name(p, want->name, &q),
		    shape_text(
			have->type_name, have->dims, (size_t)have->n_dims, b),
		    a);
	if (!have->data)
		return fail(err, INGOT_BAD_FILE,
		    "%.150s: tensor %s has no data: this file holds only a "
		    "header",
		    ckpt_path(c), plan_name(p, want->name, &q));
	return INGOT_OK;
}

static ingot_status
find_tensors(Binding *b, const Checkpoint *c, Error *err)
{
	const Plan *p = b->plan;

	if (ckpt_header_only(c))
		return fail(err, INGOT_BAD_FILE,
		    "%.200s: this file holds only a header; weights need the "
		    "whole checkpoint",
		    ckpt_path(c));
	b->tensors = calloc((size_t)p->n_tensors + 1, sizeof *b->tensors);
	if (!b->tensors)
		return fail(err, INGOT_NO_MEMORY,
		    "no memory for a list of %" PRIu64 " tensors",
		    p->n_tensors);
	for (uint64_t i = 0; i < p->n_tensors; i++) {
		const PlanTensor *t = &p->tensors[i];
		ingot_status status;

		b->tensors[i] = ckpt_find(c, plan_string(p, t->name));
		status = check_tensor(p, t, b->tensors[i], c, err);
		if (status != INGOT_OK)
			return status;
	}
	return INGOT_OK;
}

/* ---- rows of a weight, in order ---- */

static void
rewind_source(Source *s)
{
	s->piece = 0;
	s->row = 0;
}

/* The next row as it lies in the file, and its type there. */
static const void *
next_row(Source *s, DType *type)
{
	const PlanPiece *p =
	    &s->plan->pieces[s->weight->first_piece + s->piece];
	const CkptTensor *t;

	if (s->row == p->rows) {
		s->piece++;
		s->row = 0;
		p++;
	}
	t = s->tensors[p->tensor];
	*type = t->type;
	return (const unsigned char *)t->data +
	       (p->row + s->row++) * dtype_bytes(t->type, s->k);
}

static void
widen_row(DType from, const void *row, uint64_t k, float *out)
{
	const unsigned char *p = row;
	uint16_t h;

	if (from == DT_F32) {
		memcpy(out, row, k * sizeof *out);
		return;
	}
	for (uint64_t i = 0; i < k; i++) {
		memcpy(&h, p + 2 * i, 2);
		out[i] = from == DT_BF16 ? ig_from_bf16(h) : ig_from_f16(h);
	}
}

static void
map_row(uint32_t map, uint64_t k, float *x)
{
	if (map == MAP_ONE_PLUS)
		for (uint64_t i = 0; i < k; i++)
			x[i] = 1.0f + x[i];
	if (map == MAP_MINUS_EXP)
		for (uint64_t i = 0; i < k; i++)
			x[i] = -ig_exp(x[i]);
}

/* Whether the row is needed in other bits than the file has. */
static bool
is_changed(const Source *s, DType type)
{
	return s->weight->map != MAP_NONE || type != s->type;
}

/* ---- what a weight is ---- */

static void
open_source(const Binding *b, uint32_t i, const PlanPack *packs, Source *s)
{
	const PlanWeight *w = &b->plan->weights[i];

	*s = (Source){.plan = b->plan, .tensors = b->tensors, .weight = w};
	s->type = (DType)w->dtype;
	s->experts = s->rows = 1;
	s->k = w->dim[w->n_dims - 1];
	if (w->n_dims > 1)
		s->rows = w->dim[w->n_dims - 2];
	for (uint32_t d = 0; d + 2 < w->n_dims; d++)
		s->experts *= w->dim[d];
	s->pack = packs ? packs[i].pack : (uint32_t)PACK_PLAIN;
}

/* The weight where it lies in the file, or NULL when it must be copied. */
static const void *
in_place(Source *s)
{
	DType type;
	const void *first = next_row(s, &type);

	rewind_source(s);
	if (s->pack != PACK_PLAIN || s->weight->n_pieces != 1 ||
	    is_changed(s, type) || (uintptr_t)first % ALIGN != 0)
		return NULL;
	return first;
}

static uint64_t
padded(uint64_t bytes)
{
	return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

/* Bytes of weight i, into out->bytes[i], and those of memory into *memory. */
static ingot_status
size_weight(
    Binding *b, uint32_t i, const PlanPack *packs, uint64_t *memory, Error *err)
{
	uint64_t bytes;
	Quote q;
	Source s;

	open_source(b, i, packs, &s);
	bytes = pack_bytes(s.pack, s.type, s.experts, s.rows, s.k);
	if (bytes == UINT64_MAX || (packs && bytes != packs[i].bytes))
		return fail(err, INGOT_BAD_FILE,
		    "the plan gives weight %s %" PRIu64 " bytes, but its "
		    "layout takes %" PRIu64 "; compile it again",
		    plan_name(b->plan, s.weight->name, &q),
		    packs ? packs[i].bytes : 0, bytes);
	b->out->bytes[i] = bytes;
	if (__builtin_add_overflow(b->out->total, bytes, &b->out->total) ||
	    (!in_place(&s) &&
		__builtin_add_overflow(*memory, padded(bytes), memory)))
		return fail(err, INGOT_NO_MEMORY,
		    "the weights of this plan take more than 2^64 bytes");
	return INGOT_OK;
}

static ingot_status
allocate(Binding *b, const PlanPack *packs, Error *err)
{
	Weights *out = b->out;
	uint64_t need = 0;
	size_t n = (size_t)b->plan->n_weights + 1;
	Memory memory;

	out->data = calloc(n, sizeof *out->data);
	out->bytes = calloc(n, sizeof *out->bytes);
	if (!out->data || !out->bytes)
		return fail(err, INGOT_NO_MEMORY,
		    "no memory for a list of %zu weights", n - 1);
	out->count = (uint32_t)b->plan->n_weights;
	for (uint32_t i = 0; i < out->count; i++) {
		ingot_status status = size_weight(b, i, packs, &need, err);

		if (status != INGOT_OK)
			return status;
	}
	if (!memory_open(&memory, need))
		return fail(err, INGOT_NO_MEMORY,
		    "no memory for %" PRIu64 " bytes of weights", need);
	out->memory = memory.data;
	out->memory_bytes = memory.size;
	return INGOT_OK;
}

/* ---- making weights ---- */

/* Reports about every hundredth part, and the end. */
static void
add_progress(Binding *b, uint64_t bytes)
{
	uint64_t total = b->out->total;

	b->done += bytes;
	if (!b->progress.call ||
	    (b->done != total && b->done - b->reported < total / 100))
		return;
	b->reported = b->done;
	b->progress.call(b->progress.user, b->done, total);
}

static void
make_plain(Binding *b, Source *s, unsigned char *out)
{
	uint64_t bytes = dtype_bytes(s->type, s->k);

	for (uint64_t n = s->experts * s->rows; n > 0; n--, out += bytes) {
		DType type;
		const void *row = next_row(s, &type);

		if (is_changed(s, type)) {
			widen_row(type, row, s->k, (float *)(void *)out);
			map_row(s->weight->map, s->k, (float *)(void *)out);
		} else {
			memcpy(out, row, bytes);
		}
		add_progress(b, bytes);
	}
}

/* The next n rows as one tile; scratch holds those that are changed. */
static void
make_tile(Source *s, int n, float *scratch, unsigned char *out)
{
	const void *rows[TILE] = {NULL};

	for (int i = 0; i < n; i++) {
		DType type;

		rows[i] = next_row(s, &type);
		if (is_changed(s, type)) {
			float *x = scratch + (uint64_t)i * s->k;

			widen_row(type, rows[i], s->k, x);
			map_row(s->weight->map, s->k, x);
			rows[i] = x;
		}
	}
	pack_tile(s->type, s->k, rows, n, out);
}

static void
make_tiles(Binding *b, Source *s, float *scratch, unsigned char *out)
{
	uint64_t bytes = pack_tile_bytes(s->type, s->k);

	for (uint64_t e = 0; e < s->experts; e++)
		for (uint64_t r = 0; r < s->rows; r += TILE, out += bytes) {
			uint64_t left = s->rows - r;

			make_tile(
			    s, left < TILE ? (int)left : TILE, scratch, out);
			add_progress(b, bytes);
		}
}

/* Rows of a tile in f32, needed only by a packed float weight. */
static ingot_status
open_scratch(const Source *s, float **out, Error *err)
{
	uint64_t bytes;

	*out = NULL;
	if (s->type != DT_F32 || s->pack == PACK_PLAIN)
		return INGOT_OK;
	if (size_mul(s->k, TILE * sizeof **out, &bytes) && bytes <= SIZE_MAX)
		*out = malloc((size_t)bytes);
	if (!*out)
		return fail(err, INGOT_NO_MEMORY,
		    "no memory for 8 rows of %" PRIu64 " weights", s->k);
	return INGOT_OK;
}

/* Makes weight i at *used of the memory and counts it there, or leaves it in
 * the file. */
static ingot_status
make_weight(
    Binding *b, uint32_t i, const PlanPack *packs, uint64_t *used, Error *err)
{
	Source s;
	unsigned char *out;
	float *scratch;
	const void *there;
	ingot_status status;

	open_source(b, i, packs, &s);
	there = in_place(&s);
	if (there) {
		b->out->data[i] = (void *)(uintptr_t)there;
		add_progress(b, b->out->bytes[i]);
		return INGOT_OK;
	}
	status = open_scratch(&s, &scratch, err);
	if (status != INGOT_OK)
		return status;
	out = (unsigned char *)b->out->memory + *used;
	if (s.pack == PACK_PLAIN)
		make_plain(b, &s, out);
	else
		make_tiles(b, &s, scratch, out);
	free(scratch);
	b->out->data[i] = out;
	*used += padded(b->out->bytes[i]);
	return INGOT_OK;
}

static ingot_status
make_weights(Binding *b, const PlanPack *packs, Error *err)
{
	uint64_t used = 0;

	for (uint32_t i = 0; i < b->out->count; i++) {
		ingot_status status = make_weight(b, i, packs, &used, err);

		if (status != INGOT_OK)
			return status;
	}
	return INGOT_OK;
}

/* The tensors are those of the plan; is the configuration too? */
static ingot_status
check_layout(const Plan *plan, const Checkpoint *c, Error *err)
{
	Quote q;

	if (plan->meta->layout == 0 ||
	    fingerprint_layout(c) == plan->meta->layout)
		return INGOT_OK;
	return fail(err, INGOT_MISMATCH,
	    "%s has the plan's tensors but another configuration: compile a "
	    "plan for it",
	    quote(&q, ckpt_path(c), strlen(ckpt_path(c))));
}

ingot_status
weights_bind(const Plan *plan, uint32_t target, Checkpoint *c, bool plain,
    WeightProgress progress, Weights *out, Error *err)
{
	Binding b = {.plan = plan, .progress = progress, .out = out};
	const PlanPack *packs = NULL;
	ingot_status status;

	*out = (Weights){0};
	if (!plain)
		packs = plan->packs + plan->targets[target].first_pack;
	status = find_tensors(&b, c, err);
	if (status == INGOT_OK)
		status = check_layout(plan, c, err);
	if (status == INGOT_OK)
		status = allocate(&b, packs, err);
	if (status == INGOT_OK)
		status = make_weights(&b, packs, err);
	free(b.tensors);
	if (status != INGOT_OK)
		weights_free(out);
	else if (plan->meta->data != 0)
		out->other_data = fingerprint_data(c) != plan->meta->data;
	return status;
}

void
weights_free(Weights *w)
{
	Memory memory = {w->memory, w->memory_bytes};

	memory_close(&memory);
	free(w->data);
	free(w->bytes);
	*w = (Weights){0};
}
