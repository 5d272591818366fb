/* Ops that look along a sequence. Each walks over the sequences of the step;
 * positions, not rows, say what a token sees, so any cut gives the same bits.
 */
#include <stdlib.h>
#include <string.h>

#include "../numerics/arith.h"
#include "../numerics/quant.h"
#include "eval_impl.h"

enum { SPAN = 128 }; /* keys that are summed together */

/* ---- conv ---- */

/* taps[K] over positions at-K+1 .. at of channel c; what lies before position
 * 0 is +0. The ring keeps position p in slot p mod K. */
static float
conv_at(const float *ring, const Node *n, const float *taps, uint64_t c,
    uint32_t at)
{
	uint32_t k = (uint32_t)n->in[1]->type.dim[1], i;
	uint64_t channels = (uint64_t)n->type.dim[1];
	float y = 0;

	for (i = 0; i < k; i++) {
		uint32_t back = k - 1 - i;
		float m = 0;

		if (back <= at)
			m = ring[(at - back) % k * channels + c];
		y = ig_fma(taps[i], m, y);
	}
	return y;
}

static void
conv_token(float *ring, const Node *n, const float *taps, const float *x,
    uint32_t at, float *y)
{
	uint64_t k = (uint64_t)n->in[1]->type.dim[1], c;
	uint64_t channels = (uint64_t)n->type.dim[1];

	memcpy(ring + at % k * channels, x, (size_t)channels * sizeof *x);
	for (c = 0; c < channels; c++)
		y[c] = conv_at(ring, n, taps + c * k, c, at);
}

bool
eval_CONV(Eval *e, const Node *n)
{
	uint64_t channels = (uint64_t)n->type.dim[1], i;
	uint64_t n_taps = type_count(&n->in[1]->type);
	float *taps = eval_alloc(n_taps, sizeof *taps);
	const float *x = eval_in(e, n, 0);
	float *y = e->value[n->id];

	dequant_row(n->in[1]->type.dtype, eval_in(e, n, 1), n_taps, taps);
	for (i = 0; i < e->step->n_seqs; i++) {
		const EvalSeq *s = &e->step->seqs[i];
		float *ring = eval_recurrent(e, n->in[2], s->slot);
		uint32_t t;

		for (t = 0; t < s->count; t++, x += channels, y += channels)
			conv_token(ring, n, taps, x, s->start + t, y);
	}
	free(taps);
	return true;
}

/* ---- attention ---- */

bool
eval_APPEND(Eval *e, const Node *n)
{
	uint64_t row = dtype_bytes(n->type.dtype, type_row(&n->type));
	const char *x = eval_in(e, n, 1);
	uint32_t i;

	for (i = 0; i < e->step->n_seqs; i++) {
		const EvalSeq *s = &e->step->seqs[i];
		char *keys =
		    eval_keys(e, n->in[0], s->slot, s->start + s->count);

		memcpy(keys + s->start * row, x + s->first * row,
		    (size_t)(s->count * row));
	}
	return true;
}

/* One head's keys and values of one sequence, widened. */
typedef struct Head {
	const char *k, *v;
	DType k_type, v_type;
	uint64_t k_step, v_step; /* bytes from key to key */
	uint64_t size;
	float scale;
} Head;

/* Softmax over part of the keys, not yet divided. */
typedef struct Partial {
	float max, sum, *out; /* out[size] */
} Partial;

/* Keys first .. first+count-1, count at most SPAN; row is scratch. */
static void
span(const Head *h, const float *q, uint64_t first, uint32_t count, float *row,
    Partial *s)
{
	float p[SPAN] = {0};
	uint32_t j;
	uint64_t d;

	for (j = 0; j < count; j++)
		p[j] = dot8(h->k_type, h->k + (first + j) * h->k_step, q,
			   h->size) *
		       h->scale;
	s->max = p[0];
	for (j = 1; j < count; j++)
		s->max = ig_max(s->max, p[j]);
	memset(s->out, 0, (size_t)h->size * sizeof *s->out);
	for (j = 0; j < count; j++) {
		p[j] = ig_exp(p[j] - s->max);
		dequant_row(
		    h->v_type, h->v + (first + j) * h->v_step, h->size, row);
		for (d = 0; d < h->size; d++)
			s->out[d] = ig_fma(p[j], row[d], s->out[d]);
	}
	s->sum = neighbour_tree(p, SPAN);
}

static void
merge(Partial *all, const Partial *s, uint64_t size)
{
	float max = ig_max(all->max, s->max);
	float a = ig_exp(all->max - max), b = ig_exp(s->max - max);
	uint64_t d;

	all->max = max;
	all->sum = ig_fma(b, s->sum, a * all->sum);
	for (d = 0; d < size; d++)
		all->out[d] = ig_fma(b, s->out[d], a * all->out[d]);
}

/* Keys 0 .. n-1 against q, to y[size]; scratch holds 2 * size. */
static void
attend(const Head *h, const float *q, uint64_t n, float *scratch, float *y)
{
	Partial all = {0, 0, y}, s = {0, 0, scratch};
	float *row = scratch + h->size, inv;
	uint64_t first, d;

	for (first = 0; first < n; first += SPAN) {
		uint32_t count =
		    n - first < SPAN ? (uint32_t)(n - first) : SPAN;

		span(h, q, first, count, row, first == 0 ? &all : &s);
		if (first > 0)
			merge(&all, &s, h->size);
	}
	inv = ig_div(1.0f, all.sum);
	for (d = 0; d < h->size; d++)
		y[d] = y[d] * inv;
}

