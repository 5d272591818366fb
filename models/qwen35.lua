-- Qwen3.5: a gated delta net in most layers, gated attention in the others;
-- then a gated MLP.
local blocks = require "lib.blocks"
local c = require("lib.config").read {hybrid = true}
local w = require("lib.weights").open(c)

local x = blocks.embed(c, w)
for i = 0, c.layers - 1 do
	local l = w.layer(i)
	local mixer = c.attends[i] and blocks.gated_attention
		or blocks.delta_net
	label(x, "hidden." .. i)
	x = x + mixer(c, l, blocks.norm(c, x, l.mixer_norm))
	x = x + blocks.mlp(c, l, blocks.norm(c, x, l.mlp_norm))
end
return blocks.logits(c, w, x), c.context
