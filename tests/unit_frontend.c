/* The Lua front end on checkpoints: the graphs of the built-in models from
 * both kinds, and the sentences that end a wrong set of tensors. Run in the
 * repository's root: it reads tests/fixtures. */
#include "front_forms.h"

/* ---- good checkpoints ---- */

static const Node *
labelled(const Graph *g, const char *name)
{
	uint32_t i;

	for (i = 0; i < g->count; i++)
		if (ops[g->nodes[i]->op].kind != KIND_LEAF &&
		    g->nodes[i]->name != NULL &&
		    strcmp(g->nodes[i]->name, name) == 0)
			return g->nodes[i];
	return NULL;
}

static void
check_labels(const Graph *g, int layers)
{
	char name[32];
	const Node *n;
	uint32_t i;
	int l;

	for (l = 0; l <= layers; l++) {
		snprintf(name, sizeof name, "hidden.%d", l);
		n = labelled(g, name);
		assert_non_null(n);
		assert_int_equal(n->type.dim[0], l == layers ? DIM_R : DIM_T);
	}
	assert_null(labelled(g, "hidden.9"));
	for (i = 0; i < g->count; i++) {
		assert_non_null(strstr(g->nodes[i]->file, ".lua"));
		assert_true(g->nodes[i]->line > 0);
	}
}

static void
fixtures(void **state)
{
	static const struct {
		const char *path;
		uint32_t nodes, weights;
		int layers;
		const char *arch;
	} want[] = {{FIXTURE("qwen3"), 87, 24, 2, "qwen3"},
	    {FIXTURE("qwen3moe"), 98, 27, 2, "qwen3moe"},
	    {FIXTURE("qwen35"), 208, 55, 4, "qwen35"},
	    {FIXTURE("qwen35moe"), 277, 76, 4, "qwen35moe"}};
	size_t i;
	Built b;

	(void)state;
	for (i = 0; i < sizeof want / sizeof want[0]; i++) {
		build_good(&b, want[i].path);
		assert_null(verify(b.graph));
		assert_int_equal(b.graph->count, want[i].nodes);
		assert_int_equal(b.graph->n_weights, want[i].weights);
		assert_string_equal(b.graph->arch, want[i].arch);
		assert_int_equal(b.graph->vocab, 512);
		assert_int_equal(b.graph->ctx, 4096);
		assert_int_equal(b.ignored, 0);
		check_labels(b.graph, want[i].layers);
		release(&b);
	}
}

static const Node *
state_called(const Graph *g, const char *name)
{
	uint32_t i;

	for (i = 0; i < g->count; i++)
		if (g->nodes[i]->op == OP_STATE &&
		    strcmp(g->nodes[i]->name, name) == 0)
			return g->nodes[i];
	fail_msg("no state %s", name);
	return NULL;
}

static void
cache_dtype(void **state)
{
	Built b;

	(void)state;
	build(&b, FIXTURE("qwen3"), NULL, DT_F32);
	assert_non_null(b.graph);
	assert_int_equal(
	    state_called(b.graph, "layer.1.k")->type.dtype, DT_F32);
	release(&b);
	build(&b, FIXTURE("qwen3"), NULL, DT_BF16);
	assert_int_equal(
	    state_called(b.graph, "layer.1.v")->type.dtype, DT_BF16);
	release(&b);
}

static void
check_weight(const Graph *g, const char *name, DType t, WeightMap map,
    uint32_t pieces, uint32_t last_row, uint32_t last_rows)
{
	const Weight *w = graph_weight(g, name);

	assert_non_null(w);
	assert_int_equal(w->type.dtype, t);
	assert_int_equal(w->map, map);
	assert_int_equal(w->n_pieces, pieces);
	assert_int_equal(w->pieces[pieces - 1].row, last_row);
	assert_int_equal(w->pieces[pieces - 1].rows, last_rows);
}

/* Split experts; then stacked ones, a nested configuration, a longer prefix,
 * and tensors of other towers. */
