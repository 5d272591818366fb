#include "footprint.h"

#include "memory.h"
#include "sample.h"

enum {
	DEFAULT_CTX = 8192,
	MOST_CTX = 1 << 20, /* unless the model was trained for more */
	MOST_SEQS = 1 << 16
};

/* ---- limits ---- */

uint32_t
session_most_ctx(const PlanMeta *meta)
{
	return meta->ctx > MOST_CTX ? meta->ctx : MOST_CTX;
}

static ingot_status
set_pages(BackendLimits *l, Error *err)
{
	uint64_t n;

	l->seq_pages = l->ctx / KV_PAGE + (l->ctx % KV_PAGE != 0);
	n = (uint64_t)l->seq_pages * l->max_seqs;
	if (n > UINT32_MAX)
		return fail(err, INGOT_BAD_ARG,
		    "%u sequences of %u tokens need more pages than 2^32: "
		    "lower ctx or max_seqs",
		    l->max_seqs, l->ctx);
	l->n_pages = (uint32_t)n;
	return INGOT_OK;
}

ingot_status
session_limits(const PlanMeta *meta, const ingot_session_options *o,
    BackendLimits *l, Error *err)
{
	l->ctx = o->ctx ? o->ctx : meta->ctx;
	if (!o->ctx && l->ctx > DEFAULT_CTX)
		l->ctx = DEFAULT_CTX;
	if (l->ctx > session_most_ctx(meta))
		return fail(err, INGOT_BAD_ARG,
		    "ctx is %u; at most %u is possible", l->ctx,
		    session_most_ctx(meta));
	l->max_seqs = o->max_seqs ? o->max_seqs : 1;
	if (l->max_seqs > MOST_SEQS)
		return fail(err, INGOT_BAD_ARG,
		    "max_seqs is %u; at most %d is possible", l->max_seqs,
		    MOST_SEQS);
	l->max_tokens = meta->max_chunk;
	l->max_rows = o->max_rows ? o->max_rows : l->max_seqs;
	if (!o->max_rows && l->max_rows > meta->max_chunk)
		l->max_rows = meta->max_chunk;
	if (l->max_rows > meta->max_chunk)
		return fail(err, INGOT_BAD_ARG,
		    "max_rows is %u, but a step of this plan takes %u tokens "
		    "at most",
		    l->max_rows, meta->max_chunk);
	return set_pages(l, err);
}

/* ---- sizes ---- */

static uint64_t
times(uint64_t a, uint64_t b)
{
	uint64_t product;

	return size_mul(a, b, &product) ? product : UINT64_MAX;
}

static uint64_t
plus(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

uint64_t
arena_row_bytes(const Plan *p, const PlanTarget *t, uint32_t sym)
{
	const PlanBuffer *b = p->buffers + t->first_buffer;
	uint64_t most = 0;

	for (uint32_t i = 0; i < t->n_buffers; i++)
		if (b[i].sym == sym && b[i].offset + b[i].row_bytes > most)
			most = b[i].offset + b[i].row_bytes;
	return most;
}

uint64_t
arena_bytes(
    const Plan *p, const PlanTarget *t, uint32_t sym, const BackendLimits *l)
{
	return times(arena_row_bytes(p, t, sym),
	    sym == SYM_R ? l->max_rows : l->max_tokens);
}

uint64_t
state_bytes(const PlanState *s, const BackendLimits *l)
{
	return times(
	    s->bytes, s->kind == STATE_PAGED ? l->n_pages : l->max_seqs);
}

uint64_t
table_bytes(const PlanTable *t, const BackendLimits *l)
{
	return times(t->rot * sizeof(float), l->ctx);
}

uint64_t
input_bytes(int input, const BackendLimits *l)
{
	const uint64_t counts[IN_COUNT] = {[IN_TOKENS] = l->max_tokens,
	    [IN_POSITIONS] = l->max_tokens,
	    [IN_ROW_SLOT] = l->max_tokens,
	    [IN_SEQS] = (uint64_t)l->max_seqs * 4,
	    [IN_ROWS] = l->max_rows};

	return times(counts[input], sizeof(uint32_t));
}

uint64_t
logits_bytes(const PlanMeta *meta, const BackendLimits *l)
{
	return times((uint64_t)meta->vocab * sizeof(float), l->max_rows);
}

static uint64_t
scratch_bytes(const Plan *p, const PlanTarget *t, const BackendLimits *l)
{
	uint64_t sum = logits_bytes(p->meta, l);

	sum = plus(sum, sampler_bytes(p->meta->vocab));
	sum = plus(sum, arena_bytes(p, t, SYM_T, l));
	sum = plus(sum, arena_bytes(p, t, SYM_R, l));
	for (uint64_t i = 0; i < p->n_tables; i++)
		sum = plus(sum, table_bytes(&p->tables[i], l));
	for (int i = 0; i < IN_COUNT; i++)
		sum = plus(sum, input_bytes(i, l));
	return sum;
}

Footprint
footprint(const Plan *p, const PlanTarget *t, const BackendLimits *l)
{
	Footprint f = {0};

	for (uint32_t i = 0; i < t->n_packs; i++)
		f.weights = plus(f.weights, p->packs[t->first_pack + i].bytes);
	for (uint64_t i = 0; i < p->n_states; i++) {
		const PlanState *s = &p->states[i];
		uint64_t *sum = s->kind == STATE_PAGED ? &f.kv : &f.state;

		*sum = plus(*sum, state_bytes(s, l));
	}
	f.scratch = scratch_bytes(p, t, l);
	f.total = plus(plus(f.weights, f.kv), plus(f.state, f.scratch));
	return f;
}
