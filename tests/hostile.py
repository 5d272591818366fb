#!/usr/bin/env python3
"""Runs the command line on hostile input: hostile.py [INGOT [NAME...]]

Each case of tests/tools/hostile_*.py is a good checkpoint with one thing
spoilt, or a model file, and goes through whole commands. A command must end
with status 1 or 3 and one sentence that has the words of the case; no crash,
no sanitizer's report, no file left behind; and, but for a build with
sanitizers, in 4 GiB of address space. Good inputs of the same making must
pass. The last line counts commands."""

import os
import shutil
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor

root = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(root, "tools"))

import gguf_raw
from hostile_folder import FOLDER, Folder
from hostile_gguf import QWEN3, QWEN35MOE, TOKENIZER, VOCABULARY
from hostile_lua import BESIDE, LUA

SPACE = 4 << 20 # KiB
SECONDS = 100 # of one command, before it counts as endless

ingot = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else "build/ingot")
wanted = sys.argv[2:]
with open(ingot, "rb") as f:
	sanitized = b"__asan_init" in f.read()
fixtures = os.path.join(root, "fixtures")
passed = failed = 0
lock = threading.Lock()

COMPILE = "compile @ -o made.plan"
RUN = "run @ --tokens 1,2 -n 1 --device cpu --json"
LOGITS = "logits @ --tokens 1,2,3 --device cpu -o made.npy"
PROMPT = "run @ -p hello -n 1 --device cpu"
TOKENIZE = "tokenize @ hello"


limits = "ulimit -c 0; " + ("" if sanitized else "ulimit -v %d; " % SPACE)
start = ["sh", "-c", limits + 'exec "$@"', "sh", ingot]


def run(command, input, folder):
	"""Runs it in an empty folder; what it leaves there is a list of names."""
	cwd = os.path.join(folder, "cwd")
	os.makedirs(cwd)
	words = [input if w == "@" else w for w in command.split(" ")]
	env = dict(os.environ, TMPDIR=cwd, HOME=cwd, XDG_CACHE_HOME=cwd)
	try:
		p = subprocess.run(start + words, cwd=cwd, env=env,
		                   stdin=subprocess.DEVNULL, capture_output=True,
		                   timeout=SECONDS)
		status, out, err = p.returncode, p.stdout, p.stderr
	except subprocess.TimeoutExpired:
		status, out, err = "none: it never ended", b"", b""
	left = {}
	for file in os.listdir(cwd):
		with open(os.path.join(cwd, file), "rb") as f:
			left[file] = f.read()
	shutil.rmtree(cwd)
	return status, out, err.decode(errors="replace"), left


def count(name, command, wrong, err):
	global passed, failed
	with lock:
		passed += not wrong
		failed += bool(wrong)
	if wrong:
		print("FAIL %s: %s: %s; stderr: %s" % (
		    name, command, "; ".join(wrong), err[:1500]))


def refused(name, command, input, words, folder):
	status, out, err, left = run(command, input, folder)
	wrong = []
	if status not in (1, 3):
		wrong.append("status %s" % status)
	if not (err.startswith("ingot: ") and err.endswith("\n") and
	        len(err.splitlines()) == 1 and err[:-1].isprintable() and
	        len(err) < 2000):
		wrong.append("not one sentence of %d bytes" % len(err))
	wrong += ["no '%s'" % w for w in words if w not in err]
	if out:
		wrong.append("stdout: %r" % out[:200])
	if left:
		wrong.append("left %s" % ", ".join(left))
	count(name, command, wrong, err)


def accepted(name, command, input, folder):
	"""Returns what is on stdout and in files."""
	status, out, err, left = run(command, input, folder)
	count(name, command, [] if status == 0 else ["status %s" % status], err)
	return out, left


def checked(table):
	for case in table:
		if not wanted or case[0] in wanted:
			yield case


# ---- GGUF files ----

def weights_cases(folder):
	"""A plan of the good file beside each of the others."""
	good = os.path.join(fixtures, "qwen3-tiny", "model-bf16.gguf")
	plan = os.path.join(folder, "good.plan")
	path = os.path.join(folder, "model.gguf")
	command = "run %s --weights @ --tokens 1 -n 1 --device cpu --json"
	out, left = accepted("plan", COMPILE, good, folder)
	with open(plan, "wb") as f:
		f.write(left.get("made.plan", b""))
	accepted("plan", command % plan, good, folder)
	for name, spoil, words in checked(QWEN3):
		write_spoilt(good, spoil, path)
		refused(name, command % plan, path, [], folder)


def other_cases(folder):
	"""What is no file at all."""
	paths = [os.path.join(folder, n) for n in ("fifo", "empty", "gone")]
	os.mkfifo(paths[0])
	os.mkdir(paths[1])
	for path in paths + ["/dev/null", "/dev/zero", ""]:
		for command in COMPILE, RUN:
			refused("no file", command, path, [path], folder)


def write_spoilt(good, spoil, path):
	g = gguf_raw.read(good)
	whole = spoil(g)
	if isinstance(whole, bytes):
		with open(path, "wb") as f:
			f.write(whole)
	else:
		g.write(path)


def gguf_cases(folder, model, table, commands):
	good = os.path.join(fixtures, model, "model-bf16.gguf")
	path = os.path.join(folder, "model.gguf")
	gguf_raw.read(good).write(path)
	for command in commands:
		accepted(model + " unspoilt", command, path, folder)
	for name, spoil, words in checked(table):
		write_spoilt(good, spoil, path)
		for command in commands:
			refused(name, command, path, words, folder)
	os.remove(path)


def part(number, count):
	return "m-%05d-of-%05d.gguf" % (number, count)


