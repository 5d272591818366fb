-- Qwen3-MoE: attention in every layer, then the best few of many MLPs.
local blocks = require "lib.blocks"
local c = require("lib.config").read {moe = true}
local w = require("lib.weights").open(c)

local x = blocks.embed(c, w)
for i = 0, c.layers - 1 do
	local l = w.layer(i)
	label(x, "hidden." .. i)
	x = x + blocks.attention(c, l, blocks.norm(c, x, l.mixer_norm))
	x = x + blocks.routed_mlp(c, l, blocks.norm(c, x, l.mlp_norm))
end
return blocks.logits(c, w, x), c.context
