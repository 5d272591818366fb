#!/bin/sh
# From a fresh Debian 12 machine to a running model:
#
#   ./bootstrap.sh demo   installs what is missing, builds, compiles the model
#                         in models/demo/ and lets it write
#   ./bootstrap.sh test   the same, then all tests; the last line counts them
#
# Nothing is downloaded but Debian packages, and those only when missing.
set -eu
cd "$(dirname "$0")"

packages='gcc libc6-dev ninja-build clang-19 lld-19 llvm-19 libclang-rt-19-dev
    libamdhip64-5 liblua5.4-dev libcmocka-dev libpcre2-dev libjansson-dev
    libxxhash-dev libpthreadpool-dev libutf8proc-dev graphviz python3
    python3-numpy'

checkpoint=models/demo/kjv-moe-9m-Q4_K_M.gguf
plan=build/kjv-moe-9m.plan
prompt='In the beginning'

installed()
{
	dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null |
	    grep -qx installed
}

# Installs the packages that are missing, if any.
install_packages()
{
	missing=
	for package in $packages; do
		installed "$package" || missing="$missing $package"
	done
	[ -n "$missing" ] || return 0
	echo "bootstrap: installing$missing"
	if ! command -v apt-get >/dev/null; then
		echo "bootstrap: this is not Debian; install the packages above" \
		    "by other means" >&2
		exit 1
	fi
	root=
	if [ "$(id -u)" -ne 0 ]; then
		if ! command -v sudo >/dev/null; then
			echo "bootstrap: run this as root, or install sudo" >&2
			exit 1
		fi
		root='sudo'
	fi
	$root apt-get update -q
	$root env DEBIAN_FRONTEND=noninteractive \
	    apt-get install -q -y --no-install-recommends $missing
}

demo()
{
	echo "bootstrap: compiling $checkpoint to $plan"
	rm -f "$plan"
	build/ingot compile "$checkpoint" -o "$plan" || return 1
	echo "bootstrap: running it"
	text=$(build/ingot run "$plan" --weights "$checkpoint" --device cpu \
	    -p "$prompt" -n 64 --verbose) || return 1
	printf '\n%s%s\n\n' "$prompt" "$text"
}

# Runs a test suite of build.ninja and keeps its count. A suite that fails
# without a count, or in spite of it, is one failure more.
suite()
{
	echo "bootstrap: ninja $1"
	status=0
	ninja "$1" >build/suite.log 2>&1 || status=1
	cat build/suite.log
	count=$(grep -xE '[0-9]+ passed, [0-9]+ failed' build/suite.log |
	    tail -n 1)
	case $status,$count in
	1,|1,*' 0 failed')
		echo '0 passed, 1 failed'
		;;
	esac >>build/counts.log
	[ -z "$count" ] || echo "$count" >>build/counts.log
}

# The demo and every suite; the last line is the sum.
tests()
{
	if demo; then
		echo '1 passed, 0 failed'
	else
		echo '0 passed, 1 failed'
	fi >build/demo.log 2>&1
	cat build/demo.log
	tail -n 1 build/demo.log >build/counts.log
	export SECONDS_EACH=10 # of ninja fuzz
	for name in warnings test test-models asan fuzz; do
		suite "$name"
	done
	awk '{
		passed += $1
		failed += $3
	}
	END {
		printf "%d passed, %d failed\n", passed, failed
		exit failed > 0
	}' build/counts.log
}

case ${1-} in
demo)
	install_packages
	ninja
	demo
	;;
test)
	install_packages
	ninja
	tests
	;;
*)
	echo "usage: ./bootstrap.sh demo|test" >&2
	exit 2
	;;
esac
