#!/usr/bin/env bash
# Builds the wheels into dist/: for each architecture named, by default both, with the program rlhost in it. Zig compiles the extension
# for the glibc of 2018, so no container is needed and every machine makes every wheel.
set -euo pipefail
cd "$(dirname "$0")/../.."
declare -A goarch=([x86_64]=amd64 [aarch64]=arm64)
glibc=2.28 # memfd_create is of 2.27
[ $# -gt 0 ] || set -- x86_64 aarch64
for arch; do
  program=$PWD/dist/program-$arch/rlhost
  GOARCH=${goarch[$arch]} CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o "$program" ./cmd/rlhost
  cc="$PWD/.venv/bin/python-zig cc -target $arch-linux-gnu.$glibc"
  rm -f dist/*"_$arch.whl"
  CC=$cc LDSHARED="$cc -shared" CFLAGS='' RLHOST_PROGRAM=$program _PYTHON_HOST_PLATFORM=manylinux_${glibc/./_}_$arch \
    .venv/bin/python -m pip wheel --quiet --disable-pip-version-check --no-build-isolation --no-deps -w dist ./sdk/python
  rm -r "dist/program-$arch"
done
ls dist/*.whl
