"""Turn a bf16 GGUF of qwen3, qwen3moe, qwen35 or qwen35moe into the Hugging
Face folder it was converted from.

	python3 gguf_to_folder.py IN.gguf DIR [--fused] [--set KEY=JSON]...

--fused stores the experts of a layer as one tensor, as published Qwen3.5-MoE
checkpoints do; otherwise each expert has tensors of its own. --set replaces a
key of config.json, or removes it when no value is given.

Floats become bf16 where that loses nothing. Everything is undone exactly but
ssm_a = -exp(A_log), whose logarithm rounds.
"""

import argparse
import json
import os
import re

import numpy as np

import gguf_write
import safetensors_write as st
import tokenizer_write

CLASSES = {"qwen3": ("Qwen3ForCausalLM", "qwen3"),
           "qwen3moe": ("Qwen3MoeForCausalLM", "qwen3_moe"),
           "qwen35": ("Qwen3_5ForCausalLM", "qwen3_5_text"),
           "qwen35moe": ("Qwen3_5MoeForCausalLM", "qwen3_5_moe_text")}

GLOBAL = {"token_embd.weight": "model.embed_tokens.weight",
          "output_norm.weight": "model.norm.weight",
          "output.weight": "lm_head.weight"}

BLOCK = {"attn_norm": "input_layernorm",
         "ffn_norm": "post_attention_layernorm",
         "post_attention_norm": "post_attention_layernorm",
         "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
         "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
         "attn_q_norm": "self_attn.q_norm",
         "attn_k_norm": "self_attn.k_norm",
         "attn_qkv": "linear_attn.in_proj_qkv",
         "attn_gate": "linear_attn.in_proj_z",
         "ssm_alpha": "linear_attn.in_proj_a",
         "ssm_beta": "linear_attn.in_proj_b",
         "ssm_conv1d": "linear_attn.conv1d",
         "ssm_norm": "linear_attn.norm",
         "ssm_out": "linear_attn.out_proj",
         "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj",
         "ffn_down": "mlp.down_proj", "ffn_gate_inp": "mlp.gate",
         "ffn_gate_inp_shexp": "mlp.shared_expert_gate",
         "ffn_gate_shexp": "mlp.shared_expert.gate_proj",
         "ffn_up_shexp": "mlp.shared_expert.up_proj",
         "ffn_down_shexp": "mlp.shared_expert.down_proj"}


class Facts:
	"""The numbers of a file that both config and weights need."""

	def __init__(self, g):
		self.g, self.arch = g, g.arch
		self.hybrid = self.arch.startswith("qwen35")
		self.moe = self.arch.endswith("moe")
		self.layers = self["block_count"]
		if self.hybrid:
			self.Hk, self.Hv = (self["ssm.group_count"],
			                    self["ssm.time_step_rank"])
			self.D = self["ssm.state_size"]

	def __getitem__(self, key):
		return self.g.kv["%s.%s" % (self.arch, key)][1]

	def get(self, key, default):
		return self.g.get("%s.%s" % (self.arch, key), default)


def short(x):
	"""The shortest decimal that names the same f32."""
	return float(str(np.float32(x)))


def rope(f):
	r = {"rope_type": "default", "rope_theta": short(f["rope.freq_base"])}
	if f.hybrid:
		sections = f["rope.dimension_sections"][1]
		r.update(mrope_interleaved=True, mrope_section=sections[:3],
		         partial_rotary_factor=f["rope.dimension_count"]
		         / f["attention.key_length"])
	return r


def recurrent(f):
	"""For each layer, whether it is a delta net."""
	listed = f.get("attention.recurrent_layers", None)
	every = f.get("full_attention_interval", 4)
	return listed or [(i + 1) % every != 0 for i in range(f.layers)]


def delta_net(f):
	return {"layer_types": ["linear_attention" if r else "full_attention"
	                        for r in recurrent(f)],
	        "linear_conv_kernel_dim": f["ssm.conv_kernel"],
	        "linear_key_head_dim": f.D, "linear_value_head_dim": f.D,
	        "linear_num_key_heads": f.Hk, "linear_num_value_heads": f.Hv}


def experts(f):
	c = {"num_experts": f["expert_count"],
	     "num_experts_per_tok": f["expert_used_count"],
	     "moe_intermediate_size": f["expert_feed_forward_length"]}
	if f.hybrid:
		c["shared_expert_intermediate_size"] = f[
		    "expert_shared_feed_forward_length"]
	else:
		c.update(norm_topk_prob=True, decoder_sparse_step=1,
		         mlp_only_layers=[])
	return c


