/* The keys of both kinds of checkpoint: those that change the maths are refused
 * by name and value, their harmless values and all others are not. Run in the
 * repository's root: it reads tests/fixtures. */
#include "front_forms.h"

static void
folder_keys(void **state)
{
	static const char *const refused[][3] = {
	    {DENSE_CONFIG(", \"hidden_act\": \"gelu\""), "hidden_act", "gelu"},
	    {DENSE_CONFIG(", \"attention_bias\": true"), "attention_bias",
		"true"},
	    {DENSE_CONFIG(", \"use_sliding_window\": true"),
		"use_sliding_window", "true"},
	    {DENSE_CONFIG(", \"quantization_config\": "
			  "{\"quant_method\": \"fp8\"}"),
		"quantization_config", "quant_method = \"fp8\""},
	    {DENSE_CONFIG(", \"rope_scaling\": "
			  "{\"rope_type\": \"yarn\", \"factor\": 4.0}"),
		"rope_scaling", "rope_type = \"yarn\""},
	    {DENSE_CONFIG(
		 ", \"rope_scaling\": {\"type\": \"yarn\", \"factor\": 4}"),
		"rope_scaling", "yarn"},
	    {DENSE_CONFIG(", \"rope_parameters\": "
			  "{\"rope_type\": \"llama3\", \"factor\": 8}"),
		"rope_parameters", "llama3"},
	    {DENSE_CONFIG(", \"rope_scaling\": "
			  "{\"type\": \"linear\", \"factor\": 2}"),
		"rope_scaling", "linear"},
	    {DENSE_CONFIG(", \"mlp_only_layers\": [1]"), "mlp_only_layers",
		"1"},
	    {DENSE_CONFIG(", \"decoder_sparse_step\": 2"),
		"decoder_sparse_step", "2"},
	    {DENSE_CONFIG(", \"final_logit_softcapping\": 30.0"),
		"final_logit_softcapping", "30.0"},
	    {DENSE_CONFIG(", \"layer_types\": "
			  "[\"full_attention\", \"sliding_attention\"]"),
		"layer_types[1]", "sliding_attention"},
	    {DENSE_CONFIG(", \"layer_types\": [\"full_attention\", "
			  "\"linear_attention\"]"),
		"layer_types[1]", "linear_attention"},
	    {DENSE_CONFIG(", \"layer_types\": [\"full_attention\"]"),
		"layer_types", "each layer"},
	    {DENSE_CONFIG(", \"partial_rotary_factor\": 0.5"),
		"partial_rotary_factor", "0.5"},
	    {DENSE_CONFIG(", \"rope_parameters\": "
			  "{\"partial_rotary_factor\": 0.5}"),
		"rope_parameters.partial_rotary_factor", "0.5"},
	    {DENSE_CONFIG(", \"rope_parameters\": "
			  "{\"full_attention\": {\"factor\": 2}}"),
		"rope_parameters.full_attention", "factor = 2"},
	    {"{\"model_type\": \"qwen3\"}", "num_hidden_layers", "missing"},
	    {DENSE_CONFIG(", \"attn_output_gate\": true"), "attn_output_gate",
		"true"},
	    {DENSE_CONFIG(", \"rms_norm_eps\": \"x\""), "rms_norm_eps",
		"number"}};
	static Description f;
	size_t i;

	(void)state;
	dense_folder(&f, "model.");
	for (i = 0; i < sizeof refused / sizeof refused[0]; i++) {
		f.config = refused[i][0];
		REFUSED(write_folder(&f, "keys"), NULL, "config.json",
		    refused[i][1], refused[i][2]);
	}
}

static void
hybrid_keys(void **state)
{
	static const char *const refused[][3] = {
	    {HYBRID_CONFIG(", \"attn_output_gate\": false"), "attn_output_gate",
		"false"},
	    {HYBRID_CONFIG(", \"norm_topk_prob\": false"), "norm_topk_prob",
		"false"},
	    {HYBRID_CONFIG(", \"mamba_ssm_dtype\": \"bfloat16\""),
		"mamba_ssm_dtype", "bfloat16"},
	    {HYBRID_CONFIG(", \"text_config\": {\"linear_value_head_dim\": "
			   "128, \"linear_key_head_dim\": 64, "
			   "\"num_attention_heads\": 4, "
			   "\"hidden_size\": 256, \"vocab_size\": 512, "
			   "\"num_key_value_heads\": 2, "
			   "\"num_hidden_layers\": 4}"),
		"linear_value_head_dim", "128"}};
	static Description d, f;
	Checkpoint *c;
	size_t i;

	(void)state;
	load(&d, &c, FIXTURE("qwen35moe"));
	to_folder(&d, &f, "model.");
	for (i = 0; i < sizeof refused / sizeof refused[0]; i++) {
		f.config = refused[i][0];
		REFUSED(write_folder(&f, "keys"), NULL, "config.json",
		    refused[i][1], refused[i][2]);
	}
	ckpt_close(c);
}

