#!/usr/bin/env bash
# The reward is mended while the run goes on.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
mkdir -p "$OUT/swap"

note swap begin
train swap "$OUT/pipeline.toml" &
noticed swap
note swap noticed
"$RLHOST" swap rollout "$OUT/fixed.wasm" --run "$OUT/swap/pole/0001" --trial-envs 4 --trial-steps 500 --json > "$OUT/swap.reply.json"
note swap mended
wait $!
note swap end
