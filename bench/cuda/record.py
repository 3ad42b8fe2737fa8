#!/usr/bin/env python3
"""Records what runs on a machine with an NVIDIA GPU, and how fast, as JSON that is tied to the kernels' sources.

Here, where Go is:      make cuda-record          # bin/cuda-record.tar.gz: the repository with programs and tests in bin/
There, where it was unpacked:
                        python3 bench/cuda/record.py [H1 H2 ...]

It needs Python alone. Without names it does everything: a part whose command needs what is not there is recorded as skipped, with the reason.
What needs something of rlhost that is not built yet says what, as "needs", and has the commands that there are. The record goes to
bench/cuda/results/DEVICE-DATE.json, or where RLHOST_CUDA_RESULTS says; `go test ./bench/cuda` holds its form, and bench/cuda/table.py makes
docs/benchmarks-cuda.md of it. Its exit code is 1 if a part failed. With --list it prints the parts as JSON.

With RLHOST_CUDA_DRIVER=fake and programs that were built with -tags fakecuda it tries the commands where there is no GPU.
"""

import datetime
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import typing

TEST = "bin/cuda.test -test.v -test.count 1"
BENCH = "bin/cuda.test -test.run XXX -test.benchtime 2s -test.bench"
LONG = "RLHOST_LONG=1"
TRAIN = "bin/rlhost train pipeline.toml --json --set run.dir='\"out/runs\"' --set policy.main.backend=cuda"
SANITIZE = "compute-sanitizer --error-exitcode 9 --tool"

LOAD = "train bench/cuda/cartpole.toml --json"
TWENTY = f"bin/rlhost {LOAD} --set run.dir='\"out/runs\"'"
TORCH = "python3 -m unittest discover -s examples/plugins/pytorch-learner"
MILESTONE_4 = "milestone 4 of the backend (memory that mirrors blocks, resident kernels, graphs, inference and learner in one process)"


class Part(typing.NamedTuple):
    """One thing that is recorded."""

    what: str
    commands: list
    bar: str  # of the design
    needs: str = ""  # what is not built yet
    last: dict = {}  # what the last JSON object of each command must say for it to have passed


PARTS = {name: Part(*part) for name, part in {
    "H1": ("driver, device, limits", ["bin/rlhost-cuda probe", "nvidia-smi -q"], ""),
    "H2": ("all tests over NVIDIA's driver: the bits of the processor",
           ["bin/driver.test -test.v", "bin/kernels.test -test.v", TEST, f"{LONG} {TEST} -test.run 'TestBackend$' -test.timeout 8m"], "all pass"),
    "H3": ("memory and race checkers",
           [f"{SANITIZE} {tool} {TEST} -test.run 'HasTheProcessorsBits|SameOnEveryDevice'" for tool in ("memcheck", "racecheck")], "0 errors"),
    "H4": ("what the device does at most: multiply-adds, copies within it and over the bus, there, back and at once", [f"{BENCH} Ceiling"], "40 GB/s each way"),
    "H5": ("registration of blocks, and of a mapping that can only be read",
           [f"{BENCH} Register", "bin/driver.test -test.run XXX -test.bench RegisterReadOnly"], "0.5 s/GiB"),
    "H6": ("a call, a launch, its end, and its word in the host's memory: 100,000 of each",
           ["bin/cuda.test -test.run XXX -test.benchtime 100000x -test.bench RoundTrip"], "launch 3.5 us, word 9 us, its p99 30 us"),
    "H7": ("acting, also beside a learner that never rests", [f"{BENCH} Act"],
           "4-64-64: 64 rows 12 us, 1,024 rows 14 us, 8,192 rows 22 us; busy 3 times as long"),
    "H8": ("assembling the kernels", [f"CUDA_CACHE_DISABLE=1 {BENCH} Load", f"{BENCH} Load"], "1.5 s, then 0.1 s"),
    "H9": ("learning", [f"{BENCH} Update"], "4-64-64: 1,024 rows 25 us, 32,768 rows 155 us; a quarter of H4's multiply-adds"),
    "H10": ("mirror, graphs and resident kernels on and off", [], "recorded", MILESTONE_4),
    "H11": ("PyTorch and JAX at the same acting and learning", [f"python3 bench/cuda/peer_{name}.py" for name in ("torch", "jax")],
            "H7 2.5 times as fast as torch-graph and 10 times as torch-eager; H9 3, 2 and 1.5 times as fast as torch-graph and jax-jit"),
    "H12": ("CartPole in large blocks, three seeds, 20 s each", [f"{TWENTY} --set run.seed={seed}" for seed in (1, 2, 3)], "30 M env steps/s",
            "an environment of 118 numbers in C and bf16, for the other two tasks of the design"),
    "H13": ("one process against two, which MPS has share the device",
            [TWENTY, f"nvidia-cuda-mps-control -d && {{ {TWENTY}; code=$?; echo quit | nvidia-cuda-mps-control; exit $code; }}"], "1.5 times", MILESTONE_4),
    "H14": ("kills: the run goes on, and a dead process's device writes nothing",
            [f"{LONG} bin/rlhost.test -test.v -test.run TestCUDA_Kills -test.timeout 8m", f"{LONG} {TEST} -test.run Death"], "every run goes on; 0 writes"),
    "H15": ("swaps, scales and rollbacks under load", [f"{LONG} bin/rlhost.test -test.v -test.run TestCUDA_Swaps -test.timeout 8m"], "no fault"),
    "H16": ("hashes: inference on the GPU and learner on the processor as without a GPU; all on the GPU twice",
            ["bin/rlhost.test -test.v -test.run TestCUDA_Inference"], "equal"),
    "H17": ("CartPole to 475", [f"{TRAIN} --set run.seed={seed} --set run.stop.return=475 --set run.stop.env_steps=150000" for seed in range(1, 11)],
            "10 of 10 within 150,000 env steps", "", {"reason": "return"}),
    "H18": ("who is busy in H12", [f"python3 bench/cuda/busy.py bin/rlhost {LOAD}"], "recorded"),
    "H19": ("10,000 weights, 1,000 arenas that come and go", [f"{LONG} {TEST} -test.run TestEndure -test.timeout 8m"], "memory flat"),
    "H20": ("the learner in PyTorch, on the GPU", [f"{TORCH} -k on_a_gpu"], "all pass"),
}.items()}

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


