#!/bin/sh
# The example beside the command line, which is built on the same
# library: example.sh BUILD-FOLDER.

build=$1
checkpoint=models/demo/kjv-moe-9m-Q4_K_M.gguf
plan=$(mktemp) || exit 1
trap 'rm -f "$plan"' EXIT
passed=0
failed=0

ok()
{
	if [ "$2" = "$3" ]; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "$1: '$2' is not '$3'"
	fi
}

"$build"/ingot compile "$checkpoint" -o "$plan" 2>&1
text=$("$build"/generate "$plan" "$checkpoint" 'In the beginning' 24)
ok 'the same text' "$text" "$("$build"/ingot run "$plan" \
    --weights "$checkpoint" -p 'In the beginning' -n 24 --device cpu)"
ok 'some text' "${text:+some}" some
why=$("$build"/generate nowhere.plan "$checkpoint" x 1 2>&1)
ok 'status without a plan' $? 1
case $why in *nowhere.plan*) named=nowhere ;; *) named=$why ;; esac
ok 'a sentence without a plan' "$named" nowhere
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
