"""Read and write safetensors files, and the config.json beside them.

Tensors are a dict of name -> (dtype, array). bf16 is kept as uint16, which
numpy has: the other dtypes are their numpy arrays.
"""

import json
import os
import struct

import numpy as np

from gguf_write import from_bf16, to_bf16

DTYPE = {"BF16": "<u2", "F16": "<f2", "F32": "<f4", "F64": "<f8",
         "I32": "<i4", "I64": "<i8", "U8": "u1", "BOOL": "u1"}


def bf16(a):
	return "BF16", to_bf16(a)


def f32(a):
	return "F32", np.ascontiguousarray(a, "<f4")


def widen(t):
	"""A float tensor as an f32 array."""
	dtype, a = t
	return from_bf16(a) if dtype == "BF16" else a.astype(np.float32)


def write(path, tensors, metadata=None):
	head, at = {"__metadata__": metadata or {"format": "pt"}}, 0
	for name, (dtype, a) in tensors.items():
		head[name] = {"dtype": dtype, "shape": list(a.shape),
		              "data_offsets": [at, at + a.nbytes]}
		at += a.nbytes
	text = json.dumps(head, separators=(",", ":")).encode()
	text += b" " * (-len(text) % 8)
	with open(path, "wb") as f:
		f.write(struct.pack("<Q", len(text)) + text)
		for _, a in tensors.values():
			f.write(np.ascontiguousarray(a).tobytes())


def read(path):
	with open(path, "rb") as f:
		buf = f.read()
	n = struct.unpack_from("<Q", buf)[0]
	out = {}
	for name, t in json.loads(buf[8:8 + n]).items():
		if name == "__metadata__":
			continue
		at, end = (8 + n + o for o in t["data_offsets"])
		a = np.frombuffer(buf[at:end], DTYPE[t["dtype"]])
		out[name] = t["dtype"], a.reshape(t["shape"])
	return out


def write_folder(path, config, tensors):
	os.makedirs(path, exist_ok=True)
	with open(os.path.join(path, "config.json"), "w") as f:
		json.dump(config, f, indent=2, sort_keys=True)
		f.write("\n")
	write(os.path.join(path, "model.safetensors"), tensors)


def read_folder(path):
	"""config, tensors; one-file folders only."""
	with open(os.path.join(path, "config.json")) as f:
		config = json.load(f)
	return config, read(os.path.join(path, "model.safetensors"))
