#!/usr/bin/env bash
# Installs SMOS and gRPC into an environment of their own under .cache/peers/smos, with the versions of smos.txt. What
# is there already is kept.
set -euo pipefail
cd "$(dirname "$0")"
into=../../.cache/peers/smos

command -v python3 >/dev/null || { echo 'objects: python3 is missing: apt-get install python3 python3-venv' >&2; exit 1; }
[ -x "$into/bin/python" ] || python3 -m venv "$into"
if ! cmp -s smos.txt "$into/installed.txt"; then
  # Nothing is resolved here: the file names every package, so a missing one shows as a failed check.
  "$into/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --requirement smos.txt
  "$into/bin/python" -m pip --disable-pip-version-check check >&2
  cp smos.txt "$into/installed.txt"
fi
