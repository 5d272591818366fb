/* Sequences of a model: what they hold, and the steps they take together. */
#include <stdlib.h>
#include <string.h>

#include "footprint.h"
#include "fp.h"
#include "memory.h"
#include "model.h"
#include "options.h"
#include "pages.h"
#include "sample.h"

typedef struct Seq {
	bool exists;
	bool undefined; /* was in a failed step */
	uint32_t length;
	uint64_t step; /* number of the last step it was asked for in */
} Seq;

struct ingot_session {
	const ingot_model *model;
	uint32_t vocab;
	BackendLimits limits;
	Backend *backend;
	Seq *seqs; /* [max_seqs]; a sequence's number is its slot */
	Pages pages;
	Memory logits;
	uint32_t n_rows; /* of the last step */
	uint64_t steps;
	/* The step that is being made. */
	uint32_t *tokens;   /* [max_tokens] */
	uint32_t *rows;     /* [max_rows] */
	StepSeq *step_seqs; /* [max_seqs] */
	Sampler sampler;
};

/* ---- open and close ---- */

/* Everything but the backend; false when memory ran out. */
static bool
make_room(ingot_session *s)
{
	BackendLimits *l = &s->limits;
	uint64_t bytes = logits_bytes(s->model->plan->meta, l);

	if (!pages_open(&s->pages, l->max_seqs, l->seq_pages) ||
	    bytes == UINT64_MAX || !memory_open(&s->logits, bytes) ||
	    !sampler_open(&s->sampler, s->vocab))
		return false;
	l->blocks = s->pages.blocks;
	l->logits = (float *)(void *)s->logits.data;
	s->seqs = calloc(l->max_seqs, sizeof *s->seqs);
	s->step_seqs = calloc(l->max_seqs, sizeof *s->step_seqs);
	s->tokens = calloc(l->max_tokens, sizeof *s->tokens);
	s->rows = calloc(l->max_rows, sizeof *s->rows);
	return s->seqs && s->step_seqs && s->tokens && s->rows;
}

static ingot_status
fill(ingot_session *s, const ingot_session_options *o, Error *err)
{
	const ingot_model *m = s->model;
	ingot_status status = session_limits(m->plan->meta, o, &s->limits, err);
	unsigned fp;

	if (status)
		return status;
	if (!make_room(s))
		return fail(err, INGOT_NO_MEMORY,
		    "no memory for a session of %u sequences of %u tokens",
		    s->limits.max_seqs, s->limits.ctx);
	fp = fp_enter();
	status = m->factory.open(m->factory.user, m->plan, &m->weights,
	    &s->limits, &s->backend, err);
	fp_leave(fp);
	if (!status && !s->backend)
		return fail(err, INGOT_INTERNAL,
		    "device %s opened without a backend", m->factory.device);
	return status;
}

ingot_status
ingot_session_open(ingot_model *model, const ingot_session_options *options,
    ingot_session **out, ingot_error *err)
{
	ingot_session_options o;
	ingot_session *s;
	ingot_status status;

	if (!model || !out)
		return fail(err, INGOT_BAD_ARG,
		    "ingot_session_open: model or out is NULL");
	*out = NULL;
	status =
	    options_read(&o, sizeof o, options, "ingot_session_options", err);
	if (status)
		return status;
	s = calloc(1, sizeof *s);
	if (!s)
		return fail(err, INGOT_NO_MEMORY, "no memory for a session");
	s->model = model;
	s->vocab = model->plan->meta->vocab;
	status = fill(s, &o, err);
	if (status)
		ingot_session_close(s);
	else
		*out = s;
	return status;
}

void
ingot_session_close(ingot_session *s)
{
	if (!s)
		return;
	if (s->backend)
		s->backend->ops->close(s->backend);
	pages_close(&s->pages);
	memory_close(&s->logits);
	sampler_close(&s->sampler);
	free(s->seqs);
	free(s->step_seqs);
	free(s->tokens);
	free(s->rows);
	free(s);
}

/* ---- sequences ---- */

static bool
exists(const ingot_session *s, uint32_t seq)
{
	return seq < s->limits.max_seqs && s->seqs[seq].exists;
}

