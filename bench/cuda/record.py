#!/usr/bin/env python3
"""Records what runs on a machine with an NVIDIA GPU, and how fast, as JSON that is tied to the kernels' sources.

Here, where Go is:      make cuda-record          # bin/cuda-record.tar.xz: programs and tests, and the commit that they are of
There, in a copy of the repository where it was unpacked:
                        python3 bench/cuda/record.py [H1 H2 ...]

It needs Python alone. Without names it does six parts, in the order of their value; the others are done where they are named. A part takes 90 s
at most: what runs then is killed with all that it started, and what it had printed is kept. A command that needs what is not there is recorded as
skipped, with the reason. The record goes to bench/cuda/results/DEVICE-DATE.json, or where RLHOST_CUDA_RESULTS says, and is written anew after each
part; `go test ./bench/cuda` holds its form, and bench/cuda/table.py makes docs/results/cuda.md of it. Its exit code is 1 if a part failed.
With --list it prints the parts as JSON.

With RLHOST_CUDA_DRIVER=fake and programs that were built with -tags fakecuda it tries the commands, on less work, where there is no GPU.
"""

import datetime
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import typing

FAKE = os.environ.get("RLHOST_CUDA_DRIVER") == "fake"
LIMIT = float(os.environ.get("RLHOST_CUDA_SECONDS", 90))  # of a part

# Tests run in the folders of their packages, as `go test` has them: some read the sources beside them.
TEST = "env -C gpu/cuda $PWD/bin/cuda.test -test.count 1"
KERNELS = "env -C gpu/cuda/kernels $PWD/bin/kernels.test"
DRIVER = "env -C gpu/cuda/driver $PWD/bin/driver.test"
RUNS = "RLHOST_LONG=1 env -C cmd/rlhost $PWD/bin/rlhost.test -test.v -test.run"
ALL = "-test.run 'TakesAnyNumber|AllocatesNothing|WaitsOnce'" if FAKE else "-test.skip 'CanBeTried|RunsAsOnHardware'"
BENCH = f"{TEST} -test.run XXX -test.benchtime {'1x' if FAKE else '0.3s'} -test.bench"
CALLS = f"{TEST} -test.run XXX -test.benchtime {'1x' if FAKE else '20000x'} -test.bench"
SANITIZE = "compute-sanitizer --error-exitcode 9 --tool"

SMALL = " --set policy.main.net.hidden=[8] --set run.evaluation.episodes=1" if FAKE else ""
TRAIN = f"bin/rlhost train pipeline.toml --json --set run.dir='\"out/runs\"' --set policy.main.backend=cuda{SMALL}"
GOAL = "--set run.stop.env_steps=4096" if FAKE else "--set run.stop.return=475 --set run.stop.env_steps=150000"
BLOCKS = " --set component.rollout.count=1 --set component.rollout.envs=16 --set component.rollout.horizon=8 --set component.batcher.dataset_rows=128 --set component.learner.minibatch=64"
LOAD = f"train bench/cuda/cartpole.toml --json --set run.stop.wall_time='\"{5 if FAKE else 10}s\"'{SMALL}{BLOCKS if FAKE else ''}"
BLOCKWISE = f"bin/rlhost {LOAD} --set run.dir='\"out/runs\"'"
PEER = "--networks 4-64-64 --rows 1024 32768 --seconds 0.3"
TORCH = "python3 -m unittest discover -s examples/plugins/pytorch-learner"


class Part(typing.NamedTuple):
    """One thing that is recorded."""

    what: str
    commands: list
    bar: str  # of the design
    last: dict = {}  # what the last JSON object of each command must say for it to have passed


