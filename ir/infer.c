/* Shape and dtype inference: one function per op, after the comments of
 * ops.def. A refusal lists the operands' types, then the complaint. */
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "ir_impl.h"

typedef struct Infer {
	Op op;
	Node *const *in;
	const Attrs *attr;
	Type *out; /* what the caller asked for; then the result */
	char *why;
} Infer;

#define OP(NAME, name, inputs, KIND, flags)                                    \
	static bool infer_##NAME(const Infer *f);
#include "ops.def"
#undef OP

/* What ops.def calls the operands. */
static const char *const operands[OP_COUNT][MAX_INPUTS] = {
    [OP_RESHAPE] = {"x"},
    [OP_SLICE] = {"x"},
    [OP_ADD] = {"a", "b"},
    [OP_MUL] = {"a", "b"},
    [OP_FMA] = {"a", "b", "c"},
    [OP_SCALE] = {"x"},
    [OP_SILU] = {"x"},
    [OP_SIGMOID] = {"x"},
    [OP_SOFTPLUS] = {"x"},
    [OP_EXP] = {"x"},
    [OP_CAST] = {"x"},
    [OP_RMS_NORM] = {"x", "w"},
    [OP_L2_NORM] = {"x"},
    [OP_QUANTISE] = {"x"},
    [OP_ROPE] = {"x", "positions"},
    [OP_TOP_K] = {"logits"},
    [OP_ROUTE] = {"logits", "ids"},
    [OP_COMBINE] = {"y", "weights"},
    [OP_EMBED] = {"table", "ids"},
    [OP_TAKE] = {"x", "rows"},
    [OP_LINEAR] = {"x", "w"},
    [OP_EXPERTS] = {"x", "w", "ids"},
    [OP_CONV] = {"x", "taps", "state"},
    [OP_APPEND] = {"state", "x"},
    [OP_ATTENTION] = {"q", "k", "v"},
    [OP_DELTA_RULE] = {"q", "k", "v", "decay", "beta", "state"},
};

/* ---- saying no ---- */

static void
say(char *why, size_t *used, const char *fmt, ...)
{
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(why + *used, WHY_BYTES - *used, fmt, args);
	va_end(args);
	*used += n > 0 ? (size_t)n : 0;
	if (*used >= WHY_BYTES)
		*used = WHY_BYTES - 1;
}

static bool
no(const Infer *f, const char *complaint)
{
	int i, n = ops[f->op].inputs;
	char text[TYPE_TEXT];
	size_t used = 0;

	say(f->why, &used, "%s: ", ops[f->op].name);
	for (i = 0; i < n; i++)
		say(f->why, &used, "%s%s is %s",
		    i == 0 ? "" : (n == 2 ? " but " : ", "), operands[f->op][i],
		    type_text(&f->in[i]->type, text));
	say(f->why, &used, "%s%s", n > 0 ? ": " : "", complaint);
	return false;
}

/* no() for operand i, whose name goes in front of the complaint. */
static bool
no_operand(const Infer *f, int i, const char *complaint)
{
	char text[200];

	snprintf(text, sizeof text, "%s %s", operands[f->op][i], complaint);
	return no(f, text);
}

/* ---- operands ---- */

static const Type *
arg(const Infer *f, int i)
{
	return &f->in[i]->type;
}

static int64_t
last(const Type *t)
{
	return t->dim[t->n_dims - 1];
}

/* State is read by the ops that own it alone. */
static bool
is_state(const Type *t)
{
	return t->dim[0] == DIM_C || t->dim[0] == DIM_B;
}

static bool
is_float(DType t)
{
	return t == DT_F32 || t == DT_BF16;
}

static bool
want_dtype(const Infer *f, int i, DType t)
{
	char text[32];

	if (is_state(arg(f, i)))
		return no_operand(f, i, "is state, not a value");
	if (arg(f, i)->dtype == t)
		return true;
	snprintf(text, sizeof text, "must be %s", dtypes[t].name);
	return no_operand(f, i, text);
}

/* f32, or bf16 that is widened where it is read. */
static bool
want_float(const Infer *f, int i)
{
	DType t = arg(f, i)->dtype;

	if (is_state(arg(f, i)))
		return no_operand(f, i, "is state, not a value");
	if (t == DT_F16)
		return no_operand(f, i, "is f16, which this op does not read");
	return is_float(t) || no_operand(f, i, "must be f32 or bf16");
}

