"""The demo checkpoint's tokenizer strings: demo.py INGOT

Tokenizes each string of models/demo/golden.json with the GGUF file beside it
and compares the ids. Runs in the root of the repository."""

import json
import subprocess
import sys

DEMO = "models/demo/"
CHECKPOINT = DEMO + "kjv-moe-9m-Q4_K_M.gguf"


def tokenize(ingot, text):
	out = subprocess.run([ingot, "tokenize", CHECKPOINT, text],
	                     capture_output=True, text=True, check=False)
	return [int(id) for id in out.stdout.replace(",", " ").split()]


def main():
	with open(DEMO + "golden.json", encoding="utf-8") as f:
		golden = json.load(f)
	cases = [(e["tokenize"], e["tokens"]) for e in golden
	         if "tokenize" in e]
	cases += [(e["prompt"], e["prompt_tokens"]) for e in golden
	          if "prompt" in e]
	failed = 0
	for text, want in cases:
		got = tokenize(sys.argv[1], text)
		if got != want:
			print("%r gives %s, not %s" % (text, got, want))
			failed += 1
	print("%d passed, %d failed" % (len(cases) - failed, failed))
	return failed > 0 or not cases


if __name__ == "__main__":
	sys.exit(main())
