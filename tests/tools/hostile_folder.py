"""Hostile Hugging Face folders: a table of what is done to a good one and the
words of the sentence that refuses it."""

import json
import os
import struct

SINGLE = "model.safetensors"
INDEX = "model.safetensors.index.json"
CONFIG = "config.json"
Q = "model.layers.0.self_attn.q_proj.weight"
EMBED = "model.embed_tokens.weight"


class Folder:
	"""Files by name; header and config are parsed, data is bytes."""

	def __init__(self, path):
		with open(os.path.join(path, CONFIG)) as f:
			self.config = json.load(f)
		with open(os.path.join(path, SINGLE), "rb") as f:
			n, = struct.unpack("<Q", f.read(8))
			self.header = json.loads(f.read(n))
			self.data = f.read()
		self.files = {} # more of them, or other contents

	def entry(self, name):
		return self.header[name]

	def single(self):
		head = json.dumps(self.header).encode()
		return struct.pack("<Q", len(head)) + head + self.data

	def write(self, path):
		files = {CONFIG: json.dumps(self.config).encode(),
		         SINGLE: self.single()}
		files.update(self.files)
		os.mkdir(path)
		for name, b in files.items():
			if b is not None:
				with open(os.path.join(path, name), "wb") as f:
					f.write(b)

	def shard(self, n):
		"""Splits the tensors over n files with an index."""
		names = sorted(k for k in self.header if k != "__metadata__")
		where = {}
		for i in range(n):
			file = "model-%05d-of-%05d.safetensors" % (i + 1, n)
			part, data = {}, b""
			for name in names[i::n]:
				e = dict(self.header[name])
				a, b = e["data_offsets"]
				e["data_offsets"] = [len(data), len(data) + b - a]
				data += self.data[a:b]
				part[name] = e
				where[name] = file
			head = json.dumps(part).encode()
			self.files[file] = struct.pack("<Q", len(head)) + head + data
		self.files[SINGLE] = None
		self.index = {"metadata": {}, "weight_map": where}
		self.files[INDEX] = json.dumps(self.index).encode()


# ---- ways to spoil a folder ----

def config(**keys):
	return lambda f: f.config.update(keys)


def gone(key):
	return lambda f: f.config.pop(key)


def entry(name, /, **fields):
	return lambda f: f.entry(name).update(fields)


def file(name, b):
	"""Sets the bytes of a file; None: there is none."""
	return lambda f: f.files.update({name: b})


def head(b, data=b""):
	return file(SINGLE, struct.pack("<Q", len(b)) + b + data)


def sharded(*mutations):
	def f(g):
		g.shard(3)
		for m in mutations:
			m(g)
	return f


def map_to(name, target):
	"""The index puts a tensor into another file."""
	def f(g):
		g.index["weight_map"][name] = target
		g.files[INDEX] = json.dumps(g.index).encode()
	return f


def at(name, begin, end):
	"""Moves offsets, counted from those there are."""
	def f(g):
		e = g.entry(name)
		a, b = e["data_offsets"]
		e["data_offsets"] = [a + begin, b + end]
	return f


def length(n):
	return lambda f: f.files.update(
	    {SINGLE: struct.pack("<Q", n) + f.single()[8:]})


def cut(n):
	return lambda f: f.files.update({SINGLE: f.single()[:n]})


def without(name):
	return lambda f: f.header.pop(name)


def twin(f):
	text = json.dumps(f.header)
	f.files[SINGLE] = struct.pack("<Q", 2 * len(text) - 1) + (
	    text[:-1] + "," + text[1:]).encode() + f.data


deep = b'{"a":' * 100000 + b"1" + b"}" * 100000

