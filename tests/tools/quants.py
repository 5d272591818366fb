"""Quantisers for the block types of GGUF, and the way back for some.

Each takes f32 blocks [n, 32] or [n, 256] and returns the bytes [n, size].
Scales come from the extremes of a block, and codes are rounded against the
scales as stored. There is no search for better ones: the results serve tests
of layout and arithmetic, not a model's quality.
"""

import numpy as np

IQ4 = np.array([-127, -104, -83, -65, -49, -35, -22, -10,
                1, 13, 25, 38, 53, 69, 89, 113], np.float32)
IQ4_MID = (IQ4[1:] + IQ4[:-1]) / 2


def half(x):
	"""Bytes of x as IEEE halves, and the values they stand for."""
	h = x.astype("<f2")
	return h[:, None].view(np.uint8), h.astype(np.float32)


def ratio(x, d):
	"""x / d, 0 where d is 0."""
	d = np.broadcast_to(d, x.shape)
	return np.divide(x, d, out=np.zeros_like(x), where=d != 0)


def codes(x, d, low, high):
	return np.clip(np.rint(ratio(x, d)), low, high).astype(np.int32)


def peak(x):
	"""The signed value of largest magnitude along the last axis."""
	i = np.abs(x).argmax(-1)
	return np.take_along_axis(x, i[..., None], -1)[..., 0]


def nibbles(q):
	"""[..., 32] codes of 4 bits -> [..., 16] bytes."""
	return (q[..., :16] & 15 | (q[..., 16:] & 15) << 4).astype(np.uint8)


def bits(q, axis):
	"""OR of q[i] << i along an axis."""
	shape = [1] * q.ndim
	shape[axis] = -1
	shift = np.arange(q.shape[axis]).reshape(shape)
	return (q << shift).sum(axis)


def high_bits(q):
	"""[n, 32] -> bytes of the u32 that holds bit 4 of each code."""
	return bits((q >> 4).astype(np.int64), 1).astype("<u4")[:, None].view(
	    np.uint8)


def join(*parts):
	n = len(parts[0])
	return np.concatenate(
	    [p.reshape(n, -1).view(np.uint8) for p in parts], 1)


def q4_0(x):
	db, d = half(peak(x) / -8)
	return join(db, nibbles(codes(x, d[:, None], -8, 7) + 8))


def q5_0(x):
	db, d = half(peak(x) / -16)
	q = codes(x, d[:, None], -16, 15) + 16
	return join(db, high_bits(q), nibbles(q))


def with_minimum(x, top):
	low = x.min(-1)
	db, d = half((x.max(-1) - low) / top)
	mb, m = half(low)
	return db, mb, codes(x - m[:, None], d[:, None], 0, top)


def q4_1(x):
	db, mb, q = with_minimum(x, 15)
	return join(db, mb, nibbles(q))


def q5_1(x):
	db, mb, q = with_minimum(x, 31)
	return join(db, mb, high_bits(q), nibbles(q))


def q8_0(x):
	db, d = half(np.abs(x).max(-1) / 127)
	return join(db, codes(x, d[:, None], -127, 127).astype(np.int8))


def iq4_codes(x, d):
	return np.searchsorted(IQ4_MID, ratio(x, d)).astype(np.int32)


def iq4_nl(x):
	db, d = half(peak(x) / -127)
	return join(db, nibbles(iq4_codes(x, d[:, None])))


def iq4_xs(x):
	x = x.reshape(-1, 8, 32)
	s = peak(x) / -127
	db, d = half(peak(s) / -32)
	ls = codes(s, d[:, None], -32, 31)
	q = iq4_codes(x, (d[:, None] * ls)[..., None])
	ls += 32
	high = bits(ls >> 4 << np.arange(8), 1).astype("<u2")
	low = ls[:, 0::2] & 15 | (ls[:, 1::2] & 15) << 4
	return join(db, high, low.astype(np.uint8), nibbles(q))


def affine(x, sub, top, scale_top):
	"""Sub-blocks of scale and minimum: d, dmin bytes; sc, mn; codes."""
	x = x.reshape(len(x), -1, sub)
	low = np.minimum(x.min(-1), 0)
	s = (x.max(-1).clip(0) - low) / top
	db, d = half(s.max(-1) / scale_top)
	mb, m = half(-low.min(-1) / scale_top)
	sc = codes(s, d[:, None], 0, scale_top)
	mn = codes(-low, m[:, None], 0, scale_top)
	q = codes(x + (m[:, None] * mn)[..., None],
	          (d[:, None] * sc)[..., None], 0, top)
	return db, mb, sc, mn, q


def symmetric(x, half_range, scale_low, scale_high):
	"""Sub-blocks of 16 with a signed scale: d bytes, scales, codes."""
	x = x.reshape(len(x), 16, 16)
	s = peak(x) / -half_range
	db, d = half(peak(s) / scale_low)
	sc = codes(s, d[:, None], scale_low, scale_high)
	q = codes(x, (d[:, None] * sc)[..., None], -half_range,
	          half_range - 1)
	return db, sc, q + half_range