def missing(command):
    """What a command needs and the machine lacks."""
    for word in command.split():
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


def run(command, wants):
    """One command with its outcome; wants is what the last JSON object that it prints must say."""
    if lacks := missing(command):
        return {"command": command, "outcome": "skipped", "why": f"{lacks} is not there"}
    begin = datetime.datetime.now()
    try:
        p = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=570,
                           env={"RLHOST_CUDA_DRIVER": "libcuda.so.1", **os.environ})
        code, out = p.returncode, p.stdout + p.stderr
    except subprocess.TimeoutExpired:
        code, out = 124, "longer than 570 s"
    if code == MISSING:
        return {"command": command, "outcome": "skipped", "why": out.strip()[-200:]}
    said = last(out)
    passed = code == 0 and all((said or {}).get(key) == value for key, value in wants.items())
    return {"command": command, "outcome": "passed" if passed else "failed", "code": code,
            "seconds": round((datetime.datetime.now() - begin).total_seconds(), 3), "figures": figures(out), "tests": tests(out), "last": said,
            "end": out[-2000:]}


def outcome(part, runs):
    """That of a part: the worst of its commands."""
    return next((o for o in ("failed", "skipped") if any(r["outcome"] == o for r in runs)), "passed" if runs else "needs " + part.needs)


def main(names):
    if names == ["--list"]:
        print(json.dumps({name: part._asdict() for name, part in PARTS.items()}))
        return 0
    if unknown := [n for n in names if n not in PARTS]:
        sys.exit(f"no parts {', '.join(unknown)}: there are {', '.join(PARTS)}")
    now = datetime.datetime.now(datetime.timezone.utc)
    record = {
        "kernels": sources(), "commit": said("git rev-parse HEAD"), "date": now.isoformat(timespec="seconds"),
        "device": said("nvidia-smi --query-gpu=name --format=csv,noheader | head -1") or "none",
        "driver": said("nvidia-smi --query-gpu=driver_version --format=csv,noheader | head -1"), "cpu": said("nproc"), "parts": {},
    }
    failed = False
    for name in names or PARTS:
        part = PARTS[name]
        runs = [run(c, part.last) for c in part.commands]
        done = record["parts"][name] = {"what": part.what, "bar": part.bar, "needs": part.needs, "outcome": outcome(part, runs), "runs": runs}
        failed |= done["outcome"] == "failed"
        print(f"{name}: {part.what}: {done['outcome']}", flush=True)
    folder = os.environ.get("RLHOST_CUDA_RESULTS", "bench/cuda/results")
    os.makedirs(folder, exist_ok=True)
    path = f"{folder}/{re.sub(r'[^A-Za-z0-9]+', '-', record['device'])}-{now:%Y-%m-%d-%H%M%S}.json"
    with open(path, "w", encoding="utf-8") as to:
        json.dump(record, to, indent=1)
        to.write("\n")
    print(path)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
