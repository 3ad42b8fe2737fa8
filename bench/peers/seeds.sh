#!/usr/bin/env bash
# Ten seeds of the default pipeline in both modes: env steps and time to a return of 475, the frozen evaluation, and
# both again after 500,000 env steps. Needs Go and python3, none of the peers.
exec "$(dirname "$0")/run.sh" "$@" seeds