static bool
want_dims(const Infer *f, int i, int n)
{
	char text[32];

	if (arg(f, i)->n_dims == n)
		return true;
	snprintf(
	    text, sizeof text, "must have %d ax%ss", n, n == 1 ? "i" : "e");
	return no_operand(f, i, text);
}

static bool
want_value(const Infer *f, int i, DType t, int n)
{
	return want_dtype(f, i, t) && want_dims(f, i, n);
}

static bool
want_weight(const Infer *f, int i, int n)
{
	if (f->in[i]->op != OP_WEIGHT)
		return no_operand(f, i, "must be a weight");
	return want_dims(f, i, n);
}

/* Recurrent state, f32 [B, ...]. */
static bool
want_recurrent(const Infer *f, int i, int n)
{
	if (f->in[i]->op != OP_STATE || arg(f, i)->dim[0] != DIM_B)
		return no_operand(f, i, "must be a state [B,..]");
	return want_dims(f, i, n);
}

/* Ids of experts: a top_k of as many, so that none lies outside. */
static bool
want_ids(const Infer *f, int i, int64_t experts)
{
	const Node *n = f->in[i];

	if (!want_value(f, i, DT_I32, 2))
		return false;
	return (n->op == OP_TOP_K && last(&n->in[0]->type) == experts) ||
	       no_operand(f, i, "must be a top_k of as many experts");
}

static bool
same_rows(const Infer *f, int i, int j)
{
	return arg(f, i)->dim[0] == arg(f, j)->dim[0] ||
	       no(f, "their first axes differ");
}

static bool
finite_positive(const Infer *f, double x, const char *attr)
{
	char text[64];

	if (isfinite(x) && x > 0)
		return true;
	snprintf(text, sizeof text, "%s must be finite and above 0", attr);
	return no(f, text);
}

static bool
give(const Infer *f, DType t, int n_dims, int64_t d0, int64_t d1, int64_t d2)
{
	*f->out = (Type){t, n_dims, {d0, d1, d2}};
	return true;
}

static bool
give_like(const Infer *f, const Type *t, DType dtype)
{
	*f->out = *t;
	f->out->dtype = dtype;
	return true;
}

/* ---- leaves: the type is given, and checked ---- */

/* Counts within 2^31, products within 2^48, only the first axis symbolic and
 * then one of the symbols from low to high; whole blocks in a row. */
static bool
type_sound(const Type *t, int low, int high)
{
	uint64_t n = 1;
	int i;

	if (t->dtype >= DT_COUNT || t->n_dims < 1 || t->n_dims > MAX_DIMS)
		return false;
	for (i = 0; i < t->n_dims; i++) {
		if (i == 0 && t->dim[0] >= low && t->dim[0] <= high)
			continue;
		if (t->dim[i] < 1 || t->dim[i] > INT32_MAX)
			return false;
		n *= (uint64_t)t->dim[i];
		if (n > (uint64_t)1 << 48)
			return false;
	}
	return dtypes[t->dtype].block == 1 ||
	       (last(t) > 0 && last(t) % dtypes[t->dtype].block == 0);
}

static bool
no_leaf(const Infer *f, const char *complaint)
{
	char text[TYPE_TEXT];
	size_t used = 0;

	say(f->why, &used, "%s: %s %s", ops[f->op].name,
	    type_text(f->out, text), complaint);
	return false;
}

static bool
infer_INPUT(const Infer *f)
{
	const Type *t = f->out;

	return (type_sound(t, DIM_R, DIM_T) && t->dtype == DT_I32 &&
		   t->n_dims == 1 && t->dim[0] < 0) ||
	       no_leaf(f, "is neither i32[T] nor i32[R]");
}

static bool
infer_WEIGHT(const Infer *f)
{
	if (!type_sound(f->out, 0, -1))
		return no_leaf(f, "is not made of constant axes with whole "
				  "blocks in a row");
	return dtypes[f->out->dtype].kind == DK_FLOAT ||
	       dtypes[f->out->dtype].kind == DK_QUANT ||
	       no_leaf(f, "is not a weight's dtype");
}

static bool
infer_STATE(const Infer *f)
{
	const Type *t = f->out;

	if (!type_sound(t, DIM_C, DIM_B) || t->dim[0] > 0)
		return no_leaf(f, "is neither [B,..] nor [C,h,D]");
	if (t->dim[0] == DIM_C)
		return (t->n_dims == 3 && is_float(t->dtype)) ||
		       no_leaf(f, "is not f32[C,h,D] or bf16[C,h,D]");
	return (t->n_dims >= 2 && t->dtype == DT_F32) ||
	       no_leaf(f, "is not f32[B,..]");
}

