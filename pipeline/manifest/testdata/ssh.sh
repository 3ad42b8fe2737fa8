#!/bin/sh
# sh THIS, on the run's own machine: it trains here, and the machines below join by ssh. Each has rlhost in its PATH.
set -eu
began=$(mktemp)
rlhost train pipeline.toml --listen 0.0.0.0:4222 &
run=$!
trap 'rm -f "$began"' EXIT
trap 'kill -TERM "$run"' INT TERM
token=
while [ -z "$token" ]; do
  kill -0 "$run" 2>/dev/null || { wait "$run"; exit; }
  sleep 0.2
  token=$(find runs/Cart_Pole -name join.token -newer "$began" 2>/dev/null | head -n 1)
done
ssh -- b 'rlhost join --token-file /dev/stdin --name b --slots 8 --label=gpu=h100 '\''--label=zone=x'\''\'\'''\''y'\''' <"$token" &
ssh -- me@c.example 'rlhost join --token-file /dev/stdin --name c.example' <"$token" &
code=0
wait "$run" || code=$?
if kill -0 "$run" 2>/dev/null; then # a signal has ended the wait, and not yet the run
  code=0
  wait "$run" || code=$?
fi
exit "$code"
