/* Ops of the row family, each over one scope: a row, or a head's part of it. */
#include <string.h>

#include "emit.h"

typedef unsigned long long ull;

enum { MAX_EXPERTS = 1024 }; /* IG_MAX_EXPERTS of the prelude */

/* A pointer to n's elements one behind the other. */
static const char *
contiguous_ref(Kernel *k, const Scope *s, Node *n)
{
	View v = view_of(n);
	Loops l = {scope_width(s, n), v.inner};
	const char *name;

	if (view_contiguous(&v) || s->heads > 1)
		return value_ref(k, s, n);
	declare_element(k, s, n);
	name = arena_printf(k->arena, "%s_copy", value_name(k, n));
	text_line(&k->body, "%s %s[%llu];", c_type(n->type.dtype), name,
	    (ull)l.width);
	text_line(
	    &k->body, "for (int h = 0; h < %llu; h++)", (ull)(l.width / l.run));
	text_line(&k->body, "\tfor (int i = 0; i < %llu; i++)", (ull)l.run);
	text_line(&k->body, "\t\t%s[h * %llu + i] = %s;", name, (ull)l.run,
	    element(k, s, n, &l));
	return name;
}

/* Opens a loop over the heads of x, if there are several, and gives the text
 * that is added to pointers of x and y inside it. */
typedef struct Heads {
	uint64_t size, count;
	const char *x, *y; /* "" or " + h * stride" */
} Heads;

static Heads
heads_of(Kernel *k, const Scope *s, Node *n)
{
	View v = view_of(n->in[0]);
	Heads h = {.size = last_axis(n), .x = "", .y = ""};
	uint64_t stride;

	h.count = scope_width(s, n) / h.size;
	stride = view_contiguous(&v) || v.inner != h.size ? h.size : v.stride;
	if (h.count > 1) {
		h.x = arena_printf(k->arena, " + h * %llu", (ull)stride);
		h.y = arena_printf(k->arena, " + h * %llu", (ull)h.size);
	}
	return h;
}

static void
open_heads(Kernel *k, const Heads *h)
{
	if (h->count > 1) {
		text_open(
		    &k->body, "for (int h = 0; h < %llu; h++)", (ull)h->count);
		return;
	}
	text_line(&k->body, "{");
	k->body.indent++;
}

static void
emit_norm(Kernel *k, const Scope *s, Node *n)
{
	Heads h = heads_of(k, s, n);
	const char *x = value_ref(k, s, n->in[0]);
	const char *w = n->op == OP_RMS_NORM ? value_ref(k, s, n->in[1]) : NULL;
	const char *y = declare_target(k, s, n);
	const char *eps = float_text(k->arena, n->attr.eps);

	open_heads(k, &h);
	text_line(&k->body, "const float *x = %s%s;", x, h.x);
	if (w)
		text_line(&k->body,
		    "const float inv = ig_rms_inv(x, %llu, %s, %s, s);",
		    (ull)h.size,
		    float_text(k->arena, (float)(1.0 / (double)h.size)), eps);
	else
		text_line(&k->body,
		    "const float inv = ig_l2_inv(x, %llu, %s, s);", (ull)h.size,
		    eps);
	text_line(&k->body, "float *y = %s%s;", y, h.y);
	text_line(&k->body, "for (int i = 0; i < %llu; i++)", (ull)h.size);
	if (w)
		text_line(&k->body, "\ty[i] = (x[i] * inv) * %s;",
		    widened(k, n->in[1]->type.dtype,
			arena_printf(k->arena, "%s[i]", w)));
	else
		text_line(&k->body, "\ty[i] = x[i] * inv;");
	text_close(&k->body);
}

static void
emit_quantise(Kernel *k, const Scope *s, Node *n)
{
	const char *x = contiguous_ref(k, s, n->in[0]);
	const char *y = declare_target(k, s, n);

	text_line(&k->body, "if (ig_quantise(%s, %llu, %s))", x,
	    (ull)scope_width(s, n), y);
	text_line(&k->body, "\tig_fault(s);");
}

static void
emit_rope(Kernel *k, const Scope *s, Node *n)
{
	Heads h = heads_of(k, s, n);
	const char *x = value_ref(k, s, n->in[0]);
	const char *y = declare_target(k, s, n);
	const char *table = arg_table(k, n);
	const char *positions = arg_input(k, IN_POSITIONS);

	if (h.count > 1)
		text_line(
		    &k->body, "for (int h = 0; h < %llu; h++)", (ull)h.count);
	text_line(&k->body,
	    "%sig_rope(%s%s, %s + (size_t)%s[%s] * %u, %u, %llu, %s%s);",
	    h.count > 1 ? "\t" : "", x, h.x, table, positions, s->row,
	    n->attr.rot, n->attr.rot, (ull)h.size, y, h.y);
}

static void
emit_top_k(Kernel *k, const Scope *s, Node *n)
{
	const char *x = contiguous_ref(k, s, n->in[0]);
	const char *y = declare_target(k, s, n);

	if (last_axis(n->in[0]) > MAX_EXPERTS)
		no_kernel(k, n, "more than 1024 experts");
	text_line(&k->body, "ig_top_k(%s, %llu, %u, %s);", x,
	    (ull)scope_width(s, n->in[0]), n->attr.k, y);
}