def write_parts(path, folder, count):
	"""A file in parts: the metadata in the first, the tensors in turn."""
	whole = gguf_raw.read(path)
	with open(path, "rb") as f:
		data = f.read()[-whole.size:]
	ends = sorted(t.offset for t in whole.tensors)[1:] + [whole.size]
	end_of = dict(zip(sorted(t.offset for t in whole.tensors), ends))
	per = -(-len(whole.tensors) // count)
	for i in range(count):
		g = gguf_raw.Gguf()
		g.keys = whole.keys[:] if i == 0 else []
		g.set("split.no", gguf_raw.U16, i)
		g.set("split.count", gguf_raw.U16, count)
		g.set("split.tensors.count", gguf_raw.I32, len(whole.tensors))
		body = b""
		for t in whole.tensors[i * per:(i + 1) * per]:
			g.tensors.append(gguf_raw.Tensor(t.name, t.dims, t.type,
			                                 len(body)))
			body += data[t.offset:end_of[t.offset]]
		with open(os.path.join(folder, part(i + 1, count)), "wb") as f:
			f.write(g.head() + body)


def split_cases(folder):
	good = os.path.join(fixtures, "qwen3moe-tiny", "model-bf16.gguf")
	set = os.path.join(folder, "set")
	other = os.path.join(folder, "other")
	joined = os.path.join(folder, "joined.gguf")
	p = [os.path.join(set, part(i + 1, 3)) for i in range(3)]
	os.mkdir(set)
	os.mkdir(other)
	write_parts(good, set, 3)
	want = accepted("whole", LOGITS, good, folder)
	with open(joined, "wb") as out:
		for path in p:
			with open(path, "rb") as f:
				out.write(f.read())
	os.symlink(p[1], os.path.join(folder, "link.gguf"))
	for path in p:
		name = os.path.basename(path).replace("m-", "Other-Q4.K_M-")
		shutil.copy(path, os.path.join(other, name))
	for path in p + [os.path.join(folder, "link.gguf")] + [
	    os.path.join(other, n) for n in sorted(os.listdir(other))]:
		accepted("part", COMPILE, path, folder)
		got = accepted("part", LOGITS, path, folder)
		count("part " + path, LOGITS,
		      [] if got == want else ["the logits differ"], "")
	out, left = accepted("whole", COMPILE, good, folder)
	plan = os.path.join(folder, "whole.plan")
	with open(plan, "wb") as f:
		f.write(left.get("made.plan", b""))
	got = accepted("plan of the whole", LOGITS.replace("@", plan) +
	               " --weights @", p[1], folder)
	count("plan of the whole", LOGITS,
	      [] if got == want else ["the logits differ"], "")
	for command in COMPILE, RUN:
		refused("joined", command, joined, ["joined.gguf",
		        "split.count"], folder)
	shutil.copy(p[1], p[2])
	for path in p:
		for command in COMPILE, RUN:
			refused("doubled", command, path,
			        ["split.no", os.path.basename(p[2])], folder)
	write_parts(good, set, 4)
	shutil.copy(os.path.join(set, part(2, 4)), p[1])
	for command in COMPILE, RUN:
		refused("another set's", command, p[0],
		        ["split.count", os.path.basename(p[1])], folder)
	os.remove(p[1])
	for command in COMPILE, RUN:
		refused("missing", command, p[0],
		        [os.path.basename(p[1]), "missing"], folder)


# ---- folders ----

def folder_cases(folder):
	good = os.path.join(fixtures, "qwen3-h72")
	path = os.path.join(folder, "model")
	logits = []
	for name, spoil in (("folder", lambda f: None),
	                    ("folder in shards", lambda f: f.shard(3)),
	                    ("folder in one shard", lambda f: f.shard(1))):
		f = Folder(good)
		spoil(f)
		f.write(path)
		accepted(name, COMPILE, path, folder)
		logits.append(accepted(name, LOGITS, path, folder))
		count(name, LOGITS, [] if logits[-1] == logits[0] and
		      logits[-1][1] else ["the logits differ"], "")
		shutil.rmtree(path)
	for name, spoil, words in checked(FOLDER):
		f = Folder(good)
		spoil(f)
		f.write(path)
		for command in COMPILE, RUN:
			refused(name, command, path, words, folder)
		shutil.rmtree(path)


# ---- model files ----

def lua_cases(folder):
	good = os.path.join(fixtures, "qwen3-tiny", "model-bf16.gguf")
	path = os.path.join(folder, "m.lua")
	for name, b in BESIDE.items():
		with open(os.path.join(folder, name), "wb") as f:
			f.write(b)
	shutil.copy(os.path.join(root, "..", "models", "qwen3.lua"), path)
	command = COMPILE + " --model " + path
	accepted("qwen3.lua", command, good, folder)
	for name, source, words in checked(LUA):
		with open(path, "wb") as f:
			f.write(source.encode("latin-1"))
		refused(name, command, good, words, folder)


def in_folder(group):
	with tempfile.TemporaryDirectory(prefix="hostile.") as d:
		group(d)


def main():
	both = [COMPILE, RUN]
	groups = [
	    lambda d: gguf_cases(d, "qwen3-tiny", QWEN3, both),
	    lambda d: gguf_cases(d, "qwen35moe-tiny", QWEN35MOE, both),
	    lambda d: gguf_cases(d, "qwen3-tiny", TOKENIZER, [PROMPT, TOKENIZE]),
	    lambda d: gguf_cases(d, "qwen3-tiny", VOCABULARY, [PROMPT]),
	    weights_cases, other_cases, split_cases, folder_cases, lua_cases]
	with ThreadPoolExecutor(2) as pool:
		for f in [pool.submit(in_folder, group) for group in groups]:
			f.result()
	print("%d passed, %d failed" % (passed, failed or passed == 0))
	return failed > 0 or passed == 0


sys.exit(main())
