#!/usr/bin/env bash
# Measures rlhost's channels against RLinf's on Ray, in turns: RLinf 0.3.0 in an environment of its own (6 GB with PyTorch), which is made where it
# is missing.   bench/channel/run.sh [ROUNDS]
set -euo pipefail
cd "$(dirname "$0")/../.."
peer=.cache/peers/rlinf
if [ ! -e "$peer/installed" ]; then
  python3 -m venv "$peer"
  "$peer/bin/python" -m pip install --quiet --disable-pip-version-check ray==2.60.0 torch==2.15.0 numpy==2.4.6 omegaconf==2.3.1 psutil==7.2.2 hydra-core==1.3.8
  "$peer/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps rlinf==0.3.0
  touch "$peer/installed"
fi
go build -o bin/ ./cmd/rlhost
export RLHOST_PROGRAM=$PWD/bin/rlhost
for _ in $(seq "${1:-3}"); do
  echo "RLinf  $("$peer/bin/python" bench/channel/rlinf_side.py 1000 60 2>&1 | sed -n 's/^RESULT //p')"
  echo "rlhost $(.venv/bin/python bench/channel/our_side.py 20000 2000 | sed -n 's/^RESULT //p')"
done