static void
folders(void **state)
{
	static Description d, f;
	const char *path;
	Checkpoint *c;
	Built b;

	(void)state;
	load(&d, &c, FIXTURE("qwen35moe"));
	to_folder(&d, &f, "model.");
	f.config = HYBRID_CONFIG(", \"partial_rotary_factor\": 0.25");
	path = write_folder(&f, "split");
	check_same_paths(FIXTURE("qwen35moe"), path, false);
	build_good(&b, path);
	check_weight(
	    b.graph, "layer.0.mixer_norm", DT_F32, MAP_ONE_PLUS, 1, 0, 1);
	check_weight(b.graph, "layer.3.q_norm", DT_F32, MAP_ONE_PLUS, 1, 0, 1);
	check_weight(b.graph, "norm", DT_F32, MAP_ONE_PLUS, 1, 0, 1);
	check_weight(b.graph, "layer.0.delta_norm", DT_F32, MAP_NONE, 1, 0, 1);
	check_weight(b.graph, "layer.0.A", DT_F32, MAP_NEG_EXP, 1, 0, 1);
	check_weight(b.graph, "layer.0.dt", DT_F32, MAP_NONE, 1, 0, 1);
	check_weight(b.graph, "layer.0.conv", DT_F32, MAP_NONE, 1, 0, 512);
	check_weight(
	    b.graph, "layer.1.expert_up", DT_BF16, MAP_NONE, 6, 0, 256);
	assert_string_equal(
	    graph_weight(b.graph, "layer.1.expert_up")->pieces[5].tensor,
	    "model.layers.1.mlp.experts.5.up_proj.weight");
	release(&b);
	ckpt_close(c);
}

static void
stack_experts(Description *f, const char *prefix)
{
	char name[128];
	int l;

	for (l = 0; l < 4; l++) {
		snprintf(
		    name, sizeof name, "%slayers.%d.mlp.experts.", prefix, l);
		drop(f, name);
		snprintf(name, sizeof name,
		    "%slayers.%d.mlp.experts.gate_up_proj", prefix, l);
		add(f, name, DT_BF16, 3, 6, 512, 256);
		snprintf(name, sizeof name, "%slayers.%d.mlp.experts.down_proj",
		    prefix, l);
		add(f, name, DT_BF16, 3, 6, 256, 256);
	}
}

static void
published_folder(void **state)
{
	static Description d, f;
	const char *path;
	Checkpoint *c;
	Built b;

	(void)state;
	load(&d, &c, FIXTURE("qwen35moe"));
	to_folder(&d, &f, "model.language_model.");
	stack_experts(&f, "model.language_model.");
	add(&f, "mtp.fc.weight", DT_BF16, 2, 256, 512);
	add(&f, "model.visual.patch_embed.proj.weight", DT_BF16, 2, 8, 8);
	add(&f, "visual.merger.weight", DT_BF16, 2, 8, 8);
	f.config = "{\"model_type\": \"qwen3_5_moe\", \"vision_config\": "
		   "{\"hidden_act\": \"gelu\"}, \"text_config\": "
		   "{\"model_type\": \"qwen3_5_moe_text\", "
		   "\"attn_output_gate\": true, "
		   "\"full_attention_interval\": 4, " HYBRID_KEYS "}}";
	path = write_folder(&f, "published");
	check_same_paths(FIXTURE("qwen35moe"), path, false);
	build_good(&b, path);
	assert_int_equal(b.ignored, 3);
	check_weight(
	    b.graph, "layer.2.expert_gate", DT_BF16, MAP_NONE, 6, 5 * 512, 256);
	check_weight(b.graph, "layer.2.expert_up", DT_BF16, MAP_NONE, 6,
	    5 * 512 + 256, 256);
	check_weight(
	    b.graph, "layer.2.expert_down", DT_BF16, MAP_NONE, 1, 0, 6 * 256);
	release(&b);
	ckpt_close(c);
}

