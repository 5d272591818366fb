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
# Forty times U+0958, 120 bytes: NFC makes 240 of them, a token each.
long=$(printf '\340\245\230%.0s' 1 2 3 4 5 6 7 8 9 10)
long=$long$long$long$long
ok 'more tokens than bytes' "$("$build"/ingot tokenize "$checkpoint" "$long" |
    tr , '\n' | wc -l)" 240
text=$("$build"/generate "$plan" "$checkpoint" "$long" 8)
ok 'status of a text that grows' $? 0
ok 'a text that grows' "$text" "$("$build"/ingot run "$plan" \
    --weights "$checkpoint" -p "$long" -n 8 --device cpu)"
# refused NAME WORD ARGUMENT...: ends with 2 and a sentence with WORD in it.
refused()
{
	name=$1 word=$2
	shift 2
	why=$("$build"/generate "$plan" "$checkpoint" "$@" 2>&1)
	ok "$name" $? 2
	case $why in *"$word"*) why=$word ;; esac
	ok "$name, in words" "$why" "$word"
}
refused 'an empty prompt' 'prompt is empty' ''
refused 'a count that is none' 'TOKENS must' x many
refused 'a count with a tail' 'TOKENS must' x 12x
why=$("$build"/generate nowhere.plan "$checkpoint" x 1 2>&1)
ok 'status without a plan' $? 1
case $why in *nowhere.plan*) named=nowhere ;; *) named=$why ;; esac
ok 'a sentence without a plan' "$named" nowhere
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
