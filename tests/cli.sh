#!/bin/sh
# Runs the command line: cli.sh [INGOT]. Cases are in tests/cli.txt; the last
# line counts them.
# shellcheck disable=SC2034 # the cases use ingot and c to s

ingot=$(realpath "${1:-build/ingot}") || exit 1
cases=$(realpath tests/cli.txt)
fixtures=$(realpath tests/fixtures)
t=$(mktemp -d) || exit 1
trap 'rm -rf "$t"' EXIT
cd "$t" || exit 1

# What the cases call things.
q=$fixtures/qwen3-tiny/model-bf16.gguf
s=$fixtures/succ/succ.gguf
n=$t/nomerges.gguf
c=$t/nochat.gguf
f=$t/notokens.gguf
m=$fixtures/succ/parts.lua
LC_ALL=C sed 's/tokenizer.ggml.merges/tokenizer.ggml.merge_/' "$s" >"$n"
LC_ALL=C sed 's/<|im_start|>/<|im_Start|>/' "$s" >"$c"
LC_ALL=C sed 's/tokenizer.ggml/tokeniser.ggml/g' "$s" >"$f"
printf '1, 2\n3 4,5\n' >ids.txt
printf '1,2;3' >bad-ids.txt
head -c 500 "$s" >cut.gguf
printf '\223NUMPY\001\000\106\000%-69s\n' \
    "{'descr': '<i4', 'fortran_order': False, 'shape': (2,), }" >ids.npy
printf '\001\000\000\000\002\000\000\000' >>ids.npy

passed=0
failed=0

# matches TEXT PATTERN, the pattern as printf '%b' gives it: '*' is anything,
# '~part' contains part, all else is the whole text.
matches()
{
	case $2 in
	'*') return 0 ;;
	'~'*)
		part=$(printf '%b' "${2#'~'}")
		case $1 in *"$part"*) return 0 ;; esac
		;;
	*) [ "$1" = "$(printf '%b.' "$2")" ] && return 0 ;;
	esac
	return 1
}

# A dot behind the text keeps the newlines at its end.
run()
{
	eval "$1" >out 2>err </dev/null
	status=$?
	out=$(tr '\000' '@' <out; echo .)
	err=$(cat err; echo .)
	wrong=
	[ "$status" = "$2" ] || wrong="status $status, not $2"
	matches "$out" "$3" || wrong="$wrong; stdout: $out"
	matches "$err" "$4" || wrong="$wrong; stderr: $err"
	if [ -z "$wrong" ]; then
		passed=$((passed + 1))
		echo "ok $1"
	else
		failed=$((failed + 1))
		echo "FAIL $1: $wrong" | head -c 2000
	fi
}

while IFS= read -r line <&3; do
	case $line in '' | '#'*) continue ;; esac
	words=${line%% :: *}
	rest=${line#* :: }
	status=${rest%% :: *}
	rest=${rest#* :: }
	run "$words" "$status" "${rest%% :: *}" "${rest#* :: }"
done 3<"$cases"

[ $((passed + failed)) -gt 0 ] || failed=1
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