static void
merged_gguf(void **state)
{
	static Description d;
	Checkpoint *c;
	const char *path;
	Built b;

	(void)state;
	load(&d, &c, FIXTURE("qwen35moe"));
	drop(&d, "blk.1.ffn_gate_exps");
	drop(&d, "blk.1.ffn_up_exps");
	add(&d, "blk.1.ffn_gate_up_exps.weight", DT_BF16, 3, 6, 512, 256);
	drop(&d, "blk.3.attn_q.weight");
	drop(&d, "blk.3.attn_k.weight");
	drop(&d, "blk.3.attn_v.weight");
	add(&d, "blk.3.attn_qkv.weight", DT_BF16, 2, 768, 256);
	path = write_gguf(&d, "merged.gguf");
	check_same_paths(FIXTURE("qwen35moe"), path, true);
	build_good(&b, path);
	check_weight(b.graph, "layer.1.expert_up", DT_BF16, MAP_NONE, 6,
	    5 * 512 + 256, 256);
	check_weight(b.graph, "layer.3.k", DT_BF16, MAP_NONE, 1, 512, 128);
	check_weight(b.graph, "layer.3.v", DT_BF16, MAP_NONE, 1, 640, 128);
	release(&b);
	ckpt_close(c);
}

/* Three sections, head counts as a list with zeros, ssm_dt without suffix, a
 * flat shared gate, other towers in the file. */
static void
other_exporter(void **state)
{
	static const Value counts[] = {{.kind = VAL_INT}, {.kind = VAL_INT},
	    {.kind = VAL_INT}, {.kind = VAL_INT, .u.integer = 2}};
	static const Value sections[] = {{.kind = VAL_INT, .u.integer = 4},
	    {.kind = VAL_INT, .u.integer = 2},
	    {.kind = VAL_INT, .u.integer = 2}};
	static Description d;
	Checkpoint *c;
	const char *path;
	Tensor *t;
	Built b;

	(void)state;
	load(&d, &c, FIXTURE("qwen35moe"));
	set_list(&d, "qwen35moe.rope.dimension_sections", sections, 3);
	set_list(&d, "qwen35moe.attention.head_count_kv", counts, 4);
	rename_tensor(&d, "blk.0.ssm_dt.bias", "blk.0.ssm_dt");
	t = find(&d, "blk.2.ffn_gate_inp_shexp.weight");
	t->n = 1;
	t->dim[0] = 256;
	add(&d, "v.blk.0.attn_q.weight", DT_BF16, 2, 32, 32);
	add(&d, "mm.0.weight", DT_BF16, 2, 32, 32);
	add(&d, "mtp.fc.weight", DT_BF16, 2, 32, 32);
	path = write_gguf(&d, "exporter.gguf");
	check_same_paths(FIXTURE("qwen35moe"), path, true);
	build_good(&b, path);
	assert_int_equal(b.ignored, 3);
	release(&b);
	set_list(&d, "qwen35moe.rope.dimension_sections", sections, 2);
	REFUSED(write_gguf(&d, "two.gguf"), NULL,
	    "qwen35moe.rope.dimension_sections", "3 or 4");
	ckpt_close(c);
}

static void
draft_blocks(void **state)
{
	static Description d;
	const char *path;
	Checkpoint *c;
	size_t i, n;
	Built b;

	(void)state;
	load(&d, &c, FIXTURE("qwen35"));
	n = d.n_tensors;
	for (i = 0; i < n; i++)
		if (strncmp(d.tensor[i].name, "blk.3.", 6) == 0) {
			Tensor t = d.tensor[i];

			t.name[4] = '4';
			d.tensor[d.n_tensors++] = t;
		}
	add(&d, "blk.4.nextn.eh_proj.weight", DT_BF16, 2, 256, 512);
	set_count(&d, "qwen35.block_count", 5);
	set_count(&d, "qwen35.nextn_predict_layers", 1);
	path = write_gguf(&d, "drafts.gguf");
	check_same_paths(FIXTURE("qwen35"), path, true);
	build_good(&b, path);
	assert_int_equal(b.ignored, (int)(d.n_tensors - n));
	release(&b);
	for (i = 0; i < 4; i++) {
		char name[16];

		snprintf(name, sizeof name, "blk.%d.", (int)i);
		drop(&d, name);
	}
	REFUSED(write_gguf(&d, "alone.gguf"), NULL, "draft head",
	    "without a trunk");
	ckpt_close(c);
}

