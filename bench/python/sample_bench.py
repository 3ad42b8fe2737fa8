#!/usr/bin/env python3
"""How fast trajectories come: rlhost.sample in Python, which reads every array, and rlhost.Sample in Go, beside `rlhost bench` through the bus:

    make build && .venv/bin/python bench/python/sample_bench.py [--rounds 5] [--seconds 2] [ENVS...]

Ways take turns; each is divided by the bus of its round, and the bus once more is the control. All take random actions."""

import argparse
import json
import pathlib
import re
import statistics
import subprocess
import time

import rlhost
from rlhost.program import program

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROWS = 64


def bus(envs, seconds):
    """Env steps a second of rlhost bench, through the bus."""
    out = subprocess.run([program(), "bench", "cartpole@1", "--json", "--seconds", str(seconds), "--envs", str(envs), "--horizon", str(ROWS)],
                         check=True, capture_output=True, text=True).stdout
    [figure] = [f for f in json.loads(out)["figures"] if "bus" in f["name"]]
    return figure["median_env_steps_per_s"]


def python(envs, seconds):
    steps, began = 0, None
    with rlhost.sample("random", "cartpole@1", rows=ROWS, envs=envs) as batches:
        for batch in batches:
            began = began or time.perf_counter()
            for array in batch.obs, batch.action, batch.log_prob, batch.value, batch.reward, batch.terminated, batch.truncated:
                array.sum()
            steps += batch.reward.size
            if (took := time.perf_counter() - began) > seconds:
                return steps / took


def go(envs, seconds):
    out = subprocess.run(["go", "test", "-run", "^$", "-bench", f"^BenchmarkSample/envs={envs}$", "-benchtime", f"{seconds}s", "."], cwd=ROOT, check=True,
                         capture_output=True, text=True).stdout
    return float(re.search(r"([0-9.]+) envsteps/s", out)[1])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("envs", nargs="*", type=int, default=[64, 1024])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=2)
    given = parser.parse_args()
    ways = {"Go": go, "Python": python, "control": bus}
    for envs in given.envs:
        ratios = {name: [] for name in ways}
        for _ in range(given.rounds):
            base = bus(envs, given.seconds)
            for name, way in ways.items():
                ratios[name].append(way(envs, given.seconds) / base)
        print(f"{envs} environments, bus {base / 1e6:.1f} M env steps/s: " + ", ".join(
            f"{name} {statistics.median(list):.2f} ({min(list):.2f} to {max(list):.2f})" for name, list in ratios.items()))


if __name__ == "__main__":
    main()
