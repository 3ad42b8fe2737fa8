# What the three scripts share. OUT is where everything goes, NOTICED the env step at which somebody sees the mistake.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
OUT=${OUT:?a folder for the results}
NOTICED=${NOTICED:-200000}
RLHOST=${RLHOST:-$here/../../../bin/rlhost}

# train NAME ARGUMENT... trains in the folder of a script; its output goes there too.
train() {
  local name=$1
  shift
  "$RLHOST" train "$@" --set run.dir="$OUT/$name" "${SETS[@]}" --json >> "$OUT/$name.jsonl" 2>> "$OUT/$name.log"
}
SETS=()
read -ra words <<< "${SETTINGS:-}"
for word in "${words[@]}"; do SETS+=(--set "$word"); done

# made NAME prints how many env steps the run of a script has made; nothing if it does not answer.
made() {
  "$RLHOST" status "$OUT/$1/pole/0001" --json 2> /dev/null | sed -n 's/.*"env_steps":{"made":\([0-9]*\).*/\1/p'
}

# noticed NAME waits until the run of a script, which is the newest job, has made NOTICED env steps.
noticed() {
  local steps=0
  until [ "$steps" -ge "$NOTICED" ]; do
    kill -0 $! 2> /dev/null || { echo "$1: the run ended before $NOTICED env steps; see $OUT/$1.log" >&2; exit 1; }
    sleep 0.05
    steps=$(made "$1" || true)
    steps=${steps:-0}
  done
}

# note NAME EVENT writes down when something happened.
note() { echo "$(date +%s.%N) $2" >> "$OUT/$1.events"; }
