/* Conv family: a workgroup is a block of channels of one sequence and walks
 * its tokens, so that it alone touches their history. The history is a ring of
 * as many slots as there are taps; a token writes only the slot of its
 * position. */
#include "emit.h"

typedef unsigned long long ull;

/* Channels of a block: the head size of the norms that follow, or what divides
 * the channels. */
static uint64_t
block_width(const Kernel *k, uint64_t channels)
{
	const Node *norm = find_op(k, OP_L2_NORM);
	uint64_t width = 64;

	if (norm)
		return last_axis(norm);
	while (channels % width != 0)
		width /= 2;
	return width;
}

static void
emit_history(Kernel *k, ull taps, ull channels, ull width)
{
	text_line(&k->body, "float past[%llu][%llu]; /* oldest first */",
	    taps - 1, width);
	text_open(&k->body, "for (uint32_t j = 0; j < %llu; j++)", taps - 1);
	text_line(&k->body, "const uint32_t at = start + j;");
	text_line(&k->body, "for (int i = 0; i < %llu; i++)", width);
	text_line(&k->body,
	    "\tpast[j][i] = at < %llu ? 0.0f : ring[(at - %llu) %% %llu * %llu "
	    "+ i];",
	    taps - 1, taps - 1, taps, channels);
	text_close(&k->body);
}

/* One token's sums over the taps, oldest first, then the history moves on. */
static void
emit_taps(Kernel *k, const Node *conv, const char *y, ull channels, ull width)
{
	DType type = conv->in[1]->type.dtype;
	ull taps = last_axis(conv->in[1]);

	text_open(&k->body, "for (int i = 0; i < %llu; i++)", width);
	text_line(&k->body, "const %s *w = %s + (c0 + i) * %llu;", c_type(type),
	    arg_weight(k, conv->in[1]), taps);
	text_line(&k->body, "float sum = 0.0f;");
	text_line(&k->body, "for (int j = 0; j < %llu; j++)", taps - 1);
	text_line(&k->body, "\tsum = ig_fma(%s, past[j][i], sum);",
	    widened(k, type, "w[j]"));
	text_line(&k->body, "%s[i] = ig_fma(%s, x[i], sum);", y,
	    widened(k, type, arena_printf(k->arena, "w[%llu]", taps - 1)));
	text_line(&k->body, "for (int j = 0; j < %llu; j++)", taps - 2);
	text_line(&k->body, "\tpast[j][i] = past[j + 1][i];");
	text_line(&k->body, "past[%llu][i] = x[i];", taps - 2);
	text_line(&k->body, "ring[(start + n) %% %llu * %llu + i] = x[i];",
	    taps, channels);
	text_close(&k->body);
}

/* The block's part of a row of channels that is stored, or an array. */
static const char *
block_target(Kernel *k, Node *n, ull channels, ull width)
{
	const char *name = value_name(k, n);

	if (is_output(k, n))
		text_line(&k->body, "float *%s = %s + t * %llu + c0;", name,
		    arg_rows(k, n), channels);
	else
		text_line(&k->body, "float %s[%llu];", name, width);
	return name;
}

/* A norm and its scale, for the blocks that lie in its slice. */
static void
emit_slice(Kernel *k, Node *norm, Node *silu)
{
	View v = view_of(norm->in[0]);
	ull head = last_axis(norm);
	Scope s = {"t", "head", v.count / head, false};

	if (v.offset == 0)
		text_open(&k->body, "if (c0 < %llu)", (ull)v.count);
	else
		text_open(&k->body, "if (c0 >= %llu && c0 < %llu)",
		    (ull)v.offset, (ull)(v.offset + v.count));
	if (v.offset == 0)
		text_line(&k->body, "const uint32_t head = c0 / %llu;", head);
	else
		text_line(&k->body, "const uint32_t head = c0 / %llu - %llu;",
		    head, (ull)v.offset / head);
	bind_value(k, norm->in[0], value_name(k, silu));
	emit_row_op(k, &s, norm);
	for (uint32_t i = 0; i < k->r->n_ops; i++)
		if (k->r->ops[i]->op == OP_SCALE &&
		    root_of(k->r->ops[i]->in[0]) == norm)
			emit_row_op(k, &s, k->r->ops[i]);
	text_close(&k->body);
}

/* Where the row of the conv's input begins, a slice of a stored value. */
static const char *
input_row(Kernel *k, const Node *conv)
{
	View v = view_of(conv->in[0]);
	ull row = type_row(&v.root->type);

	if (!view_contiguous(&v))
		no_kernel(k, conv, "its input is in pieces");
	if (v.offset == 0)
		return arena_printf(k->arena, "t * %llu", row);
	return arena_printf(k->arena, "t * %llu + %llu", row, (ull)v.offset);
}

void
emit_conv(Kernel *k)
{
	Node *conv = find_op(k, OP_CONV), *silu = find_op(k, OP_SILU);
	ull channels = type_row(&conv->type), taps = last_axis(conv->in[1]);
	ull width = block_width(k, channels);
	const char *y;

	if (taps < 2)
		no_kernel(k, conv, "fewer than two taps");
	k->stem = arena_printf(k->arena, "conv_%llux%llu", channels, taps);
	k->grid = (Grid){SYM_B, (uint32_t)(channels / width), 1, 0};
	text_line(&k->body, "const uint32_t *seq = %s + wg / %llu * 4;",
	    arg_input(k, IN_SEQS), channels / width);
	text_line(&k->body,
	    "const uint32_t c0 = wg %% %llu * %llu, start = seq[3];",
	    channels / width, width);
	text_line(&k->body, "float *ring = %s + (size_t)seq[0] * %llu + c0;",
	    arg_state(k, conv->in[2]), taps * channels);
	emit_history(k, taps, channels, width);
	text_open(&k->body, "for (uint32_t n = 0; n < seq[2]; n++)");
	text_line(&k->body, "const size_t t = seq[1] + n;");
	text_line(&k->body, "const float *x = %s + %s + c0;",
	    arg_rows(k, root_of(conv->in[0])), input_row(k, conv));
	y = block_target(k, conv, channels, width);
	emit_taps(k, conv, y, channels, width);
	if (silu) {
		const char *z = block_target(k, silu, channels, width);

		text_line(&k->body, "for (int i = 0; i < %llu; i++)", width);
		text_line(&k->body, "\t%s[i] = ig_silu(%s[i]);", z, y);
	}
	for (uint32_t i = 0; i < k->r->n_ops; i++)
		if (k->r->ops[i]->op == OP_L2_NORM)
			emit_slice(k, k->r->ops[i], silu);
	text_close(&k->body);
}