static ingot_status
check_seq(const ingot_session *s, uint32_t seq, Error *err)
{
	if (!exists(s, seq))
		return fail(err, INGOT_BAD_ARG, "there is no sequence %u", seq);
	if (s->seqs[seq].undefined)
		return fail(err, INGOT_BAD_ARG,
		    "sequence %u was in a step that failed: remove it", seq);
	return INGOT_OK;
}

/* The lowest number that is free. */
static ingot_status
new_seq(ingot_session *s, uint32_t *seq, Error *err)
{
	for (uint32_t i = 0; i < s->limits.max_seqs; i++) {
		if (s->seqs[i].exists)
			continue;
		s->seqs[i] = (Seq){.exists = true};
		*seq = i;
		return INGOT_OK;
	}
	return fail(err, INGOT_FULL,
	    "the session holds %u sequences, which is its max_seqs",
	    s->limits.max_seqs);
}

ingot_status
ingot_seq_add(ingot_session *s, uint32_t *seq, ingot_error *err)
{
	ingot_status status = new_seq(s, seq, err);

	if (!status)
		s->backend->ops->clear_slot(s->backend, *seq);
	return status;
}

ingot_status
ingot_seq_copy(ingot_session *s, uint32_t from, uint32_t *seq, ingot_error *err)
{
	ingot_status status = check_seq(s, from, err);
	uint32_t to = 0, length, src, dst;

	if (!status)
		status = new_seq(s, &to, err);
	if (status)
		return status;
	length = s->seqs[from].length;
	if (pages_share(&s->pages, from, to, length, &src, &dst))
		s->backend->ops->copy_page(s->backend, src, dst);
	s->backend->ops->copy_slot(s->backend, from, to, length);
	s->seqs[to].length = length;
	*seq = to;
	return INGOT_OK;
}

ingot_status
ingot_seq_remove(ingot_session *s, uint32_t seq, ingot_error *err)
{
	if (!exists(s, seq))
		return fail(err, INGOT_BAD_ARG, "there is no sequence %u", seq);
	pages_drop(&s->pages, seq);
	s->seqs[seq] = (Seq){0};
	return INGOT_OK;
}

uint32_t
ingot_seq_length(const ingot_session *s, uint32_t seq)
{
	return exists(s, seq) ? s->seqs[seq].length : 0;
}

/* ---- steps ---- */

static ingot_status
check_tokens(const ingot_session *s, const ingot_work *w, Error *err)
{
	if (w->count == 0 || !w->tokens)
		return fail(err, INGOT_BAD_ARG,
		    "sequence %u is in the step without a token", w->seq);
	for (uint32_t i = 0; i < w->count; i++)
		if (w->tokens[i] >= s->vocab)
			return fail(err, INGOT_BAD_ARG,
			    "token %u of sequence %u is id %u; the vocabulary "
			    "has %u",
			    i, w->seq, w->tokens[i], s->vocab);
	return INGOT_OK;
}

static uint32_t
rows_of(const ingot_work *w)
{
	switch (w->want) {
	case INGOT_WANT_ALL:
		return w->count;
	case INGOT_WANT_LAST:
		return 1;
	default:
		return 0;
	}
}

static ingot_status
check_work(ingot_session *s, const ingot_work *w, Error *err)
{
	ingot_status status = check_seq(s, w->seq, err);

	if (status)
		return status;
	if (s->seqs[w->seq].step == s->steps)
		return fail(err, INGOT_BAD_ARG,
		    "sequence %u is in the step twice", w->seq);
	s->seqs[w->seq].step = s->steps;
	if ((unsigned)w->want > INGOT_WANT_ALL)
		return fail(err, INGOT_BAD_ARG,
		    "sequence %u wants %d, which is no ingot_want", w->seq,
		    (int)w->want);
	return check_tokens(s, w, err);
}