def two_bits(q):
	"""[n, 256] -> [n, 64]: four rows of 32 share their bytes."""
	return bits((q & 3).reshape(-1, 2, 4, 32) << np.arange(0, 4)[
	    :, None], 2).astype(np.uint8)


def scales_6(sc, mn):
	"""Eight scales and minima of 6 bits in 12 bytes."""
	return np.concatenate(
	    [sc[:, :4] | sc[:, 4:] >> 4 << 6, mn[:, :4] | mn[:, 4:] >> 4 << 6,
	     sc[:, 4:] & 15 | (mn[:, 4:] & 15) << 4], 1).astype(np.uint8)


def pairs(q):
	"""[n, 8, 32] -> [n, 128]: sub-blocks 2i and 2i+1 share their bytes."""
	return (q[:, 0::2] & 15 | (q[:, 1::2] & 15) << 4).astype(np.uint8)


def q2_k(x):
	db, mb, sc, mn, q = affine(x, 16, 3, 15)
	return join((sc | mn << 4).astype(np.uint8), two_bits(q), db, mb)


def q3_k(x):
	db, sc, q = symmetric(x, 4, -32, 31)
	sc += 32
	low = sc[:, :8] & 15 | (sc[:, 8:] & 15) << 4
	high = bits(((sc >> 4).reshape(-1, 4, 4) << np.arange(4)[:, None]), 1)
	mask = bits((q >> 2).reshape(-1, 8, 32), 1).astype(np.uint8)
	return join(mask, two_bits(q), low.astype(np.uint8),
	            high.astype(np.uint8), db)


def q4_k(x):
	db, mb, sc, mn, q = affine(x, 32, 15, 63)
	return join(db, mb, scales_6(sc, mn), pairs(q))


def q5_k(x):
	db, mb, sc, mn, q = affine(x, 32, 31, 63)
	high = bits(q >> 4, 1).astype(np.uint8)
	return join(db, mb, scales_6(sc, mn), high, pairs(q))


def q6_k(x):
	db, sc, q = symmetric(x, 32, -128, 127)
	q = q.reshape(-1, 2, 4, 32)
	low = (q[:, :, :2] & 15 | (q[:, :, 2:] & 15) << 4).astype(np.uint8)
	high = bits(q >> 4 << np.arange(4)[:, None], 2).astype(np.uint8)
	return join(low, high, sc.astype(np.int8), db)


QUANTISERS = {"Q4_0": q4_0, "Q4_1": q4_1, "Q5_0": q5_0, "Q5_1": q5_1,
              "Q8_0": q8_0, "Q2_K": q2_k, "Q3_K": q3_k, "Q4_K": q4_k,
              "Q5_K": q5_k, "Q6_K": q6_k, "IQ4_NL": iq4_nl,
              "IQ4_XS": iq4_xs}


def halves(b):
	"""Bytes [n, 2k] as f32 [n, k]."""
	return np.ascontiguousarray(b).view("<f2").astype(np.float32)


def from_q8_0(b):
	n = np.ascontiguousarray(b[:, 2:]).view(np.int8)
	return halves(b[:, :2]) * n


def from_scales_6(s):
	sc = np.concatenate([s[:, :4] & 63,
	                     s[:, 8:] & 15 | s[:, :4] >> 6 << 4], 1)
	mn = np.concatenate([s[:, 4:8] & 63,
	                     s[:, 8:] >> 4 | s[:, 4:8] >> 6 << 4], 1)
	return sc, mn


def from_pairs(b):
	"""[n, 128] -> [n, 8, 32]."""
	b = b.reshape(-1, 4, 1, 32)
	return np.concatenate([b & 15, b >> 4], 2).reshape(-1, 8, 32)


def from_affine(b, n):
	d, dmin = halves(b[:, :2]), halves(b[:, 2:4])
	sc, mn = from_scales_6(b[:, 4:16])
	return (((d * sc)[..., None] * n) - (dmin * mn)[..., None]).reshape(
	    -1, 256)


def from_q4_k(b):
	return from_affine(b, from_pairs(b[:, 16:]))


def from_q5_k(b):
	high = b[:, None, 16:48] >> np.arange(8, dtype=np.uint8)[:, None] & 1
	return from_affine(b, from_pairs(b[:, 48:]) | high << 4)


def from_q6_k(b):
	low = b[:, :128].reshape(-1, 2, 1, 64)
	low = np.concatenate([low & 15, low >> 4], 2).reshape(-1, 2, 4, 32)
	high = b[:, 128:192].reshape(-1, 2, 1, 32)
	high = high >> np.arange(0, 8, 2, dtype=np.uint8)[:, None] & 3
	n = (low | high << 4).reshape(-1, 16, 16).astype(np.int8) - 32
	sc = np.ascontiguousarray(b[:, 192:208]).view(np.int8)
	return ((halves(b[:, 208:]) * sc)[..., None] * n).reshape(-1, 256)


# Bytes [n, size] -> f32 blocks, of the types that the demo has.
DEQUANTISERS = {"Q8_0": from_q8_0, "Q4_K": from_q4_k, "Q5_K": from_q5_k,
                "Q6_K": from_q6_k}
