"""Write small odd checkpoints of the kinds that people really have.

	python3 field_cases.py OUTDIR [--qwen3 GGUF] [--qwen3moe GGUF]
	        [--qwen35 GGUF] [--qwen3-folder DIR] [--qwen35moe-folder DIR]

The cases made from a checkpoint are written when that checkpoint is given;
those made from nothing always are. --qwen35moe-folder must have a tied head.
OUTDIR/cases.tsv says what to expect, one case a line:

	FILE  equal   INPUT     the logits of INPUT, to the bit
	FILE  twice   INPUT     exactly twice its logits
	FILE  differs INPUT     loads, but is not INPUT
	FILE  refuse  WORD...   an error whose sentence holds every WORD
	FILE  ids     IDS TEXT  the ids of TEXT (a JSON string)
	FILE  next    IDS KEY=VALUE...  what follows IDS, greedily
"""

import argparse
import json
import os

import numpy as np

import gguf_to_folder
import gguf_write as gw
import safetensors_write as st
import tokenizer_write as tw
from gguf_write import ARR, BOOL, F32, I32, STR, U32

SEED = 20


class Out:
	def __init__(self, root):
		self.root, self.lines = root, []
		os.makedirs(root, exist_ok=True)

	def path(self, name):
		return os.path.join(self.root, name)

	def case(self, name, *expected):
		self.lines.append("\t".join((name,) + expected))

	def gguf(self, name, g, *expected):
		g.write(self.path(name))
		self.case(name, *expected)

	def folder(self, name, config, tensors, *expected):
		st.write_folder(self.path(name), config, tensors)
		self.case(name, *expected)

	def close(self):
		with open(self.path("cases.tsv"), "w", encoding="utf-8") as f:
			f.write("\n".join(self.lines) + "\n")


def copy(g):
	return gw.Gguf(dict(g.kv), dict(g.tensors))


# D1: one file in the dialect of another exporter.

def strange_tensors(d):
	"""Parts of a vision tower and of a predictor, in that dialect."""
	names = {"v.patch_embd.weight": (3, 4, 4), "v.blk.0.ln1.weight": (d,),
	         "v.blk.0.attn_qkv.weight": (3 * d, d),
	         "v.blk.0.attn_qkv.bias": (3 * d,), "mm.0.weight": (d, d),
	         "mtp.fc.weight": (d, 2 * d), "mtp.norm.weight": (d,),
	         "mtp.pre_fc_norm_hidden.weight": (d,),
	         "mtp.layers.0.attn_norm.weight": (d,),
	         "mtp.layers.0.attn_q.weight": (d, d)}
	rng = np.random.default_rng(SEED)
	return {n: gw.tensor_bf16(rng.standard_normal(s))
	        for n, s in names.items()}


def exporter(g):
	out, layers = copy(g), g.get("qwen35.block_count")
	every = g.get("qwen35.full_attention_interval")
	kv_heads = g.get("qwen35.attention.head_count_kv")
	out.kv["qwen35.attention.head_count_kv"] = (ARR, (U32, [
	    0 if (i + 1) % every else kv_heads for i in range(layers)]))
	out.kv["qwen35.rope.dimension_sections"] = (ARR, (
	    I32, g.get("qwen35.rope.dimension_sections")[:3]))
	out.kv["qwen35.vision.block_count"] = (U32, 1)
	out.kv["qwen35.vision.embedding_length"] = (U32, 32)
	out.kv["qwen35.mtp_num_hidden_layers"] = (U32, 1)
	out.tensors = {n.replace("ssm_dt.bias", "ssm_dt"): t
	               for n, t in g.tensors.items()}
	out.tensors.update(strange_tensors(
	    g.get("qwen35.embedding_length")))
	return out


# D2: the block of a predictor behind the trunk, and without a trunk.

def predictor(g):
	"""Random tensors, shaped as the last block's, norms of 3."""
	n = g.get("qwen35.block_count")
	d = g.get("qwen35.embedding_length")
	last = "blk.%d." % (n - 1)
	shapes = {k[len(last):]: t.ne[::-1] for k, t in g.tensors.items()
	          if k.startswith(last)}
	shapes.update({"nextn.eh_proj.weight": (d, 2 * d),
	               "nextn.enorm.weight": (d,), "nextn.hnorm.weight": (d,),
	               "nextn.shared_head_norm.weight": (d,)})
	rng = np.random.default_rng(SEED)
	return {"blk.%d.%s" % (n, k):
	        gw.tensor_f32(np.full(s, 3)) if len(s) == 1 else
	        gw.tensor_bf16(rng.standard_normal(s))
	        for k, s in shapes.items()}


