#!/usr/bin/env python3
"""Wall time of the same training from Python and from the command line, in turns, and from Python with a callback for each dataset:

    .venv/bin/python bench/python/train_bench.py [--rounds 3] [--steps 5000000] [ENV]

The command line runs twice in each round: its ratio to itself is the control. A ratio above 1 is in Python's favour."""

import argparse
import statistics
import subprocess
import tempfile
import time

import rlhost
from rlhost.program import environment, program


def shell(use, steps):
    text = f'rlhost = 1\n[run]\nname = "bench"\nstop = {{ env_steps = {steps} }}\n[env.env]\nuse = "{use}"\n[train]\npreset = "general"\nenv = "env"\n'
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([program(), "train", "-"], input=text.encode(), cwd=folder, env=environment(), check=True, capture_output=True)


def python(use, steps, on=None):
    with tempfile.TemporaryDirectory() as folder:
        rlhost.train(use, steps, preset="general", dir=folder, progress=False, on=on)


def timed(train, *args):
    begun = time.perf_counter()
    train(*args)
    return time.perf_counter() - begun


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("env", nargs="?", default="cartpole@1")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=5_000_000)
    args = parser.parse_args()
    ways = {"command line again": (shell,), "Python": (python,), "Python with a callback": (python, lambda metrics: None)}
    ratios = {name: [] for name in ways}
    for _ in range(args.rounds):
        base = timed(shell, args.env, args.steps)
        for name, (train, *on) in ways.items():
            ratios[name].append(base / timed(train, args.env, args.steps, *on))
        print(f"command line {base:.1f} s; " + ", ".join(f"{name} x {r[-1]:.3f}" for name, r in ratios.items()), flush=True)
    for name, r in ratios.items():
        print(f"{name}: x {statistics.median(r):.3f} ({min(r):.3f}-{max(r):.3f})")


if __name__ == "__main__":
    main()
