#!/bin/sh
# The same input gives the same plan: same_plan.sh INGOT
#
# Compiles each checkpoint twice, from two folders, by two names of the same
# file and with two folders for temporary files, and compares the bytes. Another
# option must give other bytes, so that the comparison can fail.
set -u
ingot=$(realpath "$1")
here=$(pwd)
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/a" "$work/b/a longer name" "$work/tmp"
passed=0
failed=0

result()
{
	if [ "$2" -eq "$3" ]; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "FAIL $1"
	fi
}

for checkpoint in models/demo/kjv-moe-9m-Q4_K_M.gguf \
    tests/fixtures/qwen35moe-mixed; do
	ln -sfn "$here/$checkpoint" "$work/b/other"
	(cd "$work/a" && "$ingot" compile "$here/$checkpoint" -o one.plan &&
	    "$ingot" compile "$here/$checkpoint" --kv f32 -o f32.plan) \
	    2>"$work/log" || cat "$work/log"
	(cd "$work/b/a longer name" && TMPDIR="$work/tmp" \
	    "$ingot" compile ../other -o ../../two.plan) \
	    2>"$work/log" || cat "$work/log"
	cmp -s "$work/a/one.plan" "$work/two.plan"
	result "$checkpoint: two plans are the same" $? 0
	cmp -s "$work/a/one.plan" "$work/a/f32.plan"
	result "$checkpoint: another option gives another plan" $? 1
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
