/* Matmul and experts families: 32 rows of a weight times the activations.
 *
 * matmul   segments one behind the other, a workgroup picks its segment; or a
 *          gate-up pair with its product.
 * experts  the same for the (token, slot) pairs of one expert. A workgroup
 *          belongs to a pair; the first pair of an expert computes for all. */
#include "emit.h"

typedef unsigned long long ull;

/* Rows of a weight, and of activations, that a call of the prelude takes. */
enum { BLOCK = 32, TOGETHER = 8 };

static bool
is_product(const Node *n)
{
	return n->op == OP_LINEAR || n->op == OP_EXPERTS;
}

static uint64_t
out_rows(const Node *product)
{
	return last_axis(product);
}

static uint64_t
blocks(const Node *product)
{
	return (out_rows(product) + BLOCK - 1) / BLOCK;
}

static uint64_t
in_width(const Node *product)
{
	return last_axis(product->in[1]);
}

/* Elements of x that one product reads, in stored units. */
static uint64_t
x_stride(const Node *product)
{
	uint64_t width = in_width(product);

	return product->in[0]->type.dtype == DT_Q8A ? width / 32 : width;
}

/* The stored value that product reads, all of it. */
static Node *
whole_input(Kernel *k, const Node *product)
{
	View v = view_of(product->in[0]);

	if (!view_contiguous(&v) || v.count != type_row(&v.root->type))
		no_kernel(k, product, "its input is a part of a value");
	return v.root;
}

/* Rows of this block and its first one, as constants where they are. */
static void
emit_block_bounds(Kernel *k, const Node *product, const char *block)
{
	ull rows = out_rows(product);

	text_line(&k->body, "const uint32_t n0 = %s * %d;", block, BLOCK);
	if (rows % BLOCK == 0)
		text_line(&k->body, "const int n = %d;", BLOCK);
	else
		text_line(&k->body,
		    "const int n = n0 + %d < %llu ? %d : (int)(%llu - n0);",
		    BLOCK, rows, BLOCK, rows);
}

/* name[j][i]: products of the activation rows x[j], j < nt, with rows n0 + i.
 */
static void
emit_products(
    Kernel *k, const Node *product, const char *expert, const char *name)
{
	const Node *w = product->in[1];
	const char *type = dtypes[w->type.dtype].name;
	const char *weight = arg_weight(k, w);
	ull rows = out_rows(product), width = in_width(product);

	text_line(&k->body, "float %s[%d][%d];", name, TOGETHER, BLOCK);
	text_line(&k->body, "ig_block_%s(%s, %s%s, n0, n, x, nt, %llu, %s);",
	    type, weight, expert ? arena_printf(k->arena, "%s, ", expert) : "",
	    expert ? arena_printf(k->arena, "%llu", rows) : "0, 0", width,
	    name);
}

/* ---- what becomes of the products ---- */

/* Stores of rows j of the block; at(j) is the row number as text. */
static void
emit_store(Kernel *k, Node *product, const char *at, const char *name)
{
	text_open(&k->body, "for (int j = 0; j < nt; j++)");
	text_line(&k->body, "float *y = %s + (size_t)%s * %llu + n0;",
	    arg_rows(k, product), at, (ull)out_rows(product));
	text_line(&k->body, "for (int i = 0; i < n; i++)");
	text_line(&k->body, "\ty[i] = %s[j][i];", name);
	text_close(&k->body);
}

/* silu(gate)*up, and its quantisation when that is in the region. */
static void
emit_pair_store(Kernel *k, Node *gate, Node *up, const char *at)
{
	Node *mul = find_op(k, OP_MUL), *quantise = find_op(k, OP_QUANTISE);
	Scope s = {at, NULL, 1, false};
	uint64_t rows = out_rows(gate);
	Loops l = {rows, rows};

	bind_value(k, gate, "gate[j]");
	bind_value(k, up, "up[j]");
	text_open(&k->body, "for (int j = 0; j < nt; j++)");
	if (quantise)
		text_line(&k->body, "float y[%d];", BLOCK);
	else
		text_line(&k->body, "float *y = %s + (size_t)%s * %llu + n0;",
		    arg_rows(k, mul), at, (ull)rows);
	text_line(&k->body, "for (int i = 0; i < n; i++)");
	text_line(&k->body, "\ty[i] = %s;", point_expression(k, &s, mul, &l));
	if (quantise) {
		text_line(&k->body,
		    "if (ig_quantise(y, %d, %s + ((size_t)%s * %llu + n0) / "
		    "32))",
		    BLOCK, arg_rows(k, quantise), at, (ull)rows);
		text_line(&k->body, "\tig_fault(s);");
	}
	text_close(&k->body);
}

/* The products of the block and what follows from them. */
static void
emit_block(Kernel *k, Node *first, const char *expert, const char *at)
{
	Node *up = NULL;

	if (!find_op(k, OP_MUL)) {
		emit_products(k, first, expert, "sum");
		emit_store(k, first, at, "sum");
		return;
	}
	for (uint32_t i = 0; i < k->r->n_ops; i++)
		if (is_product(k->r->ops[i]) && k->r->ops[i] != first)
			up = k->r->ops[i];
	emit_products(k, first, expert, "gate");
	emit_products(k, up, expert, "up");
	if (find_op(k, OP_SILU)->in[0] == first)
		emit_pair_store(k, first, up, at);
	else
		emit_pair_store(k, up, first, at);
}