/* ---- tensors ---- */

static void
heads(void **state)
{
	static Description f;

	(void)state;
	dense_folder(&f, "model.");
	f.config = "{" DENSE_KEYS ", \"tie_word_embeddings\": false}";
	REFUSED(write_folder(&f, "untied"), NULL, "lm_head.weight",
	    "tie_word_embeddings");
	f.config = "{" DENSE_KEYS "}";
	REFUSED(write_folder(&f, "untied"), NULL, "lm_head.weight",
	    "tie_word_embeddings");
	add(&f, "lm_head.weight", DT_BF16, 2, 512, 256);
	f.config = DENSE_CONFIG("");
	check_same_paths(FIXTURE("qwen3"), write_folder(&f, "tied"), false);
}

static void
wrong_tensors(void **state)
{
	static Description d, f;
	Checkpoint *c;

	(void)state;
	load(&d, &c, FIXTURE("qwen3moe"));
	rename_tensor(&d, "blk.1.attn_q.weight", "blk.1.attn_qq.weight");
	REFUSED(write_gguf(&d, "missing.gguf"), NULL,
	    "blocks.lua:", "has no tensor blk.1.attn_q.weight");
	rename_tensor(&d, "blk.1.attn_qq.weight", "blk.1.attn_q.weight");
	add(&d, "blk.0.attn_q.bias", DT_F32, 1, 256);
	REFUSED(write_gguf(&d, "unread.gguf"), NULL, "qwen3moe.lua",
	    "no op reads", "blk.0.attn_q.bias");
	drop(&d, "blk.0.attn_q.bias");
	find(&d, "blk.0.attn_k.weight")->dim[0] = 64;
	REFUSED(write_gguf(&d, "shape.gguf"), NULL,
	    "blocks.lua:", "blk.0.attn_k.weight", "bf16[64,256]",
	    "bf16[128,256]");
	find(&d, "blk.0.attn_k.weight")->dim[0] = 128;
	find(&d, "blk.0.attn_norm.weight")->type = DT_Q8_0;
	REFUSED(write_gguf(&d, "norm.gguf"), NULL, "blk.0.attn_norm.weight",
	    "q8_0", "f32");
	to_folder(&d, &f, "model.");
	find(&f, "model.layers.0.mlp.experts.3.up_proj.weight")->type = DT_F32;
	f.config = "{\"model_type\": \"qwen3_moe\", \"hidden_size\": 256, "
		   "\"num_hidden_layers\": 2, \"num_attention_heads\": 4, "
		   "\"num_key_value_heads\": 2, \"vocab_size\": 512, "
		   "\"head_dim\": 64, \"num_experts\": 8, "
		   "\"num_experts_per_tok\": 2, "
		   "\"moe_intermediate_size\": 256}";
	find(&f, "model.layers.0.input_layernorm.weight")->type = DT_F32;
	REFUSED(write_folder(&f, "mixed"), NULL,
	    "model.layers.0.mlp.experts.3.up_proj.weight", "f32", "bf16");
	ckpt_close(c);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(fixtures),
	    cmocka_unit_test(cache_dtype),
	    cmocka_unit_test(folders),
	    cmocka_unit_test(published_folder),
	    cmocka_unit_test(merged_gguf),
	    cmocka_unit_test(other_exporter),
	    cmocka_unit_test(draft_blocks),
	    cmocka_unit_test(heads),
	    cmocka_unit_test(wrong_tensors),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
