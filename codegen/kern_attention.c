/* Attention family: a workgroup is one query head of one token. Keys are taken
 * in spans of 128 at absolute positions; spans merge in ascending order. */
#include "emit.h"

typedef unsigned long long ull;

static bool
is_attention(const Node *n)
{
	return n->op == OP_ATTENTION;
}

static void
emit_span(Kernel *k, const Node *n, const char *q)
{
	ull d = last_axis(n);
	const char *kv = n->in[1]->type.dtype == DT_F32 ? "f32" : "bf16";
	ull kv_heads = (ull)n->in[1]->type.dim[1];

	text_line(&k->body, "const int count = keys - first < 128 ? (int)(keys "
			    "- first) : 128;");
	text_line(&k->body, "float p[128], o[%llu];", d);
	text_line(&k->body,
	    "ig_scores_%s(%s, %s, page + first / %d, %llu, kv_head, count, "
	    "%llu, %s, p);",
	    kv, q, arg_state(k, root_of(n->in[1])->in[0]), KV_PAGE, kv_heads, d,
	    float_text(k->arena, n->attr.scale));
	text_line(&k->body, "const float m = ig_span_exp(p, count);");
	text_line(&k->body, "const float l = ig_tree128(p);");
	text_line(&k->body,
	    "ig_values_%s(p, %s, page + first / %d, %llu, kv_head, count, "
	    "%llu, o);",
	    kv, arg_state(k, root_of(n->in[2])->in[0]), KV_PAGE, kv_heads, d);
	text_line(&k->body,
	    "ig_merge_span(first == 0, m, l, o, %llu, &max, &sum, %s);", d,
	    value_name(k, n));
}

void
emit_attention(Kernel *k)
{
	Node *n = find_op(k, OP_ATTENTION);
	ull heads = (ull)n->type.dim[1], d = last_axis(n);
	Scope s = {"t", "head", heads, false};
	const char *q, *o;

	k->stem = arena_printf(k->arena, "attention_%s_%llux%llu",
	    dtypes[n->in[1]->type.dtype].name, heads, d);
	k->grid = (Grid){SYM_T, (uint32_t)heads, 1, 0};
	text_line(&k->body, "const uint32_t t = wg / %llu, head = wg %% %llu;",
	    heads, heads);
	text_line(&k->body, "const uint32_t kv_head = head / %llu;",
	    heads / (ull)n->in[1]->type.dim[1]);
	text_line(&k->body, "const uint32_t keys = %s[t] + 1;",
	    arg_input(k, IN_POSITIONS));
	text_line(&k->body,
	    "const uint32_t *page = %s + (size_t)%s[t] * s->pages;",
	    arg_input(k, IN_BLOCKS), arg_input(k, IN_ROW_SLOT));
	q = value_ref(k, &s, n->in[0]);
	o = declare_target(k, &s, n);
	text_line(&k->body, "float max = 0.0f, sum = 0.0f;");
	text_open(
	    &k->body, "for (uint32_t first = 0; first < keys; first += 128)");
	emit_span(k, n, q);
	text_close(&k->body);
	text_line(&k->body, "const float inv = ig_div(1.0f, sum);");
	text_line(&k->body, "for (int i = 0; i < %llu; i++)", d);
	text_line(&k->body, "\t%s[i] = %s[i] * inv;", o, o);
	emit_scope(k, &s, is_attention);
}