/* ---- views ---- */

static bool
infer_RESHAPE(const Infer *f)
{
	const Type *x = arg(f, 0);
	Type *t = f->out;

	if (is_state(x))
		return no_operand(f, 0, "is state, not a value");
	if (dtypes[x->dtype].kind == DK_QUANT)
		return no(f, "a quantised weight has one shape");
	t->dtype = x->dtype;
	if (!type_sound(t, DIM_R, DIM_T))
		return no_leaf(f, "is not a shape of whole blocks");
	return (t->dim[0] == x->dim[0] && type_row(t) == type_row(x)) ||
	       no_leaf(f, "does not keep the rows and their length");
}

static bool
infer_SLICE(const Infer *f)
{
	uint64_t start = f->attr->start, count = f->attr->count;
	const Type *x = arg(f, 0);
	uint32_t block = dtypes[x->dtype].block;
	char text[96];

	if (is_state(x))
		return no_operand(f, 0, "is state, not a value");
	if (dtypes[x->dtype].kind == DK_QUANT)
		return no(f, "a quantised weight is not sliced");
	if (last(x) < 0)
		return no(f, "its last axis is not a count");
	snprintf(text, sizeof text,
	    "elements %llu to %llu do not lie in its last axis",
	    (unsigned long long)start, (unsigned long long)(start + count));
	if (count == 0 || start + count > (uint64_t)last(x))
		return no(f, text);
	if (start % block != 0 || count % block != 0)
		return no(f, "the cut goes through a block");
	give_like(f, x, x->dtype);
	f->out->dim[x->n_dims - 1] = (int64_t)count;
	return true;
}

/* ---- element by element ---- */

/* Aligned at the right, each axis of small is that of big, or 1, or missing; a
 * symbolic one only matches itself or a missing one. */
static bool
spreads(const Type *small, const Type *big)
{
	int i, shift = big->n_dims - small->n_dims;

	if (shift < 0)
		return false;
	for (i = 0; i < small->n_dims; i++) {
		int64_t s = small->dim[i], b = big->dim[i + shift];

		if (s != b && (s != 1 || b < 0))
			return false;
	}
	return true;
}

static bool
pointwise(const Infer *f)
{
	int i, j, n = ops[f->op].inputs;

	for (i = 0; i < n; i++)
		if (!want_float(f, i))
			return false;
	for (i = 0; i < n; i++) {
		for (j = 0; j < n && spreads(arg(f, j), arg(f, i));)
			j++;
		if (j == n)
			return give_like(f, arg(f, i), DT_F32);
	}
	return no(f, "none has a shape that the others spread to");
}

static bool
infer_ADD(const Infer *f)
{
	return pointwise(f);
}

static bool
infer_MUL(const Infer *f)
{
	return pointwise(f);
}

static bool
infer_FMA(const Infer *f)
{
	return pointwise(f);
}

static bool
infer_SCALE(const Infer *f)
{
	if (!isfinite(f->attr->factor))
		return no(f, "factor must be finite");
	return pointwise(f);
}

static bool
infer_SILU(const Infer *f)
{
	return pointwise(f);
}

static bool
infer_SIGMOID(const Infer *f)
{
	return pointwise(f);
}

static bool
infer_SOFTPLUS(const Infer *f)
{
	return pointwise(f);
}

static bool
infer_EXP(const Infer *f)
{
	return pointwise(f);
}

static bool
infer_CAST(const Infer *f)
{
	DType to = f->out->dtype;
	char text[64];

	if (!want_float(f, 0))
		return false;
	if (is_float(to))
		return give_like(f, arg(f, 0), to);
	snprintf(text, sizeof text, "it cannot become %s",
	    to < DT_COUNT ? dtypes[to].name : "that");
	return no(f, text);
}

/* ---- rows ---- */

static bool
infer_RMS_NORM(const Infer *f)
{
	if (!want_dtype(f, 0, DT_F32) || !want_float(f, 1) ||
	    !want_dims(f, 1, 1))
		return false;
	if (last(arg(f, 1)) < 0 || last(arg(f, 0)) != last(arg(f, 1)))
		return no(f, "their last axes differ");
	return finite_positive(f, (double)f->attr->eps, "eps") &&
	       give_like(f, arg(f, 0), DT_F32);
}

