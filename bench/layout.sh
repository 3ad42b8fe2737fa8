#!/usr/bin/env bash
# Compares whole trainings of two commits: bench/layout.sh BASE HEAD [LAYOUTS [KEY=VALUE…]]
#
# Where the linker puts functions moves a training by some 3 %, whatever they do. So LAYOUTS (6) binaries of each commit are
# linked in random orders, and as many of BASE once more as a control. Each round runs one of each: CartPole with
# pipeline.toml, one million env steps, and what KEY=VALUE sets besides. It prints env steps/s, the medians, and the ratios of
# the medians to BASE's: one that is not further from 1 than the control's says nothing.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -ge 2 ] || { sed -n '2,7s/^# \{0,1\}//p' "$0" >&2; exit 2; }
base=$1 head=$2 layouts=${3:-6}
shift $(($# < 3 ? $# : 3))
sets=(--set 'run.stop={env_steps=1_000_000}' --set run.evaluation.episodes=1)
for s in "$@"; do sets+=(--set "$s"); done

work=$(mktemp -d "${TMPDIR:-/tmp}/rlhost-layout-XXXXXX")
trap 'git worktree remove --force "$work/source" 2>/dev/null || true; rm -rf "$work"' EXIT

# build NAME COMMIT SEED links the layouts of a commit with as many seeds from SEED on.
build() {
	git worktree add --quiet --detach "$work/source" "$2"
	for i in $(seq "$layouts"); do
		(cd "$work/source" && CGO_ENABLED=0 go build -trimpath -ldflags "-randlayout=$(($3 + i))" -o "$work/$1.$i" ./cmd/rlhost)
	done
	git worktree remove --force "$work/source"
}
build base "$base" 0
build head "$head" 0
build control "$base" "$layouts"

# run NAME LAYOUT trains once and prints env steps/s.
run() {
	rm -rf "$work/runs"
	"$work/$1.$2" train pipeline.toml --set "run.dir=\"$work/runs\"" "${sets[@]}" >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
	tail -n 1 "$work"/runs/*/*/metrics.jsonl |
		sed 's/.*"global_step":\([0-9.]*\).*"perf\/wall_seconds":\([0-9.e+]*\).*/\1 \2/' | awk '{ printf "%.0f\n", $1 / $2 }'
}
median() { sort -n "$work/$1" | awk '{ x[NR] = $1 } END { print (x[int((NR + 1) / 2)] + x[int(NR / 2) + 1]) / 2 }'; }

run base 1 >/dev/null # so that nobody finds an empty cache
names=(control base head)
echo "layout: env steps/s of base, head, control"
for i in $(seq "$layouts"); do
	for k in 0 1 2; do # each is the first one in turn
		name=${names[(i + k) % 3]}
		run "$name" "$i" >>"$work/rates.$name"
	done
	echo "$i: $(for name in base head control; do printf ' %s' "$(tail -n 1 "$work/rates.$name")"; done)"
done
for name in base head control; do
	echo "$name: median $(median rates.$name), $(sort -n "$work/rates.$name" | sed -n '1p;$p' | paste -sd-), ratio $(
		awk -v a="$(median rates.$name)" -v b="$(median rates.base)" 'BEGIN { printf "%.3f", a / b }')"
done
