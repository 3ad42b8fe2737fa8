#!/usr/bin/env bash
# Fetches faster-fifo 1.5.2 into .cache/peers/faster-fifo and compiles beside it what the table needs: driver (its C++
# core), native (our queue); python/ is its package. Prints the folder.
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
g++ -std=c++17 -O3 -DNDEBUG -I "$core" -include cstddef -o "$dir/driver" "$here/fasterfifo.cpp" "$core/faster_fifo.cpp" -pthread

native=$root/sdk/c/native
for f in ring queue messages memory; do
  gcc -std=c11 -O3 -I "$native" -c -o "$dir/$f.o" "$native/$f.c"
done
g++ -std=c++17 -O3 -I "$native" -o "$dir/native" "$here/native.cpp" "$dir"/{ring,queue,messages,memory}.o -pthread
printf '%s\n' "$dir"
