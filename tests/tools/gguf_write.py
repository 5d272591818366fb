"""Read and write GGUF version 3 files.

A file is a dict of keys and a dict of tensors, both in file order:

	g = read("in.gguf")
	g.kv["qwen3.block_count"] = (U32, 2)
	g.tensors["output.weight"] = tensor_f32(array)
	g.write("out.gguf")

Every value keeps its GGUF type, and tensor data stays as the bytes of the
file, so reading a file and writing it again changes nothing but padding.
"""

import struct
from dataclasses import dataclass, field

import numpy as np

U8, I8, U16, I16, U32, I32, F32, BOOL, STR, ARR, U64, I64, F64 = range(13)
SCALAR = {U8: "B", I8: "b", U16: "H", I16: "h", U32: "I", I32: "i", F32: "f",
          BOOL: "?", U64: "Q", I64: "q", F64: "d"}

# name -> (id, weights in a block, bytes in a block)
TYPES = {"F32": (0, 1, 4), "F16": (1, 1, 2), "BF16": (30, 1, 2),
         "Q4_0": (2, 32, 18), "Q4_1": (3, 32, 20), "Q5_0": (6, 32, 22),
         "Q5_1": (7, 32, 24), "Q8_0": (8, 32, 34), "Q2_K": (10, 256, 84),
         "Q3_K": (11, 256, 110), "Q4_K": (12, 256, 144),
         "Q5_K": (13, 256, 176), "Q6_K": (14, 256, 210),
         "IQ4_NL": (20, 32, 18), "IQ4_XS": (23, 256, 136)}
TYPE_NAME = {v[0]: k for k, v in TYPES.items()}


@dataclass
class Tensor:
	"""ne is innermost first (ne[0] is the row length); data is uint8."""
	type: str
	ne: tuple
	data: np.ndarray

	def rows(self):
		"""The tensor as f32 [product of ne[1:], ne[0]]; floats only."""
		n = self.ne[0]
		if self.type == "F32":
			return self.data.view("<f4").reshape(-1, n)
		if self.type == "F16":
			return self.data.view("<f2").astype(np.float32).reshape(-1, n)
		if self.type == "BF16":
			return from_bf16(self.data.view("<u2")).reshape(-1, n)
		raise ValueError("a %s tensor is not made of floats" % self.type)

	def array(self):
		"""The tensor as f32, outermost dimension first."""
		return self.rows().reshape(self.ne[::-1])


def from_bf16(u16):
	return (u16.astype(np.uint32) << 16).view(np.float32)


def to_bf16(x):
	"""Round to nearest even; x holds no NaN."""
	u = np.ascontiguousarray(x, np.float32).view(np.uint32)
	return ((u + 0x7FFF + ((u >> 16) & 1)) >> 16).astype("<u2")


def nbytes(type, ne):
	_, block, size = TYPES[type]
	if ne[0] % block:
		raise ValueError("rows of %d do not hold whole %s blocks"
		                 % (ne[0], type))
	n = ne[0] // block * size
	for d in ne[1:]:
		n *= d
	return n


def tensor_f32(a):
	a = np.ascontiguousarray(a, "<f4")
	return Tensor("F32", a.shape[::-1], a.reshape(-1).view(np.uint8))


def tensor_bf16(a):
	"""An f32 array, rounded to bf16."""
	a = np.asarray(a)
	return Tensor("BF16", a.shape[::-1],
	              to_bf16(a).reshape(-1).view(np.uint8))


@dataclass
class Gguf:
	kv: dict = field(default_factory=dict)
	tensors: dict = field(default_factory=dict)

	def get(self, key, default=None):
		"""The bare value; an array is a list."""
		if key not in self.kv:
			return default
		type, value = self.kv[key]
		return value[1] if type == ARR else value

	@property
	def arch(self):
		return self.get("general.architecture")

	def header(self):
		"""All in front of the tensors' data, which need not be there."""
		align = self.get("general.alignment", 32)
		out = [b"GGUF", struct.pack("<Iqq", 3, len(self.tensors),
		                            len(self.kv))]
		for key, (type, value) in self.kv.items():
			out += [pack_str(key), struct.pack("<i", type),
			        pack_value(type, value)]
		at = 0
		for name, t in self.tensors.items():
			out += [pack_str(name), struct.pack("<I", len(t.ne)),
			        struct.pack("<%dq" % len(t.ne), *t.ne),
			        struct.pack("<iQ", TYPES[t.type][0], at)]
			at += -(-nbytes(t.type, t.ne) // align) * align
		head = b"".join(out)
		return head + bytes(-len(head) % align)

	def write(self, path):
		align = self.get("general.alignment", 32)
		for name, t in self.tensors.items():
			if t.data.nbytes != nbytes(t.type, t.ne):
				raise ValueError("%s: %d bytes do not fit %s %s"
				                 % (name, t.data.nbytes, t.type, t.ne))
		with open(path, "wb") as f:
			f.write(self.header())
			for t in self.tensors.values():
				f.write(t.data.tobytes())
				f.write(bytes(-t.data.nbytes % align))


def pack_str(s):
	b = s if isinstance(s, bytes) else s.encode()
	return struct.pack("<Q", len(b)) + b


def pack_value(type, value):
	if type == STR:
		return pack_str(value)
	if type != ARR:
		return struct.pack("<" + SCALAR[type], value)
	kind, items = value
	head = struct.pack("<iQ", kind, len(items))
	if kind in SCALAR:
		return head + struct.pack("<%d%s" % (len(items), SCALAR[kind]),
		                          *items)
	return head + b"".join(pack_value(kind, v) for v in items)


class Cursor:
	def __init__(self, buf):
		self.buf, self.at = buf, 0

	def take(self, form):
		v = struct.unpack_from("<" + form, self.buf, self.at)
		self.at += struct.calcsize("<" + form)
		return v if len(v) > 1 else v[0]

	def string(self):
		n = self.take("Q")
		self.at += n
		return bytes(self.buf[self.at - n:self.at]).decode()

	def value(self, type):
		if type == STR:
			return self.string()
		if type != ARR:
			return self.take(SCALAR[type])
		kind, n = self.take("iQ")
		return kind, [self.value(kind) for _ in range(n)]


def read(path):
	"""Tensor data are views of one read-only buffer."""
	buf = np.fromfile(path, np.uint8)
	c = Cursor(memoryview(buf))
	if buf[:4].tobytes() != b"GGUF":
		raise ValueError("%s: not a GGUF file" % path)
	c.at = 4
	version, n_tensors, n_kv = c.take("Iqq")
	if version != 3:
		raise ValueError("%s: GGUF version %d, not 3" % (path, version))
	g = Gguf()
	for _ in range(n_kv):
		key = c.string()
		type = c.take("i")
		g.kv[key] = type, c.value(type)
	infos = []
	for _ in range(n_tensors):
		name = c.string()
		ne = tuple(c.take("q") for _ in range(c.take("I")))
		infos.append((name, ne) + c.take("iQ"))
	align = g.get("general.alignment", 32)
	base = -(-c.at // align) * align
	for name, ne, id, offset in infos:
		type = TYPE_NAME[id]
		at = base + offset
		g.tensors[name] = Tensor(type, ne,
		                         buf[at:at + nbytes(type, ne)])
	return g