def with_predictor(g):
	out = copy(g)
	out.kv["qwen35.block_count"] = (U32, g.get("qwen35.block_count") + 1)
	out.kv["qwen35.nextn_predict_layers"] = (U32, 1)
	out.tensors.update(predictor(g))
	return out


def without_trunk(g, layers):
	trunk = tuple("blk.%d." % i for i in range(layers))
	return gw.Gguf(g.kv, {n: t for n, t in g.tensors.items()
	                      if not n.startswith(trunk)})


def from_qwen35(out, path):
	g = gw.read(path)
	stored = with_predictor(g)
	out.gguf("d1-exporter.gguf", exporter(g), "equal", path)
	out.gguf("d2-mtp-stored.gguf", stored, "equal", path)
	out.gguf("d2-draft-only.gguf",
	         without_trunk(stored, g.get("qwen35.block_count")),
	         "refuse", "draft", "trunk")


# D5: combining marks at the borders of words.

TEXT = "he\u0301 \u0e2a\u0e31 e\u0301\u0301"
NFC = "h\u00e9 \u0e2a\u0e31 \u00e9\u0301"
WORDS = {("qwen2", TEXT): "he|\u0301| \u0e2a|\u0e31| e|\u0301\u0301",
         ("qwen35", TEXT): "he\u0301| \u0e2a\u0e31| e\u0301\u0301",
         ("qwen2", NFC): "h\u00e9| \u0e2a|\u0e31| \u00e9|\u0301",
         ("qwen35", NFC): "h\u00e9| \u0e2a\u0e31| \u00e9\u0301"}
# In order of rank; each joins two symbols made before it.
MERGED = [b"\xcc\x81", b"\xe0\xb8", b"\xe0\xb8\xaa", b"\xe0\xb8\xb1",
          b"e\xcc\x81", b"\xe0\xb8\xaa\xe0\xb8\xb1", b"\xc3\xa9",
          b"\xc3\xa9\xcc\x81", b" \xe0\xb8\xaa\xe0\xb8\xb1", b"h\xc3\xa9",
          b" e\xcc\x81", b"\xcc\x81\xcc\x81", b"he"]
HALVES = [1, 1, 2, 2, 1, 3, 1, 2, 1, 1, 1, 2, 1]
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]


def marks_tokens():
	tokens = tw.VISIBLE + [tw.spell(m) for m in MERGED] + SPECIAL
	types = [tw.NORMAL] * (len(tokens) - 3) + [tw.CONTROL] * 3
	merges = ["%s %s" % (tw.spell(m[:k]), tw.spell(m[k:]))
	          for m, k in zip(MERGED, HALVES)]
	return tokens, types, merges


def bpe(word, merges):
	"""Repeated merging of the pair of lowest rank, leftmost first."""
	rank = {tuple(m.split(" ")): i for i, m in enumerate(merges)}
	parts = list(tw.spell(word.encode()))
	while True:
		best = min(((rank[p], i) for i, p in
		            enumerate(zip(parts, parts[1:])) if p in rank),
		           default=None)
		if best is None:
			return parts
		i = best[1]
		parts[i:i + 2] = [parts[i] + parts[i + 1]]


def marks_ids(pre, text):
	tokens, _, merges = marks_tokens()
	return [tokens.index(p) for w in WORDS[pre, text].split("|")
	        for p in bpe(w, merges)]


def id_list(ids):
	return ",".join(map(str, ids))


def marks(out):
	tokens, types, merges = marks_tokens()
	quoted = json.dumps(TEXT)
	for pre in "qwen2", "qwen35":
		g = table_gguf(len(tokens), {}, tw.gguf_keys(
		    tokens, types, merges, pre))
		nfc = id_list(marks_ids(pre, NFC))
		raw = id_list(marks_ids(pre, TEXT))
		out.gguf("d5-%s.gguf" % pre, g, "ids", nfc, quoted)
		for name, normal, ids in (("", "NFC", nfc),
		                          ("-raw", None, raw)):
			name = "d5-%s%s" % (pre, name)
			out.folder(name, *table_folder(len(tokens), {}),
			           "ids", ids, quoted)
			tw.write(out.path(name + "/tokenizer.json"),
			         tw.tokenizer_json(tokens, types, merges,
			                           pre, normal))


