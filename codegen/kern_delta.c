/* Delta family: a workgroup is one value head of one sequence and walks its
 * tokens. The state of a head lies 8 columns to a vector: [Dv/8][Dk][8]. */
#include "emit.h"

typedef unsigned long long ull;

static Scope
head_scope(const Node *delta)
{
	return (Scope){"t", "head", (uint64_t)delta->type.dim[1], false};
}

static bool
is_gate_of(const Kernel *k, const Node *n, const Node *delta)
{
	return ops[n->op].kind == KIND_POINT &&
	       type_row(&n->type) == (uint64_t)delta->type.dim[1] &&
	       in_region(k, n);
}

/* The ops before the rule (gates, a number a head) or behind it. */
static void
emit_part(Kernel *k, const Scope *s, const Node *delta, bool gates)
{
	Scope part = *s;

	part.numbers = gates;
	for (uint32_t i = 0; i < k->r->n_ops; i++) {
		Node *n = k->r->ops[i];

		if (n != delta && is_gate_of(k, n, delta) == gates)
			emit_row_op(k, &part, n);
	}
}

static void
emit_workgroup(Kernel *k, const Node *delta, ull dk, ull dv)
{
	ull heads = (ull)delta->type.dim[1];
	ull key_heads = (ull)delta->in[1]->type.dim[1];

	text_line(&k->body, "const uint32_t *seq = %s + wg / %llu * 4;",
	    arg_input(k, IN_SEQS), heads);
	text_line(&k->body, "const uint32_t head = wg %% %llu;", heads);
	if (delta->attr.tiled)
		text_line(&k->body, "const uint32_t key_head = head %% %llu;",
		    key_heads);
	else
		text_line(&k->body, "const uint32_t key_head = head / %llu;",
		    heads / key_heads);
	text_line(&k->body,
	    "float *state = %s + ((size_t)seq[0] * %llu + head) * %llu;",
	    arg_state(k, delta->in[5]), heads, dk * dv);
}

void
emit_delta(Kernel *k)
{
	Node *delta = find_op(k, OP_DELTA_RULE);
	ull dk = last_axis(delta->in[0]), dv = last_axis(delta);
	Scope s = head_scope(delta);
	Scope keys = {
	    "t", "key_head", (uint64_t)delta->in[1]->type.dim[1], false};
	const char *q, *key, *v, *decay, *beta, *o;

	if (dv % 8 != 0)
		no_kernel(k, delta, "value heads are no multiple of 8");
	k->stem = arena_printf(
	    k->arena, "delta_%llux%llux%llu", (ull)delta->type.dim[1], dk, dv);
	k->grid = (Grid){SYM_B, (uint32_t)delta->type.dim[1], 1, 0};
	emit_workgroup(k, delta, dk, dv);
	text_open(&k->body, "for (uint32_t n = 0; n < seq[2]; n++)");
	text_line(&k->body, "const size_t t = seq[1] + n;");
	emit_part(k, &s, delta, true);
	q = value_ref(k, &keys, delta->in[0]);
	key = value_ref(k, &keys, delta->in[1]);
	v = value_ref(k, &s, delta->in[2]);
	decay = value_ref(k, &s, delta->in[3]);
	beta = value_ref(k, &s, delta->in[4]);
	o = declare_target(k, &s, delta);
	text_open(&k->body, "for (int j = 0; j < %llu; j += 8)", dv);
	text_line(&k->body, "float *column = state + j * %llu;", dk);
	text_line(&k->body,
	    "const f32x8 kv = ig_decay_dot(column, %s, %s[0], %llu);", key,
	    decay, dk);
	text_line(&k->body,
	    "const f32x8 u = ig_splat(%s[0]) * (ig_load_f32x8(%s + j) - kv);",
	    beta, v);
	text_line(&k->body,
	    "ig_store_f32x8(%s + j, ig_update_dot(column, %s, %s, u, %llu));",
	    o, key, q, dk);
	text_close(&k->body);
	emit_part(k, &s, delta, false);
	text_close(&k->body);
}
