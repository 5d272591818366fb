#!/bin/sh
# Prints a fresh tests/hashes.txt: after a change of bits that was meant,
#
#	ninja build/tests/oracle_hash build/tests/model_hashes build/fixtures/made
#	tests/update_hashes.sh >new && mv new tests/hashes.txt
#
# Runs in the root of the repository.
set -eu

cat <<'END'
# SHA-256 of logits as f32 little endian, compared by tests/oracle_hash.sh and
# tests/model_hashes.c: of graphs with made-up weights, and of checkpoints, whose
# own SHA-256 follows. A change of bits is a decision: whoever changes a line
# says why. tests/update_hashes.sh prints this file.
END
build/tests/oracle_hash tests/lower/hybrid_all.txt tests/graphs/dense_quants.txt
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! build/tests/model_hashes print >"$log"; then
	echo 'update_hashes.sh: build/tests/model_hashes failed' >&2
	exit 1
fi
grep -E '^[^ ]+ [0-9a-f]{64} [0-9a-f]{64}$' "$log"
