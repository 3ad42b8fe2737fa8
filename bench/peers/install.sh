#!/usr/bin/env bash
# Installs the peers that rlhost is measured against, each into an environment of its own under .cache/peers, with
# the exact versions of sb3.txt, envpool.txt and sf.txt. What is there already is kept. Names of environments as
# arguments install only those.
set -euo pipefail
cd "$(dirname "$0")"
into=../../.cache/peers

install() {
  local name=$1
  [ -x "$into/$name/bin/python" ] || python3 -m venv "$into/$name"
  if ! cmp -s "$name.txt" "$into/$name/installed.txt"; then
    echo "peers: installing $name (PyTorch alone is 5 GB; minutes)" >&2
    # Nothing is resolved here: the file names every package, so a missing one shows as a failed check.
    "$into/$name/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --requirement "$name.txt"
    "$into/$name/bin/python" -m pip --disable-pip-version-check check >&2
    cp "$name.txt" "$into/$name/installed.txt"
  fi
}

command -v python3 >/dev/null || { echo 'peers: python3 is missing: apt-get install python3 python3-venv' >&2; exit 1; }
mkdir -p "$into"
[ $# -gt 0 ] || set -- sb3 envpool sf
for name; do install "$name"; done