static bool
infer_L2_NORM(const Infer *f)
{
	return want_dtype(f, 0, DT_F32) &&
	       (last(arg(f, 0)) > 0 || no(f, "its last axis is not a count")) &&
	       finite_positive(f, (double)f->attr->eps, "eps") &&
	       give_like(f, arg(f, 0), DT_F32);
}

static bool
infer_QUANTISE(const Infer *f)
{
	if (!want_dtype(f, 0, DT_F32))
		return false;
	return (last(arg(f, 0)) > 0 && last(arg(f, 0)) % 32 == 0 &&
		   give_like(f, arg(f, 0), DT_Q8A)) ||
	       no(f, "its last axis is not a multiple of 32");
}

static bool
infer_ROPE(const Infer *f)
{
	uint32_t rot = f->attr->rot;

	if (!want_value(f, 0, DT_F32, 3) || !want_value(f, 1, DT_I32, 1) ||
	    !same_rows(f, 0, 1))
		return false;
	if (rot == 0 || rot % 2 != 0 || rot > (uint64_t)last(arg(f, 0)))
		return no(f, "rot must be even and within the last axis of x");
	return finite_positive(f, f->attr->theta, "theta") &&
	       give_like(f, arg(f, 0), DT_F32);
}

static bool
infer_TOP_K(const Infer *f)
{
	if (!want_value(f, 0, DT_F32, 2))
		return false;
	if (f->attr->k == 0 || f->attr->k > (uint64_t)last(arg(f, 0)))
		return no(f, "k must be 1 to the length of the last axis");
	return give(f, DT_I32, 2, arg(f, 0)->dim[0], f->attr->k, 0);
}

static bool
infer_ROUTE(const Infer *f)
{
	return want_value(f, 0, DT_F32, 2) && want_ids(f, 1, last(arg(f, 0))) &&
	       same_rows(f, 0, 1) && give_like(f, arg(f, 1), DT_F32);
}

static bool
infer_COMBINE(const Infer *f)
{
	const Type *y = arg(f, 0), *w = arg(f, 1);

	if (!want_value(f, 0, DT_F32, 3) || !want_value(f, 1, DT_F32, 2) ||
	    !same_rows(f, 0, 1))
		return false;
	return (y->dim[1] == w->dim[1] || no(f, "their slots differ")) &&
	       give(f, DT_F32, 2, y->dim[0], y->dim[2], 0);
}

/* ---- gathers ---- */

static bool
infer_EMBED(const Infer *f)
{
	return want_weight(f, 0, 2) && want_value(f, 1, DT_I32, 1) &&
	       give(f, DT_F32, 2, arg(f, 1)->dim[0], last(arg(f, 0)), 0);
}

static bool
infer_TAKE(const Infer *f)
{
	if (!want_value(f, 0, DT_F32, 2) || !want_value(f, 1, DT_I32, 1))
		return false;
	return (arg(f, 0)->dim[0] == DIM_T || no(f, "x must be [T,n]")) &&
	       (arg(f, 1)->dim[0] == DIM_R || no(f, "rows must be [R]")) &&
	       give(f, DT_F32, 2, DIM_R, last(arg(f, 0)), 0);
}

/* ---- contractions ---- */

/* A quantised weight reads q8a, or f32 until legalise() has run; a float
 * weight reads f32 alone. */
static bool
contracts(const Infer *f)
{
	const Type *x = arg(f, 0), *w = arg(f, 1);
	bool quant = dtypes[w->dtype].kind == DK_QUANT;

	if (is_state(x))
		return no_operand(f, 0, "is state, not a value");
	if (x->dtype != DT_F32 && !(quant && x->dtype == DT_Q8A))
		return no(f, quant ? "x must be f32 or q8a" : "x must be f32");
	return last(x) == last(w) || no(f, "their last axes differ");
}

static bool
infer_LINEAR(const Infer *f)
{
	return want_dims(f, 0, 2) && want_weight(f, 1, 2) && contracts(f) &&
	       give(f, DT_F32, 2, arg(f, 0)->dim[0], arg(f, 1)->dim[0], 0);
}

