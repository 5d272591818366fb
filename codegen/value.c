/* Names and pointers: how a kernel's text refers to what it reads and makes. */
#include <assert.h>
#include <ctype.h>
#include <string.h>

#include "emit.h"

const char *
c_type(DType t)
{
	switch (t) {
	case DT_F32:
		return "float";
	case DT_F16:
	case DT_BF16:
		return "uint16_t";
	case DT_I32:
		return "uint32_t";
	case DT_Q8A:
		return "Q8A";
	default:
		return "uint8_t";
	}
}

bool
in_region(const Kernel *k, const Node *n)
{
	uint32_t r = k->l->region_of[n->id];

	return r != NO_REGION && &k->l->regions[r] == k->r;
}

bool
is_output(const Kernel *k, const Node *n)
{
	return in_region(k, n) && (k->l->buffer_of[n->id] != NO_BUFFER ||
				      n == k->l->graph->result);
}

Node *
find_op(const Kernel *k, Op op)
{
	for (uint32_t i = 0; i < k->r->n_ops; i++)
		if (k->r->ops[i]->op == op)
			return k->r->ops[i];
	return NULL;
}

/* ---- names ---- */

/* A reshape keeps the order of elements, so it is the value it reshapes. */
static Node *
skip_reshapes(Node *n)
{
	while (n->op == OP_RESHAPE)
		n = n->in[0];
	return n;
}

const char *
value_name(Kernel *k, const Node *n)
{
	uint32_t number;

	if (k->names[n->id])
		return k->names[n->id];
	number = ++k->counts[n->op];
	k->names[n->id] = number == 1 ? ops[n->op].name
				      : arena_printf(k->arena, "%s%u",
					    ops[n->op].name, number);
	if (n->op == OP_EXP || n->op == OP_CAST) /* not a name of the prelude */
		k->names[n->id] =
		    arena_printf(k->arena, "%s_%u", ops[n->op].name, number);
	return k->names[n->id];
}

/* A leaf's name without what tells layers apart: "blk.3.attn_q.weight" and
 * "layer.3.k" give "attn_q" and "k". */
static const char *
leaf_name(Kernel *k, const Node *n)
{
	const char *from = n->name;
	char *name, *dot;

	for (const char *p = from; *p; p++)
		if (*p == '.' && p[1] >= '0' && p[1] <= '9')
			from =
			    strchr(p + 1, '.') ? strchr(p + 1, '.') + 1 : from;
	name = arena_strdup(k->arena, from);
	dot = strstr(name, ".weight");
	if (dot)
		*dot = '\0';
	for (char *p = name; *p; p++)
		if (!isalnum((unsigned char)*p))
			*p = '_';
	return arena_printf(
	    k->arena, "%s%s", name, n->op == OP_STATE ? "_state" : "_w");
}

/* ---- arguments ---- */

static const char *
add_arg(Kernel *k, uint32_t kind, const Node *node, uint32_t input,
    const char *name)
{
	Arg *a = &k->args[k->n_args];

	for (uint32_t i = 0; i < k->n_args; i++) {
		Arg *b = &k->args[i];

		if (b->kind == kind && b->node == node && b->input == input)
			return b->name;
	}
	if (k->n_args == MAX_ARGS)
		err(k->diag, 70, node, "a kernel has over %d arguments",
		    MAX_ARGS);
	for (uint32_t i = 0; i < k->n_args; i++)
		if (strcmp(k->args[i].name, name) == 0)
			name = arena_printf(k->arena, "%s%u", name, k->n_args);
	*a = (Arg){kind, node, input, name};
	k->n_args++;
	return name;
}

const char *
arg_weight(Kernel *k, const Node *weight)
{
	return add_arg(k, ARG_WEIGHT, weight, 0, leaf_name(k, weight));
}

const char *
arg_state(Kernel *k, const Node *state)
{
	return add_arg(k, ARG_STATE, state, 0, leaf_name(k, state));
}

const char *
arg_input(Kernel *k, uint32_t input)
{
	static const char *const names[IN_COUNT] = {
	    "tokens", "positions", "row_slot", "seqs", "blocks", "rows"};

	return add_arg(k, ARG_INPUT, NULL, input, names[input]);
}

