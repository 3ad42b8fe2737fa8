#!/bin/sh
# Builds the example guests, each with the one line that its own author would use.
#
#	examples/plugins/build.sh            all guests whose compiler is here
#	examples/plugins/build.sh GUEST…     some of: acrobot-c cartpole-c corridor-c mountaincar-c cartpole-rust corridor-rust
#	                                     cartpole-go corridor-go
#	examples/plugins/build.sh compiler GUEST   prints the compiler that it would use
#	OUT=folder examples/plugins/build.sh puts the modules there instead of beside their sources
#
# The modules in C and that of cartpole-rust are committed. Beside them lies build.txt with the
# compiler and a hash of the sources; the test of this folder builds them again and compares.
set -eu
cd "$(dirname "$0")"
root=$(cd ../.. && pwd)
guests=${*:-acrobot-c cartpole-c corridor-c mountaincar-c cartpole-rust corridor-rust cartpole-go corridor-go}

# The C compiler: clang with lld, or the one that comes with Zig, from the project's own Python environment. The stack
# lies below all data, so that one that overflows traps and overwrites nothing; Zig does so by itself.
for name in ${CLANG:-clang-19 clang}; do
	if command -v "$name" >/dev/null && "$name" --print-targets 2>/dev/null | grep -q wasm32; then
		cc="$name --target=wasm32"
		stack=",--stack-first"
		compiler=$("$name" --version | head -n 1)
		break
	fi
done
if [ -z "${cc:-}" ]; then
	for python in "$root/.venv/bin/python" "${PYTHON:-python3}"; do
		if version=$("$python" -m ziglang version 2>/dev/null); then
			cc="$python -m ziglang cc -target wasm32-freestanding"
			stack=""
			compiler="zig cc $version"
			break
		fi
	done
fi

# sources prints the inputs of a guest, in one order.
sources() {
	case $1 in
	*-c) ls ../../sdk/c/*.h "$1"/*.c build.sh ;;
	*-rust) ls ../../sdk/rust/Cargo.toml ../../sdk/rust/src/*.rs "$1"/Cargo.toml "$1"/.cargo/config.toml "$1"/src/*.rs build.sh ;;
	esac
}

# compiler_of prints the compiler of a guest.
compiler_of() {
	case $1 in
	*-c) echo "${compiler:-none}" ;;
	*-rust) rustc --version ;;
	*-go) go version ;;
	esac
}

# record writes what the committed modules of a guest were made from.
record() {
	[ -z "${OUT:-}" ] || return 0
	printf 'compiler %s\nsources %s\n' "$(compiler_of "$1")" "$(sources "$1" | LC_ALL=C sort | xargs cat | sha256sum | cut -d ' ' -f 1)" >"$1/build.txt"
}

# build_c FOLDER OUTPUT FLAGS…
build_c() {
	if [ -z "${cc:-}" ]; then
		echo "$1: needs clang with lld, or Python's ziglang" >&2
		return 3
	fi
	source=$1/${1%-c}.c module=$2
	shift 2
	$cc -std=c11 -O3 -ffp-contract=off -nostdlib -msimd128 -mbulk-memory -I ../../sdk/c \
		-Wl,--no-entry,-z,stack-size=65536,--strip-all"$stack" "$@" "$source" -o "$module"
	chmod 644 "$module"
}

# build_rust FOLDER OUTPUT. The paths of this machine stay out of the module.
build_rust() {
	if ! rustc --print target-libdir --target wasm32-unknown-unknown 2>/dev/null | xargs test -d; then
		echo "$1: needs Rust with: rustup target add wasm32-unknown-unknown" >&2
		return 3
	fi
	target=$PWD/$1/target
	(cd "$1" && cargo build --quiet --offline --release --target wasm32-unknown-unknown --target-dir "$target" \
		--config "target.wasm32-unknown-unknown.rustflags=[\"--remap-path-prefix=$root=rlhost\"]")
	cp "$target/wasm32-unknown-unknown/release/${1%-rust}.wasm" "$2"
	chmod 644 "$2"
}

# build_go FOLDER OUTPUT
build_go() {
	(cd "$1" && GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -ldflags="-s -w" -o "$2" .)
}

if [ "${1:-}" = compiler ]; then
	compiler_of "$2"
	exit
fi
status=0
for guest in $guests; do
	out=${OUT:-$PWD/$guest}
	name=${guest%-*}
	[ -z "${OUT:-}" ] || name=$guest
	case $guest in
	cartpole-c)
		build_c "$guest" "$out/$name.wasm" && build_c "$guest" "$out/${name}_scalar.wasm" -mno-simd128 && record "$guest"
		;;
	*-c) build_c "$guest" "$out/$name.wasm" && record "$guest" ;;
	cartpole-rust) build_rust "$guest" "$out/$name.wasm" && record "$guest" ;;
	*-rust) build_rust "$guest" "$out/$name.wasm" ;;
	*-go) build_go "$guest" "$out/$name.wasm" ;;
	*)
		echo "$guest: no such guest" >&2
		exit 2
		;;
	esac || status=$?
done
exit "$status"
