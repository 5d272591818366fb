-- Keys that change the maths. Each row: a key and the values under which it
-- changes nothing here; null and absence always do. Anything else is refused,
-- for leaving it out would compute another model.
local refuse = {}

local gguf = checkpoint.kind == "gguf"
local empty = {} -- stands for a list or an object of nothing

local function is_empty(list)
	for _ in pairs(list) do
		return false
	end
	return true
end

-- Text of a value, for a sentence.
local function show(v, depth)
	if type(v) == "string" then
		return '"' .. v:sub(1, 60) .. '"'
	elseif type(v) ~= "table" then
		return tostring(v)
	elseif is_empty(v) or depth == 2 then
		return is_empty(v) and "empty" or "{...}"
	end
	local parts = {}
	for key, item in pairs(v) do
		local name = type(key) == "string" and key:sub(1, 40) .. " = "
		parts[#parts + 1] = (name or "") .. show(item, (depth or 0) + 1)
	end
	table.sort(parts)
	return "{" .. table.concat(parts, ", ", 1, math.min(#parts, 6)) .. "}"
end

-- Ends the model with a sentence about the checkpoint.
function refuse.say(fmt, ...)
	local file = gguf and "" or "config.json: "
	error(file .. fmt:format(...), 0)
end

function refuse.value(key, v, why)
	why = why or "which is not implemented"
	refuse.say("%s is %s, %s", key, show(v), why)
end

local in_folder = {
	{"attention_bias", false}, {"qkv_bias", false}, {"use_qkv_bias", false},
	{"mlp_bias", false}, {"use_bias", false}, {"lm_head_bias", false},
	{"hidden_act", "silu"}, {"hidden_activation", "silu"},
	{"activation_function", "silu"}, {"swiglu_limit", 0},
	{"use_sliding_window", false}, {"attention_chunk_size", 0},
	{"dual_chunk_attention_config"}, {"sparse_attention_config"},
	{"quantization_config"}, {"compression_config"},
	{"is_causal", true}, {"use_bidirectional_attention", false},
	{"use_qk_norm", true}, {"qk_norm", true}, {"alibi", false},
	{"rope_interleave", false}, {"rope_interleaved", false},
	{"rope_ratio", 1}, {"no_rope_layers", empty},
	{"nope_layer_interval", 0},
	{"q_lora_rank", 0}, {"kv_lora_rank", 0}, {"num_kv_shared_layers", 0},
	{"mlp_only_layers", empty}, {"decoder_sparse_step", 1},
	{"moe_layer_freq", 1}, {"first_k_dense_replace", 0},
	{"interleave_moe_layer_step", 1}, {"n_shared_experts", 0},
	{"routed_scaling_factor", 1}, {"scoring_func", "softmax"},
	{"topk_method", "greedy"}, {"n_group", 0, 1}, {"topk_group", 0, 1},
	{"final_logit_softcapping", 0}, {"attn_logit_softcapping", 0},
	{"router_logit_softcapping", 0}, {"attn_temperature_tuning", false},
	{"logits_scaling", 1}, {"logit_scale", 1}, {"embedding_multiplier", 1},
	{"scale_emb", 1}, {"residual_multiplier", 1}, {"attention_multiplier"},
	{"query_pre_attn_scalar"}, {"output_gate_type", "swish", "silu"},
	{"mamba_ssm_dtype", "float32"},
}

-- Behind the architecture and a dot.
local in_gguf = {
	{"rope.scaling.attn_factor", 1}, {"rope.scale_linear", 0, 1},
	{"rope.scaling.yarn_log_multiplier", 0},
	{"attention.sliding_window", 0}, {"attention.causal", true},
	{"attention.clamp_kqv", 0}, {"attention.max_alibi_bias", 0},
	{"attention.q_lora_rank", 0}, {"attention.kv_lora_rank", 0},
	{"attention.shared_kv_layers", 0}, {"attention.temperature_length", 0},
	{"attention.temperature_scale", 0},
	{"attn_logit_softcapping", 0}, {"final_logit_softcapping", 0},
	{"router_logit_softcapping", 0}, {"logit_scale", 0, 1},
	{"embedding_scale", 0, 1}, {"residual_scale", 0, 1},
	{"expert_weights_scale", 0, 1}, {"expert_weights_norm", true},
	{"expert_gating_func", 0, 1}, {"expert_group_count", 0, 1},
	{"expert_group_used_count", 0, 1}, {"expert_shared_count", 0, 1},
	{"leading_dense_block_count", 0}, {"interleave_moe_layer_step", 0, 1},
	{"moe_every_n_layers", 0, 1}, {"use_parallel_residual", false},
	{"ssm.dt_b_c_rms", false}, {"pooling_type", 0},
	{"hidden_activation", "silu"}, {"activation_function", "silu"},
}

local function accepted(v, row)
	if v == nil then
		return true
	elseif type(v) == "table" and is_empty(v) then
		v = empty
	end
	for i = 2, #row do
		if v == row[i] then
			return true
		end
	end
	return false
end

-- Refuses keys of object; before goes in front of their names in sentences.
local function check(object, rows, before)
	for _, row in ipairs(rows) do
		local v = object[before .. row[1]]
		if not accepted(v, row) then
			refuse.value(before .. row[1], v)
		end
	end
end

local function rope(object, name, family)
	local r = object[name]
	if r == nil then
		return
	elseif type(r) ~= "table" or r[1] ~= nil then
		refuse.value(name, r, "but must be an object")
	end
	local kind = r.rope_type or r.type or "default"
	local linear = kind == "linear" and r.factor == 1
	if kind ~= "default" and not linear then
		refuse.value(name, r)
	end
	if not family.hybrid and (r.partial_rotary_factor or 1) ~= 1 then
		refuse.value(name .. ".partial_rotary_factor",
			r.partial_rotary_factor)
	end
	for key, v in pairs(r) do
		if type(v) == "table" and key ~= "mrope_section" then
			refuse.value(name .. "." .. tostring(key), v)
		end
	end
end

-- Keys of config.json that only some families give a meaning.
local function of_family(family)
	local rows = {{"attn_output_gate", family.hybrid or false}}
	if family.hybrid then
		rows[#rows + 1] = {"norm_topk_prob", true}
	else
		rows[#rows + 1] = {"partial_rotary_factor", 1}
	end
	if not (family.hybrid and family.moe) then
		rows[#rows + 1] = {"shared_expert_intermediate_size", 0}
	end
	return rows
end

-- objects: config.json, and its text_config where it has one.
function refuse.folder(objects, family)
	for _, object in ipairs(objects) do
		check(object, in_folder, "")
		check(object, of_family(family), "")
		rope(object, "rope_scaling", family)
		rope(object, "rope_parameters", family)
	end
end

function refuse.gguf(keys, arch)
	local kind = keys[arch .. ".rope.scaling.type"] or "linear"
	local factor = keys[arch .. ".rope.scaling.factor"]
	check(keys, in_gguf, arch .. ".")
	if kind ~= "none" and kind ~= "linear" then
		refuse.value(arch .. ".rope.scaling.type", kind)
	elseif kind == "linear" and factor and factor ~= 1 and factor ~= 0 then
		refuse.value(arch .. ".rope.scaling.factor", factor,
			"and linear scaling is not implemented")
	elseif checkpoint.tensor "rope_freqs.weight" then
		refuse.say("tensor rope_freqs.weight: scaled RoPE is "
			.. "not implemented")
	end
end

return strict(refuse, "function of lib.refuse")
