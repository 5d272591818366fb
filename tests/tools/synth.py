"""Headers of full-size models: all of a GGUF file but its tensors' data.

	python3 synth.py DIR [MODEL...]

writes DIR/MODEL.gguf, and DIR/bytes.json: for each model the bytes of the
tensors that it runs on, by type. Shapes and keys are those of the published models,
types those of the usual Q4_K_M mix; the tokenizer has the right number of
tokens, which are dummies. Such a file serves for ingot check and compile.
"""

import argparse
import json
import os

from gguf_write import ARR, F32, I32, STR, U32, Gguf, Tensor, nbytes
from requantise import MIXES, Mix
from tokenizer_write import CONTROL, NORMAL, gguf_keys, ids_keys

QWEN3 = dict(vocab=151936, context=40960, head_dim=128, theta=1e6,
             end=151645, pad=151643, pre="qwen2")
QWEN35 = dict(vocab=248320, context=262144, head_dim=256, theta=1e7,
              end=248046, pad=248044, pre="qwen35", key_heads=16)
MODELS = {
    "Qwen3-0.6B": dict(
        QWEN3, arch="qwen3", layers=28, hidden=1024, heads=16, kv_heads=8,
        mlp=3072, tied=True),
    "Qwen3-4B": dict(
        QWEN3, arch="qwen3", layers=36, hidden=2560, heads=32, kv_heads=8,
        mlp=9728, tied=True),
    "Qwen3-30B-A3B": dict(
        QWEN3, arch="qwen3moe", layers=48, hidden=2048, heads=32, kv_heads=4,
        mlp=6144, experts=128, top_k=8, expert=768, tied=False),
    "Qwen3.5-0.8B": dict(
        QWEN35, arch="qwen35", layers=24, hidden=1024, heads=8, kv_heads=2,
        mlp=3584, value_heads=16, tied=True),
    "Qwen3.6-35B-A3B": dict(
        QWEN35, arch="qwen35moe", layers=40, hidden=2048, heads=16,
        kv_heads=2, experts=256, top_k=8, expert=512, shared=512,
        value_heads=32, tied=False, drafts=1)}
STATE, TAPS, INTERVAL = 128, 4, 4


def is_hybrid(m):
	return "value_heads" in m