static void
emit_route(Kernel *k, const Scope *s, Node *n)
{
	const char *x = contiguous_ref(k, s, n->in[0]);
	const char *ids = contiguous_ref(k, s, n->in[1]);
	const char *y = declare_target(k, s, n);

	text_line(&k->body, "ig_route%s(%s, %llu, %s, %llu, %s);",
	    n->attr.renormalise ? "_renormalised" : "", x,
	    (ull)scope_width(s, n->in[0]), ids, (ull)scope_width(s, n), y);
}

static void
emit_combine(Kernel *k, const Scope *s, Node *n)
{
	const char *x = contiguous_ref(k, s, n->in[0]);
	const char *r = contiguous_ref(k, s, n->in[1]);
	const char *y = declare_target(k, s, n);
	ull width = scope_width(s, n);

	text_open(&k->body, "for (int i = 0; i < %llu; i++)", width);
	text_line(&k->body, "float sum = 0.0f;");
	text_line(&k->body, "for (int j = 0; j < %llu; j++)",
	    (ull)scope_width(s, n->in[1]));
	text_line(&k->body, "\tsum = ig_fma(%s[j], %s[j * %llu + i], sum);", r,
	    x, width);
	text_line(&k->body, "%s[i] = sum;", y);
	text_close(&k->body);
}

static void
emit_embed(Kernel *k, const Scope *s, Node *n)
{
	const char *table = arg_weight(k, n->in[0]);
	const char *ids = arg_input(k, IN_TOKENS);
	const char *y = declare_target(k, s, n);

	text_line(&k->body, "ig_row_%s(%s, %s[%s], %llu, %s);",
	    dtypes[n->in[0]->type.dtype].name, table, ids, s->row,
	    (ull)last_axis(n), y);
}

/* The row picked stays where it is unless the value must be stored. */
static void
emit_take(Kernel *k, const Scope *s, Node *n)
{
	const char *rows = arg_input(k, IN_ROWS);
	const char *row = arena_printf(k->arena, "%s[%s]", rows, s->row);
	Scope from = {row, NULL, 1, false};
	const char *x, *y;

	if (!is_output(k, n)) {
		declare_as(k, &from, n->in[0], n);
		return;
	}
	x = contiguous_ref(k, &from, n->in[0]);
	y = declare_target(k, s, n);
	text_line(
	    &k->body, "for (int i = 0; i < %llu; i++)", (ull)scope_width(s, n));
	text_line(&k->body, "\t%s[i] = %s[i];", y, x);
}

/* Whether attention reads the state that n leaves as its keys. */
static bool
is_keys(const Kernel *k, const Node *n)
{
	const Graph *g = k->l->graph;

	for (uint32_t i = 0; i < g->count; i++)
		if (g->nodes[i]->op == OP_ATTENTION && g->nodes[i]->in[1] == n)
			return true;
	return false;
}

/* Keys lie 8 to a vector: page [head][KV_PAGE/8][D][8]; values one behind the
 * other: page [head][KV_PAGE][D]. */
static void
emit_append(Kernel *k, const Scope *s, Node *n)
{
	Node *x = n->in[1];
	ull head = last_axis(n), heads = type_row(&n->type) / head;
	Loops l = {head * heads, head};
	const char *state = arg_state(k, n->in[0]);
	const char *name = value_name(k, n);
	const char *type = c_type(n->type.dtype);

	if (n->type.dtype != DT_F32 && n->type.dtype != DT_BF16)
		no_kernel(k, n, "only f32 and bf16 are cached");
	declare_element(k, s, x);
	text_line(&k->body,
	    "%s *%s = %s + ig_page_of(%s, %s[%s], %s[%s], s) * %llu;", type,
	    name, state, arg_input(k, IN_BLOCKS), arg_input(k, IN_ROW_SLOT),
	    s->row, arg_input(k, IN_POSITIONS), s->row, head * heads * KV_PAGE);
	text_line(&k->body, "for (int h = 0; h < %llu; h++)", heads);
	text_line(&k->body, "\tfor (int i = 0; i < %llu; i++)", head);
	text_line(&k->body, "\t\t%s[%s(h, %s[%s], i, %llu)] = %s;", name,
	    is_keys(k, n) ? "ig_key" : "ig_value", arg_input(k, IN_POSITIONS),
	    s->row, head, narrowed(k, n->type.dtype, element(k, s, x, &l)));
}

void
emit_row_op(Kernel *k, const Scope *s, Node *n)
{
	static void (*const emit_op[OP_COUNT])(
	    Kernel *, const Scope *, Node *) = {
	    [OP_RMS_NORM] = emit_norm,
	    [OP_L2_NORM] = emit_norm,
	    [OP_QUANTISE] = emit_quantise,
	    [OP_ROPE] = emit_rope,
	    [OP_TOP_K] = emit_top_k,
	    [OP_ROUTE] = emit_route,
	    [OP_COMBINE] = emit_combine,
	    [OP_EMBED] = emit_embed,
	    [OP_TAKE] = emit_take,
	    [OP_APPEND] = emit_append,
	};

	if (ops[n->op].kind == KIND_POINT) {
		if (!is_inlined(k, n))
			emit_point(k, s, n);
		return;
	}
	if (!emit_op[n->op])
		no_kernel(k, n, "its family does not cover it");
	emit_op[n->op](k, s, n);
}

void
emit_scope(Kernel *k, const Scope *s, bool (*skip)(const Node *))
{
	for (uint32_t i = 0; i < k->r->n_ops; i++)
		if (!skip || !skip(k->r->ops[i]))
			emit_row_op(k, s, k->r->ops[i]);
}
