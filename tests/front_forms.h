/* For tests of the front end: one checkpoint in both forms, GGUF and folder,
 * and whether two forms give the same graph. */
#ifndef TESTS_FRONT_FORMS_H
#define TESTS_FRONT_FORMS_H

#include "front_files.h"

static void
load(Description *d, Checkpoint **c, const char *fixture)
{
	Error e = {0};

	assert_int_equal(ckpt_open(fixture, false, c, &e), INGOT_OK);
	describe(d, *c);
}

/* GGUF and Hugging Face names, written down here a second time. */
static const char *const layer_names[][2] = {
    {"attn_norm.weight", "input_layernorm.weight"},
    {"ffn_norm.weight", "post_attention_layernorm.weight"},
    {"post_attention_norm.weight", "post_attention_layernorm.weight"},
    {"attn_q.weight", "self_attn.q_proj.weight"},
    {"attn_k.weight", "self_attn.k_proj.weight"},
    {"attn_v.weight", "self_attn.v_proj.weight"},
    {"attn_output.weight", "self_attn.o_proj.weight"},
    {"attn_q_norm.weight", "self_attn.q_norm.weight"},
    {"attn_k_norm.weight", "self_attn.k_norm.weight"},
    {"attn_qkv.weight", "linear_attn.in_proj_qkv.weight"},
    {"attn_gate.weight", "linear_attn.in_proj_z.weight"},
    {"ssm_alpha.weight", "linear_attn.in_proj_a.weight"},
    {"ssm_beta.weight", "linear_attn.in_proj_b.weight"},
    {"ssm_conv1d.weight", "linear_attn.conv1d.weight"},
    {"ssm_dt.bias", "linear_attn.dt_bias"}, {"ssm_a", "linear_attn.A_log"},
    {"ssm_norm.weight", "linear_attn.norm.weight"},
    {"ssm_out.weight", "linear_attn.out_proj.weight"},
    {"ffn_gate.weight", "mlp.gate_proj.weight"},
    {"ffn_up.weight", "mlp.up_proj.weight"},
    {"ffn_down.weight", "mlp.down_proj.weight"},
    {"ffn_gate_inp.weight", "mlp.gate.weight"},
    {"ffn_gate_exps.weight", "mlp.experts.%d.gate_proj.weight"},
    {"ffn_up_exps.weight", "mlp.experts.%d.up_proj.weight"},
    {"ffn_down_exps.weight", "mlp.experts.%d.down_proj.weight"},
    {"ffn_gate_inp_shexp.weight", "mlp.shared_expert_gate.weight"},
    {"ffn_gate_shexp.weight", "mlp.shared_expert.gate_proj.weight"},
    {"ffn_up_shexp.weight", "mlp.shared_expert.up_proj.weight"},
    {"ffn_down_shexp.weight", "mlp.shared_expert.down_proj.weight"}};

static inline const char *
folder_name(const char *gguf)
{
	size_t i;

	for (i = 0; i < sizeof layer_names / sizeof layer_names[0]; i++)
		if (strcmp(layer_names[i][0], gguf) == 0)
			return layer_names[i][1];
	fail_msg("no name for %s", gguf);
	return NULL;
}

/* One tensor for each expert of t. */
static inline void
add_split(Description *out, const Tensor *t, const char *format)
{
	char before[64], name[128];
	const char *behind = strstr(format, "%d") + 2;
	uint64_t e;

	snprintf(
	    before, sizeof before, "%.*s", (int)(behind - 2 - format), format);
	for (e = 0; e < t->dim[0]; e++) {
		snprintf(name, sizeof name, "%s%d%s", before, (int)e, behind);
		add(out, name, t->type, 2, (int)t->dim[1], (int)t->dim[2]);
	}
}

/* The tensors of a folder whose weights are those of the GGUF file d. */
static inline void
to_folder(const Description *d, Description *out, const char *prefix)
{
	char name[128], suffix[96];
	size_t i;
	int layer;

	out->n_tensors = 0;
	for (i = 0; i < d->n_tensors; i++) {
		Tensor t = d->tensor[i];

		if (sscanf(t.name, "blk.%d.%95s", &layer, suffix) == 2) {
			const char *hf = folder_name(suffix);

			snprintf(name, sizeof name, "%slayers.%d.%s", prefix,
			    layer, hf);
			if (strstr(hf, "%d") != NULL) {
				add_split(out, &t, name);
				continue;
			}
		} else if (strcmp(t.name, "output.weight") == 0) {
			snprintf(name, sizeof name, "lm_head.weight");
		} else {
			snprintf(name, sizeof name, "%s%s.weight", prefix,
			    t.name[0] == 't' ? "embed_tokens" : "norm");
		}
		if (strstr(name, "conv1d") != NULL) {
			t.dim[2] = t.dim[1];
			t.dim[1] = 1;
			t.n = 3;
		}
		memcpy(t.name, name, sizeof t.name);
		out->tensor[out->n_tensors++] = t;
		assert_true(out->n_tensors < MAX_TENSORS);
	}
}

