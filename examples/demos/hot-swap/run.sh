#!/usr/bin/env bash
# Runs the three scripts one after the other and draws the picture. Usage: run.sh [--long] [FOLDER]
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$here/../../..
long=
if [ "${1:-}" = --long ]; then long=yes; shift; fi
export OUT=${1:-$(mktemp -d)}
mkdir -p "$OUT"
OUT=$(cd "$OUT" && pwd)

if [ -n "$long" ]; then # a simulator ten times slower
  export SETTINGS="env.pole.args.work=40000"
fi
export RLHOST=${RLHOST:-$root/bin/rlhost}
[ -x "$RLHOST" ] || make -C "$root" build

if command -v clang > /dev/null && command -v wasm-ld > /dev/null; then
  cc=(clang --target=wasm32 -Wl,--stack-first)
else
  cc=("$root/.venv/bin/python" -m ziglang cc -target wasm32-freestanding)
fi
flags=(-O3 -msimd128 -mbulk-memory -nostdlib -I "$root/sdk/c" -Wl,--no-entry "$here/pole.c")
"${cc[@]}" "${flags[@]}" -o "$OUT/pole.wasm"
"${cc[@]}" "${flags[@]}" -DFIXED -o "$OUT/fixed.wasm"
cp "$here/pipeline.toml" "$OUT"

for script in swap resume restart; do "$here/$script.sh"; done
python3 "$here/picture.py" "$OUT"
