#!/bin/sh
# Makes the test inputs that are too big to be kept: make_fixtures.sh KIND DIR
#
#   folders  the tiny models as Hugging Face folders
#   ggufs    the small folders of tests/fixtures as GGUF files
#   demo     the demo's values in the quantised forms of the field
#   quants   models in the quantised forms of the field; needs ggufs
#   cases    the odd checkpoints of tests/tools/field_cases.py; needs folders
#   headers  headers of full-size models
#
# DIR/KIND appears whole or not at all. Runs in the root of the repository;
# needs a Python with numpy, which need not be the first python3 of PATH.
set -eu

for python in python3 /usr/bin/python3 none; do
	"$python" -c 'import numpy' 2>/dev/null && break
done
if [ "$python" = none ]; then
	echo "make_fixtures.sh: no python3 has numpy; install python3-numpy" >&2
	exit 1
fi
kind=$1 dir=$2
out=$dir/$kind.new
models='qwen3 qwen3moe qwen35 qwen35moe'
forms='q8_0 q4_0 q4_1 q5_0 q5_1 q2_k q3_k_m q4_k_m q5_k_m q6_k iq4_nl iq4_xs'

tiny()
{
	echo "tests/fixtures/$1-tiny/model-bf16.gguf"
}

folders()
{
	for m in $models; do
		"$python" -B tests/tools/gguf_to_folder.py "$(tiny "$m")" \
		    "$out/$m-tiny"
	done
}

# GGUF has no key for a router without renormalisation.
ggufs()
{
	for config in tests/fixtures/*/config.json; do
		folder=${config%/config.json}
		name=${folder##*/}
		case $name in
		qwen3moe-plain | qwen3moe-nokey | qwen3moe-i96)
			continue
			;;
		esac
		"$python" -B tests/tools/folder_to_gguf.py "$folder" \
		    "$out/$name.gguf"
	done
}

# quantise INPUT NAME FORM...
quantise()
{
	input=$1 name=$2
	shift 2
	for form; do
		"$python" -B tests/tools/requantise.py "$input" \
		    "$out/$name-$form.gguf" --type "$form"
	done
}

quants()
{
	for m in $models; do
		quantise "$(tiny "$m")" "$m" $forms
	done
	# Rows that no block divides, which stay floats beside quantised ones.
	for m in qwen3-h72 qwen35-every3 qwen35moe-mixed qwen35moe-h96; do
		quantise "$dir/ggufs/$m.gguf" "$m" q4_0 q4_k_m
	done
	quantise "$(tiny qwen3moe)" qwen3moe f16 f32
	quantise "$(tiny qwen35)" qwen35 f16 f32
}

demo()
{
	quantise models/demo/kjv-moe-9m-Q4_K_M.gguf demo f16 bf16 $forms
}

headers()
{
	"$python" -B tests/tools/synth.py "$out"
}

cases()
{
	"$python" -B tests/tools/field_cases.py "$out" \
	    --qwen3 "$(tiny qwen3)" --qwen3moe "$(tiny qwen3moe)" \
	    --qwen35 "$(tiny qwen35)" \
	    --qwen3-folder "$dir/folders/qwen3-tiny" \
	    --qwen35moe-folder tests/fixtures/qwen35moe-mixed
}

rm -rf "$out"
mkdir -p "$out"
case $kind in
folders | ggufs | demo | quants | cases | headers)
	$kind
	;;
*)
	echo "make_fixtures.sh: no kind $kind" >&2
	exit 2
	;;
esac
rm -rf "${dir:?}/$kind"
mv "$out" "$dir/$kind"
