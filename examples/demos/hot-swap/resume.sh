#!/usr/bin/env bash
# The run is stopped, and goes on from its checkpoint with the mended reward.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
mkdir -p "$OUT/resume"

note resume begin
train resume "$OUT/pipeline.toml" &
noticed resume
note resume noticed
"$RLHOST" stop --run "$OUT/resume/pole/0001" > /dev/null
wait $! || true # a run that was stopped says so
note resume stopped
train resume --resume "$OUT/resume/pole/0001" --set env.pole.use="$OUT/fixed.wasm"
note resume end
