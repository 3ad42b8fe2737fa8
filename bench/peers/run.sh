#!/usr/bin/env bash
# Measures rlhost beside its peers: ./run.sh [--quick] [--rounds N] [PART]... The whole takes about 40 minutes on a
# quiet machine with 2 cores, and gigabytes of downloads the first time.
set -euo pipefail
cd "$(dirname "$0")"
export PYTHONDONTWRITEBYTECODE=1

command -v python3 >/dev/null || { echo 'peers: python3 is missing: apt-get install python3 python3-venv' >&2; exit 1; }
command -v taskset >/dev/null || { echo 'peers: taskset is missing: apt-get install util-linux' >&2; exit 1; }
(cd ../.. && CGO_ENABLED=0 go build -trimpath -o .cache/peers/bin/rlhost ./cmd/rlhost)
environments=$(python3 compare.py --environments "$@")
[ -z "$environments" ] || ./install.sh $environments
exec python3 compare.py "$@"
