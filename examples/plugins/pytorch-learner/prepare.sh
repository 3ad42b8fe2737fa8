#!/usr/bin/env bash
# Prints a Python that has PyTorch and rlhost, after installing what is missing: PyTorch and its pinned companions come
# from bench/peers (5 GB the first time), rlhost from this checkout.
set -euo pipefail
root=$(cd "$(dirname "$0")/../../.." && pwd)
"$root/bench/peers/install.sh" sb3 >&2
python="$root/.cache/peers/sb3/bin/python"
"$python" -c 'import grpc, setuptools' 2>/dev/null ||
  "$python" -m pip install --quiet --disable-pip-version-check --no-deps grpcio==1.85.1 setuptools==84.2.1 typing_extensions==4.16.0 >&2
"$python" "$root/sdk/python/installed.py" --install >/dev/null
printf '%s\n' "$python"
