#!/usr/bin/env python3
"""Full-size models by their headers alone: headers.py INGOT FOLDER

FOLDER is what tests/tools/synth.py made. Each must check and compile for cpu;
sizes are compared with what the models' shapes give. The last line counts
cases."""

import json
import os
import subprocess
import sys
import tempfile
import time

# Layers; bytes of cache a token (bf16); layers of delta nets and, in each,
# value heads and channels of the convolution; most launches a token.
MODELS = {"Qwen3-0.6B": (28, 114688, 0, 0, 0, 227),
          "Qwen3-4B": (36, 147456, 0, 0, 0, 291),
          "Qwen3-30B-A3B": (48, 98304, 0, 0, 0, 483),
          "Qwen3.5-0.8B": (24, 12288, 18, 16, 6144, 195),
          "Qwen3.6-35B-A3B": (40, 20480, 30, 32, 8192, 483)}
CTX, SECONDS = 8192, 15
# Packed bytes of a block beside those in the file, where they differ: the
# scales of Q4_K take a byte each.
PACKED = {"Q4_K": 148 / 144}

ingot, folder = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
with open(os.path.join(folder, "bytes.json")) as f:
	tensor_bytes = json.load(f)
passed = failed = 0


def case(name, ok, *seen):
	global passed, failed
	passed, failed = passed + bool(ok), failed + (not ok)
	if not ok:
		print("FAIL", name, *seen)


def run(*words):
	return subprocess.run([ingot, *map(str, words)], capture_output=True,
	                      text=True)


def check(path, *words):
	r = run("check", path, "--target", "cpu", "--json", *words)
	return r.returncode, json.loads(r.stdout) if r.stdout else None, r.stderr


def sizes(name, path):
	layers, kv, nets, heads, channels, launches = MODELS[name]
	code, j, err = check(path)
	case(name + ": check", code == 0 and err == "", code, err)
	b = j["bytes"]
	case(name + ": missing", j["missing"] == [] and j["target"] == "cpu", j)
	case(name + ": no --vram", (j["vram"], j["fits"], j["max_ctx"])
	     == (None, None, None), j)
	packed = sum(n * PACKED.get(type, 1)
	             for type, n in tensor_bytes[name].items())
	case(name + ": weights", 0 <= b["weights"] / packed - 1 < 0.001, b,
	     packed)
	case(name + ": kv", b["kv"] == CTX * kv, b)
	case(name + ": state", b["state"]
	     == nets * 4 * (heads * 128 * 128 + channels * 4), b)
	case(name + ": scratch", 1 << 20 < b["scratch"] < 1 << 27, b)
	case(name + ": total", b["total"] == sum(b.values()) - b["total"], b)
	case(name + ": launches", 5 * layers < j["launches_decode"] <= launches
	     and j["launches_prefill"] == j["launches_decode"], j)
	two = check(path, "--max-seqs", 2, "--ctx", 2 * CTX)[1]["bytes"]
	case(name + ": two sequences", two["kv"] == 4 * b["kv"]
	     and two["state"] == 2 * b["state"]
	     and two["weights"] == b["weights"], two)
	f32 = check(path, "--kv", "f32")[1]["bytes"]
	case(name + ": --kv f32", f32["kv"] == 2 * b["kv"], f32)
	return b["total"]


def limits(name, path, total):
	for vram, want in (total, 0), (total - 1, 4):
		code, j, _ = check(path, "--vram", vram)
		case("%s: --vram %d" % (name, vram), code == want
		     and j["fits"] is (want == 0) and j["vram"] == vram, code, j)
	code, j, _ = check(path, "--vram", "24G")
	most = j["max_ctx"]
	case(name + ": --vram 24G", code == 0 and j["fits"]
	     and j["vram"] == 24 << 30 and most > CTX, code, j)
	beyond = 4 if most < 1 << 20 else 1
	for ctx, want in (most, 0), (most + 1, beyond):
		code, _, err = check(path, "--vram", "24G", "--ctx", ctx)
		case("%s: --ctx %d" % (name, ctx), code == want, code, err)
	code, j, _ = check(path, "--vram", "100M")
	case(name + ": --vram 100M", code == 4 and j["max_ctx"] == 0, code, j)


def commands(name, path):
	start = time.monotonic()
	r = run("compile", path, "-o", "made.plan")
	took = time.monotonic() - start
	case(name + ": compile", r.returncode == 0 and took < SECONDS, took,
	     r.stderr)
	r = run("run", "made.plan", "--weights", path, "--tokens", 1)
	case(name + ": run", r.returncode == 1 and r.stdout == ""
	     and "cut short" in r.stderr, r)


def lengths(name, path):
	with open(path, "rb") as f:
		header = f.read()
	for what, text in ("short", header[:-1]), ("long", header + b"\0"):
		with open("other.gguf", "wb") as f:
			f.write(text)
		code, j, err = check("other.gguf")
		case("%s: a byte too %s" % (name, what), code == 1 and j is None
		     and "cut" in err, code, err)


def drafts(name, path):
	r = run("check", path, "--verbose")
	ignored = [l for l in r.stderr.splitlines() if "is ignored" in l]
	case(name + ": drafts", len(ignored) > 10
	     and all(" blk.40." in l for l in ignored), r.stderr)


with tempfile.TemporaryDirectory(prefix="headers.") as d:
	os.chdir(d)
	for name in MODELS:
		path = os.path.join(folder, name + ".gguf")
		limits(name, path, sizes(name, path))
		commands(name, path)
	lengths(name, path)
	drafts(name, path)
print("%d passed, %d failed" % (passed, failed or passed == 0))
sys.exit(failed > 0 or passed == 0)