static bool
infer_EXPERTS(const Infer *f)
{
	const Type *x = arg(f, 0), *w = arg(f, 1), *ids = arg(f, 2);

	if (!want_weight(f, 1, 3) || !want_ids(f, 2, w->dim[0]))
		return false;
	if (x->n_dims != 2 && x->n_dims != 3)
		return no(f, "x must be [T,K] or [T,k,K]");
	if (!contracts(f) || !same_rows(f, 0, 2))
		return false;
	if (x->n_dims == 3 && x->dim[1] != ids->dim[1])
		return no(f, "the slots of x and ids differ");
	return give(f, DT_F32, 3, x->dim[0], ids->dim[1], w->dim[1]);
}

/* ---- along a sequence ---- */

static bool
infer_CONV(const Infer *f)
{
	const Type *x = arg(f, 0), *taps = arg(f, 1), *state = arg(f, 2);

	if (!want_value(f, 0, DT_F32, 2) || !want_weight(f, 1, 2) ||
	    !want_float(f, 1) || !want_recurrent(f, 2, 3))
		return false;
	if (x->dim[0] != DIM_T)
		return no(f, "x must be [T,n]");
	return (taps->dim[0] == x->dim[1] || no(f, "taps must be [n,K]")) &&
	       ((state->dim[1] == taps->dim[1] && state->dim[2] == x->dim[1]) ||
		   no(f, "state must be [B,K,n]")) &&
	       give_like(f, x, DT_F32);
}

static bool
infer_APPEND(const Infer *f)
{
	const Type *state = arg(f, 0), *x = arg(f, 1);

	if (f->in[0]->op != OP_STATE || state->dim[0] != DIM_C)
		return no_operand(f, 0, "must be a state [C,h,D]");
	if (!want_value(f, 1, state->dtype, 3))
		return false;
	return ((x->dim[0] == DIM_T && x->dim[1] == state->dim[1] &&
		    x->dim[2] == state->dim[2]) ||
		   no(f, "x must be [T,h,D] of the state's h and D")) &&
	       give_like(f, state, state->dtype);
}

static bool
infer_ATTENTION(const Infer *f)
{
	const Type *q = arg(f, 0), *k = arg(f, 1), *v = arg(f, 2);

	if (!want_value(f, 0, DT_F32, 3))
		return false;
	if (k->dim[0] != DIM_C || v->dim[0] != DIM_C)
		return no(f, "k and v must be states [C,h,D]");
	if (k->dim[1] != v->dim[1] || k->dim[2] != v->dim[2])
		return no(f, "k and v differ in shape");
	if (q->dim[0] != DIM_T || q->dim[2] != k->dim[2])
		return no(f, "q must be [T,hq,D] of the keys' D");
	if (q->dim[1] % k->dim[1] != 0)
		return no(f, "heads of q are no multiple of heads of k");
	return finite_positive(f, (double)f->attr->scale, "scale") &&
	       give_like(f, q, DT_F32);
}

static bool
infer_DELTA_RULE(const Infer *f)
{
	const Type *q = arg(f, 0), *k = arg(f, 1), *v = arg(f, 2);
	const Type *decay = arg(f, 3), *beta = arg(f, 4), *s = arg(f, 5);
	int i;

	for (i = 0; i < 5; i++)
		if (!want_value(f, i, DT_F32, i < 3 ? 3 : 2))
			return false;
	if (!want_recurrent(f, 5, 4))
		return false;
	if (q->dim[0] != DIM_T || !type_equal(q, k))
		return no(f, "q and k must be [T,hk,Dk]");
	if (v->dim[0] != DIM_T || v->dim[1] % q->dim[1] != 0)
		return no(f, "v must be [T,hv,Dv], hv a multiple of hk");
	if (decay->dim[0] != DIM_T || decay->dim[1] != v->dim[1] ||
	    !type_equal(decay, beta))
		return no(f, "decay and beta must be [T,hv]");
	return ((s->dim[1] == v->dim[1] && s->dim[2] == q->dim[2] &&
		    s->dim[3] == v->dim[2]) ||
		   no(f, "state must be [B,hv,Dk,Dv]")) &&
	       give_like(f, v, DT_F32);
}

bool
infer(Op op, Node *const *in, const Attrs *attr, Type *type, char *why)
{
	static bool (*const rules[OP_COUNT])(const Infer *) = {
#define OP(NAME, name, inputs, KIND, flags) [OP_##NAME] = infer_##NAME,
#include "ops.def"
#undef OP
	};

	return rules[op](&(Infer){op, in, attr, type, why});
}
