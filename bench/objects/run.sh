#!/usr/bin/env bash
# Measures rlhost's object store beside SMOS, and a block's way to another process beside queues, sockets and gRPC:
# ./run.sh [--rounds N] [--pairs N]. About a minute.
set -euo pipefail
cd "$(dirname "$0")"
export PYTHONDONTWRITEBYTECODE=1

./install.sh
(cd ../.. && CGO_ENABLED=0 go build -trimpath -o .cache/peers/bin/objects-server ./bench/objects/server)
exec ../../.cache/peers/smos/bin/python compare.py "$@"