/* Refuses a step before anything is done for it. */
static ingot_status
check_step(ingot_session *s, const ingot_work *work, size_t n, Error *err)
{
	uint64_t tokens = 0, rows = 0;
	const BackendLimits *l = &s->limits;
	ingot_status status;

	s->steps++;
	if (n == 0 || !work)
		return fail(err, INGOT_BAD_ARG, "the step has no work");
	for (size_t i = 0; i < n; i++) {
		status = check_work(s, &work[i], err);
		if (status)
			return status;
		tokens += work[i].count;
		rows += rows_of(&work[i]);
	}
	if (tokens > l->max_tokens || rows > l->max_rows)
		return fail(err, INGOT_BAD_ARG,
		    "the step has %llu tokens and %llu rows of logits; the "
		    "session takes %u and %u",
		    (unsigned long long)tokens, (unsigned long long)rows,
		    l->max_tokens, l->max_rows);
	for (size_t i = 0; i < n; i++)
		if (work[i].count > l->ctx - s->seqs[work[i].seq].length)
			return fail(err, INGOT_FULL,
			    "sequence %u holds %u tokens and cannot take %u "
			    "more: its context is %u",
			    work[i].seq, s->seqs[work[i].seq].length,
			    work[i].count, l->ctx);
	return INGOT_OK;
}

/* Writes down the step and gives its sequences the pages they need. */
static StepDesc
describe(ingot_session *s, const ingot_work *work, size_t n)
{
	StepDesc d = {
	    .tokens = s->tokens, .seqs = s->step_seqs, .rows = s->rows};

	for (size_t i = 0; i < n; i++) {
		const ingot_work *w = &work[i];
		uint32_t start = s->seqs[w->seq].length, rows = rows_of(w);

		memcpy(s->tokens + d.n_tokens, w->tokens,
		    w->count * sizeof *w->tokens);
		s->step_seqs[d.n_seqs++] =
		    (StepSeq){w->seq, d.n_tokens, w->count, start};
		d.n_tokens += w->count;
		for (uint32_t k = 0; k < rows; k++)
			s->rows[d.n_rows++] = d.n_tokens - rows + k;
		pages_extend(&s->pages, w->seq, start + w->count);
	}
	return d;
}

/* Exponents of all ones are infinities and NaN. */
static bool
all_finite(const float *x, uint32_t n)
{
	uint32_t bits, bad = 0;

	for (uint32_t i = 0; i < n; i++) {
		memcpy(&bits, &x[i], sizeof bits);
		bad |= (bits & 0x7F800000u) == 0x7F800000u;
	}
	return !bad;
}

static ingot_status
check_logits(const ingot_session *s, uint32_t n_rows, Error *err)
{
	for (uint32_t i = 0; i < n_rows; i++)
		if (!all_finite(
			s->limits.logits + (uint64_t)i * s->vocab, s->vocab))
			return fail(err, INGOT_NOT_FINITE,
			    "row %u of the logits holds a value that is not "
			    "finite",
			    i);
	return INGOT_OK;
}

ingot_status
ingot_step(
    ingot_session *s, const ingot_work *work, size_t n_work, ingot_error *err)
{
	ingot_status status = check_step(s, work, n_work, err);
	StepDesc d;
	unsigned fp;

	if (status)
		return status;
	d = describe(s, work, n_work);
	s->n_rows = 0;
	fp = fp_enter();
	status = s->backend->ops->step(s->backend, &d, err);
	fp_leave(fp);
	if (!status)
		status = check_logits(s, d.n_rows, err);
	for (size_t i = 0; i < n_work; i++) {
		Seq *q = &s->seqs[work[i].seq];

		q->undefined = status != INGOT_OK;
		q->length += q->undefined ? 0 : work[i].count;
	}
	if (!status)
		s->n_rows = d.n_rows;
	return status;
}

/* ---- results ---- */

const float *
ingot_logits(ingot_session *s, uint32_t row)
{
	if (row >= s->n_rows)
		return NULL;
	return s->limits.logits + (uint64_t)row * s->vocab;
}

ingot_status
ingot_sample(const ingot_session *s, uint32_t row, const ingot_sampling *how,
    uint32_t *token, ingot_error *err)
{
	/* The scratch is the session's, which one thread uses at a time. */
	Sampler scratch = s->sampler;
	ingot_sampling o;
	unsigned fp;
	ingot_status status =
	    options_read(&o, sizeof o, how, "ingot_sampling", err);

	if (status)
		return status;
	if (row >= s->n_rows)
		return fail(err, INGOT_BAD_ARG,
		    "there is no row %u of logits: the last step gave %u", row,
		    s->n_rows);
	fp = fp_enter();
	status = sampler_pick(&scratch,
	    s->limits.logits + (uint64_t)row * s->vocab, &o, token, err);
	fp_leave(fp);
	return status;
}
