-- The configuration of a checkpoint, of either kind, as one table of fields.
local refuse = require "lib.refuse"
local config = {}

local gguf = checkpoint.kind == "gguf"
local keys = checkpoint.config
local arch = checkpoint.arch
local text = not gguf and type(keys.text_config) == "table"
	and keys.text_config or keys

-- Columns: the key in a GGUF file, behind the architecture; the key in
-- config.json; what its absence means there (nothing: an error).
local fields = {
	layers = {"block_count", "num_hidden_layers"},
	hidden = {"embedding_length", "hidden_size"},
	context = {"context_length", "max_position_embeddings", 32768},
	heads = {"attention.head_count", "num_attention_heads"},
	kv_heads = {"attention.head_count_kv", "num_key_value_heads"},
	head_dim = {"attention.key_length", "head_dim"},
	mlp_dim = {"feed_forward_length", "intermediate_size"},
	experts = {"expert_count", "num_experts"},
	top_k = {"expert_used_count", "num_experts_per_tok"},
	expert_dim = {"expert_feed_forward_length", "moe_intermediate_size"},
	shared_dim = {"expert_shared_feed_forward_length",
		"shared_expert_intermediate_size"},
	taps = {"ssm.conv_kernel", "linear_conv_kernel_dim", 4},
	key_heads = {"ssm.group_count", "linear_num_key_heads", 16},
	value_heads = {"ssm.time_step_rank", "linear_num_value_heads", 32},
	delta_dim = {"ssm.state_size", "linear_key_head_dim", 128},
}

local function name_of(field)
	return gguf and arch .. "." .. fields[field][1] or fields[field][2]
end

-- A list, one entry a layer, whose entries agree; 0 where a layer has none.
local function common_entry(name, list)
	local value
	for _, v in ipairs(list) do
		if v ~= 0 and value and v ~= value then
			refuse.value(name, list, "but layers must agree in it")
		end
		value = v ~= 0 and v or value
	end
	if value == nil then
		refuse.value(name, list, "which gives no layer a count")
	end
	return value
end

local function whole(name, v, least)
	if v == nil then
		refuse.say("key %s is missing", name)
	end
	local n = type(v) == "number" and math.tointeger(v)
	if not n or n < (least or 1) or n >= 1 << 31 then
		refuse.value(name, v, "which is not a count")
	end
	return n
end

-- The number of a field; when its key is absent, instead or its default.
local function count(field, instead)
	local name = name_of(field)
	local v = (gguf and keys or text)[name]
	if type(v) == "table" then
		v = common_entry(name, v)
	end
	if v == nil then
		v = instead or not gguf and fields[field][3] or nil
	end
	return whole(name, v)
end

-- A number whose f32 is finite and above 0.
local function number(name, v, instead)
	v = v == nil and instead or v
	if v == nil then
		refuse.say("key %s is missing", name)
	elseif type(v) ~= "number" or not (v > 1e-37 and v < 3e38) then
		refuse.value(name, v, "which is not a number above 0 (as f32)")
	end
	return v
end

-- Many must be a multiple of few, both fields of c.
local function multiple(c, many, few)
	if c[many] % c[few] ~= 0 then
		refuse.value(name_of(few), c[few], ("but must divide %s, %d")
			:format(name_of(many), c[many]))
	end
end

---- which layers attend ----

local function by_interval(layers, interval)
	local attends = {}
	for i = 0, layers - 1 do
		attends[i] = (i + 1) % interval == 0
	end
	return attends
end

-- From a list with one entry a layer; meaning maps entries to true or false.
local function by_list(layers, name, list, meaning)
	local attends = {}
	if type(list) ~= "table" or #list < layers then
		refuse.value(name, list, "but needs an entry for each layer")
	end
	for i = 0, layers - 1 do
		attends[i] = meaning[list[i + 1]]
		if attends[i] == nil then
			refuse.value(("%s[%d]"):format(name, i), list[i + 1])
		end
	end
	return attends
end

