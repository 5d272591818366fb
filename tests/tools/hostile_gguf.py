"""Hostile and cut GGUF files: a table of what is done to a good one and the
words of the sentence that refuses it."""

import struct

from gguf_raw import ARR, BOOL, F32, F64, I32, I64, STR, U32, U64, U8, Tensor

BIG = 1 << 61
NAN, INF = float("nan"), float("inf")


# ---- ways to spoil a file; each takes it as its first argument ----

def raw(b):
	"""The whole file."""
	return lambda g: b


def key(name, kind, v):
	"""Sets a key of the architecture."""
	return lambda g: g.set(g.arch + "." + name, kind, v)


def root(name, kind, v):
	return lambda g: g.set(name, kind, v)


def gone(name):
	return lambda g: g.drop(g.arch + "." + name)


def field(name, /, **fields):
	"""Sets fields of a tensor."""
	return lambda g: vars(g.tensor(name)).update(fields)


def without(name):
	return lambda g: g.tensors.remove(g.tensor(name))


def count(**fields):
	"""Sets fields of the file."""
	return lambda g: vars(g).update(fields)


def value(raw):
	"""A key behind the others, of these bytes: kind and value."""
	return lambda g: g.put("odd.key", raw)


def cut(part):
	"""Leaves part of the header."""
	return lambda g: g.head()[:int(len(g.head()) * part)]


def twin_key(g):
	g.keys.append(g.keys[4])


def twin_tensor(g):
	t = g.tensor("blk.0.attn_q.weight")
	g.tensors.append(Tensor(t.name, t.dims, t.type, g.size))
	g.size += 1 << 17


def same_place(g):
	g.tensor("blk.0.ffn_up.weight").offset = \
	    g.tensor("blk.0.ffn_gate.weight").offset


def shorter(n):
	def f(g):
		g.size = n if n >= 0 else g.size + n
	return f


def no_trunk(g):
	g.tensors = [t for t in g.tensors if not t.name.startswith("blk.")]


def each(*mutations):
	def f(g):
		for m in mutations:
			m(g)
	return f


def vocabulary(rows, *more):
	"""Tokens called by their numbers, then some that are no text."""
	def f(g):
		n = len(more)
		g.set("tokenizer.ggml.tokens", ARR, (STR, [
		    "%d" % i for i in range(rows)] + list(more)))
		g.set("tokenizer.ggml.token_type", ARR,
		      (I32, [1] * rows + [3] * n))
		g.set("tokenizer.ggml.merges", ARR, (STR, []))
	return f


nested = b"".join(struct.pack("<IQ", 9, 1) for _ in range(10000))
wide = struct.pack("<I", 9) + struct.pack("<IQ", 8, 1 << 20) + bytes(8 << 20)

