#!/bin/sh
# Runs each fuzzer for SECONDS_EACH seconds (30 unless set): run_fuzz.sh
# FUZZER... What it learns is kept in build/corpus, and what makes it fail
# beside that. Its output is shown when it fails; the last line counts fuzzers.

passed=0
failed=0
for fuzzer do
	name=$(basename "$fuzzer")
	corpus=build/corpus/$name
	seeds=tests/corpus/${name#fuzz_}
	[ -d "$seeds" ] || seeds=
	mkdir -p "$corpus"
	if "$fuzzer" -max_total_time="${SECONDS_EACH:-30}" -timeout=10 \
	    -rss_limit_mb=2048 -print_final_stats=1 \
	    -artifact_prefix="$corpus-" "$corpus" $seeds \
	    >"$corpus.log" 2>&1; then
		passed=$((passed + 1))
		runs=$(sed -n 's/^stat::number_of_executed_units: *//p' \
		    "$corpus.log")
		echo "$fuzzer: $runs inputs"
	else
		failed=$((failed + 1))
		tail -n 60 "$corpus.log" | sed 's/^/| /'
		echo "---- $fuzzer failed; what made it is $corpus-*"
	fi
done
[ $((passed + failed)) -gt 0 ] || failed=1
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
