#!/bin/sh
# Four machines on this one: network namespaces, joined by a bridge. One learns, three join it and step the environments, until the goal is reached.
# In a second run one is cut off, one leaves and one is killed: others have their instances each time, and the run learns on. Then, in an order that
# SEED repeats, KILLS machines are killed and begin again, PARTITIONS cables are cut for some seconds, STOPS machines stand still for some seconds,
# and RESTARTS times the machine of the run is killed and the run resumed. Meanwhile it is swapped, scaled, reloaded, rolled back and paused. One of
# the machines learns with it. Each change is on all machines or on none, and env steps add up.
# Needs root and the program bin/rlhost (make build). Folder and namespaces are gone afterwards. An hour of it:
#   KILLS=200 PARTITIONS=50 nohup make demo-hosts >hosts.log 2>&1 &
set -eu
[ "$(id -u)" = 0 ] || { echo 'network namespaces need root' >&2; exit 1; }
rlhost=$(realpath bin/rlhost)
folder=$(mktemp -d)
name=rl$$
kills=${KILLS:-2} partitions=${PARTITIONS:-1}
stops=${STOPS:-$partitions} restarts=${RESTARTS:-$(((kills + 9) / 10))} seed=${SEED:-$$}
modules=$(realpath examples/plugins)

end() {
    # Processes in the namespaces are this script's own.
    for i in 1 2 3 4; do
        ip netns pids "$name-$i" 2>/dev/null | xargs -r kill 2>/dev/null || true
        ip netns pids "$name-$i" 2>/dev/null | xargs -r kill -CONT 2>/dev/null || true
    done
    wait
    for i in 1 2 3 4; do ip netns del "$name-$i" 2>/dev/null || true; done
    ip netns del "$name-0" 2>/dev/null || true
    rm -r "$folder"
}
trap end EXIT
trap 'exit 1' INT TERM

# A namespace of its own holds the bridge: nothing of this machine's network changes.
ip netns add "$name-0"
ip -n "$name-0" link add bridge type bridge
ip -n "$name-0" link set bridge up
for i in 1 2 3 4; do
    ip netns add "$name-$i"
    ip -n "$name-0" link add "port$i" type veth peer name eth0 netns "$name-$i"
    ip -n "$name-0" link set "port$i" master bridge up
    ip -n "$name-$i" link set lo up
    ip -n "$name-$i" addr add "10.77.0.$i/24" dev eth0
    ip -n "$name-$i" link set eth0 up
done

# on MACHINE COMMAND...: runs it in the folder, in a machine's namespace.
on() {
    machine=$1
    shift
    (cd "$folder" && exec ip netns exec "$name-$machine" "$@")
}

# until_status TEXT: waits until the status of the run has it, and shows the machines.
until_status() {
    for _ in $(seq 300); do # a minute, twenty leases
        on 1 "$rlhost" status >"$folder/status" 2>&1 || true
        if grep -q "$1" "$folder/status"; then
            grep -E '^(host|rollout)' "$folder/status"
            return
        fi
        sleep 0.2
    done
    fails "rlhost status never says: $1"
}

# fails WHY: ends the script with all that the programs have said.
fails() {
    cat "$folder"/*.log "$folder/status" >&2
    echo "$1" >&2
    exit 1
}

# until_learned STEPS: waits until the run has learned from that many env steps more.
until_learned() {
    from=$(learned)
    for _ in $(seq 600); do
        [ "$(learned)" -gt $((from + $1)) ] && return
        sleep 0.2
    done
    fails 'the run learns no more'
}

# learned: prints how many env steps the run has learned from.
learned() {
    on 1 "$rlhost" status >"$folder/status" 2>/dev/null || true
    sed -n 's/^env steps: .* = \([0-9,]*\) trained .*/\1/p' "$folder/status" | tr -d , | grep . || echo 0
}

# pipeline NAME STOP LEARNERS: writes the pipeline, whose pairs of a rollout and an inference go to the machines that have joined. So many of these
# learn, too.
pipeline() {
    cat >"$folder/pipeline.toml" <<END
rlhost = 1
[run]
name = "$1"
stop = { $2 }
evaluation = { episodes = 20 }
[env.cartpole]
use = "cartpole@1"
[train]
preset = "fast"
[group.actors]
components = ["rollout", "inference"]
count = 3
place = "spread"
[cluster]
listen = "0.0.0.0:4222"
wait_for = 3
slots = 0
[swap]
trial_envs = 0
[component.learner]
lr_anneal_env_steps = 0
hosts = $3
END
}