/* The leaf behind k or v: the state itself, or what is appended to it. */
static const Node *
cache(const Node *n)
{
	return n->op == OP_APPEND ? n->in[0] : n;
}

static Head
head(Eval *e, const Node *n, const EvalSeq *s, uint64_t kv)
{
	const Type *k = &n->in[1]->type, *v = &n->in[2]->type;
	uint64_t size = (uint64_t)k->dim[2];
	uint32_t end = s->start + s->count;
	Head h = {eval_keys(e, cache(n->in[1]), s->slot, end),
	    eval_keys(e, cache(n->in[2]), s->slot, end), k->dtype, v->dtype,
	    dtype_bytes(k->dtype, type_row(k)),
	    dtype_bytes(v->dtype, type_row(v)), size, n->attr.scale};

	h.k += dtype_bytes(k->dtype, kv * size);
	h.v += dtype_bytes(v->dtype, kv * size);
	return h;
}

bool
eval_ATTENTION(Eval *e, const Node *n)
{
	uint64_t heads = (uint64_t)n->type.dim[1], i, j;
	uint64_t group = heads / (uint64_t)n->in[1]->type.dim[1];
	uint64_t size = (uint64_t)n->type.dim[2];
	float *scratch = eval_alloc(2 * size, sizeof *scratch);
	const float *q = eval_in(e, n, 0);
	float *y = e->value[n->id];
	uint32_t t;

	for (i = 0; i < e->step->n_seqs; i++) {
		const EvalSeq *s = &e->step->seqs[i];

		for (j = 0; j < heads; j++) {
			Head h = head(e, n, s, j / group);

			for (t = 0; t < s->count; t++) {
				uint64_t at =
				    ((s->first + t) * heads + j) * size;

				attend(&h, q + at, (uint64_t)s->start + t + 1,
				    scratch, y + at);
			}
		}
	}
	free(scratch);
	return true;
}

/* ---- delta rule ---- */

/* out[j] = dot8 over i of s[i][j] and x[i], for all columns j; acc holds
 * 8 * columns. */
static void
dot8_columns(const float *s, const float *x, uint64_t rows, uint64_t columns,
    float *acc, float *out)
{
	uint64_t i, j;

	memset(acc, 0, (size_t)(8 * columns) * sizeof *acc);
	for (i = 0; i < rows; i++) {
		float *a = acc + i / 8 % 8 * columns;

		for (j = 0; j < columns; j++)
			a[j] = ig_fma(s[i * columns + j], x[i], a[j]);
	}
	for (j = 0; j < columns; j++) {
		const float *a = acc + j;
		uint64_t c = columns;

		out[j] = ((a[0] + a[c]) + (a[2 * c] + a[3 * c])) +
			 ((a[4 * c] + a[5 * c]) + (a[6 * c] + a[7 * c]));
	}
}

/* One token of one value head: s[dk][dv] moves on, o[dv] is read from it.
 * scratch holds 9 * dv. */
typedef struct Delta {
	const float *q, *k, *v;
	float decay, beta;
	uint64_t dk, dv;
} Delta;

static void
delta_token(const Delta *d, float *s, float *scratch, float *o)
{
	float *u = scratch, *acc = scratch + d->dv;
	uint64_t i, j;

	for (i = 0; i < d->dk * d->dv; i++)
		s[i] = s[i] * d->decay;
	dot8_columns(s, d->k, d->dk, d->dv, acc, u);
	for (j = 0; j < d->dv; j++)
		u[j] = d->beta * (d->v[j] - u[j]);
	for (i = 0; i < d->dk; i++)
		for (j = 0; j < d->dv; j++)
			s[i * d->dv + j] =
			    ig_fma(d->k[i], u[j], s[i * d->dv + j]);
	dot8_columns(s, d->q, d->dk, d->dv, acc, o);
}

/* What head h of token row works on. */
static Delta
delta_at(const Eval *e, const Node *n, uint64_t row, uint64_t h)
{
	uint64_t hk = (uint64_t)n->in[0]->type.dim[1];
	uint64_t dk = (uint64_t)n->in[0]->type.dim[2];
	uint64_t hv = (uint64_t)n->type.dim[1];
	uint64_t dv = (uint64_t)n->type.dim[2];
	uint64_t from = n->attr.tiled ? h % hk : h / (hv / hk);
	uint64_t k = (row * hk + from) * dk, v = row * hv + h;

	return (Delta){(const float *)eval_in(e, n, 0) + k,
	    (const float *)eval_in(e, n, 1) + k,
	    (const float *)eval_in(e, n, 2) + v * dv,
	    ((const float *)eval_in(e, n, 3))[v],
	    ((const float *)eval_in(e, n, 4))[v], dk, dv};
}

bool
eval_DELTA_RULE(Eval *e, const Node *n)
{
	uint64_t hv = (uint64_t)n->type.dim[1], i, h;
	uint64_t dv = (uint64_t)n->type.dim[2];
	float *scratch = eval_alloc(9 * dv, sizeof *scratch);
	float *y = e->value[n->id], *state;
	uint32_t t;

	for (i = 0; i < e->step->n_seqs; i++) {
		const EvalSeq *s = &e->step->seqs[i];

		state = eval_recurrent(e, n->in[5], s->slot);
		for (t = 0; t < s->count; t++)
			for (h = 0; h < hv; h++, y += dv) {
				Delta d = delta_at(e, n, s->first + t, h);

				delta_token(
				    &d, state + h * d.dk * d.dv, scratch, y);
			}
	}
	free(scratch);
	return true;
}
