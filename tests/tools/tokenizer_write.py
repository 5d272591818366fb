"""Byte-level BPE tokenizers as tokenizer.json and as GGUF keys."""

import json

from gguf_write import ARR, I32, STR, U32

NORMAL, CONTROL, USER = 1, 3, 4

QWEN2 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
         r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN35 = QWEN2.replace(r"\p{L}+", r"[\p{L}\p{M}]+").replace(
    r"[^\s\p{L}\p{N}]", r"[^\s\p{L}\p{M}\p{N}]")
PATTERN = {"qwen2": QWEN2, "qwen35": QWEN35}


def visible():
	"""The character that stands for each byte."""
	keep = [*range(33, 127), *range(161, 173), *range(174, 256)]
	other = iter(range(256, 512))
	return [chr(b if b in keep else next(other)) for b in range(256)]


VISIBLE = visible()


def spell(data):
	return "".join(VISIBLE[b] for b in data)


def gguf_keys(tokens, types, merges, pre):
	"""merges None leaves the key out."""
	keys = {"tokenizer.ggml.model": (STR, "gpt2"),
	        "tokenizer.ggml.pre": (STR, pre),
	        "tokenizer.ggml.tokens": (ARR, (STR, tokens)),
	        "tokenizer.ggml.token_type": (ARR, (I32, types))}
	if merges is not None:
		keys["tokenizer.ggml.merges"] = (ARR, (STR, merges))
	return keys


def added_token(id, text, type):
	return {"id": id, "content": text, "single_word": False,
	        "lstrip": False, "rstrip": False, "normalized": False,
	        "special": type == CONTROL}


def tokenizer_json(tokens, types, merges, pre, normalizer="NFC"):
	split = {"type": "Split", "pattern": {"Regex": PATTERN[pre]},
	         "behavior": "Isolated", "invert": False}
	level = {"type": "ByteLevel", "add_prefix_space": False,
	         "trim_offsets": False, "use_regex": False}
	added = [(i, t, types[i]) for i, t in enumerate(tokens)
	         if types[i] in (CONTROL, USER)]
	return {
	    "version": "1.0", "truncation": None, "padding": None,
	    "added_tokens": [added_token(*a) for a in added],
	    "normalizer": normalizer and {"type": normalizer},
	    "pre_tokenizer": {"type": "Sequence",
	                      "pretokenizers": [split, level]},
	    "post_processor": level, "decoder": level,
	    "model": {
	        "type": "BPE", "dropout": None, "unk_token": None,
	        "continuing_subword_prefix": "", "end_of_word_suffix": "",
	        "fuse_unk": False, "byte_fallback": False,
	        "ignore_merges": False,
	        "vocab": {t: i for i, t in enumerate(tokens)
	                  if types[i] == NORMAL},
	        "merges": [m.split(" ", 1) for m in merges]}}


def from_gguf(g):
	"""tokenizer.json of a GGUF file, without a normalizer; else None."""
	tokens = g.get("tokenizer.ggml.tokens")
	if tokens is None:
		return None
	types = g.get("tokenizer.ggml.token_type", [NORMAL] * len(tokens))
	return tokenizer_json(tokens, types,
	                      g.get("tokenizer.ggml.merges", []),
	                      g.get("tokenizer.ggml.pre"), None)


def write(path, tokenizer):
	with open(path, "w", encoding="utf-8") as f:
		json.dump(tokenizer, f, ensure_ascii=False, indent=1)
		f.write("\n")


def ids_keys(**ids):
	"""eos=2 -> tokenizer.ggml.eos_token_id."""
	return {"tokenizer.ggml.%s_token_id" % k: (U32, v)
	        for k, v in ids.items()}