# begin NAME: trains on machine 1, and has the others join.
begin() {
    on 1 "$rlhost" train >"$folder/$1.log" 2>&1 &
    train=$!
    token=$folder/runs/$1/0001/join.token
    for _ in $(seq 300); do [ -s "$token" ] && break; sleep 0.2; done
    for i in 2 3 4; do join "$1" $i; done
}

# join NAME MACHINE: has a machine join the run.
join() {
    on "$2" "$rlhost" join --token-file "$folder/runs/$1/0001/join.token" --name "machine-$2" --slots 3 --label "rack=r$2" >>"$folder/$1-$2.log" 2>&1 &
}

export XDG_RUNTIME_DIR="$folder"
echo 'three machines step the environments of a fourth, until it has learned them'
pipeline goal 'return = 475, env_steps = 5_000_000' 0
begin goal
wait $train || { cat "$folder"/*.log >&2; exit 1; }
grep '^target reached' "$folder/goal.log" || { cat "$folder"/*.log >&2; exit 1; }
wait # for the machines, which end with the run

pipeline faults 'env_steps = 5_000_000_000' 1
begin faults
echo 'three machines join'
for i in 2 3 4; do until_status "^rollout.* machine-$i  *running"; done
until_learned 50000
echo 'the cable of one is cut: another one has its instances, and it gets none back when it is mended'
ip -n "$name-0" link set port4 down
until_status 'host machine-4: LOST'
until_status '^rollout\[2\] .*machine-2  *running'
until_learned 50000
ip -n "$name-0" link set port4 up
until_status 'host machine-4: HERE'
echo 'one leaves, and one is killed'
ip netns pids "$name-2" | xargs kill
until_status 'host machine-2: LEFT'
ip netns pids "$name-3" | xargs kill -9
until_status 'host machine-3: LOST'
until_status '^rollout\[0-2\] .*machine-4  *running'
until_learned 50000
echo "SEED=$seed: $kills machines are killed, $partitions cut off, $stops stopped for a while; $restarts times the run is killed and resumed"
# random N: sets r to a number below N.
state=$seed
random() {
    state=$(((state * 1103515245 + 12345) % 2147483648))
    r=$((state / 65536 % $1))
}

# choose: sets change to a random one, as arguments of rlhost.
choose() {
    random 7
    case $r in
    0 | 1 | 2)
        random 3
        change="swap rollout $(echo 'cartpole@1 scalar.wasm rust.wasm' | cut -d ' ' -f $((r + 1)))"
        random 3
        change="$change --at $(echo 'step trajectory episode' | cut -d ' ' -f $((r + 1)))"
        random 2
        change="$change --write --probation ${r}s"
        random 2
        [ "$r" = 0 ] || change="$change --keep-state"
        ;;
    3)
        random 4
        change="reload pipeline.toml --set group.actors.count=$((r + 2))"
        ;;
    4)
        random 3
        change="reload pipeline.toml --set component.rollout.horizon=$((32 << r))"
        ;;
    5) change='rollback rollout' ;;
    6) change='pause rollout' ;;
    esac
}

# makes_change DELAY: makes the change after so many tenths of a second, and notes what rlhost says and its exit code.
makes_change() {
    sleep "0.$1"
    code=0
    # shellcheck disable=SC2086 # the arguments have no blanks
    on 1 "$rlhost" $change >"$folder/change" 2>&1 || code=$?
    echo "$code" >"$folder/code"
}

# ends_change: waits for the change. Either all machines have made it, or none.
ends_change() {
    wait "$changing"
    code=$(cat "$folder/code")
    echo "  $change: $(tail -n 1 "$folder/change") ($code)"
    case "$code $change" in
    '0 pause '*) on 1 "$rlhost" unpause >/dev/null ;;
    *' pause '*) fails 'it cannot be paused' ;;
    '0 '*) grep -q 'nothing has changed\|nothing to change' "$folder/change" || made=$((made + 1)) ;;
    *)
        grep -q 'error\[[A-Z][0-9]*\]' "$folder/change" || fails "a change has failed without a code: $(cat "$folder/change")"
        refused=$((refused + 1))
        ;;
    esac
    for _ in $(seq 300); do
        on 1 "$rlhost" status >"$folder/status" 2>&1 || true
        [ "$(awk '/^rollout/ { print $3, $4, $5 }' "$folder/status" | sort -u | grep -c .)" = 1 ] && grep -q '^rollout.* running ' "$folder/status" && return
        sleep 0.2
    done
    fails 'machines have different versions, or none'
}

# adds_up: checks that each env step that was made is somewhere, and each that was dropped has a reason.
adds_up() {
    for _ in $(seq 50); do
        on 1 "$rlhost" status >"$folder/status" 2>&1 || true
        grep '^env steps' "$folder/status" | tr -d , | awk '{
            for (i = 17; i <= NF; i += 2) why += $i
            exit !($3 == $6 + $9 + $12 && $9 == why + 0)
        }' && return
        sleep 0.2
    done
    fails 'env steps do not add up'
}

# resumes: kills the run and resumes it. Its machines find out by themselves, and join again.
resumes() {
    on 1 "$rlhost" checkpoint >/dev/null
    ip netns pids "$name-1" | xargs kill -9
    wait $train || true
    rm "$token"
    on 1 "$rlhost" train --resume faults >>"$folder/faults.log" 2>&1 &
    train=$!
    for _ in $(seq 300); do [ -s "$token" ] && break; sleep 0.2; done
    for i in 2 3 4; do
        for _ in $(seq 300); do [ -z "$(ip netns pids "$name-$i")" ] && break; sleep 0.2; done
        [ -z "$(ip netns pids "$name-$i")" ] || fails "machine $i still waits for a run that was killed"
        join faults $i
    done
    for i in 2 3 4; do until_status "^host machine-$i: HERE" >/dev/null; done
}

cp "$modules/cartpole-c/cartpole_scalar.wasm" "$folder/scalar.wasm"
cp "$modules/cartpole-rust/cartpole.wasm" "$folder/rust.wasm"
for i in 2 3; do join faults $i; done
made=0 refused=0
while [ $((kills + partitions + stops + restarts)) -gt 0 ]; do
    random $((kills + partitions + stops + restarts))
    fault=$r
    random 3
    i=$((r + 2))
    choose
    random 10
    if [ "$fault" -lt "$restarts" ]; then
        restarts=$((restarts - 1))
        echo 'the run is killed and resumed'
        resumes
        until_learned 20000
        continue
    fi
    makes_change "$r" &
    changing=$!
    fault=$((fault - restarts))
    random 5
    if [ "$fault" -lt "$kills" ]; then
        kills=$((kills - 1))
        echo "machine $i is killed"
        sleep "0.$r"
        ip netns pids "$name-$i" | xargs -r kill -9
        join faults $i
    elif [ "$fault" -lt $((kills + partitions)) ]; then
        partitions=$((partitions - 1))
        echo "machine $i is cut off for $((r + 1)) s"
        ip -n "$name-0" link set "port$i" down
        sleep $((r + 1))
        ip -n "$name-0" link set "port$i" up
    else
        stops=$((stops - 1))
        echo "machine $i stands still for $((r + 1)) s"
        still=$(ip netns pids "$name-$i")
        # shellcheck disable=SC2086
        kill -STOP $still
        sleep $((r + 1))
        # shellcheck disable=SC2086
        kill -CONT $still
    fi
    ends_change
    until_learned 20000
    adds_up
done
grep '^env steps' "$folder/status"
echo "$made changes were made, $refused refused"
events=$folder/runs/faults/0001/events.jsonl
# numbers EVENTS: prints the numbers of the changes by command that have such an event.
numbers() {
    grep '"what":"\(swap\|reload\|scale\|rollback\)"' "$events" | grep "\"event\":\"\($1\)\"" | grep -o '"change":[0-9]*' | sort -u
}
[ "$(numbers 'committed\|rolled_back' | grep -c .)" = "$made" ] || { cat "$events" >&2; fails "events.jsonl has other changes than the $made that were made"; }
numbers begin >"$folder/begun"
numbers 'committed\|rolled_back\|refused' >"$folder/ended"
[ -z "$(comm -23 "$folder/begun" "$folder/ended")" ] || { cat "$events" >&2; fails 'events.jsonl has changes without an end'; }
on 1 "$rlhost" stop >/dev/null
wait # for the run, and for the machines that are left, which end with it
echo 'the run has ended, and its machines with it'
on 1 "$rlhost" eval faults | tee "$folder/eval"
reached=$(sed -n 's/.*return \([0-9]*\)\..*/\1/p' "$folder/eval" | head -n 1)
[ "${reached:-0}" -ge 400 ] || { echo 'it has not learned CartPole' >&2; cat "$folder"/*.log >&2; exit 1; }
