#!/bin/sh
# Whether compilers agree on the oracle: oracle_hash.sh CONTRACTED PROGRAM...
#
# Each PROGRAM, built from tests/oracle_hash.c by another compiler or with other
# options, must print the hashes of tests/hashes.txt; CONTRACTED, which was
# allowed to fuse products with sums, must print others. Runs in the root of
# the repository; the last line counts the cases.

graphs='tests/lower/hybrid_all.txt tests/graphs/dense_quants.txt'
contracted=$1
shift
passed=0
failed=0

# check WHAT TEST-ARGUMENT...
check()
{
	what=$1
	shift
	if [ "$@" ]; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "$what"
	fi
}

# The hash that program $1 prints for graph $2.
hash_of()
{
	"$1" "$2" | sed -n "s|^$2 ||p"
}

for graph in $graphs; do
	want=$(sed -n "s|^$graph ||p" tests/hashes.txt)
	for program; do
		got=$(hash_of "$program" "$graph")
		check "$program $graph: ${got:-nothing}, not $want" \
		    "$got" = "$want"
	done
	got=$(hash_of "$contracted" "$graph")
	check "$contracted $graph: nothing" -n "$got"
	check "$contracted $graph: contraction changes no bit" \
	    "$got" != "$want"
done

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
