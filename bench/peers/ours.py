"""Runs rlhost and its Go benchmarks and reads what they print."""

import functools
import json
import os
import pathlib
import re
import subprocess
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
CACHE = ROOT / ".cache" / "peers"
RLHOST = CACHE / "bin" / "rlhost"  # of its own: a build in the meantime changes nothing
CORE = str(max(os.sched_getaffinity(0)))  # interrupts like the first
TIMEOUT = 900


class Failed(Exception):
    """A program that was to be measured ended with an error."""


def pinned(command, one_core):
    return ["taskset", "-c", CORE, *command] if one_core else command


def output(command, one_core=False, cwd=ROOT, **env):
    """Runs a command and returns what it printed."""
    command = pinned([str(c) for c in command], one_core)
    done = subprocess.run(command, cwd=cwd, env={**os.environ, **env}, capture_output=True, text=True, timeout=TIMEOUT)
    if done.returncode != 0:
        raise Failed(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout[-500:]}{done.stderr[-2000:]}")
    return done.stdout


def train(pipeline, *sets, one_core=False):
    """Trains and returns, beside what the last line says, the seconds from the start of the process to the line that
    tells that the goal is reached, the learning phase without start-up, and env steps/s in it."""
    with tempfile.TemporaryDirectory(prefix="rlhost-") as folder:
        command = [str(RLHOST), "train", str(ROOT / pipeline), "--json", "--set", f"run.dir={folder}"]
        for s in sets:
            command += ["--set", s]
        began = time.perf_counter()
        with open(f"{folder}/stderr", "w+") as error:
            p = subprocess.Popen(pinned(command, one_core), stdout=subprocess.PIPE, stderr=error, text=True)
            deadline = threading.Timer(TIMEOUT, p.kill)
            deadline.start()
            progress, end, arrived = follow(p.stdout)
            code = p.wait()
            deadline.cancel()
            if code != 0 or end is None or progress is None:
                error.seek(0)
                raise Failed(f"{' '.join(command)} ended with {code}:\n{error.read()[-2000:]}")
        whole = time.perf_counter() - began
    return {
        "reached": end["reason"] == "return", "env_steps": end["env_steps"], "wall_seconds": arrived - began,
        "learn_seconds": progress["wall_seconds"], "env_steps_per_s": progress["env_steps"] / progress["wall_seconds"],
        "process_seconds": whole, "mean_return": end["train_return"], "eval_return": end["eval_return"],
        "kernels": end["kernels"], "params_hash": end["params_hash"],
    }


def follow(lines):
    """Reads the lines of a training: returns the last progress and the end, and when the former came."""
    progress, end, arrived = None, None, 0.0
    for line in lines:
        event = json.loads(line)
        if event["event"] == "progress":
            progress, arrived = event, time.perf_counter()
        elif event["event"] == "end":
            end = event
    return progress, end, arrived


def bench_env(env, envs, seconds, *more):
    """Env steps/s on one core, best of ten rounds, by way of stepping: alone, through the bus, native Go."""
    text = output([RLHOST, "bench", env, "--envs", envs, "--json", "--seconds", seconds, *more], one_core=True)
    return {f["name"]: f["best_env_steps_per_s"] for f in json.loads(text)["figures"]}


@functools.cache
def test_program(package):
    """Builds the test program of a package, once in a run."""
    binary = CACHE / "bin" / (package.replace("/", "-") + ".test")
    output(["go", "test", "-c", "-o", binary, "./" + package])
    return binary


LINE = re.compile(r"^Benchmark(\S+?)(?:-\d+)?\s+\d+\s+(.*)$", re.MULTILINE)


def go_bench(package, pattern, seconds, one_core=True):
    """Runs benchmarks and returns {name: {unit: value}}."""
    command = [test_program(package), "-test.run", "^$", "-test.bench", pattern, "-test.benchtime", f"{seconds}s", "-test.benchmem"]
    env = {"GOMAXPROCS": "1"} if one_core else {}
    figures = {}
    for name, rest in LINE.findall(output(command, one_core, cwd=ROOT / package, **env)):
        fields = rest.split()
        figures[name] = {unit: float(value) for value, unit in zip(fields[::2], fields[1::2])}
    if not figures:
        raise Failed(f"{package} has no benchmark {pattern}")
    return figures
