"""Turn a Hugging Face folder of qwen3, qwen3_moe, qwen3_5_text or
qwen3_5_moe_text into a bf16 GGUF without a tokenizer.

	python3 folder_to_gguf.py DIR OUT.gguf

Tensors and keys are those of the field's converter: norms of qwen35* hold
1 + w, ssm_a holds -exp(A_log), and value heads go from grouped to tiled
order. Layer kinds without an interval become attention.recurrent_layers.
"""

import argparse

import numpy as np

import gguf_write as gw
import safetensors_write as st
from gguf_to_folder import BLOCK, CLASSES, GLOBAL
from gguf_write import ARR, BOOL, F32, I32, STR, U32
from requantise import stays_f32

ARCH = {model_type: arch for arch, (_, model_type) in CLASSES.items()}
NUMBERS = {"block_count": "num_hidden_layers",
           "context_length": "max_position_embeddings",
           "embedding_length": "hidden_size",
           "feed_forward_length": "intermediate_size",
           "attention.head_count": "num_attention_heads",
           "attention.head_count_kv": "num_key_value_heads",
           "attention.key_length": "head_dim",
           "attention.value_length": "head_dim",
           "vocab_size": "vocab_size",
           "expert_count": "num_experts",
           "expert_used_count": "num_experts_per_tok",
           "expert_feed_forward_length": "moe_intermediate_size",
           "expert_shared_feed_forward_length":
           "shared_expert_intermediate_size",
           "ssm.conv_kernel": "linear_conv_kernel_dim",
           "ssm.state_size": "linear_key_head_dim",
           "ssm.group_count": "linear_num_key_heads",
           "ssm.time_step_rank": "linear_num_value_heads"}


def interval(kinds):
	"""n when exactly every n-th layer is full attention, else None."""
	full = [k == "full_attention" for k in kinds]
	if True not in full:
		return None
	n = full.index(True) + 1
	return n if full == [(i + 1) % n == 0 for i in
	                     range(len(full))] else None


def hybrid_keys(c):
	rope, kinds = c["rope_parameters"], c["layer_types"]
	keys = {"ssm.inner_size": (U32, c["linear_num_value_heads"]
	                           * c["linear_value_head_dim"]),
	        "rope.dimension_count": (U32, int(
	            c["head_dim"] * rope["partial_rotary_factor"])),
	        "rope.dimension_sections": (ARR, (
	            I32, rope["mrope_section"] + [0]))}
	n = interval(kinds)
	if n:
		keys["full_attention_interval"] = (U32, n)
	else:
		keys["attention.recurrent_layers"] = (ARR, (BOOL, [
		    k == "linear_attention" for k in kinds]))
	return keys


def metadata(c, arch):
	c = dict(c, num_experts=c.get("num_experts",
	                              c.get("num_local_experts")))
	keys = {k: (U32, c[name]) for k, name in NUMBERS.items()
	        if c.get(name) is not None}
	keys["rope.freq_base"] = (F32, c["rope_parameters"]["rope_theta"])
	keys["attention.layer_norm_rms_epsilon"] = (F32, c["rms_norm_eps"])
	if arch.startswith("qwen35"):
		keys.update(hybrid_keys(c))
	return {"general.architecture": (STR, arch),
	        "general.type": (STR, "model"),
	        "general.file_type": (U32, 32),
	        "general.quantization_version": (U32, 2),
	        **{"%s.%s" % (arch, k): v for k, v in keys.items()}}


class ValueHeads:
	"""The reorder of value heads, from grouped to tiled."""

	def __init__(self, c):
		self.Hk = c["linear_num_key_heads"]
		self.Hv = c["linear_num_value_heads"]
		self.D = c["linear_value_head_dim"]

	def tiled(self, x, axis, unit):
		shape = x.shape
		heads = x.reshape(shape[:axis] + (
		    self.Hk, self.Hv // self.Hk, unit) + shape[axis + 1:])
		return heads.swapaxes(axis, axis + 1).reshape(shape)

	def order(self, leaf, x):
		if leaf in ("ssm_alpha", "ssm_beta", "ssm_a", "ssm_dt"):
			return self.tiled(x, 0, 1)
		if leaf == "attn_gate":
			return self.tiled(x, 0, self.D)
		if leaf == "ssm_out":
			return self.tiled(x, 1, self.D)
		if leaf in ("attn_qkv", "ssm_conv1d"):
			n = 2 * self.Hk * self.D
			return np.concatenate(
			    [x[:n], self.tiled(x[n:], 0, self.D)])
		return x


def leaves(arch):
	"""Hugging Face name inside a layer -> GGUF name inside a block."""
	other = ("ffn_norm" if arch.startswith("qwen35")
	         else "post_attention_norm")
	names = {hf + ".weight": leaf for leaf, hf in BLOCK.items()
	         if leaf != other}
	names.update({"linear_attn.A_log": "ssm_a",
	              "linear_attn.dt_bias": "ssm_dt"})
	return names


def tensor(name, x):
	t = gw.tensor_f32(x)
	return t if stays_f32(name, t) else gw.tensor_bf16(x)


def block_tensor(leaf, x, heads):
	if heads is None:
		return x
	if leaf == "ssm_conv1d":
		x = x[:, 0, :]
	x = heads.order(leaf, x)
	if leaf == "ssm_a":
		return -np.exp(x)
	if leaf.endswith("norm") and leaf != "ssm_norm":
		return x + np.float32(1)
	return x


def experts(w, layer, count):
	"""The stacks of a layer's routed experts, from either layout."""
	name = "model.layers.%d.mlp.experts." % layer
	if name + "gate_up_proj" in w:
		gate, up = np.split(st.widen(w[name + "gate_up_proj"]), 2, 1)
		return {"gate": gate, "up": up,
		        "down": st.widen(w[name + "down_proj"])}
	return {key: np.stack([
	    st.widen(w["%s%d.%s_proj.weight" % (name, e, key)])
	    for e in range(count)]) for key in ("gate", "up", "down")}


def tensors(c, w, arch):
	hybrid = arch.startswith("qwen35")
	heads = ValueHeads(c) if hybrid else None
	names, out = leaves(arch), {}
	for leaf, hf in GLOBAL.items():
		if hf in w:
			plus = hybrid and leaf == "output_norm.weight"
			out[leaf] = tensor(leaf, st.widen(w[hf])
			                   + np.float32(plus))
	for i in range(c["num_hidden_layers"]):
		for hf, leaf in names.items():
			t = w.get("model.layers.%d.%s" % (i, hf))
			if t is None:
				continue
			name = "blk.%d.%s" % (i, leaf)
			name += {"ssm_a": "", "ssm_dt": ".bias"}.get(
			    leaf, ".weight")
			out[name] = tensor(name, block_tensor(
			    leaf, st.widen(t), heads))
		if not arch.endswith("moe"):
			continue
		count = c.get("num_experts", c.get("num_local_experts"))
		for key, x in experts(w, i, count).items():
			name = "blk.%d.ffn_%s_exps.weight" % (i, key)
			out[name] = gw.tensor_bf16(x)
	return out


def convert(path):
	c, w = st.read_folder(path)
	arch = ARCH[c["model_type"]]
	return gw.Gguf(metadata(c, arch), tensors(c, w, arch))


def main():
	p = argparse.ArgumentParser()
	p.add_argument("folder")
	p.add_argument("output")
	a = p.parse_args()
	convert(a.folder).write(a.output)


if __name__ == "__main__":
	main()
