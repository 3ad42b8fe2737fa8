#!/bin/sh
# Measures how long a save takes to be in a running training, under rlhost dev: from the save of a source to the first env step of the new
# version, and of a pipeline file to its effect. Prints each and the median, by language.
#
#   bench/dev.sh                 every language that builds here
#   bench/dev.sh c rust          these; SAVES=9 says how often, PROGRAM=… which rlhost
set -eu
cd "$(dirname "$0")/.."
saves=${SAVES:-5}
PATH="$PWD/.venv/bin:$PATH"
dir=$(mktemp -d)
pid=
trap '[ -z "$pid" ] || kill -INT "$pid" 2>/dev/null || true; wait; rm -r "$dir"' EXIT
trap 'exit 130' INT TERM
program=${PROGRAM:-$dir/rlhost}
[ -n "${PROGRAM:-}" ] || go build -o "$program" ./cmd/rlhost
lines() { grep -c 'after the save' "$dir/out" || true; }

# measure FILE TEXT OTHER: saves it with one text in place of another, in turns.
measure() {
  n=0
  while [ $n -lt "$saves" ]; do
    before=$(lines)
    if [ $((n % 2)) = 0 ]; then sed -i "s|$2|$3|" "$1"; else sed -i "s|$3|$2|" "$1"; fi
    tries=0
    while [ "$(lines)" -le "$before" ]; do
      tries=$((tries + 1))
      [ $tries -lt 300 ] || { echo "$1: nothing after 30 s:"; grep -v ' per s ' "$dir/out" | tail -5; return 0; }
      sleep 0.1
    done
    n=$((n + 1))
  done
}
# report NAME: the times since the last one, sorted, and their median.
report() {
  grep -o '[0-9.]* s after the save' "$dir/out" | tail -n +$((told + 1)) | cut -d' ' -f1 | sort -n | awk -v name="$1" '
    { t[NR] = $1; all = all " " $1 } END { if (NR) printf "%-16s median %.2f s of%s\n", name, t[int((NR + 1) / 2)], all }'
  told=$(lines)
}

[ $# -gt 0 ] || set -- c cpp zig rust go as python
for lang; do
  name="dev_$lang"
  (cd "$dir" && "$program" new env "$name" --lang "$lang" >/dev/null)
  cd "$dir/$name"
  case $lang in
  c) source=$name.c from='>= 50' to='>= 49' ;;
  cpp) source=$name.cpp from='>= 50' to='>= 49' ;;
  zig) source=$name.zig from='>= 50' to='>= 49' ;;
  rust) source=src/lib.rs from='>= 50' to='>= 49' ;;
  go) source=main.go from='>= 50' to='>= 49' ;;
  as) source=$name.ts from='>= 50' to='>= 49' ;;
  python) source=$name.py from='< 1.5' to='< 1.4' ;;
  esac
  "$program" dev >"$dir/out" 2>&1 &
  pid=$! told=0 tries=0
  until grep -q ' per s ' "$dir/out"; do
    tries=$((tries + 1))
    [ $tries -lt 600 ] || { cat "$dir/out"; exit 1; }
    sleep 0.1
  done
  measure "$source" "$from" "$to"
  report "$lang"
  printf '\n[component.learner]\nlearning_rate = 0.0004\n' >>pipeline.toml
  sleep 2
  told=$(lines)
  measure pipeline.toml 'learning_rate = 0.0004' 'learning_rate = 0.0005'
  report "$lang, TOML"
  kill -INT "$pid"
  wait "$pid" || true
  pid=
  cd "$OLDPWD"
done
