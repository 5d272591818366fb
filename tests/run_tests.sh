#!/bin/sh
# Runs tests and counts their cases: run_tests.sh COMMAND...
#
# A command is one word, with its arguments inside; it runs in the root of the
# repository. Cases are counted from what it prints: cmocka's summary, or a last
# line "N passed, N failed". Counted as one failed case more: a test that ran no
# case, ran out of time (LIMIT seconds, 300 unless set), died, or ended with a
# status that its counts do not explain. Output is shown of tests that fail. The
# last line is the sum; the status is 0 when nothing failed.

limit=${LIMIT:-300}
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT
trap 'exit 130' INT TERM

# Prints "PASSED FAILED" as counted from a test's output.
count()
{
	awk '
	/^\[==========\] [0-9]+ test\(s\) run\./ { run += $2 }
	/^\[  PASSED  \] [0-9]+ test\(s\)\./ { passed += $4 }
	/^\[  SKIPPED \] [0-9]+ test\(s\)/ { skipped += $4 }
	{ last = $0 }
	END {
		failed = run - passed - skipped
		if (last ~ /^[0-9]+ passed, [0-9]+ failed$/) {
			split(last, n, /[ ,]+/)
			passed += n[1]
			failed += n[3]
		}
		print passed + 0, failed + 0
	}' "$1"
}

all_passed=0
all_failed=0
for test do
	start=$(date +%s)
	timeout -k 10 "$limit" sh -c "$test" >"$log" 2>&1 </dev/null
	status=$?
	counts=$(count "$log")
	passed=${counts% *}
	failed=${counts#* }
	why=
	if [ "$status" -eq 124 ] || [ "$status" -eq 137 ]; then
		why="ran out of time after $limit seconds"
	elif [ "$status" -ne 0 ] && [ "$failed" -eq 0 ]; then
		why="ended with status $status"
	elif [ $((passed + failed)) -eq 0 ]; then
		why="ran no case"
	fi
	[ -z "$why" ] || failed=$((failed + 1))
	if [ "$failed" -gt 0 ]; then
		echo "---- $test"
		tail -n 100 "$log" | sed 's/^/| /'
		echo "---- $test: $failed failed${why:+: $why}"
	else
		echo "$test: $passed passed, $(($(date +%s) - start)) s"
	fi
	all_passed=$((all_passed + passed))
	all_failed=$((all_failed + failed))
done
[ $((all_passed + all_failed)) -gt 0 ] || all_failed=1
echo "$all_passed passed, $all_failed failed"
[ "$all_failed" -eq 0 ]
