#!/bin/sh
# Builds the guests of the scripts from the .c files beside it, with clang or Zig, and notes in build.txt what they
# were made from. Names of functions stay in them: faults show them.
#
#	cmd/rlhost/testdata/guests/build.sh            all of them, here
#	OUT=folder cmd/rlhost/testdata/guests/build.sh into that folder
set -eu
cd "$(dirname "$0")"
for name in ${CLANG:-clang-19 clang}; do
	if command -v "$name" >/dev/null && "$name" --print-targets 2>/dev/null | grep -q wasm32; then
		cc="$name --target=wasm32"
		stack=",--stack-first"
		break
	fi
done
if [ -z "${cc:-}" ]; then
	python=../../../../.venv/bin/python
	if ! "$python" -m ziglang version >/dev/null 2>&1; then
		echo "needs clang with lld, or Python's ziglang: make tools" >&2
		exit 3
	fi
	cc="$python -m ziglang cc -target wasm32-freestanding"
	stack=""
fi
for source in *.c; do
	$cc -std=c11 -Oz -nostdlib -mbulk-memory -I ../../../../sdk/c \
		-Wl,--no-entry,-z,stack-size=4096,--strip-debug"$stack" "$source" -o "${OUT:-.}/${source%.c}.wasm"
	chmod 644 "${OUT:-.}/${source%.c}.wasm"
done
[ -n "${OUT:-}" ] || cat ./*.c build.sh | sha256sum | cut -d ' ' -f 1 >build.txt