FIRST = {name: Part(*part) for name, part in {
    "H1": ("driver, device, limits", ["bin/rlhost-cuda probe", "nvidia-smi -q"], ""),
    "H2": ("the tests over NVIDIA's driver: the bits of the processor", [f"{DRIVER} -test.v", f"{KERNELS} -test.v", f"{TEST} -test.v {ALL}"], "all pass"),
    "H3": ("CartPole to 475", [f"{TRAIN} --set run.seed={seed} {GOAL}" for seed in ((1,) if FAKE else (1, 2, 3))], "3 of 3 within 150,000 env steps",
           {"reason": "env_steps" if FAKE else "return"}),
    "H4": ("calls, launches and their ends; acting and learning, 4-64-64", [f"{CALLS} RoundTrip", f"{BENCH} '^BenchmarkAct$/4-64-64'", f"{BENCH} '^BenchmarkUpdate$/4-64-64'"],
           "launch 3.5 us, word 9 us, its p99 30 us; act on 64 rows 12 us, 1,024 rows 14 us, 8,192 rows 22 us; learn 1,024 rows in 25 us, 32,768 rows in 155 us"),
    "H5": ("CartPole in large blocks on the GPU and on the processors, and who is busy in the first", [BLOCKWISE, f"{BLOCKWISE} --set policy.main.backend=cpu",
           f"python3 bench/cuda/busy.py bin/rlhost {LOAD}"], "30 M env steps/s"),
    "H6": ("PyTorch and JAX at the same acting and learning", [f"python3 bench/cuda/peer_torch.py {PEER} --ways torch-eager torch-graph", f"python3 bench/cuda/peer_jax.py {PEER}"],
           "H4 acts 2.5 times as fast as torch-graph and 10 times as torch-eager, and learns 3 and 2 times as fast as torch-graph and jax-jit"),
}.items()}

NAMED = {name: Part(*part) for name, part in {
    "H7": ("all that backends promise, for every network", [f"RLHOST_LONG=1 {TEST} -test.v -test.run 'TestBackend$'"], "all pass"),
    "H8": ("memory and race checkers", [f"{SANITIZE} {tool} {TEST} -test.v -test.run TakesAnyNumber" for tool in ("memcheck", "racecheck")], "0 errors"),
    "H9": ("what the device does at most, registration of blocks, assembling the kernels",
           [f"{BENCH} Ceiling", f"{BENCH} Register", f"{DRIVER} -test.run XXX -test.bench RegisterReadOnly", f"CUDA_CACHE_DISABLE=1 {BENCH} Load", f"{BENCH} Load"],
           "40 GB/s each way; 0.5 s/GiB; 1.5 s, then 0.1 s"),
    "H10": ("acting beside a learner that never rests; wide networks", [f"{BENCH} BusyAct", f"{BENCH} '^BenchmarkAct$/(118-128|64-512-sh)'", f"{BENCH} '^BenchmarkUpdate$/(118-128|64-512-sh)'"],
            "busy 3 times as long as H4; a quarter of H9's multiply-adds"),
    "H11": ("kills: the run goes on, and a dead process's device writes nothing", [f"RLHOST_LONG=1 {TEST} -test.v -test.run Death", f"{RUNS} TestCUDA_Kills"], "every run goes on; 0 writes"),
    "H12": ("swaps, scales and rollbacks under load", [f"{RUNS} TestCUDA_Swaps"], "no fault"),
    "H13": ("hashes: inference on the GPU and learner on the processor as without a GPU; all on the GPU twice", [f"{RUNS} TestCUDA_Inference"], "equal"),
    "H14": ("10,000 weights, 1,000 arenas that come and go", [f"RLHOST_LONG=1 {TEST} -test.v -test.run TestEndure"], "memory flat"),
    "H15": ("the learner in PyTorch, on the GPU", [f"{TORCH} -k on_a_gpu"], "all pass"),
}.items()}

PARTS = FIRST | NAMED
MISSING = 77  # exit code of a command that says that what it needs is not there


def sources():
    """The hashes that the PTX which is tested says it is made from, by module."""
    found = {}
    for path in sorted(glob.glob("gpu/cuda/kernels/*.ptx")):
        with open(path, encoding="utf-8") as text:
            found[os.path.basename(path)[:-4]] = re.search(r"sources sha256:([0-9a-f]{64})", text.read(400)).group(1)
    return found


def said(command):
    """The output of a command, or nothing."""
    try:
        return subprocess.run(command, shell=True, capture_output=True, text=True, timeout=60).stdout.strip()
    except subprocess.TimeoutExpired:
        return ""


def commit():
    """That which programs and tests were built from, else that of the sources."""
    try:
        with open("bin/commit", encoding="ascii") as text:
            return text.read().strip()
    except OSError:
        return said("git rev-parse HEAD")


def missing(command):
    """What a command needs and the machine lacks."""
    for word in re.sub(r"\benv -C \S+ \$PWD/", "", command).split():
        if "=" in word.split("/")[0]:
            continue
        return "" if shutil.which(word) else word


def figures(text):
    """The benchmarks of Go in an output: name to {unit: number}."""
    found = {}
    for line in text.splitlines():
        if m := re.match(r"Benchmark(\S+)\s+\d+\s+(.*)", line):
            values = m.group(2).split()
            found[m.group(1)] = {unit: float(number) for number, unit in zip(values[::2], values[1::2])}
    return found


