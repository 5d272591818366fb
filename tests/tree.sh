#!/bin/sh
# Checks on the tree itself: who includes whom, that lists name every file,
# that no table row is unused. Runs in the root of the repository; each check
# prints what is wrong, and the last line counts the checks.

passed=0
failed=0

# check NAME WRONG: WRONG lists what is wrong, and is empty when nothing is.
check()
{
	if [ -z "$2" ]; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		printf '%s:\n%s\n' "$1" "$2"
	fi
}

# Includes of folder $1 that leave it for another place than pattern $2 allows.
includes()
{
	ls "$1"/*.c >/dev/null 2>&1 || echo "no sources in $1/"
	grep -Ens '#include "\.\./' "$1"/*.c "$1"/*.h "$1"/*.def /dev/null |
	    grep -Ev "#include \"\\.\\./($2)"
}

# Names of the rows ROW(NAME, of a table.
rows()
{
	sed -n "s/^$2(\\([A-Za-z0-9_]*\\).*/\\1/p" "$1"
}

# Rows $2 of table $1 that no file of the rest mentions as $3NAME.
unused()
{
	table=$1 row=$2 prefix=$3
	shift 3
	[ -n "$(rows "$table" "$row")" ] || echo "$table has no $row rows"
	for name in $(rows "$table" "$row"); do
		grep -qw "$prefix$name" "$@" || echo "$prefix$name"
	done
}

# Of the files given, those that file $1 does not name.
unlisted()
{
	list=$1
	shift
	for file; do
		grep -qE "(^|[ /])$file( |:|\$)" "$list" || echo "$file"
	done
}

all='numerics runtime ir lower codegen compiler tests'

check 'numerics/ includes no other folder' "$(includes numerics none)"
check 'runtime/ includes only numerics/' "$(includes runtime numerics/)"
check 'ir/ includes only numerics/' "$(includes ir numerics/)"
check 'lower/ includes only ir/ and numerics/' \
    "$(includes lower 'ir/|numerics/')"
check 'codegen/ includes only lower/, ir/, numerics/ and runtime/plan.h' \
    "$(includes codegen 'lower/|ir/|numerics/|runtime/plan\.h')"
check 'compiler/ includes no test' \
    "$(includes compiler 'codegen/|lower/|ir/|numerics/|runtime/')"
check 'examples include only runtime/ingot.h' \
    "$(includes examples 'runtime/ingot\.h')"
check 'only compiler/ sees Lua' "$(grep -En \
    '#include <(lua|lualib|lauxlib)\.h>' \
    numerics/* runtime/* ir/* lower/* codegen/*)"
check 'no environment variables in the libraries' "$(grep -En \
    '\b(secure_)?getenv\b' numerics/* runtime/* ir/* lower/* codegen/*)"
check 'the runtime neither prints nor ends the process' "$(grep -En \
    '\b(exit|_exit|abort|printf|puts|putchar|perror)[ ]?\(' \
    numerics/*.[ch] runtime/*.[ch])"
check 'models use no library that the sandbox lacks' "$(grep -En \
    '\b(io|os|package|debug)\.' models/*.lua models/lib/*.lua)"

check 'files are at most 1500 lines long' "$(for folder in $all models; do
	find $folder -name '*.[ch]' -o -name '*.def' -o -name '*.lua'
done | xargs wc -l | awk '$2 != "total" && $1 > 1500')"

check '.ci/objs.inc.ninja names every source' "$(
    unlisted .ci/objs.inc.ninja numerics/*.c runtime/*.c ir/*.c lower/*.c \
	$(ls codegen/*.c | grep -v codegen/embed.c) compiler/*.c \
	examples/*.c)"
check 'the build names every test' "$(
    cat build.ninja .ci/*.ninja >build/tree.txt
    unlisted build/tree.txt tests/*.c)"
check 'ninja test runs every unit test' "$(
    sed -n '/^build test:/,/^$/p' build.ninja >build/tree.txt
    unlisted build/tree.txt $(ls tests/unit_*.c | sed 's/\.c$//'))"
check 'ninja asan runs every unit test' "$(
    sed -n '/^build asan:/,/^$/p' build.ninja >build/tree.txt
    unlisted build/tree.txt $(ls tests/unit_*.c | sed 's/\.c$//'))"
check 'every model is built in' "$(
    unlisted build.ninja models/*.lua models/lib/*.lua)"
rm -f build/tree.txt

check 'every op occurs in a test' "$(
    [ "$(grep -c '^OP(' ir/ops.def)" -gt 20 ] || echo 'no ops found'
    sed -n 's/^OP([^"]*"\([a-z0-9_]*\)".*/\1/p' ir/ops.def |
    while read -r op; do
	grep -qrw --include='*.txt' --include='*.[ch]' "$op" tests ||
	    echo "$op"
    done)"
check 'every point op has its expression' "$(
    sed -n 's/^OP(\([A-Z0-9_]*\), .*POINT,.*/\1/p' ir/ops.def |
    while read -r op; do
	grep -q "^EXPR($op," codegen/exprs.def || echo "$op"
    done)"
check 'every reason of why.def is given somewhere' \
    "$(unused lower/why.def WHY WHY_ lower/*.c)"
check 'every status is returned somewhere' \
    "$(unused runtime/status.def STATUS INGOT_ runtime/*.c)"
check 'every fusion rule has a test' \
    "$(unused lower/fuse.def RULE '' $(find tests -name '*.[ch]' -o \
	-name '*.txt' -o -name '*.sh'))"

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