local function attending_in_folder(layers, family)
	local list, interval = text.layer_types, text.full_attention_interval
	local meaning = {full_attention = true}
	if family.hybrid then
		meaning.linear_attention = false
	end
	if list ~= nil then
		return by_list(layers, "layer_types", list, meaning)
	end
	interval = family.hybrid and (interval or 4) or 1
	return by_interval(layers, whole("full_attention_interval", interval))
end

local function attending_in_gguf(layers, family)
	local recurrent = keys[arch .. ".attention.recurrent_layers"]
	local interval = keys[arch .. ".full_attention_interval"]
	local kv = keys[arch .. ".attention.head_count_kv"]
	if not family.hybrid then
		return by_interval(layers, 1)
	elseif recurrent ~= nil then
		return by_list(layers, arch .. ".attention.recurrent_layers",
			recurrent, {[true] = false, [false] = true})
	elseif interval == nil and type(kv) == "table" then
		local some = {}
		for i, n in ipairs(kv) do
			some[i] = n ~= 0
		end
		return by_list(layers, arch .. ".attention.head_count_kv", some,
			{[true] = true, [false] = false})
	end
	return by_interval(layers,
		whole(arch .. ".full_attention_interval", interval or 4))
end

---- GGUF ----

-- Multi-token prediction: the last blocks are no part of the trunk.
local function trunk(c)
	local name = arch .. ".nextn_predict_layers"
	local drafts = whole(name, keys[name] or 0, 0)
	c.layers = c.layers - drafts
	if drafts > 0 and not checkpoint.tensor "blk.0.attn_norm.weight" then
		refuse.say("this file is a draft head (%s is %d) without a "
			.. "trunk: nothing can run it alone", name, drafts)
	elseif c.layers < 1 then
		refuse.say("%s.block_count counts no block but %d for drafts",
			arch, drafts)
	end
	for i = 0, drafts - 1 do
		ignore("blk." .. c.layers + i .. ".")
	end
end

