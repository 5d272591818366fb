#include <assert.h>

#include "lower.h"

bool
has_rows(const Node *n)
{
	return n->type.n_dims > 0 &&
	       (n->type.dim[0] == DIM_T || n->type.dim[0] == DIM_R);
}

uint64_t
row_bytes(const Node *n)
{
	return dtype_bytes(n->type.dtype, type_row(&n->type));
}

uint64_t
last_axis(const Node *n)
{
	return (uint64_t)n->type.dim[n->type.n_dims - 1];
}

Node *
root_of(Node *n)
{
	while (ops[n->op].kind == KIND_VIEW)
		n = n->in[0];
	return n;
}

/* Narrows v to the slice s of it. simplify has merged slices of slices, so a v
 * in pieces has pieces of the axis that s cuts. */
static void
cut(View *v, const Node *s)
{
	uint64_t axis = last_axis(s->in[0]);
	uint64_t pieces = v->count / axis;

	assert(view_contiguous(v) || v->inner == axis);
	if (view_contiguous(v))
		v->stride = axis;
	v->offset += s->attr.start;
	v->inner = s->attr.count;
	v->count = pieces * s->attr.count;
}

View
view_of(Node *n)
{
	View v;

	if (ops[n->op].kind != KIND_VIEW) {
		v.root = n;
		v.offset = 0;
		v.count = has_rows(n) ? type_row(&n->type) : 0;
		v.inner = v.stride = v.count;
		return v;
	}
	v = view_of(n->in[0]);
	if (n->op == OP_SLICE)
		cut(&v, n);
	return v;
}

bool
view_contiguous(const View *v)
{
	return v->inner == v->count || v->inner == v->stride;
}
