/* Point ops: expressions and the loops around them. */
#include <stdlib.h>
#include <string.h>

#include "emit.h"

static const char *const exprs[OP_COUNT] = {
#define EXPR(OP, text) [OP_##OP] = text,
#include "exprs.def"
#undef EXPR
};

const char *
float_text(Arena *a, float f)
{
	const char *s = NULL;

	for (int digits = 1; digits <= 9; digits++) {
		s = arena_printf(a, "%.*g", digits, (double)f);
		if (strtof(s, NULL) == f)
			break;
	}
	return arena_printf(a, strpbrk(s, ".e") ? "%sf" : "%s.0f", s);
}

static Node *
only_reader(const Kernel *k, const Node *n)
{
	Node *reader = NULL;

	for (uint32_t i = 0; i < k->r->n_ops; i++)
		for (int j = 0; j < ops[k->r->ops[i]->op].inputs; j++)
			if (root_of(k->r->ops[i]->in[j]) == n) {
				if (reader)
					return NULL;
				reader = k->r->ops[i];
			}
	return reader;
}

bool
is_inlined(const Kernel *k, const Node *n)
{
	const Node *reader;

	if (ops[n->op].kind != KIND_POINT || !in_region(k, n) ||
	    is_output(k, n))
		return false;
	reader = only_reader(k, n);
	if (!reader)
		return false;
	if (reader->op == OP_APPEND)
		return true;
	return ops[reader->op].kind == KIND_POINT && n->type.dtype == DT_F32 &&
	       type_row(&n->type) == type_row(&reader->type);
}

/* ---- indices ---- */

/* Elements of n in a run over which its index is a plain sum. */
static uint64_t
run_of(const Scope *s, Node *n, uint64_t width)
{
	View v = view_of(n);
	uint64_t count = scope_width(s, n);

	if (has_rows(n) && !view_contiguous(&v) && s->heads == 1)
		return v.inner;
	return count == 1 || count == width ? width : count;
}

static void
narrow(const Kernel *k, const Scope *s, const Node *n, Loops *l)
{
	for (int i = 0; i < ops[n->op].inputs; i++) {
		Node *in = n->in[i];
		uint64_t run;

		if (is_inlined(k, root_of(in))) {
			narrow(k, s, root_of(in), l);
			continue;
		}
		run = run_of(s, in, l->width);
		if (run < l->run)
			l->run = run;
	}
}

/* The index of element (h, i) of a loop nest in a value of count elements. */
static const char *
index_text(Kernel *k, const Scope *s, Node *n, const Loops *l)
{
	uint64_t count = scope_width(s, n), run = l->run;
	View v = view_of(n);

	if (s->numbers && !has_rows(n))
		return s->head;
	if (count == 1 || l->width == 1)
		return "0";
	if (run == l->width || count == run)
		return "i";
	if (!has_rows(n) || view_contiguous(&v) || s->heads > 1)
		return arena_printf(
		    k->arena, "h * %llu + i", (unsigned long long)run);
	if (v.inner == run)
		return arena_printf(
		    k->arena, "h * %llu + i", (unsigned long long)v.stride);
	return arena_printf(k->arena,
	    "h * %llu / %llu * %llu + h * %llu %% %llu + i",
	    (unsigned long long)run, (unsigned long long)v.inner,
	    (unsigned long long)v.stride, (unsigned long long)run,
	    (unsigned long long)v.inner);
}

/* ---- expressions ---- */

/* Whether n is written as an expression with an operator in it. */
static bool
is_infix(const Kernel *k, Node *n)
{
	const char *text = exprs[root_of(n)->op];

	return is_inlined(k, root_of(n)) && text[0] == '%' && text[2] == ' ';
}

/* An operand with an operator gets parentheses beside another one. */
const char *
point_expression(Kernel *k, const Scope *s, Node *n, const Loops *l)
{
	Text t = {.arena = k->arena};
	bool infix = exprs[n->op][0] == '%' && exprs[n->op][2] == ' ';

	for (const char *p = exprs[n->op]; *p; p++) {
		if (*p != '%') {
			text_add(&t, "%c", *p);
			continue;
		}
		p++;
		if (*p == 'f')
			text_add(
			    &t, "%s", float_text(k->arena, n->attr.factor));
		else
			text_add(&t,
			    infix && is_infix(k, n->in[*p - '1']) ? "(%s)"
								  : "%s",
			    element(k, s, n->in[*p - '1'], l));
	}
	return t.at;
}

const char *
element(Kernel *k, const Scope *s, Node *n, const Loops *l)
{
	Node *root = root_of(n);

	if (is_inlined(k, root))
		return point_expression(k, s, root, l);
	return widened(k, n->type.dtype,
	    arena_printf(k->arena, "%s[%s]", value_ref(k, s, n),
		index_text(k, s, n, l)));
}

const char *
widened(Kernel *k, DType t, const char *value)
{
	return t == DT_BF16 ? arena_printf(k->arena, "ig_from_bf16(%s)", value)
			    : value;
}

const char *
narrowed(Kernel *k, DType t, const char *value)
{
	return t == DT_BF16 ? arena_printf(k->arena, "ig_to_bf16(%s)", value)
			    : value;
}

/* ---- loops ---- */

static void
declare_operands(Kernel *k, const Scope *s, const Node *n)
{
	for (int i = 0; i < ops[n->op].inputs; i++)
		declare_element(k, s, n->in[i]);
}

void
declare_element(Kernel *k, const Scope *s, Node *n)
{
	if (is_inlined(k, root_of(n)))
		declare_operands(k, s, root_of(n));
	else
		value_ref(k, s, n);
}

void
emit_point(Kernel *k, const Scope *s, Node *n)
{
	Loops l = {scope_width(s, n), scope_width(s, n)};
	const char *target, *value;

	if (n->type.dtype != DT_F32 && n->type.dtype != DT_BF16)
		no_kernel(k, n, "only f32 and bf16 are stored");
	declare_operands(k, s, n);
	target = declare_target(k, s, n);
	narrow(k, s, n, &l);
	value = narrowed(k, n->type.dtype, point_expression(k, s, n, &l));
	if (l.width == 1) {
		text_line(&k->body, "%s[0] = %s;", target, value);
		return;
	}
	if (l.run == l.width) {
		text_line(&k->body, "for (int i = 0; i < %llu; i++)",
		    (unsigned long long)l.width);
		text_line(&k->body, "\t%s[i] = %s;", target, value);
		return;
	}
	text_line(&k->body, "for (int h = 0; h < %llu; h++)",
	    (unsigned long long)(l.width / l.run));
	text_line(&k->body, "\tfor (int i = 0; i < %llu; i++)",
	    (unsigned long long)l.run);
	text_line(&k->body, "\t\t%s[h * %llu + i] = %s;", target,
	    (unsigned long long)l.run, value);
}