FOLDER = [
	("config-missing", file(CONFIG, None), ["config.json"]),
	("config-empty", file(CONFIG, b""), ["config.json"]),
	("config-not-json", file(CONFIG, b"<html>"), ["config.json"]),
	("config-cut", file(CONFIG, b'{"model_type": "qwen3", "hid'),
	 ["config.json"]),
	("config-list", file(CONFIG, b"[1, 2]"), ["config.json"]),
	("config-number", file(CONFIG, b"7"), ["config.json"]),
	("config-deep", file(CONFIG, deep), ["config.json"]),
	("config-twice", file(CONFIG, b'{"a": 1, "a": 2}'), ["config.json"]),
	("config-bytes", file(CONFIG, bytes(range(256))), ["config.json"]),
	("config-no-type", gone("model_type"), ["model_type"]),
	("config-type-number", config(model_type=3), ["model_type"]),
	("config-type-path", config(model_type="../../x"), ["../../x"]),
	("config-type-other", config(model_type="qwen4"), ["qwen4"]),
	("config-no-layers", gone("num_hidden_layers"),
	 ["num_hidden_layers"]),
	("config-layers-text", config(num_hidden_layers="2"),
	 ["num_hidden_layers"]),
	("config-layers-0", config(num_hidden_layers=0),
	 ["num_hidden_layers"]),
	("config-layers-half", config(num_hidden_layers=1.5),
	 ["num_hidden_layers"]),
	("config-layers-1e300", config(num_hidden_layers=1e300),
	 ["num_hidden_layers"]),
	("config-layers-list", config(num_hidden_layers=[2, 3]),
	 ["num_hidden_layers"]),
	("config-layers-object", config(num_hidden_layers={"a": 2}),
	 ["num_hidden_layers"]),
	("config-layers-more", config(num_hidden_layers=3), ["layer_types"]),
	("config-no-width", gone("hidden_size"), ["hidden_size"]),
	("config-width-negative", config(hidden_size=-72), ["hidden_size"]),
	("config-width-other", config(hidden_size=73), [EMBED]),
	("config-no-heads", gone("num_attention_heads"),
	 ["num_attention_heads"]),
	("config-kv-heads-0", config(num_key_value_heads=0),
	 ["num_key_value_heads"]),
	("config-kv-heads-3", config(num_key_value_heads=3),
	 ["num_key_value_heads"]),
	("config-head-odd", config(head_dim=63), ["head_dim"]),
	("config-vocab-other", config(vocab_size=97), [EMBED]),
	("config-vocab-missing", gone("vocab_size"), ["vocab_size"]),
	("config-eps-text", config(rms_norm_eps="1e-6"), ["rms_norm_eps"]),
	("config-eps-0", config(rms_norm_eps=0), ["rms_norm_eps"]),
	("config-rope-list", config(rope_parameters=[1]), ["rope_parameters"]),
	("config-rope-text", config(rope_scaling="yarn"), ["rope_scaling"]),
	("config-theta-text", config(rope_parameters={"rope_theta": "x"}),
	 ["rope_theta"]),
	("config-theta-0", config(rope_parameters={"rope_theta": 0}),
	 ["rope_theta"]),
	("config-yarn", config(rope_scaling={"type": "yarn", "factor": 4}),
	 ["rope_scaling", "yarn"]),
	("config-types-short", config(layer_types=["full_attention"]),
	 ["layer_types"]),
	("config-types-other", config(layer_types=["x", "y"]),
	 ["layer_types"]),
	("config-types-text", config(layer_types="full_attention"),
	 ["layer_types"]),
	("config-act", config(hidden_act="gelu"), ["hidden_act", "gelu"]),
	("config-bias", config(attention_bias=True), ["attention_bias"]),
	("config-quantised", config(quantization_config={"bits": 8}),
	 ["quantization_config"]),
	("config-untied", config(tie_word_embeddings=False),
	 ["lm_head.weight"]),
	("config-text-config", config(text_config={}), ["num_hidden_layers"]),
	("config-text-list", config(text_config=[1]), ["num_hidden_layers"]),
	# one file
	("no-weights", file(SINGLE, None), [SINGLE]),
	("weights-empty", file(SINGLE, b""), [SINGLE]),
	("weights-7-bytes", file(SINGLE, bytes(7)), [SINGLE]),
	("head-beyond", length(1 << 20), [SINGLE, "1048576 bytes"]),
	("head-2^63", length(1 << 63), [SINGLE, "9223372036854775808 bytes"]),
	("head-2^64-1", length((1 << 64) - 1), [SINGLE]),
	("head-0", length(0), [SINGLE]),
	("head-short", length(100), [SINGLE]),
	("head-not-json", head(b"hello"), [SINGLE]),
	("head-list", head(b"[]"), [SINGLE]),
	("head-deep", head(deep), [SINGLE]),
	("head-no-tensors", head(b"{}"), ["tensor"]),
	("head-twice", twin, [SINGLE]),
	("entry-number", head(b'{"x": 1}'), ["'x'"]),
	("entry-empty", head(b'{"x": {}}'), ["'x'"]),
	("entry-no-name", head(b'{"": {}}'), ["empty name"]),
	("data-cut", cut(-1), [SINGLE, "cut short"]),
	("data-gone", cut(40000), [SINGLE, "cut short"]),
	("offset-overlap", at(Q, -2, -2), ["overlap"]),
	("offset-short", at(Q, 0, -2), [Q]),
	("offset-beyond", at(Q, 1 << 40, 1 << 40), [SINGLE, "'"]),
	("offset-turned", entry(Q, data_offsets=[10, 2]), [Q]),
	("offset-negative", entry(Q, data_offsets=[-2, 18430]), [Q]),
	("offset-one", entry(Q, data_offsets=[0]), [Q]),
	("offset-text", entry(Q, data_offsets="0"), [Q]),
	("offset-half", entry(Q, data_offsets=[0.5, 2]), [Q]),
	("offset-2^63", entry(Q, data_offsets=[0, 1 << 63]), [SINGLE]),
	("shape-0", entry(Q, shape=[0, 72]), [Q, "dimension of 0"]),
	("shape-negative", entry(Q, shape=[-128, -72]), [Q]),
	("shape-overflow", entry(Q, shape=[1 << 32, 1 << 32]), [Q]),
	("shape-9", entry(Q, shape=[1] * 9), [Q]),
	("shape-text", entry(Q, shape="128, 72"), [Q]),
	("shape-turned", entry(Q, shape=[72, 128]), [Q]),
	("dtype-f32", entry(Q, dtype="F32"), [Q]),
	("dtype-fp8", entry(Q, dtype="F8_E4M3", shape=[256, 72]), [Q]),
	("dtype-f16", entry(EMBED, dtype="I16"), [EMBED, "I16"]),
	("dtype-unknown", entry(Q, dtype="Q4"), [Q, "Q4"]),
	("dtype-number", entry(Q, dtype=2), [Q]),
	("dtype-lines", entry(Q, dtype="a\nb"), ["dtype"]),
	("tensor-missing", without(Q), [Q]),
	("tensor-in-excess", lambda f: f.header.update(
	    odd={"dtype": "BF16", "shape": [1], "data_offsets": [
	        len(f.data), len(f.data) + 2]}) or
	    setattr(f, "data", f.data + b"\0\0"), ["odd"]),
	# shards
	("index-not-json", sharded(file(INDEX, b"x")), [INDEX]),
	("index-list", sharded(file(INDEX, b"[]")), [INDEX]),
	("index-no-map", sharded(file(INDEX, b"{}")), [INDEX, "weight_map"]),
	("index-empty", sharded(file(INDEX, b'{"weight_map": {}}')), [INDEX]),
	("index-map-list", sharded(file(INDEX, b'{"weight_map": []}')),
	 ["weight_map"]),
	("index-number", sharded(map_to(Q, 3)), [INDEX, Q]),
	("index-missing-shard", sharded(
	 map_to(Q, "model-00009-of-00009.safetensors")),
	 ["model-00009-of-00009.safetensors"]),
	("index-wrong-shard", sharded(
	 map_to(EMBED, "model-00002-of-00003.safetensors")),
	 [EMBED, "model-00002-of-00003.safetensors"]),
	("index-unknown-tensor", sharded(
	 map_to("no.such", "model-00002-of-00003.safetensors")), ["no.such"]),
	("index-up", sharded(map_to(Q, "../model.safetensors")), [Q]),
	("index-absolute", sharded(map_to(Q, "/etc/passwd.safetensors")),
	 [Q]),
	("index-device", sharded(map_to(Q, "/dev/zero")), [Q]),
	("shard-gone", sharded(file("model-00002-of-00003.safetensors", None)),
	 ["model-00002-of-00003.safetensors"]),
	("shard-empty", sharded(file("model-00002-of-00003.safetensors", b"")),
	 ["model-00002-of-00003.safetensors"]),
	("shard-doubled", sharded(lambda f: f.files.update(
	    {"model-00002-of-00003.safetensors":
	     f.files["model-00001-of-00003.safetensors"]})),
	 ["twice"]),
]
