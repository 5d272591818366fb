"""GGUF files for tests of their reader: nothing that is written is checked.

	g = read("in.gguf")
	g.set("qwen3.block_count", STR, b"2")
	g.tensor("output.weight").dims = [0, 4]
	g.write("out.gguf")

The metadata and the table of tensors are what it says; the data is a hole of
the right size, full of zeros. Needs no library.
"""

import struct

U8, I8, U16, I16, U32, I32, F32, BOOL, STR, ARR, U64, I64, F64 = range(13)
FORM = {U8: "B", I8: "b", U16: "H", I16: "h", U32: "I", I32: "i", F32: "f",
        BOOL: "B", U64: "Q", I64: "q", F64: "d"}


def string(s):
	b = s if isinstance(s, bytes) else s.encode()
	return struct.pack("<Q", len(b)) + b


def value(kind, v):
	if kind == STR:
		return string(v)
	if kind == ARR:
		item, items = v
		return (struct.pack("<IQ", item, len(items)) +
		        b"".join(value(item, i) for i in items))
	return struct.pack("<" + FORM[kind], v)


class Tensor:
	def __init__(self, name, dims, type, offset):
		self.name, self.dims = name, dims
		self.type, self.offset = type, offset
		self.n_dims = None # when another number than there is

	def entry(self):
		n = len(self.dims) if self.n_dims is None else self.n_dims
		return (string(self.name) + struct.pack("<I", n) +
		        b"".join(struct.pack("<Q", d & (1 << 64) - 1)
		                 for d in self.dims) +
		        struct.pack("<IQ", self.type, self.offset))


class Gguf:
	def __init__(self):
		self.keys = []    # (key, bytes of kind and value)
		self.tensors = []
		self.n_keys = self.n_tensors = None # when another number
		self.version = 3
		self.align = 32
		self.size = 0     # bytes of data
		self.arch = None

	def set(self, key, kind, v):
		"""Replaces a key where it stands, or adds it at the end."""
		self.put(key, struct.pack("<I", kind) + value(kind, v))

	def put(self, key, raw):
		for i, (k, _) in enumerate(self.keys):
			if k == key:
				self.keys[i] = key, raw
				return
		self.keys.append((key, raw))

	def drop(self, key):
		assert any(k == key for k, _ in self.keys), key
		self.keys = [(k, v) for k, v in self.keys if k != key]

	def tensor(self, name):
		return next(t for t in self.tensors if t.name == name)

	def head(self):
		n = len(self.tensors) if self.n_tensors is None else self.n_tensors
		k = len(self.keys) if self.n_keys is None else self.n_keys
		head = b"GGUF" + struct.pack("<IQQ", self.version, n, k)
		head += b"".join(string(k) + v for k, v in self.keys)
		head += b"".join(t.entry() for t in self.tensors)
		return head + bytes(-len(head) % self.align)

	def write(self, path):
		head = self.head()
		with open(path, "wb") as f:
			f.write(head)
			f.truncate(len(head) + self.size)


class Cursor:
	def __init__(self, buf):
		self.buf, self.at = buf, 0

	def take(self, form):
		v, = struct.unpack_from("<" + form, self.buf, self.at)
		self.at += struct.calcsize("<" + form)
		return v

	def string(self):
		n = self.take("Q")
		self.at += n
		return self.buf[self.at - n:self.at]

	def skip(self, kind):
		if kind == STR:
			self.string()
		elif kind == ARR:
			item, n = self.take("I"), self.take("Q")
			for _ in range(n):
				self.skip(item)
		else:
			self.take(FORM[kind])


def read(path):
	with open(path, "rb") as f:
		buf = f.read()
	c, g = Cursor(buf), Gguf()
	assert c.take("I") == 0x46554747
	assert c.take("I") == 3
	n_tensors, n_keys = c.take("Q"), c.take("Q")
	for _ in range(n_keys):
		key, start = c.string().decode(), c.at
		c.skip(c.take("I"))
		g.keys.append((key, buf[start:c.at]))
		if key == "general.architecture":
			g.arch = buf[start + 12:c.at].decode()
	for _ in range(n_tensors):
		name = c.string().decode()
		dims = [c.take("Q") for _ in range(c.take("I"))]
		g.tensors.append(Tensor(name, dims, c.take("I"), c.take("Q")))
	g.size = len(buf) - -(-c.at // 32) * 32
	return g
