#!/usr/bin/env bash
# The run is given up, and another one begins with the mended reward.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
mkdir -p "$OUT/restart"

note restart begin
train restart "$OUT/pipeline.toml" &
noticed restart
note restart noticed
"$RLHOST" stop --now --run "$OUT/restart/pole/0001" > /dev/null
wait $! || true # a run that was stopped says so
note restart stopped
train restart "$OUT/pipeline.toml" --set env.pole.use="$OUT/fixed.wasm"
note restart end