def tests(text):
    """The outcomes of Go's tests in an output: those of subtests only where they are not the whole's."""
    found = {}
    for outcome, name in re.findall(r"^ *--- (PASS|FAIL|SKIP): (\S+)", text, re.MULTILINE):
        found[name] = {"PASS": "passed", "FAIL": "failed", "SKIP": "skipped"}[outcome]
    return {name: outcome for name, outcome in found.items() if "/" not in name or outcome != found.get(name.split("/")[0])}


def last(text):
    """The last line of an output that is a JSON object: what programs say at their end."""
    for line in reversed(text.splitlines()):
        if line.startswith("{"):
            try:
                return json.loads(line)
            except ValueError:
                continue
    return None


def end(group):
    """Ends all that a command has started, and does not wait for what the driver holds."""
    for by, pause in ((signal.SIGTERM, 1), (signal.SIGKILL, 0.5)):
        try:
            os.killpg(group, by)
        except ProcessLookupError:
            return
        time.sleep(pause)


def output(command, seconds):
    """The exit code of a command, 124 if it took longer, and what it printed until then."""
    with tempfile.TemporaryFile() as printed:
        p = subprocess.Popen(command, shell=True, stdin=subprocess.DEVNULL, stdout=printed, stderr=subprocess.STDOUT, start_new_session=True,
                             env={"RLHOST_CUDA_DRIVER": "libcuda.so.1", **os.environ})
        try:
            code = p.wait(seconds)
        except subprocess.TimeoutExpired:
            code = 124
        finally:
            end(p.pid)
        printed.seek(0)
        return code, printed.read().decode(errors="replace")


def run(command, wants, seconds):
    """One command with its outcome; wants is what the last JSON object that it prints must say."""
    if lacks := missing(command):
        return {"command": command, "outcome": "skipped", "why": f"{lacks} is not there"}
    if seconds <= 0:
        return {"command": command, "outcome": "skipped", "why": "the part's time was used up"}
    begin = time.monotonic()
    code, out = output(command, seconds)
    if code == MISSING:
        return {"command": command, "outcome": "skipped", "why": out.strip()[-200:]}
    done = {"command": command, "outcome": "failed", "code": code, "seconds": round(time.monotonic() - begin, 3), "figures": figures(out), "tests": tests(out),
            "last": last(out), "end": out[-8000:]}
    if code == 124:
        done["why"] = f"longer than {seconds:.0f} s"
    elif code == 0 and all((done["last"] or {}).get(key) == value for key, value in wants.items()):
        done["outcome"], done["end"] = "passed", out[-2000:]
    return done


def do(part):
    """A part with its outcome: the worst of its commands."""
    until = time.monotonic() + LIMIT
    runs = [run(c, part.last, until - time.monotonic()) for c in part.commands]
    worst = next((o for o in ("failed", "skipped") if any(r["outcome"] == o for r in runs)), "passed")
    return {"what": part.what, "bar": part.bar, "outcome": worst, "runs": runs}


def save(record, path):
    """Replaces the record by a newer one."""
    with open(path + ".new", "w", encoding="utf-8") as to:
        json.dump(record, to, indent=1)
        to.write("\n")
    os.replace(path + ".new", path)


def main(names):
    if names == ["--list"]:
        print(json.dumps({name: {**part._asdict(), "first": name in FIRST} for name, part in PARTS.items()}))
        return 0
    if unknown := [n for n in names if n not in PARTS]:
        sys.exit(f"no parts {', '.join(unknown)}: there are {', '.join(PARTS)}")
    now = datetime.datetime.now(datetime.timezone.utc)
    record = {
        "kernels": sources(), "commit": commit(), "date": now.isoformat(timespec="seconds"),
        "device": said("nvidia-smi --query-gpu=name --format=csv,noheader | head -1") or "none",
        "driver": said("nvidia-smi --query-gpu=driver_version --format=csv,noheader | head -1"), "cpu": said("nproc"), "parts": {},
    }
    folder = os.environ.get("RLHOST_CUDA_RESULTS", "bench/cuda/results")
    os.makedirs(folder, exist_ok=True)
    path = f"{folder}/{re.sub(r'[^A-Za-z0-9]+', '-', record['device'])}-{now:%Y-%m-%d-%H%M%S}.json"
    for name in names or FIRST:
        done = record["parts"][name] = do(PARTS[name])
        save(record, path)
        print(f"{name}: {done['what']}: {done['outcome']}", flush=True)
    print(path)
    return 1 if any(part["outcome"] == "failed" for part in record["parts"].values()) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