/* ---- matmul ---- */

static const char *
count_text(const Node *product)
{
	return product->type.dim[0] == DIM_R ? "s->rows" : "s->tokens";
}

/* One weight alone: a call of the prelude. */
static void
emit_segment(Kernel *k, Node *product, ull before)
{
	const char *block =
	    before > 0 ? arena_printf(k->arena, "wg - %llu", before) : "wg";
	const char *w = arg_weight(k, product->in[1]);
	const char *x = arg_rows(k, whole_input(k, product));

	text_line(&k->body, "%sig_linear_%s(%s, %llu, %s, %s, %s, %llu, %s);",
	    k->r->n_ops > 1 ? "\t" : "",
	    dtypes[product->in[1]->type.dtype].name, w, (ull)out_rows(product),
	    block, x, count_text(product), (ull)in_width(product),
	    arg_rows(k, product));
}

static void
emit_segments(Kernel *k)
{
	uint64_t done = 0;

	for (uint32_t i = 0; i < k->r->n_ops; i++) {
		Node *n = k->r->ops[i];

		if (k->r->n_ops > 1)
			text_line(&k->body, "%sif (wg < %llu)",
			    i > 0 ? "else " : "", (ull)(done + blocks(n)));
		emit_segment(k, n, done);
		done += blocks(n);
	}
	k->grid = (Grid){SYM_ONE, (uint32_t)done, 1, 0};
}

static void
emit_pair(Kernel *k)
{
	Node *product = find_op(k, OP_LINEAR);
	const char *count = count_text(product);
	const char *x = arg_rows(k, whole_input(k, product));

	k->grid = (Grid){SYM_ONE, (uint32_t)blocks(product), 1, 0};
	emit_block_bounds(k, product, "wg");
	text_line(&k->body, "int nt;");
	text_open(
	    &k->body, "for (uint32_t t = 0; t < %s; t += (uint32_t)nt)", count);
	text_line(&k->body, "nt = ig_together(%s - t);", count);
	text_line(&k->body, "const %s *x[%d];",
	    c_type(product->in[0]->type.dtype), TOGETHER);
	text_line(&k->body, "for (int j = 0; j < nt; j++)");
	text_line(&k->body, "\tx[j] = %s + (size_t)(t + j) * %llu;", x,
	    (ull)x_stride(product));
	emit_block(k, product, NULL, "(t + j)");
	text_close(&k->body);
}

static const char *
matmul_stem(Kernel *k, const Node *product)
{
	return arena_printf(k->arena, "%s_%s_%llux%llu%s",
	    ops[product->op].name, dtypes[product->in[1]->type.dtype].name,
	    (ull)out_rows(product), (ull)in_width(product),
	    find_op(k, OP_MUL) ? "_silu" : "");
}

void
emit_matmul(Kernel *k)
{
	k->stem = matmul_stem(k, find_op(k, OP_LINEAR));
	if (find_op(k, OP_MUL))
		emit_pair(k);
	else
		emit_segments(k);
}

/* ---- experts ---- */

/* x[j] and pair[j], j < nt, of the next pairs from p on that chose expert. */
static void
emit_pick(Kernel *k, const Node *product, const char *ids)
{
	const Node *x = product->in[0];
	ull slots = (ull)product->type.dim[1];
	bool shared = x->type.n_dims == 2;

	text_line(&k->body, "uint32_t pair[%d];", TOGETHER);
	text_line(&k->body,
	    "const int nt = ig_pairs_of(%s, s->tokens * %llu, expert, &p, "
	    "pair);",
	    ids, slots);
	text_line(
	    &k->body, "const %s *x[%d];", c_type(x->type.dtype), TOGETHER);
	text_line(&k->body, "for (int j = 0; j < nt; j++)");
	text_line(&k->body, "\tx[j] = %s + (size_t)pair[j]%s * %llu;",
	    arg_rows(k, whole_input(k, product)),
	    shared ? arena_printf(k->arena, " / %llu", slots) : "",
	    (ull)x_stride(product));
}

void
emit_experts(Kernel *k)
{
	Node *product = find_op(k, OP_EXPERTS);
	uint32_t n_blocks = (uint32_t)blocks(product);
	uint32_t slots = (uint32_t)product->type.dim[1];
	const char *ids = arg_rows(k, root_of(product->in[2]));

	k->stem = matmul_stem(k, product);
	k->grid = (Grid){SYM_T, slots * n_blocks, 1, 0};
	text_line(&k->body, "uint32_t p = wg / %u;", n_blocks);
	text_line(&k->body, "const uint32_t expert = %s[p];", ids);
	text_line(&k->body, "if (ig_chosen_before(%s, p))", ids);
	text_line(&k->body, "\treturn;");
	emit_block_bounds(
	    k, product, arena_printf(k->arena, "(wg %% %u)", n_blocks));
	text_open(&k->body, "while (p < s->tokens * %u)", slots);
	emit_pick(k, product, ids);
	emit_block(k, product, "expert", "pair[j]");
	text_close(&k->body);
}