static void
neutral_keys(void **state)
{
	static const char *const good[] = {
	    DENSE_CONFIG(
		", \"hidden_act\": \"silu\", \"attention_bias\": false, "
		"\"rope_scaling\": null, \"quantization_config\": null, "
		"\"sliding_window\": 4096, \"use_sliding_window\": false, "
		"\"mlp_only_layers\": [], \"decoder_sparse_step\": 1, "
		"\"final_logit_softcapping\": null, \"max_window_layers\": 28, "
		"\"a_key_of_tomorrow\": {\"x\": [1]}"),
	    DENSE_CONFIG(", \"rope_parameters\": {\"rope_type\": \"default\"}"),
	    "{" DENSE_KEYS ", \"tie_word_embeddings\": true, "
	    "\"rope_parameters\": {\"rope_theta\": 1000000.0}}",
	    "{" DENSE_KEYS ", \"tie_word_embeddings\": true, "
	    "\"rope_theta\": 1000000, "
	    "\"rope_scaling\": {\"type\": \"linear\", \"factor\": 1.0}}"};
	static Description f;
	size_t i;

	(void)state;
	dense_folder(&f, "model.");
	for (i = 0; i < sizeof good / sizeof good[0]; i++) {
		f.config = good[i];
		check_same_paths(
		    FIXTURE("qwen3"), write_folder(&f, "neutral"), false);
	}
}

static void
refused_count(Description *d, const char *key, int64_t n)
{
	set_count(d, key, n);
	REFUSED(
	    write_gguf(d, "keys.gguf"), NULL, key, " is ", "not implemented");
	d->n_keys--;
}

static void
gguf_keys(void **state)
{
	static Description d;
	Checkpoint *c;

	(void)state;
	load(&d, &c, FIXTURE("qwen3"));
	refused_count(&d, "qwen3.attention.sliding_window", 4096);
	refused_count(&d, "qwen3.expert_gating_func", 2);
	refused_count(&d, "qwen3.final_logit_softcapping", 30);
	refused_count(&d, "qwen3.rope.scaling.factor", 4);
	set_number(&d, "qwen3.expert_weights_scale", 2.5);
	REFUSED(write_gguf(&d, "scale.gguf"), NULL,
	    "qwen3.expert_weights_scale", "2.5");
	set_number(&d, "qwen3.expert_weights_scale", 1.0);
	set_count(&d, "qwen3.attention.sliding_window", 0);
	set_flag(&d, "qwen3.expert_weights_norm", true);
	set_text(&d, "qwen3.rope.scaling.type", "none");
	check_same_paths(FIXTURE("qwen3"), write_gguf(&d, "none.gguf"), true);
	set_text(&d, "qwen3.rope.scaling.type", "linear");
	set_number(&d, "qwen3.rope.scaling.factor", 1.0);
	check_same_paths(FIXTURE("qwen3"), write_gguf(&d, "linear.gguf"), true);
	set_text(&d, "qwen3.rope.scaling.type", "yarn");
	set_number(&d, "qwen3.rope.scaling.factor", 4.0);
	REFUSED(write_gguf(&d, "yarn.gguf"), NULL, "qwen3.rope.scaling.type",
	    "yarn");
	set_text(&d, "qwen3.rope.scaling.type", "none");
	set_count(&d, "qwen3.attention.value_length", 32);
	REFUSED(write_gguf(&d, "value.gguf"), NULL,
	    "qwen3.attention.value_length", "32", "key_length");
	set_count(&d, "qwen3.attention.value_length", 64);
	add(&d, "rope_freqs.weight", DT_F32, 1, 32);
	REFUSED(write_gguf(&d, "freqs.gguf"), NULL, "rope_freqs.weight",
	    "scaled RoPE");
	ckpt_close(c);
}

static void
other_architectures(void **state)
{
	static Description d;
	Checkpoint *c;

	(void)state;
	load(&d, &c, FIXTURE("qwen3"));
	set_text(&d, "general.architecture", "qwen4");
	REFUSED(write_gguf(&d, "arch.gguf"), NULL, "qwen4",
	    "did you mean 'qwen3'", "qwen35moe");
	set_text(&d, "general.architecture", "lib/blocks");
	REFUSED(write_gguf(&d, "slash.gguf"), NULL, "lib/blocks", "not known");
	set_text(&d, "general.architecture", "qwen3");
	set_count(&d, "qwen3.block_count", 0);
	REFUSED(write_gguf(&d, "zero.gguf"), NULL, "qwen3.block_count is 0");
	ckpt_close(c);
}

/* Renormalised by default or not, as the class of the model has it. */
static void
renormalised(void **state)
{
	static const struct {
		const char *more;
		bool yes;
	} want[] = {{"", false}, {", \"norm_topk_prob\": false", false},
	    {", \"norm_topk_prob\": true", true}};
	static Description d, f;
	char config[1024];
	Checkpoint *c;
	uint32_t j;
	size_t i;
	Built b;

	(void)state;
	load(&d, &c, FIXTURE("qwen3moe"));
	to_folder(&d, &f, "model.");
	for (i = 0; i < 3; i++) {
		snprintf(config, sizeof config,
		    "{\"model_type\": \"qwen3_moe\", \"hidden_size\": 256, "
		    "\"num_hidden_layers\": 2, \"num_attention_heads\": 4, "
		    "\"num_key_value_heads\": 2, \"vocab_size\": 512, "
		    "\"head_dim\": 64, \"num_local_experts\": 8, "
		    "\"num_experts_per_tok\": 2, "
		    "\"moe_intermediate_size\": 256%s}",
		    want[i].more);
		f.config = config;
		build_good(&b, write_folder(&f, "moe"));
		for (j = 0; j < b.graph->count; j++)
			if (b.graph->nodes[j]->op == OP_ROUTE)
				assert_int_equal(
				    b.graph->nodes[j]->attr.renormalise,
				    want[i].yes);
		release(&b);
	}
	ckpt_close(c);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(folder_keys),
	    cmocka_unit_test(hybrid_keys),
	    cmocka_unit_test(neutral_keys),
	    cmocka_unit_test(gguf_keys),
	    cmocka_unit_test(other_architectures),
	    cmocka_unit_test(renormalised),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
