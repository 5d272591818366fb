-- Qwen3: attention and a gated MLP in every layer.
local blocks = require "lib.blocks"
local c = require("lib.config").read {}
local w = require("lib.weights").open(c)

local x = blocks.embed(c, w)
for i = 0, c.layers - 1 do
	local l = w.layer(i)
	label(x, "hidden." .. i)
	x = x + blocks.attention(c, l, blocks.norm(c, x, l.mixer_norm))
	x = x + blocks.mlp(c, l, blocks.norm(c, x, l.mlp_norm))
end
return blocks.logits(c, w, x), c.context
