-- Qwen3.5-MoE: a gated delta net in most layers, gated attention in the
-- others; then the best few of many MLPs and one that is always on.
local blocks = require "lib.blocks"
local c = require("lib.config").read {hybrid = true, moe = true}
local w = require("lib.weights").open(c)

local x = blocks.embed(c, w)
for i = 0, c.layers - 1 do
	local l = w.layer(i)
	local mixer = c.attends[i] and blocks.gated_attention
		or blocks.delta_net
	label(x, "hidden." .. i)
	x = x + mixer(c, l, blocks.norm(c, x, l.mixer_norm))
	local y = blocks.norm(c, x, l.mlp_norm)
	x = x + blocks.add_shared_mlp(c, l, y, blocks.routed_mlp(c, l, y))
end
return blocks.logits(c, w, x), c.context