#define DENSE_KEYS                                                             \
	"\"model_type\": \"qwen3\", \"hidden_size\": 256, "                    \
	"\"num_hidden_layers\": 2, \"num_attention_heads\": 4, "               \
	"\"num_key_value_heads\": 2, \"vocab_size\": 512, "                    \
	"\"intermediate_size\": 512, \"max_position_embeddings\": 4096, "      \
	"\"head_dim\": 64"
#define DENSE_CONFIG(more)                                                     \
	"{" DENSE_KEYS ", \"rope_theta\": 1e6, "                               \
	"\"tie_word_embeddings\": true" more "}"

#define HYBRID_KEYS                                                            \
	"\"hidden_size\": 256, \"num_hidden_layers\": 4, "                     \
	"\"num_attention_heads\": 4, \"num_key_value_heads\": 2, "             \
	"\"head_dim\": 64, \"vocab_size\": 512, \"num_experts\": 6, "          \
	"\"num_experts_per_tok\": 2, \"moe_intermediate_size\": 256, "         \
	"\"shared_expert_intermediate_size\": 256, "                           \
	"\"linear_key_head_dim\": 64, \"linear_value_head_dim\": 64, "         \
	"\"linear_num_key_heads\": 2, \"linear_num_value_heads\": 4, "         \
	"\"max_position_embeddings\": 4096, \"rope_parameters\": "             \
	"{\"rope_type\": \"default\", \"rope_theta\": 1e7, "                   \
	"\"mrope_section\": [4, 2, 2]}"
#define HYBRID_CONFIG(more)                                                    \
	"{\"model_type\": \"qwen3_5_moe_text\", " HYBRID_KEYS more "}"

/* ---- comparing graphs ---- */

static inline bool
is_router(const Node *n)
{
	return n->op == OP_WEIGHT && strstr(n->name, "router") != NULL;
}

/* The same ops on the same inputs with the same attributes, types and lines.
 * Routers are f32 in GGUF files, and value heads tiled. */
static inline void
check_same(const Graph *a, const Graph *b, bool both_gguf)
{
	uint32_t i;
	int j;

	assert_int_equal(a->count, b->count);
	assert_int_equal(a->n_weights, b->n_weights);
	for (i = 0; i < a->count; i++) {
		const Node *x = a->nodes[i], *y = b->nodes[i];
		Attrs p = x->attr, q = y->attr;

		assert_int_equal(x->op, y->op);
		if (!is_router(x))
			assert_true(type_equal(&x->type, &y->type));
		if (x->name != NULL || y->name != NULL)
			assert_string_equal(x->name, y->name);
		for (j = 0; j < ops[x->op].inputs; j++)
			assert_int_equal(x->in[j]->id, y->in[j]->id);
		if (!both_gguf && x->op == OP_DELTA_RULE) {
			assert_true(p.tiled && !q.tiled);
			p.tiled = q.tiled;
		}
		assert_int_equal(p.start, q.start);
		assert_int_equal(p.count, q.count);
		assert_int_equal(p.rot, q.rot);
		assert_int_equal(p.k, q.k);
		assert_true(p.eps == q.eps && p.theta == q.theta &&
			    p.factor == q.factor && p.scale == q.scale);
		assert_true(p.renormalise == q.renormalise);
		assert_true(p.tiled == q.tiled);
		assert_int_equal(x->line, y->line);
	}
}

static inline void
check_same_paths(const char *gguf, const char *other, bool both_gguf)
{
	Built a, b;

	build_good(&a, gguf);
	build_good(&b, other);
	check_same(a.graph, b.graph, both_gguf);
	release(&a);
	release(&b);
}

static inline void
dense_folder(Description *f, const char *prefix)
{
	static Description d;
	Checkpoint *c;

	load(&d, &c, FIXTURE("qwen3"));
	to_folder(&d, f, prefix);
	ckpt_close(c);
}

#endif