# D7 to D9: a model whose next token is looked up in a table. Embeddings are
# one-hot and every block adds zero, so the head sees the last token alone.

END, IM_START, IM_END = 256, 257, 258
FAMILY = b"\xf0\x9f\x91\xa9\xe2\x80\x8d!"       # U+1F469 U+200D !
CHAINS = [[65, *FAMILY, IM_END],                # ends with im_end
          [71, *b"h\xc3", END],                 # endoftext in a character
          [72, 11, 72],                         # for ever, by id 11
          [67, *b"defgd"]]                      # for ever


def successors():
	follow = dict.fromkeys(range(259), IM_END)
	for chain in CHAINS:
		follow.update(zip(chain, chain[1:]))
	return follow


def hidden_size(vocab):
	return -(-vocab // 32) * 32


def table_weights(vocab, follow):
	"""GGUF names -> f32 arrays."""
	H = hidden_size(vocab)
	embed = np.eye(vocab, H, dtype=np.float32)
	head = np.zeros((vocab, H), np.float32)
	for i, j in follow.items():
		head[j, i] = 1
	zero, one = np.zeros, np.ones
	block = {"attn_norm": one(H), "ffn_norm": one(H),
	         "attn_q": zero((128, H)), "attn_k": zero((64, H)),
	         "attn_v": zero((64, H)), "attn_output": zero((H, 128)),
	         "attn_q_norm": one(64), "attn_k_norm": one(64),
	         "ffn_gate": zero((32, H)), "ffn_up": zero((32, H)),
	         "ffn_down": zero((H, 32))}
	w = {"token_embd.weight": embed, "output_norm.weight": one(H),
	     "output.weight": head}
	w.update({"blk.0.%s.weight" % k: x for k, x in block.items()})
	return w


def table_gguf(vocab, follow, tokenizer):
	numbers = {"block_count": 1, "context_length": 4096,
	           "embedding_length": hidden_size(vocab),
	           "feed_forward_length": 32, "attention.head_count": 2,
	           "attention.head_count_kv": 1, "attention.key_length": 64,
	           "attention.value_length": 64}
	kv = {"general.architecture": (STR, "qwen3"),
	      "general.type": (STR, "model"),
	      "general.name": (STR, "table"),
	      "general.file_type": (U32, 32)}
	kv.update({"qwen3." + k: (U32, v) for k, v in numbers.items()})
	kv["qwen3.attention.layer_norm_rms_epsilon"] = (F32, 1e-6)
	kv["qwen3.rope.freq_base"] = (F32, 1e6)
	kv.update(tokenizer)
	return gw.Gguf(kv, {
	    n: gw.tensor_f32(x) if x.ndim == 1 else gw.tensor_bf16(x)
	    for n, x in table_weights(vocab, follow).items()})


def table_folder(vocab, follow, **config):
	f = gguf_to_folder.Facts(table_gguf(vocab, follow, {}))
	return ({**gguf_to_folder.config(f), **config},
	        gguf_to_folder.weights(f))


def expect_next(out, name):
	def say(ids, *facts):
		out.case(name, "next", ids, *facts)
	text = json.dumps(FAMILY.decode())
	say("65", "text=" + text, "finish=stop", "prompt_tokens=1")
	say("71", 'text="h\\ufffd"', "finish=stop")
	say("72", "tokens=11,72,11,72,11,72", "n=6", "finish=length",
	    "prompt_tokens=1")
	say("67", "tokens=100,101,102,103,100,101", "n=6", "finish=length")
	say("65", "tokens=240,159", "n=2", 'text="\\ufffd"', "finish=length")


def succ(out):
	tokens = tw.VISIBLE + SPECIAL
	types = [tw.NORMAL] * 256 + [tw.CONTROL] * 3
	follow = successors()

	def form(name, merges, **ids):
		keys = tw.gguf_keys(tokens, types, merges, "qwen2")
		g = table_gguf(259, follow, {**keys, **tw.ids_keys(**ids)})
		g.write(out.path(name))
		expect_next(out, name)

	form("succ.gguf", [], eos=IM_END)
	form("succ-noeos.gguf", [])
	form("succ-eos-base.gguf", [], eos=END)
	form("succ-nomerges.gguf", None, eos=IM_END)
	stops = {"bos_token_id": None, "eos_token_id": [END, IM_END]}
	st.write_folder(out.path("succ"),
	                *table_folder(259, follow, **stops))
	with open(out.path("succ/generation_config.json"), "w") as f:
		json.dump(stops, f)
	tw.write(out.path("succ/tokenizer.json"),
	         tw.tokenizer_json(tokens, types, [], "qwen2"))
	expect_next(out, "succ")


# D11: the router's renormalisation, said and unsaid.

def from_qwen3moe(out, path):
	g = gw.read(path)
	for name, value, expected in (("true", True, "equal"),
	                              ("false", False, "differs"),
	                              ("nokey", None, "differs")):
		name = "d11-" + name
		gguf_to_folder.convert(g, out.path(name),
		                       settings=[("norm_topk_prob", value)])
		out.case(name, expected, path)


# D12: the names and layouts of a folder.

def split_experts(tensors):
	out = {}
	for name, (dtype, x) in tensors.items():
		stem, _, leaf = name.rpartition(".experts.")
		if leaf not in ("gate_up_proj", "down_proj"):
			out[name] = dtype, x
			continue
		parts = {"down_proj": x}
		if leaf == "gate_up_proj":
			gate, up = np.split(x, 2, 1)
			parts = {"gate_proj": gate, "up_proj": up}
		for key, y in parts.items():
			for e in range(len(y)):
				out["%s.experts.%d.%s.weight"
				    % (stem, e, key)] = dtype, y[e]
	return out


def fuse_experts(tensors, config):
	out = {n: t for n, t in tensors.items() if ".experts." not in n}
	for i in range(config["num_hidden_layers"]):
		name = "model.layers.%d.mlp.experts." % i
		dtype = tensors[name + "0.up_proj.weight"][0]

		def stack(key):
			return np.stack([
			    tensors["%s%d.%s_proj.weight" % (name, e, key)][1]
			    for e in range(config["num_experts"])])

		both = np.concatenate([stack("gate"), stack("up")], 1)
		out[name + "gate_up_proj"] = dtype, both
		out[name + "down_proj"] = dtype, stack("down")
	return out


def strays(H):
	shapes = {"model.visual.patch_embed.proj.weight": (16, 3, 2, 4, 4),
	          "model.visual.blocks.0.attn.qkv.weight": (48, 16),
	          "model.visual.blocks.0.attn.qkv.bias": (48,),
	          "model.visual.merger.linear_fc1.weight": (16, 64),
	          "mtp.fc.weight": (H, 2 * H), "mtp.norm.weight": (H,),
	          "mtp.pre_fc_norm_embedding.weight": (H,),
	          "mtp.pre_fc_norm_hidden.weight": (H,),
	          "mtp.layers.0.input_layernorm.weight": (H,),
	          "mtp.layers.0.mlp.experts.0.up_proj.weight": (8, H)}
	rng = np.random.default_rng(SEED)
	return {n: st.bf16(rng.standard_normal(s).astype(np.float32))
	        for n, s in shapes.items()}


def published(config, tensors, tie):
	"""As multimodal checkpoints are; tie says which dicts have the key."""
	text = {k: v for k, v in config.items()
	        if k not in ("architectures", "tie_word_embeddings")}
	outer = {"architectures": ["Qwen3_5MoeForConditionalGeneration"],
	         "model_type": "qwen3_5_moe", "text_config": text,
	         "vision_config": {"depth": 1, "hidden_size": 16,
	                           "model_type": "qwen3_5_moe"},
	         "image_token_id": 90, "video_token_id": 91,
	         "vision_start_token_id": 92, "vision_end_token_id": 93}
	for where in tie:
		{"root": outer, "inner": text}[where][
		    "tie_word_embeddings"] = True
	moved = {n.replace("model.", "model.language_model.", 1): t
	         for n, t in tensors.items()}
	return outer, {**strays(config["hidden_size"]), **moved}


def from_qwen35moe_folder(out, path):
	config, tensors = st.read_folder(path)
	if not config["tie_word_embeddings"]:
		raise SystemExit("%s: the head must be tied" % path)
	split = split_experts(tensors)
	fused = fuse_experts(split, config)
	out.folder("d12-a-split", config, split, "equal", path)
	out.folder("d12-b-fused", config, fused, "equal", path)
	out.folder("d12-c-prefix",
	           *published(config, fused, ("root", "inner")),
	           "equal", path)
	out.folder("d12-c-tie-root", *published(config, split, ("root",)),
	           "equal", path)
	out.folder("d12-c-tie-inner", *published(config, fused, ("inner",)),
	           "equal", path)
	untied = dict(config, tie_word_embeddings=False)
	out.folder("d12-d-no-head", untied, split, "refuse", "lm_head.weight")
	embed = st.widen(tensors["model.embed_tokens.weight"])
	out.folder("d12-e-double", untied,
	           {**split, "lm_head.weight": st.bf16(2 * embed)},
	           "twice", path)


# D13: keys that change the maths, and harmless ones that look like them.

def replaced(config, **keys):
	"""config with keys set, or removed where the value is ..."""
	new = {**config, **keys}
	return {k: v for k, v in new.items() if v is not ...}


def odd_configs(c):
	"""name, config, what the refusal names (nothing: it runs)."""
	theta = c["rope_parameters"]["rope_theta"]
	yarn = {"factor": 4.0, "original_max_position_embeddings": 1024}
	layers = c["num_hidden_layers"]
	sliding = ["full_attention"] + ["sliding_attention"] * (layers - 1)
	fp8 = {"quant_method": "fp8", "fmt": "e4m3",
	       "activation_scheme": "dynamic", "weight_block_size": [128, 128]}
	old = replaced(c, rope_parameters=..., rope_theta=theta)
	yield "fp8-key", replaced(c, quantization_config=fp8), (
	    "quantization_config", "fp8")
	yield "yarn", replaced(c, rope_parameters={
	    **yarn, "rope_type": "yarn", "rope_theta": theta}), ("rope", "yarn")
	yield "yarn-old", replaced(old, rope_scaling={
	    **yarn, "type": "yarn"}), ("rope_scaling", "yarn")
	yield "sliding", replaced(
	    c, use_sliding_window=True, sliding_window=16,
	    max_window_layers=1, layer_types=sliding), ("sliding",)
	yield "gelu", replaced(c, hidden_act="gelu"), ("hidden_act", "gelu")
	yield "bias", replaced(c, attention_bias=True), ("attention_bias",)
	yield "neutral", replaced(
	    c, quantization_config=None, rope_scaling=None,
	    sliding_window=None, use_sliding_window=False,
	    attention_bias=False, attention_dropout=0.0,
	    max_window_layers=layers, layer_types=["full_attention"] * layers,
	    final_logit_softcapping=None, pretraining_tp=1, use_cache=True,
	    task_specific_params=None, torch_dtype="bfloat16"), ()
	yield "oldrope", replaced(old, rope_scaling=None), ()


def from_qwen3_folder(out, path):
	config, tensors = st.read_folder(path)
	for name, odd, words in odd_configs(config):
		out.folder("d13-" + name, odd, tensors,
		           *(("refuse",) + words if words else
		             ("equal", path)))


def from_qwen3(out, path):
	g = gw.read(path)

	def scaled(name, expected, **keys):
		odd = copy(g)
		for key, value in keys.items():
			odd.kv["qwen3.rope.scaling." + key] = value
		out.gguf("d13-rope-%s.gguf" % name, odd, *expected)

	scaled("none", ("equal", path), type=(STR, "none"))
	scaled("linear1", ("equal", path), type=(STR, "linear"),
	       factor=(F32, 1.0), finetuned=(BOOL, False))
	scaled("yarn4", ("refuse", "rope.scaling", "yarn"),
	       type=(STR, "yarn"), factor=(F32, 4.0),
	       original_context_length=(U32, 1024))
	scaled("linear4", ("refuse", "rope.scaling", "linear"),
	       type=(STR, "linear"), factor=(F32, 4.0))


SOURCES = {"qwen3": from_qwen3, "qwen3moe": from_qwen3moe,
           "qwen35": from_qwen35, "qwen3_folder": from_qwen3_folder,
           "qwen35moe_folder": from_qwen35moe_folder}


def main():
	p = argparse.ArgumentParser()
	p.add_argument("outdir")
	for name in SOURCES:
		p.add_argument("--" + name.replace("_", "-"), metavar="PATH")
	a = p.parse_args()
	out = Out(a.outdir)
	marks(out)
	succ(out)
	for name, write in SOURCES.items():
		path = getattr(a, name)
		if path:
			write(out, path)
	out.close()


if __name__ == "__main__":
	main()