def config(f):
	architecture, model_type = CLASSES[f.arch]
	c = {"architectures": [architecture], "model_type": model_type,
	     "dtype": "bfloat16", "hidden_act": "silu",
	     "attention_bias": False, "hidden_size": f["embedding_length"],
	     "num_hidden_layers": f.layers,
	     "num_attention_heads": f["attention.head_count"],
	     "num_key_value_heads": f["attention.head_count_kv"],
	     "head_dim": f["attention.key_length"],
	     "max_position_embeddings": f["context_length"],
	     "rms_norm_eps": short(f["attention.layer_norm_rms_epsilon"]),
	     "rope_parameters": rope(f),
	     "tie_word_embeddings": "output.weight" not in f.g.tensors,
	     "vocab_size": f.g.tensors["token_embd.weight"].ne[1]}
	if f.get("feed_forward_length", 0):
		c["intermediate_size"] = f["feed_forward_length"]
	if f.hybrid:
		c.update(delta_net(f))
	if f.moe:
		c.update(experts(f))
	for key in ("bos", "eos"):
		c[key + "_token_id"] = f.g.get(
		    "tokenizer.ggml.%s_token_id" % key)
	return c


def grouped(x, axis, f, unit):
	"""Value heads from tiled to grouped order, unit entries each."""
	shape = x.shape
	heads = x.reshape(shape[:axis] + (f.Hv // f.Hk, f.Hk, unit)
	                  + shape[axis + 1:])
	return heads.swapaxes(axis, axis + 1).reshape(shape)


def value_order(leaf, x, f):
	if leaf in ("ssm_alpha", "ssm_beta", "ssm_a", "ssm_dt"):
		return grouped(x, 0, f, 1)
	if leaf == "attn_gate":
		return grouped(x, 0, f, f.D)
	if leaf == "ssm_out":
		return grouped(x, 1, f, f.D)
	if leaf in ("attn_qkv", "ssm_conv1d"):
		n = 2 * f.Hk * f.D
		return np.concatenate([x[:n], grouped(x[n:], 0, f, f.D)])
	return x


def narrow(x):
	x = np.ascontiguousarray(x, np.float32)
	dtype, a = st.bf16(x)
	same = np.array_equal(gguf_write.from_bf16(a), x)
	return (dtype, a) if same else st.f32(x)


def expert_tensors(f, layer, fused):
	"""The routed experts of a layer."""
	name = "model.layers.%d.mlp.experts" % layer
	gate, up, down = (f.g.tensors["blk.%d.ffn_%s_exps.weight" % (
	    layer, k)].array() for k in ("gate", "up", "down"))
	if fused:
		return {name + ".gate_up_proj":
		        narrow(np.concatenate([gate, up], 1)),
		        name + ".down_proj": narrow(down)}
	out = {}
	for e in range(len(gate)):
		for k, x in ("gate", gate), ("up", up), ("down", down):
			out["%s.%d.%s_proj.weight" % (name, e, k)] = \
			    narrow(x[e])
	return out


def block_tensor(f, layer, leaf, x):
	name = "model.layers.%d." % layer
	if f.hybrid:
		x = value_order(leaf, x, f)
	if leaf == "ssm_a":
		return name + "linear_attn.A_log", st.f32(np.log(-x))
	if leaf == "ssm_dt":
		return name + "linear_attn.dt_bias", narrow(x)
	if leaf == "ssm_conv1d":
		x = x[:, None, :]
	if leaf == "ffn_gate_inp_shexp":
		x = x.reshape(1, -1)
	if f.hybrid and leaf.endswith("norm") and leaf != "ssm_norm":
		x = x - np.float32(1)
	return name + BLOCK[leaf] + ".weight", narrow(x)


def weights(f, fused=False):
	out = {}
	for name, t in f.g.tensors.items():
		if name in GLOBAL:
			plus = f.hybrid and name == "output_norm.weight"
			out[GLOBAL[name]] = narrow(
			    t.array() - np.float32(plus))
			continue
		layer, leaf = re.match(r"blk\.(\d+)\.(\w+)", name).groups()
		if not leaf.endswith("_exps"):
			key, value = block_tensor(f, int(layer), leaf,
			                          t.array())
			out[key] = value
		elif leaf == "ffn_down_exps":
			out.update(expert_tensors(f, int(layer), fused))
	return out


def setting(text):
	key, _, value = text.partition("=")
	return key, json.loads(value) if value else None


def convert(g, path, fused=False, settings=()):
	f = Facts(g)
	c = config(f)
	for key, value in settings:
		c[key] = value
		if value is None:
			del c[key]
	st.write_folder(path, c, weights(f, fused))
	tokenizer = tokenizer_write.from_gguf(g)
	if tokenizer:
		tokenizer_write.write(os.path.join(path, "tokenizer.json"),
		                      tokenizer)


def main():
	p = argparse.ArgumentParser()
	p.add_argument("input")
	p.add_argument("folder")
	p.add_argument("--fused", action="store_true")
	p.add_argument("--set", type=setting, action="append", default=[],
	               metavar="KEY=JSON")
	a = p.parse_args()
	convert(gguf_write.read(a.input), a.folder, a.fused, a.set)


if __name__ == "__main__":
	main()