def metadata(name, m):
	keys = {"block_count": m["layers"] + m.get("drafts", 0),
	        "context_length": m["context"],
	        "embedding_length": m["hidden"],
	        "feed_forward_length": m.get("mlp"),
	        "attention.head_count": m["heads"],
	        "attention.head_count_kv": m["kv_heads"],
	        "attention.key_length": m["head_dim"],
	        "attention.value_length": m["head_dim"],
	        "expert_count": m.get("experts"),
	        "expert_used_count": m.get("top_k"),
	        "expert_feed_forward_length": m.get("expert"),
	        "expert_shared_feed_forward_length": m.get("shared"),
	        "nextn_predict_layers": m.get("drafts")}
	if is_hybrid(m):
		keys.update({"ssm.conv_kernel": TAPS, "ssm.state_size": STATE,
		             "ssm.group_count": m["key_heads"],
		             "ssm.time_step_rank": m["value_heads"],
		             "ssm.inner_size": m["value_heads"] * STATE,
		             "full_attention_interval": INTERVAL,
		             "rope.dimension_count": m["head_dim"] // 4})
	out = {k: (U32, v) for k, v in keys.items() if v is not None}
	out["rope.freq_base"] = (F32, m["theta"])
	out["attention.layer_norm_rms_epsilon"] = (F32, 1e-6)
	if is_hybrid(m):
		out["rope.dimension_sections"] = (ARR, (I32, [11, 11, 10, 0]))
	return {"general.architecture": (STR, m["arch"]),
	        "general.type": (STR, "model"),
	        "general.name": (STR, name),
	        "general.file_type": (U32, MIXES["q4_k_m"][0]),
	        "general.quantization_version": (U32, 2),
	        **{"%s.%s" % (m["arch"], k): v for k, v in out.items()}}


def tokenizer(m):
	tokens = ["t%x" % i for i in range(m["vocab"])]
	types = [NORMAL] * len(tokens)
	for id, text in ((m["pad"], "<|endoftext|>"),
	                 (m["end"] - 1, "<|im_start|>"),
	                 (m["end"], "<|im_end|>")):
		tokens[id], types[id] = text, CONTROL
	return {**gguf_keys(tokens, types, [], m["pre"]),
	        **ids_keys(eos=m["end"], padding=m["pad"])}


# ---- shapes, innermost first ----

def attention(m):
	d, size = m["hidden"], m["head_dim"]
	q = m["heads"] * size
	kv = m["kv_heads"] * size
	return {"attn_q": (d, 2 * q if is_hybrid(m) else q),
	        "attn_k": (d, kv), "attn_v": (d, kv), "attn_output": (q, d),
	        "attn_q_norm": (size,), "attn_k_norm": (size,)}


def delta_net(m):
	d, heads = m["hidden"], m["value_heads"]
	value = heads * STATE
	mixed = 2 * m["key_heads"] * STATE + value
	return {"attn_qkv": (d, mixed), "attn_gate": (d, value),
	        "ssm_alpha": (d, heads), "ssm_beta": (d, heads),
	        "ssm_conv1d": (TAPS, mixed), "ssm_dt.bias": (heads,),
	        "ssm_a": (heads,), "ssm_norm": (STATE,),
	        "ssm_out": (value, d)}


def swiglu(d, inner, suffix, *stack):
	return {"ffn_gate" + suffix: (d, inner) + stack,
	        "ffn_up" + suffix: (d, inner) + stack,
	        "ffn_down" + suffix: (inner, d) + stack}


def mlp(m):
	d = m["hidden"]
	if "experts" not in m:
		return swiglu(d, m["mlp"], "")
	out = {"ffn_gate_inp": (d, m["experts"]),
	       **swiglu(d, m["expert"], "_exps", m["experts"])}
	if "shared" in m:
		out.update({"ffn_gate_inp_shexp": (d, 1),
		            **swiglu(d, m["shared"], "_shexp")})
	return out


def draft(m):
	d = m["hidden"]
	return {"nextn.eh_proj": (2 * d, d), "nextn.enorm": (d,),
	        "nextn.hnorm": (d,), "nextn.shared_head_norm": (d,)}


def layer(m, i):
	d = m["hidden"]
	attends = (not is_hybrid(m) or i >= m["layers"]
	           or (i + 1) % INTERVAL == 0)
	norm = "post_attention_norm" if is_hybrid(m) else "ffn_norm"
	return {"attn_norm": (d,), **(attention if attends else delta_net)(m),
	        norm: (d,), **mlp(m), **(draft(m) if i >= m["layers"] else {})}


def shapes(m):
	"""Of each tensor, by its name."""
	d, out = m["hidden"], {}
	out["token_embd.weight"] = (d, m["vocab"])
	for i in range(m["layers"] + m.get("drafts", 0)):
		for leaf, ne in layer(m, i).items():
			whole = leaf in ("ssm_a", "ssm_dt.bias")
			out["blk.%d.%s%s" % (
			    i, leaf, "" if whole else ".weight")] = ne
	out["output_norm.weight"] = (d,)
	if not m["tied"]:
		out["output.weight"] = (d, m["vocab"])
	return out


def make(name):
	"""Tensors have no data: only header() of what this returns is of use."""
	m = MODELS[name]
	g = Gguf({**metadata(name, m), **tokenizer(m)})
	for tensor, ne in shapes(m).items():
		g.tensors[tensor] = Tensor("F32", ne, None)
	mix = Mix(g, "q4_k_m", [])
	for tensor, t in g.tensors.items():
		t.type = mix.type(tensor, t)
	return g


def trunk_bytes(g):
	"""Of the tensors in the file by type, drafts apart."""
	sums = {}
	drafts = g.get(g.arch + ".nextn_predict_layers", 0)
	first = g.get(g.arch + ".block_count") - drafts
	for name, t in g.tensors.items():
		block = name.startswith("blk.") and int(name.split(".")[1])
		if block < first:
			sums[t.type] = sums.get(t.type, 0) + nbytes(t.type, t.ne)
	return sums


def main():
	p = argparse.ArgumentParser()
	p.add_argument("folder")
	p.add_argument("models", nargs="*", metavar="model")
	a = p.parse_args()
	bytes = {}
	for name in a.models or MODELS:
		g = make(name)
		bytes[name] = trunk_bytes(g)
		with open(os.path.join(a.folder, name + ".gguf"), "wb") as f:
			f.write(g.header())
	with open(os.path.join(a.folder, "bytes.json"), "w") as f:
		json.dump(bytes, f, indent=1)


if __name__ == "__main__":
	main()
