"""Make a quantised GGUF from a bf16, f32 or Q4_K_M one.

	python3 requantise.py IN.gguf OUT.gguf --type q4_k_m
	        [--tensor REGEX=TYPE]...

Which tensor gets which type follows the usual mixes of the field, fallbacks
for short rows included; --tensor overrides it for the names that match.
"""

import argparse
import re

import numpy as np

import gguf_write
from gguf_write import TYPES, U32, Tensor, tensor_f32, to_bf16
from quants import DEQUANTISERS, QUANTISERS

# name -> (general.file_type, type of most tensors)
MIXES = {"f32": (0, "F32"), "f16": (1, "F16"), "bf16": (32, "BF16"),
         "q4_0": (2, "Q4_0"), "q4_1": (3, "Q4_1"), "q5_0": (8, "Q5_0"),
         "q5_1": (9, "Q5_1"), "q8_0": (7, "Q8_0"), "q2_k": (10, "Q2_K"),
         "q3_k_m": (12, "Q3_K"), "q4_k_s": (14, "Q4_K"),
         "q4_k_m": (15, "Q4_K"), "q5_k_s": (16, "Q5_K"),
         "q5_k_m": (17, "Q5_K"), "q6_k": (18, "Q6_K"),
         "iq4_nl": (25, "IQ4_NL"), "iq4_xs": (30, "IQ4_XS")}
SHORT_ROW = {"Q2_K": "IQ4_NL", "Q3_K": "IQ4_NL", "IQ4_XS": "IQ4_NL",
             "Q4_K": "Q5_0", "Q5_K": "Q5_1", "Q6_K": "Q8_0"}
BIG_OUT = {"q2_k", "q3_k_m", "q4_k_s", "q4_k_m", "iq4_nl", "iq4_xs"}


def stays_f32(name, t):
	return (len(t.ne) == 1 or not name.endswith(".weight")
	        or name.endswith("_norm.weight") or "ffn_gate_inp" in name
	        or "ssm_conv1d" in name)


def more_bits(i, n):
	return i < n // 8 or i >= 7 * n // 8 or (i - n // 8) % 3 == 2


def role(name):
	return name.rsplit(".", 2)[-2]


def value_like(name):
	return role(name) in ("attn_v", "attn_qkv")


def down_like(name):
	return role(name).startswith("ffn_down")


class Mix:
	"""Chooses types; asked once for each tensor, in file order."""

	def __init__(self, g, mix, overrides):
		self.mix, self.base = mix, MIXES[mix][1]
		self.overrides = overrides
		self.tied = "output.weight" not in g.tensors
		self.layers = g.get(g.arch + ".block_count")
		self.experts = g.get(g.arch + ".expert_count", 0)
		self.n_value = sum(map(value_like, g.tensors))
		self.n_down = sum(map(down_like, g.tensors))
		self.i_value = self.i_down = 0
		heads = g.get(g.arch + ".attention.head_count")
		kv = g.get(g.arch + ".attention.head_count_kv", heads)
		kv = max(kv) if isinstance(kv, list) else kv
		self.groups = heads // kv

	def value(self):
		i, n = self.i_value, self.n_value
		self.i_value += 1
		if self.experts == 8:
			return "Q8_0"
		if self.mix == "q2_k":
			return "Q4_K" if self.groups >= 4 else "Q3_K"
		if self.mix == "q3_k_m":
			return "Q5_K" if i < 2 else "Q4_K"
		if self.mix in ("iq4_nl", "iq4_xs") and self.groups >= 4:
			return "Q5_K"
		if self.mix in ("q4_k_s", "q5_k_s") and i < 4:
			return "Q5_K"
		if self.mix in ("q4_k_m", "q5_k_m") and more_bits(i, n):
			return "Q6_K"
		return self.base

	def down(self, name):
		i, n = self.i_down, self.n_down
		self.i_down += 1
		if self.experts > 1:
			i, n = int(name.split(".")[1]), self.layers
		if self.mix == "q2_k":
			return "Q3_K"
		if self.mix == "q3_k_m":
			return ("Q5_K" if i < n // 16 else
			        "Q4_K" if more_bits(i, n) else "Q3_K")
		if self.mix in ("iq4_nl", "iq4_xs", "q4_k_s") and i < n // 8:
			return "Q5_K"
		if self.mix in ("q4_k_m", "q5_k_m") and more_bits(i, n):
			return "Q6_K"
		return self.base

	def attn_output(self):
		if self.experts == 8 and self.mix in BIG_OUT:
			return "Q5_K"
		return {"q2_k": "Q3_K", "q3_k_m": "Q4_K"}.get(
		    self.mix, self.base)

	def wanted(self, name):
		if self.base in ("F32", "F16", "BF16"):
			return self.base
		if name == "output.weight" or (self.tied and
		                               name == "token_embd.weight"):
			return "Q8_0" if self.base == "Q8_0" else "Q6_K"
		if value_like(name):
			return self.value()
		if down_like(name):
			return self.down(name)
		if role(name) == "attn_output":
			return self.attn_output()
		if role(name) == "attn_k" and self.experts == 8:
			return "Q8_0"
		return self.base

	def type(self, name, t):
		if stays_f32(name, t):
			return "F32"
		type = self.wanted(name)
		for pattern, forced in self.overrides:
			if re.search(pattern, name):
				type = forced
		if t.ne[0] % TYPES[type][1]:
			type = SHORT_ROW.get(type, "F16")
		return "F16" if t.ne[0] % TYPES[type][1] else type


def values(t):
	"""The tensor as f32, outermost dimension first."""
	if t.type not in DEQUANTISERS:
		return t.array()
	blocks = t.data.reshape(-1, TYPES[t.type][2])
	return DEQUANTISERS[t.type](blocks).reshape(t.ne[::-1])


def convert(t, type):
	if type == t.type:
		return t
	x = values(t)
	if type == "F32":
		return tensor_f32(x)
	if type == "BF16":
		data = to_bf16(x)
	elif type == "F16":
		data = x.astype("<f2")
	else:
		data = QUANTISERS[type](x.reshape(-1, TYPES[type][1]))
	return Tensor(type, t.ne,
	              np.ascontiguousarray(data).reshape(-1).view(np.uint8))


def requantise(g, mix, overrides=()):
	"""A new file; g is left alone."""
	m = Mix(g, mix, overrides)
	out = gguf_write.Gguf(dict(g.kv))
	out.kv["general.file_type"] = (U32, MIXES[mix][0])
	out.kv["general.quantization_version"] = (U32, 2)
	for name, t in g.tensors.items():
		out.tensors[name] = convert(t, m.type(name, t))
	return out


def override(text):
	pattern, type = text.rsplit("=", 1)
	if type.upper() not in TYPES:
		raise argparse.ArgumentTypeError("no type " + type)
	return pattern, type.upper()


def main():
	p = argparse.ArgumentParser()
	p.add_argument("input")
	p.add_argument("output")
	p.add_argument("--type", choices=MIXES, required=True)
	p.add_argument("--tensor", type=override, action="append", default=[])
	a = p.parse_args()
	requantise(gguf_write.read(a.input), a.type, a.tensor).write(a.output)


if __name__ == "__main__":
	main()
