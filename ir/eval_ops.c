/* Ops that look at one token at a time. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../numerics/arith.h"
#include "../numerics/quant.h"
#include "eval_impl.h"

static int64_t
last(const Type *t)
{
	return t->dim[t->n_dims - 1];
}

/* Elements of a value. */
static uint64_t
elements(const Eval *e, const Node *n)
{
	return eval_rows(e, &n->type) * type_row(&n->type);
}

/* Rows along the last axis. */
static uint64_t
vectors(const Eval *e, const Node *n)
{
	return elements(e, n) / (uint64_t)last(&n->type);
}

static void *
out(const Eval *e, const Node *n)
{
	return e->value[n->id];
}

/* ---- leaves and views ---- */

static uint32_t
position(const EvalStep *s, uint32_t row)
{
	uint32_t i = 0;

	while (row - s->seqs[i].first >= s->seqs[i].count)
		i++;
	return s->seqs[i].start + row - s->seqs[i].first;
}

bool
eval_INPUT(Eval *e, const Node *n)
{
	const EvalStep *s = e->step;
	int32_t *v = out(e, n);
	uint32_t i;

	if (strcmp(n->name, "tokens") == 0)
		memcpy(v, s->tokens, s->n_tokens * sizeof *v);
	else if (strcmp(n->name, "rows") == 0)
		memcpy(v, s->rows, s->n_rows * sizeof *v);
	else
		for (i = 0; i < s->n_tokens; i++)
			v[i] = (int32_t)position(s, i);
	return true;
}

bool
eval_WEIGHT(Eval *e, const Node *n)
{
	(void)e;
	(void)n;
	return true;
}

bool
eval_STATE(Eval *e, const Node *n)
{
	(void)e;
	(void)n;
	return true;
}

bool
eval_RESHAPE(Eval *e, const Node *n)
{
	memcpy(out(e, n), eval_in(e, n, 0),
	    (size_t)dtype_bytes(n->type.dtype, elements(e, n)));
	return true;
}

bool
eval_SLICE(Eval *e, const Node *n)
{
	DType t = n->type.dtype;
	size_t skip = (size_t)dtype_bytes(t, n->attr.start);
	size_t bytes = (size_t)dtype_bytes(t, n->attr.count);
	size_t stride = (size_t)dtype_bytes(t, (uint64_t)last(&n->in[0]->type));
	const char *x = eval_in(e, n, 0);
	char *y = out(e, n);
	uint64_t i, count = vectors(e, n);

	for (i = 0; i < count; i++)
		memcpy(y + i * bytes, x + i * stride + skip, bytes);
	return true;
}

/* ---- element by element ---- */

typedef struct Operand {
	const void *data;
	DType dtype;
	uint64_t step[MAX_DIMS]; /* per axis of the result; 0: it repeats */
} Operand;

static float
load(const Operand *o, uint64_t i)
{
	if (o->dtype == DT_F32)
		return ((const float *)o->data)[i];
	return ig_from_bf16(((const uint16_t *)o->data)[i]);
}

static Operand
operand(const Eval *e, const Node *n, int i)
{
	const Type *t = &n->in[i]->type;
	Operand o = {eval_in(e, n, i), t->dtype, {0}};
	int shift = n->type.n_dims - t->n_dims, d;
	uint64_t step = 1;

	for (d = t->n_dims - 1; d >= 0; d--) {
		if (t->dim[d] != 1)
			o.step[d + shift] = step;
		step *= d > 0 ? (uint64_t)t->dim[d] : 1;
	}
	return o;
}

/* Where vector number row of the result begins in o. */
static uint64_t
offset(const Operand *o, const Type *t, uint64_t row)
{
	uint64_t at = 0;
	int d;

	for (d = t->n_dims - 2; d > 0; d--) {
		at += row % (uint64_t)t->dim[d] * o->step[d];
		row /= (uint64_t)t->dim[d];
	}
	return at + row * o->step[0];
}

typedef float Expression(const Node *n, const float *v);