/* Equal tables are one argument, whichever rope asks first. */
const char *
arg_table(Kernel *k, const Node *rope)
{
	for (uint32_t i = 0; i < k->n_args; i++) {
		const Arg *a = &k->args[i];

		if (a->kind == ARG_TABLE &&
		    a->node->attr.rot == rope->attr.rot &&
		    a->node->attr.theta == rope->attr.theta)
			return a->name;
	}
	return add_arg(k, ARG_TABLE, rope, 0, "angles");
}

const char *
arg_rows(Kernel *k, const Node *value)
{
	const char *name =
	    arena_printf(k->arena, "%s_rows", value_name(k, value));

	if (value == k->l->graph->result)
		return add_arg(k, ARG_LOGITS, value, 0, name);
	return add_arg(k, ARG_BUFFER, value, 0, name);
}

/* ---- parts of rows ---- */

static uint64_t
unit(const Node *n)
{
	return n->type.dtype == DT_Q8A ? 32 : 1;
}

uint64_t
scope_width(const Scope *s, Node *n)
{
	return has_rows(n) ? type_row(&n->type) / s->heads
			   : type_count(&n->type);
}

/* Where the scope's part of a stored row begins, as text that is added to the
 * rows' pointer; elements are whole blocks for q8a. */
static const char *
part_offset(Kernel *k, const Scope *s, const View *v)
{
	uint64_t part = v->count / s->heads, u = unit(v->root);
	uint64_t row = type_row(&v->root->type) / u;
	const char *at = row == 1 ? s->row
				  : arena_printf(k->arena, "(size_t)%s * %llu",
					s->row, (unsigned long long)row);

	if (v->offset > 0)
		at = arena_printf(k->arena, "%s + %llu", at,
		    (unsigned long long)(v->offset / u));
	if (s->heads == 1)
		return at;
	if (part == 1)
		return arena_printf(k->arena, "%s + %s", at, s->head);
	if (view_contiguous(v) || v->inner == part)
		return arena_printf(k->arena, "%s + %s * %llu", at, s->head,
		    (unsigned long long)((view_contiguous(v) ? part
							     : v->stride) /
					 u));
	return arena_printf(k->arena,
	    "%s + %s / %llu * %llu + %s %% %llu * %llu", at, s->head,
	    (unsigned long long)(v->inner / part),
	    (unsigned long long)v->stride, s->head,
	    (unsigned long long)(v->inner / part), (unsigned long long)part);
}

/* A slice of something that is an array in this kernel. */
static const char *
slice_of_array(Kernel *k, const Scope *s, Node *n, const View *v)
{
	assert(s->heads == 1);
	text_line(&k->body, "const %s *%s = %s + %llu;", c_type(n->type.dtype),
	    value_name(k, n), value_name(k, v->root),
	    (unsigned long long)v->offset);
	return value_name(k, n);
}

void
declare_as(Kernel *k, const Scope *s, Node *n, Node *alias)
{
	View v = view_of(n);

	k->declared[alias->id] = true;
	text_line(&k->body, "%s%s *%s = %s + %s;",
	    in_region(k, v.root) ? "" : "const ", c_type(n->type.dtype),
	    value_name(k, alias), arg_rows(k, v.root), part_offset(k, s, &v));
}

const char *
value_ref(Kernel *k, const Scope *s, Node *n)
{
	View v;

	n = skip_reshapes(n);
	if (n->op == OP_WEIGHT)
		return arg_weight(k, n);
	if (k->declared[n->id])
		return value_name(k, n);
	v = view_of(n);
	k->declared[n->id] = true;
	if (in_region(k, v.root) && !is_output(k, v.root)) {
		assert(n != v.root);
		return slice_of_array(k, s, n, &v);
	}
	declare_as(k, s, n, n);
	return value_name(k, n);
}

const char *
declare_target(Kernel *k, const Scope *s, Node *n)
{
	uint64_t size = scope_width(s, n) / unit(n);

	if (is_output(k, n))
		return value_ref(k, s, n);
	k->declared[n->id] = true;
	text_line(&k->body, "%s %s[%llu];", c_type(n->type.dtype),
	    value_name(k, n), (unsigned long long)size);
	return value_name(k, n);
}

void
bind_value(Kernel *k, Node *n, const char *name)
{
	n = skip_reshapes(n);
	k->names[n->id] = name;
	k->declared[n->id] = true;
}
