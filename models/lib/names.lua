-- What each weight is called in a checkpoint, and its shape.
--
-- Columns: its name in a GGUF file, behind "blk.N."; its name in a Hugging
-- Face folder, behind "model.layers.N."; its shape, in numbers and fields of
-- the configuration; how it is read (nothing: as stored).
--
-- In a name: "a|b" is a or else b; "#" stands for the number of an expert, one
-- tensor each; "a[f:g]" are rows of a, from f on in every g.
--
-- vector  f32 for elementwise ops
-- norm    a vector; folders of Qwen3.5 hold w - 1
-- decay   a vector; folders hold log(-w)
local vector, norm, decay = "vector", "norm", "decay"

local model = {
	embed = {"token_embd.weight", "embed_tokens.weight", "vocab hidden"},
	norm = {"output_norm.weight", "norm.weight", "hidden", norm},
	head = {"output.weight", "lm_head.weight", "vocab hidden"},
}

local layer = {
	mixer_norm = {"attn_norm.weight",
		"input_layernorm.weight", "hidden", norm},
	mlp_norm = {"ffn_norm.weight|post_attention_norm.weight",
		"post_attention_layernorm.weight", "hidden", norm},

	-- attention
	q = {"attn_q.weight|attn_qkv.weight[0:qkv_rows]",
		"self_attn.q_proj.weight", "q_rows hidden"},
	k = {"attn_k.weight|attn_qkv.weight[k_start:qkv_rows]",
		"self_attn.k_proj.weight", "kv_rows hidden"},
	v = {"attn_v.weight|attn_qkv.weight[v_start:qkv_rows]",
		"self_attn.v_proj.weight", "kv_rows hidden"},
	o = {"attn_output.weight", "self_attn.o_proj.weight", "hidden o_dim"},
	q_norm = {"attn_q_norm.weight",
		"self_attn.q_norm.weight", "head_dim", norm},
	k_norm = {"attn_k_norm.weight",
		"self_attn.k_norm.weight", "head_dim", norm},

	-- gated delta net
	qkv = {"attn_qkv.weight",
		"linear_attn.in_proj_qkv.weight", "conv_dim hidden"},
	z = {"attn_gate.weight",
		"linear_attn.in_proj_z.weight", "value_dim hidden"},
	a = {"ssm_alpha.weight",
		"linear_attn.in_proj_a.weight", "value_heads hidden"},
	b = {"ssm_beta.weight",
		"linear_attn.in_proj_b.weight", "value_heads hidden"},
	conv = {"ssm_conv1d.weight",
		"linear_attn.conv1d.weight", "conv_dim taps", vector},
	dt = {"ssm_dt.bias|ssm_dt",
		"linear_attn.dt_bias", "value_heads", vector},
	A = {"ssm_a", "linear_attn.A_log", "value_heads", decay},
	delta_norm = {"ssm_norm.weight",
		"linear_attn.norm.weight", "delta_dim", vector},
	delta_out = {"ssm_out.weight",
		"linear_attn.out_proj.weight", "hidden value_dim"},

	-- MLP
	gate = {"ffn_gate.weight", "mlp.gate_proj.weight", "mlp_dim hidden"},
	up = {"ffn_up.weight", "mlp.up_proj.weight", "mlp_dim hidden"},
	down = {"ffn_down.weight", "mlp.down_proj.weight", "hidden mlp_dim"},

	-- experts
	router = {"ffn_gate_inp.weight", "mlp.gate.weight", "experts hidden"},
	expert_gate = {
		"ffn_gate_exps.weight|"
			.. "ffn_gate_up_exps.weight[0:gate_up_rows]",
		"mlp.experts.#.gate_proj.weight|"
			.. "mlp.experts.gate_up_proj[0:gate_up_rows]",
		"experts expert_dim hidden"},
	expert_up = {
		"ffn_up_exps.weight|"
			.. "ffn_gate_up_exps.weight[expert_dim:gate_up_rows]",
		"mlp.experts.#.up_proj.weight|"
			.. "mlp.experts.gate_up_proj[expert_dim:gate_up_rows]",
		"experts expert_dim hidden"},
	expert_down = {"ffn_down_exps.weight",
		"mlp.experts.#.down_proj.weight|mlp.experts.down_proj",
		"experts hidden expert_dim"},
	shared_router = {"ffn_gate_inp_shexp.weight",
		"mlp.shared_expert_gate.weight", "1 hidden"},
	shared_gate = {"ffn_gate_shexp.weight",
		"mlp.shared_expert.gate_proj.weight", "shared_dim hidden"},
	shared_up = {"ffn_up_shexp.weight",
		"mlp.shared_expert.up_proj.weight", "shared_dim hidden"},
	shared_down = {"ffn_down_shexp.weight",
		"mlp.shared_expert.down_proj.weight", "hidden shared_dim"},
}

return {model = model, layer = layer}