# Columns: its name; what is done; words of the sentence.
QWEN3 = [
	# containers
	("no-bytes", raw(b""), ["empty"]),
	("magic-only", raw(b"GGUF"), ["ends inside the header"]),
	("magic-short", raw(b"GGU"), ["not a GGUF file"]),
	("other-file", raw(b"\x7fELF" + bytes(5000)), ["not a GGUF file"]),
	("text-file", raw(b"version https://git-lfs.github.com/spec/v1\n"),
	 ["not a GGUF file"]),
	("head-24", raw(b"GGUF" + struct.pack("<IQQ", 3, 1 << 40, 1 << 40)),
	 ["1099511627776 tensors"]),
	("version-0", count(version=0), ["version 0"]),
	("version-2", count(version=2), ["version 2"]),
	("version-big-endian", count(version=3 << 24), ["big-endian"]),
	("many-keys", count(n_keys=1 << 62), ["4611686018427387904 keys"]),
	("keys-minus-1", count(n_keys=(1 << 64) - 1),
	 ["18446744073709551615 keys"]),
	("many-tensors", count(n_tensors=1 << 62),
	 ["4611686018427387904 tensors"]),
	("one-key-more", count(n_keys=24), ["string of"]),
	("one-tensor-more", count(n_tensors=25), ["empty name"]),
	("one-tensor-less", count(n_tensors=23), ["output_norm.weight"]),
	("no-tensors", each(count(tensors=[]), shorter(0)),
	 ["token_embd.weight"]),
	("no-keys", count(keys=[]), ["general.architecture"]),
	("cut-key", cut(.01), ["do not fit"]),
	("cut-tokens", cut(.3), ["tokenizer.ggml.tokens"]),
	("cut-entry", cut(.97), ["model.gguf"]),
	("cut-data", shorter(100000), ["cut short", "tensor '"]),
	("cut-tail", shorter(-1), ["cut short", "tensor '"]),
	# values
	("string-2^63", value(struct.pack("<IQ", STR, 1 << 63)),
	 ["odd.key", "9223372036854775808 bytes"]),
	("string-2^64-1", value(struct.pack("<IQ", STR, (1 << 64) - 1)),
	 ["odd.key", "18446744073709551615 bytes"]),
	("array-2^61", value(struct.pack("<IIQ", ARR, U64, BIG)),
	 ["odd.key", "2305843009213693952 elements"]),
	("array-of-strings-2^61", value(struct.pack("<IIQ", ARR, STR, BIG)),
	 ["odd.key", "2305843009213693952 elements"]),
	("array-of-arrays-2^60", value(struct.pack("<IIQ", ARR, ARR, BIG // 2)),
	 ["odd.key", "1152921504606846976 elements"]),
	("array-nested", value(struct.pack("<I", ARR) + nested),
	 ["odd.key", "nested"]),
	("array-unknown", value(struct.pack("<IIQ", ARR, 13, 1)),
	 ["odd.key", "type 13"]),
	("array-wide", each(value(wide), gone("block_count")),
	 ["qwen3.block_count"]),
	("kind-unknown", value(struct.pack("<IQ", 4000000000, 1)),
	 ["odd.key", "type 4000000000"]),
	("bool-2", root("odd.key", BOOL, 2), ["odd.key", "bool"]),
	("dup-key", twin_key, ["qwen3.block_count", "twice"]),
	("key-no-name", root("", U8, 1), ["empty name"]),
	("key-long", root("k" * 70000, U8, 1), ["70000 bytes"]),
	("key-escape", root("k\x1b[2J", U8, 1), ["printable"]),
	("alignment-0", root("general.alignment", U32, 0), ["is 0,"]),
	("alignment-3", root("general.alignment", U32, 3), ["is 3,"]),
	("alignment-2^40", root("general.alignment", U64, 1 << 40),
	 ["general.alignment", "1099511627776"]),
	("alignment-negative", root("general.alignment", I32, -32),
	 ["general.alignment", "-32"]),
	("alignment-text", root("general.alignment", STR, "32"),
	 ["general.alignment"]),
	# tensors
	("dims-5", field("output_norm.weight", n_dims=5), ["5 dimensions"]),
	("dims-2^31", field("output_norm.weight", n_dims=1 << 31),
	 ["output_norm.weight", "2147483648 dimensions"]),
	("dim-0", field("blk.0.attn_q.weight", dims=[256, 0]),
	 ["blk.0.attn_q.weight", "dimension of 0"]),
	("dim-negative", field("blk.0.attn_q.weight", dims=[256, -1]),
	 ["blk.0.attn_q.weight", "63 bits"]),
	("dims-overflow", field("blk.0.attn_q.weight", dims=[1 << 32] * 2),
	 ["blk.0.attn_q.weight", "63 bits"]),
	("dims-overflow-to-0", field("blk.0.attn_q.weight", dims=[1 << 16] * 4),
	 ["blk.0.attn_q.weight", "63 bits"]),
	("dims-2^62", field("blk.0.attn_q.weight", dims=[1 << 62]),
	 ["blk.0.attn_q.weight"]),
	("dim-2^40", field("blk.0.attn_q.weight", dims=[256, 1 << 40]),
	 ["blk.0.attn_q.weight"]),
	("dims-transposed", field("token_embd.weight", dims=[512, 256]),
	 ["token_embd.weight"]),
	("dims-3", field("blk.0.attn_q.weight", dims=[256, 16, 16]),
	 ["blk.0.attn_q.weight"]),
	("scalar", field("output_norm.weight", dims=[]),
	 ["output_norm.weight"]),
	("block-cut", each(field("blk.0.attn_q.weight", dims=[250, 2], type=12)),
	 ["blk.0.attn_q.weight", "block of 256"]),
	("type-unknown", field("blk.0.attn_q.weight", type=77),
	 ["blk.0.attn_q.weight", "type 77"]),
	("type-foreign", field("blk.0.attn_q.weight", type=16),
	 ["blk.0.attn_q.weight", "iq2_xxs"]),
	("type-of-norm", field("output_norm.weight", type=8),
	 ["output_norm.weight"]),
	("type-i32", field("blk.0.attn_q.weight", type=26), ["attn_q.weight"]),
	("offset-odd", field("blk.0.attn_q.weight", offset=33),
	 ["blk.0.attn_q.weight", "offset 33"]),
	("offset-beyond", field("blk.0.attn_q.weight", offset=1 << 40),
	 ["blk.0.attn_q.weight"]),
	("offset-2^63", field("blk.0.attn_q.weight", offset=1 << 63),
	 ["blk.0.attn_q.weight", "beyond any file"]),
	("offset-wraps", field("blk.0.attn_q.weight", offset=(1 << 64) - 32),
	 ["blk.0.attn_q.weight", "beyond any file"]),
	("overlap", same_place, ["blk.0.ffn_up.weight", "overlap"]),
	("dup-tensor", twin_tensor, ["blk.0.attn_q.weight", "twice"]),
	("tensor-no-name", field("blk.0.attn_q.weight", name=""),
	 ["empty name"]),
	("tensor-long", field("blk.0.attn_q.weight", name="x" * 256),
	 ["256 bytes"]),
	("tensor-other-name", field("blk.0.attn_q.weight", name="blk.0.attn_p"),
	 ["blk.0.attn_q.weight"]),
	("tensor-missing", without("blk.1.ffn_down.weight"),
	 ["blk.1.ffn_down.weight"]),
	("tensor-in-excess", lambda g: g.tensors.append(
	    Tensor("blk.2.attn_q.weight", [1], 0, 0x400000)) or
	    vars(g).update(size=0x400004), ["blk.2.attn_q.weight"]),
	("no-blocks", no_trunk, ["blk.0."]),
	("scaled-rope", lambda g: g.tensors.append(
	    Tensor("rope_freqs.weight", [32], 0, 0x400000)) or
	    vars(g).update(size=0x400080), ["rope_freqs.weight"]),
	# keys of a model
	("arch-missing", lambda g: g.drop("general.architecture"),
	 ["general.architecture"]),
	("arch-number", root("general.architecture", U32, 3),
	 ["general.architecture"]),
	("arch-empty", root("general.architecture", STR, ""), ["architecture"]),
	("arch-other", root("general.architecture", STR, "qwne3"),
	 ["qwne3", "did you mean 'qwen3'"]),
	("arch-path", root("general.architecture", STR, "../../../etc/passwd"),
	 ["../../../etc/passwd"]),
	("arch-library", root("general.architecture", STR, "lib/config"),
	 ["lib/config"]),
	("arch-lines", root("general.architecture", STR, "a\nb\x1b[2J"),
	 ["architecture"]),
	("arch-nul", root("general.architecture", STR, "qwen3\0x"),
	 ["architecture"]),
	("arch-long", root("general.architecture", STR, "q" * 100000),
	 ["architecture"]),
	("arch-percent", root("general.architecture", STR, "%s%n%s%n"),
	 ["%s%n%s%n"]),
	("layers-text", key("block_count", STR, "2"), ["qwen3.block_count"]),
	("layers-0", key("block_count", U32, 0), ["qwen3.block_count"]),
	("layers-negative", key("block_count", I32, -2), ["qwen3.block_count"]),
	("layers-2^31", key("block_count", U32, 1 << 31),
	 ["qwen3.block_count"]),
	("layers-2^31-1", key("block_count", U32, (1 << 31) - 1),
	 ["qwen3.block_count"]),
	("layers-missing", gone("block_count"), ["qwen3.block_count"]),
	("layers-half", key("block_count", F32, 1.5), ["qwen3.block_count"]),
	("layers-nan", key("block_count", F32, NAN), ["qwen3.block_count"]),
	("layers-too-few", key("block_count", U32, 1), ["blk.1."]),
	("layers-true", key("block_count", BOOL, 1), ["qwen3.block_count"]),
	("width-2^31", key("embedding_length", U32, 1 << 31),
	 ["qwen3.embedding_length"]),
	("width-2^31-1", key("embedding_length", U32, (1 << 31) - 1),
	 ["token_embd.weight"]),
	("width-0", key("embedding_length", U32, 0), ["embedding_length"]),
	("width-missing", gone("embedding_length"), ["embedding_length"]),
	("width-text", key("embedding_length", STR, "256"),
	 ["embedding_length"]),
	("context-0", key("context_length", U32, 0), ["context_length"]),
	("context-missing", gone("context_length"), ["context_length"]),
	("context-2^63", key("context_length", U64, 1 << 63),
	 ["context_length"]),
	("heads-0", key("attention.head_count", U32, 0), ["head_count"]),
	("heads-text", key("attention.head_count", STR, "4"), ["head_count"]),
	("heads-empty", key("attention.head_count", ARR, (U32, [])),
	 ["head_count"]),
	("heads-differ", key("attention.head_count", ARR, (U32, [4, 2])),
	 ["head_count"]),
	("heads-2^31-1", key("attention.head_count", U32, (1 << 31) - 1),
	 ["head_count"]),
	("heads-2^30", key("attention.head_count", U32, 1 << 30),
	 ["blk.0.attn_q.weight"]),
	("layers-60000", key("block_count", U32, 60000), ["blk.2."]),
	("kv-heads-0", key("attention.head_count_kv", U32, 0),
	 ["head_count_kv"]),
	("kv-heads-none", key("attention.head_count_kv", ARR, (U32, [0, 0])),
	 ["head_count_kv"]),
	("kv-heads-more", key("attention.head_count_kv", U32, 8),
	 ["head_count_kv"]),
	("kv-heads-3", key("attention.head_count_kv", U32, 3),
	 ["head_count_kv"]),
	("kv-heads-texts", key("attention.head_count_kv", ARR,
	 (STR, ["2", "2"])), ["head_count_kv"]),
	("kv-heads-arrays", key("attention.head_count_kv", ARR,
	 (ARR, [(U32, [2]), (U32, [2])])), ["head_count_kv"]),
	("head-0", key("attention.key_length", U32, 0), ["key_length"]),
	("head-63", key("attention.key_length", U32, 63), ["_length"]),
	("head-odd", each(key("attention.key_length", U32, 63),
	 key("attention.value_length", U32, 63)), ["dimension_count"]),
	("head-2^31-1", each(key("attention.key_length", U32, (1 << 31) - 1),
	 key("attention.value_length", U32, (1 << 31) - 1)), ["_count"]),
	("head-v", key("attention.value_length", U32, 32), ["value_length"]),
	("head-v-text", key("attention.value_length", STR, "64"),
	 ["value_length"]),
	("rot-0", key("rope.dimension_count", U32, 0), ["dimension_count"]),
	("rot-odd", key("rope.dimension_count", U32, 33), ["dimension_count"]),
	("rot-more", key("rope.dimension_count", U32, 128),
	 ["dimension_count"]),
	("rot-text", key("rope.dimension_count", STR, "64"),
	 ["dimension_count"]),
	("eps-nan", key("attention.layer_norm_rms_epsilon", F32, NAN),
	 ["layer_norm_rms_epsilon"]),
	("eps-inf", key("attention.layer_norm_rms_epsilon", F32, INF),
	 ["layer_norm_rms_epsilon"]),
	("eps-0", key("attention.layer_norm_rms_epsilon", F32, 0),
	 ["layer_norm_rms_epsilon"]),
	("eps-negative", key("attention.layer_norm_rms_epsilon", F32, -1e-6),
	 ["layer_norm_rms_epsilon"]),
	("eps-f64", key("attention.layer_norm_rms_epsilon", F64, 1e300),
	 ["layer_norm_rms_epsilon"]),
	("eps-text", key("attention.layer_norm_rms_epsilon", STR, "1e-6"),
	 ["layer_norm_rms_epsilon"]),
	("eps-missing", gone("attention.layer_norm_rms_epsilon"),
	 ["layer_norm_rms_epsilon"]),
	("theta-inf", key("rope.freq_base", F32, INF), ["freq_base"]),
	("theta-nan", key("rope.freq_base", F32, NAN), ["freq_base"]),
	("theta-0", key("rope.freq_base", F32, 0), ["freq_base"]),
	("theta-text", key("rope.freq_base", STR, "1e6"), ["freq_base"]),
	("ff-0", key("feed_forward_length", U32, 0), ["feed_forward_length"]),
	("ff-other", key("feed_forward_length", U32, 511), ["ffn_gate"]),
	("ff-missing", gone("feed_forward_length"), ["feed_forward_length"]),
	("drafts", key("nextn_predict_layers", U32, 2), ["block_count"]),
	("drafts-text", key("nextn_predict_layers", STR, "x"),
	 ["nextn_predict_layers"]),
	("drafts-2^31-1", key("nextn_predict_layers", U32, (1 << 31) - 1),
	 ["block_count"]),
	("yarn", key("rope.scaling.type", STR, "yarn"), ["rope.scaling.type"]),
	("window", key("attention.sliding_window", U32, 128),
	 ["sliding_window"]),
	# a set that is none
	("split-alone", root("split.count", U32, 3), ["split.count"]),
	("split-text", root("split.count", STR, "3"), ["split.count"]),
	("split-2^31", root("split.count", U32, 1 << 31), ["split.count"]),
	("split-negative", root("split.count", I32, -1), ["split.count"]),
	("adapter", root("general.type", STR, "adapter"), ["adapter"]),
	("projector", root("general.type", STR, "mmproj"), ["projector"]),
]

QWEN35MOE = [
	("used-more", key("expert_used_count", U32, 7), ["expert_used_count"]),
	("used-0", key("expert_used_count", U32, 0), ["expert_used_count"]),
	("used-missing", gone("expert_used_count"), ["expert_used_count"]),
	("experts-0", key("expert_count", U32, 0), ["expert_count"]),
	("experts-5", key("expert_count", U32, 5), ["blk.0.ffn_"]),
	("experts-2^31-1", key("expert_count", U32, (1 << 31) - 1),
	 ["expert_count"]),
	("experts-text", key("expert_count", STR, "6"), ["expert_count"]),
	("expert-width", key("expert_feed_forward_length", U32, 0),
	 ["expert_feed_forward_length"]),
	("expert-width-big", key("expert_feed_forward_length", U32,
	 (1 << 31) - 1), ["ffn_gate_exps"]),
	("shared-width", key("expert_shared_feed_forward_length", U32, 0),
	 ["expert_shared_feed_forward_length"]),
	("gating", key("expert_gating_func", U32, 2), ["expert_gating_func"]),
	("interval-0", key("full_attention_interval", U32, 0),
	 ["full_attention_interval"]),
	("interval-1", key("full_attention_interval", U32, 1),
	 ["blk.0.attn_q"]),
	("interval-100", key("full_attention_interval", U32, 100), ["blk.3."]),
	("interval-text", key("full_attention_interval", STR, "4"),
	 ["full_attention_interval"]),
	("recurrent-short", key("attention.recurrent_layers", ARR,
	 (BOOL, [1, 1])), ["recurrent_layers"]),
	("recurrent-numbers", key("attention.recurrent_layers", ARR,
	 (U32, [1, 1, 1, 0])), ["recurrent_layers"]),
	("recurrent-number", key("attention.recurrent_layers", U32, 3),
	 ["recurrent_layers"]),
	("taps-0", key("ssm.conv_kernel", U32, 0), ["ssm.conv_kernel"]),
	("taps-1", key("ssm.conv_kernel", U32, 1), ["ssm_conv1d"]),
	("taps-5", key("ssm.conv_kernel", U32, 5), ["ssm_conv1d"]),
	("taps-2^31-1", key("ssm.conv_kernel", U32, (1 << 31) - 1),
	 ["ssm_conv1d"]),
	("state-0", key("ssm.state_size", U32, 0), ["ssm.state_size"]),
	("state-32", key("ssm.state_size", U32, 32), ["ssm.inner_size"]),
	("state-2^31-1", key("ssm.state_size", U32, (1 << 31) - 1),
	 ["ssm.inner_size"]),
	("groups-0", key("ssm.group_count", U32, 0), ["ssm.group_count"]),
	("groups-3", key("ssm.group_count", U32, 3), ["group_count"]),
	("groups-8", key("ssm.group_count", U32, 8), ["group_count"]),
	("rank-0", key("ssm.time_step_rank", U32, 0), ["ssm.time_step_rank"]),
	("rank-8", key("ssm.time_step_rank", U32, 8), ["ssm.inner_size"]),
	("rank-missing", gone("ssm.time_step_rank"), ["ssm.time_step_rank"]),
	("inner-0", key("ssm.inner_size", U32, 0), ["ssm.inner_size"]),
	("inner-text", key("ssm.inner_size", STR, "256"), ["ssm.inner_size"]),
	("sections-2", key("rope.dimension_sections", ARR, (I32, [4, 4])),
	 ["dimension_sections"]),
	("sections-number", key("rope.dimension_sections", I32, 4),
	 ["dimension_sections"]),
	("drafts-alone", each(key("nextn_predict_layers", U32, 1), no_trunk),
	 ["draft head"]),
	("drafts-many", key("nextn_predict_layers", U32, 9), ["block_count"]),
	("heads-of-layers", key("attention.head_count_kv", ARR,
	 (I64, [-1, -1, -1, 2])), ["head_count_kv"]),
]

# Faults of the tokenizer alone: compile does not read it, run -p does.
TOKENIZER = [
	("tokens-fewer", root("tokenizer.ggml.tokens", ARR, (STR, ["a"])),
	 ["token"]),
	("tokens-more", root("tokenizer.ggml.tokens", ARR,
	 (STR, ["t%d" % i for i in range(513)])), ["token"]),
	("tokens-number", root("tokenizer.ggml.tokens", U32, 5),
	 ["tokenizer.ggml.tokens"]),
	("tokens-numbers", root("tokenizer.ggml.tokens", ARR, (U32, [5] * 512)),
	 ["tokenizer.ggml.tokens"]),
	("tokens-empty", root("tokenizer.ggml.tokens", ARR, (STR, [])),
	 ["tokenizer.ggml.tokens"]),
	("types-short", root("tokenizer.ggml.token_type", ARR, (I32, [1])),
	 ["token_type"]),
	("types-texts", root("tokenizer.ggml.token_type", ARR,
	 (STR, ["x"] * 512)), ["token_type"]),
	("merges-no-space", root("tokenizer.ggml.merges", ARR,
	 (STR, ["ab"])), ["merge 0"]),
	("merges-unknown", root("tokenizer.ggml.merges", ARR,
	 (STR, ["zq qz"])), ["merge 0"]),
	("merges-numbers", root("tokenizer.ggml.merges", ARR, (U32, [1])),
	 ["merge"]),
	("eos-beyond", root("tokenizer.ggml.eos_token_id", U32, 1 << 31),
	 ["eos_token_id"]),
	("model-other", root("tokenizer.ggml.model", STR, "llama"),
	 ["tokenizer.ggml.model"]),
	("pre-other", root("tokenizer.ggml.pre", STR, "no-such"),
	 ["tokenizer.ggml.pre"]),
]

# A prompt of an id for which the model has no row.
VOCABULARY = [
	("vocabulary-more", vocabulary(600, "hello"), ["id 600", "512"]),
	("vocabulary-one-more", vocabulary(512, "hello"), ["id 512", "512"]),
]
