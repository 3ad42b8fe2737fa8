#!/usr/bin/env bash
# Fetches faster-fifo 1.5.2 into .cache/peers/faster-fifo and compiles its C++ core with the driver beside this
# script: driver (C++ core) and python/ (the package). Prints the folder.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
dir=$root/.cache/peers/faster-fifo
version=1.5.2

missing() { printf 'prepare: %s\n' "$*" >&2; exit 1; }
python=$root/.venv/bin/python
[ -x "$python" ] || missing 'run make tools first: .venv is missing'
command -v g++ >/dev/null || missing 'g++ is missing: apt-get install g++'

mkdir -p "$dir"
if [ ! -e "$dir/faster_fifo-$version" ]; then
  "$python" -m pip download --quiet --disable-pip-version-check --no-deps --no-binary :all: -d "$dir" "faster-fifo==$version"
  tar -xzf "$dir/faster_fifo-$version.tar.gz" -C "$dir"
fi
if [ ! -e "$dir/python" ]; then
  "$python" -m pip install --quiet --disable-pip-version-check --no-deps --only-binary :all: --target "$dir/python" "faster-fifo==$version"
fi
core=$(dirname "$(find "$dir/faster_fifo-$version" -name faster_fifo.cpp -path '*cpp_lib*' | head -n 1)")
[ "$core" != . ] || missing "faster_fifo.cpp is not in the sources of faster-fifo $version"
if [ "$here/driver.cpp" -nt "$dir/driver" ]; then
  g++ -std=c++17 -O3 -DNDEBUG -I "$core" -include cstddef -o "$dir/driver" "$here/driver.cpp" "$core/faster_fifo.cpp" -pthread
fi
printf '%s\n' "$dir"
