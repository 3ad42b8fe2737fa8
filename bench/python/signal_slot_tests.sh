#!/usr/bin/env bash
# Runs signal-slot's own tests, from its source archive, on rlhost.signal_slot: only their imports are changed.
set -eu
cd "$(dirname "$0")/../.."
python=$PWD/.venv/bin/python
at=.cache/peers/signal_slot_tests
mkdir -p $at
if [ ! -e $at/installed ]; then
  $python -m pip install --quiet --disable-pip-version-check --target $at/pytest pytest==9.2.0
  $python -m pip download --quiet --disable-pip-version-check --no-deps --no-binary :all: --dest $at signal-slot-mp==1.0.5
  touch $at/installed
fi
tar -xzf $at/signal-slot-mp-1.0.5.tar.gz -C $at
sed -E 's/^from signal_slot\.(signal_slot|queue_utils) import/from rlhost.signal_slot import/' \
  $at/signal-slot-mp-1.0.5/tests/test_signal_slot.py >$at/test_signal_slot.py
cd $at
PYTHONPATH=pytest exec $python -m pytest -q test_signal_slot.py
