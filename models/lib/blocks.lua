-- The blocks that the Qwen families are made of. Each takes the configuration
-- c, the weights of its layer l (of the model: w) and its input x.
local blocks = {}

-- The part of each row from start on, as heads.
local function heads(x, start, count, size)
	return reshape(slice(x, {start = start, count = count * size}),
		{T, count, size})
end

function blocks.embed(c, w)
	return embed(w.embed, input "tokens")
end

function blocks.norm(c, x, weight)
	return rms_norm(x, weight, {eps = c.eps})
end

-- Only the rows that are wanted.
function blocks.logits(c, w, x)
	local y = blocks.norm(c, take(x, input "rows"), w.norm)
	label(y, "hidden." .. c.layers)
	return linear(y, c.tied and w.embed or w.head)
end

---- attention ----

-- q [T, heads, D] against this token's and all earlier keys and values.
local function attend(c, l, q, x)
	local D = c.head_dim
	local pos, turn = input "positions", {theta = c.theta, rot = c.rot}
	local k = reshape(linear(x, l.k), {T, c.kv_heads, D})
	local v = reshape(linear(x, l.v), {T, c.kv_heads, D})
	q = rope(blocks.norm(c, q, l.q_norm), pos, turn)
	k = rope(blocks.norm(c, k, l.k_norm), pos, turn)
	local cache = {C, c.kv_heads, D}
	local keys = state(l.name .. ".k", kv_dtype, cache)
	local values = state(l.name .. ".v", kv_dtype, cache)
	return attention(q, append(keys, cast(k, kv_dtype)),
		append(values, cast(v, kv_dtype)), {scale = D ^ -0.5})
end

function blocks.attention(c, l, x)
	local q = reshape(linear(x, l.q), {T, c.heads, c.head_dim})
	local y = attend(c, l, q, x)
	return linear(reshape(y, {T, c.heads * c.head_dim}), l.o)
end

-- Each head of the projection is a query and, behind it, a gate.
function blocks.gated_attention(c, l, x)
	local D = c.head_dim
	local both = reshape(linear(x, l.q), {T, c.heads, 2 * D})
	local q = slice(both, {start = 0, count = D})
	local gate = slice(both, {start = D, count = D})
	local y = attend(c, l, q, x) * sigmoid(gate)
	return linear(reshape(y, {T, c.heads * D}), l.o)
end

---- gated delta net ----

-- The projection, and the last few of it mixed channel by channel.
local function short_conv(c, l, x)
	local past = state(l.name .. ".past", "f32", {B, c.taps, c.conv_dim})
	return silu(conv(linear(x, l.qkv), l.conv, past))
end

function blocks.delta_net(c, l, x)
	local hk, hv, D = c.key_heads, c.value_heads, c.delta_dim
	local m = short_conv(c, l, x)
	local q = l2_norm(heads(m, 0, hk, D), {eps = 1e-6})
	local k = l2_norm(heads(m, hk * D, hk, D), {eps = 1e-6})
	local v = heads(m, 2 * hk * D, hv, D)
	q = scale(q, {factor = D ^ -0.5})
	local decay = exp(l.A * softplus(linear(x, l.a) + l.dt))
	local beta = sigmoid(linear(x, l.b))
	local memory = state(l.name .. ".delta", "f32", {B, hv, D, D})
	local o = delta_rule(q, k, v, decay, beta, memory, {tiled = c.tiled})
	local z = reshape(linear(x, l.z), {T, hv, D})
	local y = blocks.norm(c, o, l.delta_norm) * silu(z)
	return linear(reshape(y, {T, hv * D}), l.delta_out)
end

---- MLPs ----

local function swiglu(x, gate, up, down)
	return linear(silu(linear(x, gate)) * linear(x, up), down)
end

function blocks.mlp(c, l, x)
	return swiglu(x, l.gate, l.up, l.down)
end

-- The top_k experts of each token, weighted.
function blocks.routed_mlp(c, l, x)
	local logits = linear(x, l.router)
	local ids = top_k(logits, {k = c.top_k})
	local r = route(logits, ids, {renormalise = c.renormalise})
	local g = silu(experts(x, l.expert_gate, ids))
	local y = experts(g * experts(x, l.expert_up, ids), l.expert_down, ids)
	return combine(y, r)
end

-- The expert of every token, weighted and added to the others.
function blocks.add_shared_mlp(c, l, x, others)
	local s = swiglu(x, l.shared_gate, l.shared_up, l.shared_down)
	return fma(sigmoid(linear(x, l.shared_router)), s, others)
end

return strict(blocks, "block")