local function sections()
	local name = arch .. ".rope.dimension_sections"
	local s = keys[name]
	if s ~= nil and (type(s) ~= "table" or #s < 3 or #s > 4) then
		refuse.value(name, s, "but must be 3 or 4 counts")
	end
end

local function read_gguf(c, family)
	local key, embed = arch .. ".", checkpoint.tensor "token_embd.weight"
	local value_dim = keys[key .. "attention.value_length"]
	refuse.gguf(keys, arch)
	trunk(c)
	sections()
	c.vocab = embed and embed.shape[1]
		or refuse.say "tensor token_embd.weight is missing"
	c.eps = number(key .. "attention.layer_norm_rms_epsilon",
		keys[key .. "attention.layer_norm_rms_epsilon"])
	c.kv_heads = count("kv_heads", c.heads)
	c.head_dim = count("head_dim", c.hidden // c.heads)
	if value_dim and value_dim ~= c.head_dim then
		refuse.value(key .. "attention.value_length", value_dim,
			"but must equal " .. key .. "attention.key_length")
	end
	c.theta = number(key .. "rope.freq_base", keys[key .. "rope.freq_base"],
		10000)
	c.rot = whole(key .. "rope.dimension_count",
		keys[key .. "rope.dimension_count"] or c.head_dim)
	if c.rot % 2 ~= 0 or c.rot > c.head_dim then
		refuse.value(key .. "rope.dimension_count", c.rot,
			"but must be even and at most the size of a head, "
			.. c.head_dim)
	end
	c.attends = attending_in_gguf(c.layers, family)
	c.tied = checkpoint.tensor "output.weight" == nil
	c.renormalise = true
	c.tiled = true
	c.norms_less_one = false
	ignore "v."
	ignore "mm."
	ignore "mtp."
end

---- folders ----

-- A RoPE parameter: inside an object of them, or beside it.
local function rope(name)
	for _, key in ipairs {"rope_parameters", "rope_scaling"} do
		local object = text[key]
		if type(object) == "table" and object[name] ~= nil then
			return object[name]
		end
	end
	return text[name]
end

local function head_tied()
	local tied = keys.tie_word_embeddings
	if tied == nil then
		tied = text.tie_word_embeddings
	end
	if not tied and not checkpoint.tensor "lm_head.weight" then
		refuse.say("there is no tensor lm_head.weight, and "
			.. "tie_word_embeddings is not true")
	elseif tied then
		ignore "lm_head.weight" -- a copy of the embedding
	end
	return tied or false
end

-- Where the value of an absent key depends on the model's class.
local function class_default(c, family)
	if family.hybrid then
		return 256, 0.25
	end
	return family.moe and c.hidden // c.heads or 128, 1
end

local function read_folder(c, family)
	local head_dim, part = class_default(c, family)
	local value_dim = text.linear_value_head_dim or 128
	refuse.folder(text == keys and {keys} or {keys, text}, family)
	c.vocab = whole("vocab_size", text.vocab_size)
	c.eps = number("rms_norm_eps", text.rms_norm_eps, 1e-6)
	c.kv_heads = count("kv_heads", c.heads)
	c.head_dim = count("head_dim", head_dim)
	if family.hybrid and value_dim ~= count "delta_dim" then
		refuse.value("linear_value_head_dim", value_dim,
			"but must equal linear_key_head_dim")
	end
	c.theta = number("rope_theta", rope "rope_theta", 10000)
	part = number("partial_rotary_factor",
		rope "partial_rotary_factor", part)
	c.rot = math.floor(c.head_dim * part)
	if c.rot < 2 or c.rot % 2 ~= 0 or c.rot > c.head_dim then
		refuse.value("partial_rotary_factor", part, "which turns "
			.. c.rot .. " of " .. c.head_dim
			.. " dimensions (head_dim), but must turn an even "
			.. "number of them")
	end
	c.attends = attending_in_folder(c.layers, family)
	c.tied = head_tied()
	c.renormalise = family.hybrid or text.norm_topk_prob or false
	c.tiled = false
	c.norms_less_one = family.hybrid or false
	ignore "mtp."
	ignore "model.visual."
	ignore "visual."
end

---- both ----

local function experts(c, family)
	local local_experts = not gguf and text.num_local_experts or nil
	c.experts = count("experts", local_experts)
	if c.experts > 65536 then
		refuse.value(name_of "experts", c.experts, "which is too many")
	end
	c.top_k = count "top_k"
	if c.top_k > c.experts then
		refuse.value(name_of "top_k", c.top_k, "but "
			.. name_of "experts" .. " is " .. c.experts)
	end
	c.expert_dim = count "expert_dim"
	c.gate_up_rows = 2 * c.expert_dim
	if family.hybrid then
		c.shared_dim = count "shared_dim"
	end
end

local function delta_net(c)
	local inner = gguf and keys[arch .. ".ssm.inner_size"]
	c.taps = count "taps"
	c.key_heads = count "key_heads"
	c.value_heads = count "value_heads"
	c.delta_dim = count "delta_dim"
	multiple(c, "value_heads", "key_heads")
	c.value_dim = c.value_heads * c.delta_dim
	c.conv_dim = 2 * c.key_heads * c.delta_dim + c.value_dim
	if inner and inner ~= c.value_dim then
		refuse.value(arch .. ".ssm.inner_size", inner,
			"but must equal ssm.time_step_rank * ssm.state_size")
	end
end

-- family: hybrid (delta nets beside gated attention), moe.
function config.read(family)
	local c = {layers = count "layers", hidden = count "hidden",
		context = count "context", heads = count "heads"}
	if c.layers > 65536 then
		refuse.value(name_of "layers", c.layers, "which is too many")
	end
	if gguf then
		read_gguf(c, family)
	else
		read_folder(c, family)
	end
	multiple(c, "heads", "kv_heads")
	c.o_dim = c.heads * c.head_dim
	c.q_rows = (family.hybrid and 2 or 1) * c.o_dim
	c.kv_rows = c.kv_heads * c.head_dim
	c.k_start = c.q_rows -- in a projection of all three
	c.v_start = c.q_rows + c.kv_rows
	c.qkv_rows = c.q_rows + 2 * c.kv_rows
	if family.moe then
		experts(c, family)
	else
		c.mlp_dim = count "mlp_dim"
	end
	if family.hybrid then
		delta_net(c)
	end
	return strict(c, "field of the configuration")
end

return strict(config, "function of lib.config")