static bool
point(Eval *e, const Node *n, Expression *f)
{
	int axis = n->type.n_dims - 1, inputs = ops[n->op].inputs, k;
	uint64_t inner = axis > 0 ? (uint64_t)last(&n->type) : elements(e, n);
	uint64_t rows = elements(e, n) / (inner > 0 ? inner : 1), row, i;
	float *y = out(e, n), v[MAX_INPUTS];
	uint64_t at[MAX_INPUTS];
	Operand o[MAX_INPUTS];

	for (k = 0; k < inputs; k++)
		o[k] = operand(e, n, k);
	for (row = 0; row < rows; row++) {
		for (k = 0; k < inputs; k++)
			at[k] = axis > 0 ? offset(&o[k], &n->type, row) : 0;
		for (i = 0; i < inner; i++) {
			for (k = 0; k < inputs; k++)
				v[k] = load(&o[k], at[k] + i * o[k].step[axis]);
			*y++ = f(n, v);
		}
	}
	return true;
}

#define POINT(NAME, expression)                                                \
	static float point_##NAME(const Node *n, const float *v)               \
	{                                                                      \
		(void)n;                                                       \
		return expression;                                             \
	}                                                                      \
	bool eval_##NAME(Eval *e, const Node *n)                               \
	{                                                                      \
		return point(e, n, point_##NAME);                              \
	}

/* clang-format off */
POINT(ADD,      v[0] + v[1])
POINT(MUL,      v[0] * v[1])
POINT(FMA,      ig_fma(v[0], v[1], v[2]))
POINT(SCALE,    v[0] * n->attr.factor)
POINT(SILU,     ig_silu(v[0]))
POINT(SIGMOID,  ig_sigmoid(v[0]))
POINT(SOFTPLUS, ig_softplus(v[0]))
POINT(EXP,      ig_exp(v[0]))
/* clang-format on */

bool
eval_CAST(Eval *e, const Node *n)
{
	Operand x = {eval_in(e, n, 0), n->in[0]->type.dtype, {0}};
	uint64_t i, count = elements(e, n);

	for (i = 0; i < count; i++) {
		if (n->type.dtype == DT_F32)
			((float *)out(e, n))[i] = load(&x, i);
		else
			((uint16_t *)out(e, n))[i] = ig_to_bf16(load(&x, i));
	}
	return true;
}

/* ---- rows ---- */

bool
eval_RMS_NORM(Eval *e, const Node *n)
{
	uint64_t size = (uint64_t)last(&n->type), rows = vectors(e, n), r, i;
	Operand w = {eval_in(e, n, 1), n->in[1]->type.dtype, {0}};
	const float *x = eval_in(e, n, 0);
	float *y = out(e, n), nth = (float)(1.0 / (double)size);
	bool finite = true;

	for (r = 0; r < rows; r++, x += size, y += size) {
		float ss = row_sum_sq(x, size);
		float inv = ig_rsqrt(ss * nth + n->attr.eps);

		finite = finite && isfinite(ss);
		for (i = 0; i < size; i++)
			y[i] = (x[i] * inv) * load(&w, i);
	}
	return finite;
}

bool
eval_L2_NORM(Eval *e, const Node *n)
{
	uint64_t size = (uint64_t)last(&n->type), rows = vectors(e, n), r, i;
	const float *x = eval_in(e, n, 0);
	float *y = out(e, n);
	bool finite = true;

	for (r = 0; r < rows; r++, x += size, y += size) {
		float ss = row_sum_sq(x, size);
		float inv = ig_rsqrt(ss + n->attr.eps);

		finite = finite && isfinite(ss);
		for (i = 0; i < size; i++)
			y[i] = x[i] * inv;
	}
	return finite;
}

bool
eval_QUANTISE(Eval *e, const Node *n)
{
	uint64_t i, count = elements(e, n);
	Q8A *y = out(e, n);
	bool finite = true;

	quantise_row(eval_in(e, n, 0), count, y);
	for (i = 0; i < count / 32; i++)
		finite = finite && isfinite(y[i].s);
	return finite;
}

/* Pairs are i and i + rot/2; what follows them passes. */
static void
rotate(const float *x, const float *angles, uint32_t rot, float *y)
{
	uint32_t i, half = rot / 2;

	for (i = 0; i < half; i++) {
		float c = angles[2 * i], s = angles[2 * i + 1];

		y[i] = ig_fma(-x[i + half], s, x[i] * c);
		y[i + half] = ig_fma(x[i], s, x[i + half] * c);
	}
}

bool
eval_ROPE(Eval *e, const Node *n)
{
	uint64_t size = (uint64_t)n->type.dim[2], t, h;
	uint64_t rows = eval_rows(e, &n->type);
	uint64_t heads = (uint64_t)n->type.dim[1];
	const int32_t *positions = eval_in(e, n, 1);
	const float *x = eval_in(e, n, 0), *angles;
	float *y = out(e, n);

	memcpy(y, x, (size_t)elements(e, n) * sizeof *y);
	for (t = 0; t < rows; t++) {
		angles = eval_angles(e, &n->attr, (uint32_t)positions[t]);
		for (h = 0; h < heads; h++, x += size, y += size)
			rotate(x, angles, n->attr.rot, y);
	}
	return true;
}

/* ---- routing ---- */

/* The k largest of x[n], descending, ties to the lowest index: each pick is
 * the best of what ranks behind the one before. */
static void
top_k(const float *x, uint32_t n, uint32_t k, int32_t *ids)
{
	uint32_t slot, i;

	for (slot = 0; slot < k; slot++) {
		int32_t before = slot > 0 ? ids[slot - 1] : -1, best = -1;

		for (i = 0; i < n; i++) {
			if (before >= 0 &&
			    !(x[i] < x[before] ||
				(x[i] == x[before] && (int32_t)i > before)))
				continue;
			if (best < 0 || x[i] > x[best])
				best = (int32_t)i;
		}
		ids[slot] = best < 0 ? 0 : best; /* only a NaN leaves none */
	}
}

bool
eval_TOP_K(Eval *e, const Node *n)
{
	uint32_t experts = (uint32_t)last(&n->in[0]->type);
	uint64_t t, rows = eval_rows(e, &n->type);
	const float *logits = eval_in(e, n, 0);
	int32_t *ids = out(e, n);

	for (t = 0; t < rows; t++)
		top_k(logits + t * experts, experts, n->attr.k,
		    ids + t * n->attr.k);
	return true;
}

/* Over what the weights of a token are shared out: the sum of the exponentials
 * of its slots, or of all experts. */
static float
route_sum(const Node *n, const float *logits, float top, const float *e_slot,
    float *scratch)
{
	uint64_t i, k = (uint64_t)last(&n->type);
	uint64_t experts = (uint64_t)last(&n->in[0]->type);
	float z = 0;

	if (n->attr.renormalise) {
		for (i = 0; i < k; i++)
			z = z + e_slot[i];
		return z;
	}
	for (i = 0; i < experts; i++)
		scratch[i] = ig_exp(logits[i] - top);
	return row_sum(scratch, experts);
}

bool
eval_ROUTE(Eval *e, const Node *n)
{
	uint64_t t, j, rows = eval_rows(e, &n->type);
	uint64_t k = (uint64_t)last(&n->type);
	uint64_t experts = (uint64_t)last(&n->in[0]->type);
	float *scratch = eval_alloc(experts, sizeof *scratch);
	const float *logits = eval_in(e, n, 0);
	const int32_t *ids = eval_in(e, n, 1);
	float *y = out(e, n), z;

	for (t = 0; t < rows; t++, logits += experts, ids += k, y += k) {
		for (j = 0; j < k; j++)
			y[j] = ig_exp(logits[ids[j]] - logits[ids[0]]);
		z = route_sum(n, logits, logits[ids[0]], y, scratch);
		for (j = 0; j < k; j++)
			y[j] = ig_div(y[j], z);
	}
	free(scratch);
	return true;
}

bool
eval_COMBINE(Eval *e, const Node *n)
{
	uint64_t t, i, j, rows = eval_rows(e, &n->type);
	uint64_t k = (uint64_t)last(&n->in[1]->type);
	uint64_t size = (uint64_t)last(&n->type);
	const float *y = eval_in(e, n, 0), *r = eval_in(e, n, 1);
	float *sum = out(e, n);

	for (t = 0; t < rows; t++, r += k, sum += size) {
		for (i = 0; i < size; i++)
			sum[i] = 0;
		for (j = 0; j < k; j++, y += size)
			for (i = 0; i < size; i++)
				sum[i] = ig_fma(r[j], y[i], sum[i]);
	}
	return true;
}

/* ---- gathers ---- */

bool
eval_EMBED(Eval *e, const Node *n)
{
	uint64_t t, rows = eval_rows(e, &n->type);
	uint64_t size = (uint64_t)last(&n->type);
	const Type *table = &n->in[0]->type;
	uint64_t stride = dtype_bytes(table->dtype, size);
	const int32_t *ids = eval_in(e, n, 1);
	const char *data = eval_in(e, n, 0);
	float *y = out(e, n);

	for (t = 0; t < rows; t++) {
		assert(ids[t] >= 0 && ids[t] < table->dim[0]);
		dequant_row(table->dtype, data + (uint32_t)ids[t] * stride,
		    size, y + t * size);
	}
	return true;
}

bool
eval_TAKE(Eval *e, const Node *n)
{
	uint64_t r, rows = eval_rows(e, &n->type);
	uint64_t size = (uint64_t)last(&n->type);
	const float *x = eval_in(e, n, 0);
	const int32_t *ids = eval_in(e, n, 1);
	float *y = out(e, n);

	for (r = 0; r < rows; r++) {
		assert((uint32_t)ids[r] < e->step->n_tokens);
		memcpy(y + r * size, x + (uint32_t)ids[r] * size,
		    (size_t)size * sizeof *y);
	}
	return true;
}

/* ---- contractions ---- */

/* A matrix [n,k] as one linear reads it. */
typedef struct Matrix {
	const char *rows;
	DType dtype;
	uint64_t n, k, stride;
} Matrix;

static Matrix
matrix(const Eval *e, const Node *n)
{
	const Type *w = &n->in[1]->type;
	uint64_t k = (uint64_t)last(w);

	assert(dtypes[w->dtype].kind != DK_QUANT ||
	       n->in[0]->type.dtype == DT_Q8A); /* legalise() has run */
	return (Matrix){eval_in(e, n, 1), w->dtype,
	    (uint64_t)w->dim[w->n_dims - 2], k, dtype_bytes(w->dtype, k)};
}

static float
dot(const Matrix *m, const char *row, const void *x)
{
	if (dtypes[m->dtype].kind == DK_QUANT)
		return dot_group256(m->dtype, row, x, m->k);
	return dot32(m->dtype, row, x, m->k);
}

bool
eval_LINEAR(Eval *e, const Node *n)
{
	size_t x_bytes = (size_t)dtype_bytes(
	    n->in[0]->type.dtype, (uint64_t)last(&n->in[0]->type));
	uint64_t t, i, rows = eval_rows(e, &n->type);
	const char *x = eval_in(e, n, 0);
	Matrix m = matrix(e, n);
	float *y = out(e, n);

	for (i = 0; i < m.n; i++)
		for (t = 0; t < rows; t++)
			y[t * m.n + i] =
			    dot(&m, m.rows + i * m.stride, x + t * x_bytes);
	return true;
}

/* x has one row a token, or one for each slot. */
bool
eval_EXPERTS(Eval *e, const Node *n)
{
	const Type *x_type = &n->in[0]->type;
	uint64_t k = (uint64_t)n->type.dim[1], slot, i;
	uint64_t slots = eval_rows(e, &n->type) * k;
	size_t x_bytes =
	    (size_t)dtype_bytes(x_type->dtype, (uint64_t)last(x_type));
	const int32_t *ids = eval_in(e, n, 2);
	const char *x = eval_in(e, n, 0), *row;
	Matrix m = matrix(e, n);
	float *y = out(e, n);

	for (slot = 0; slot < slots; slot++) {
		uint64_t from = x_type->n_dims == 3 ? slot : slot / k;

		assert(ids[slot] >= 0 && ids[slot] < n->in[1]->type.dim[0]);
		row = m.rows + (uint32_t)ids[slot] * m.n * m.stride;
		for (i = 0; i < m.n; i++, row += m.stride)
			*y++ = dot(&m, row, x + from * x_bytes);
	}
	return true;
}
