#!/usr/bin/env python3
"""Compares Go benchmarks of two commits: bench/against.py [--rounds N] [--time T] [--rename OLD=NEW]… BASE PACKAGE[:PATTERN]…

PACKAGE is a folder of this repository, or OLD=NEW if it has moved since BASE. Each round runs the benchmarks of BASE, of the working
tree, and of BASE once more as a control, in alternating order and pinned to one processor (--cores 0,1 for benchmarks of several loops).
It prints the time of each benchmark, the ratio of the working tree's to BASE's and the control's to BASE's: median, least and most of
the rounds. A ratio that is not further from 1 than the control's says nothing. Where a benchmark reports its best time, that one counts.
Names that BASE knows otherwise are changed by --rename, a regular expression and what takes its place.
"""

import argparse
import collections
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
LINE = re.compile(r"^(Benchmark\S+?)(?:-\d+)?\s+\d+\s+(.*)$", re.MULTILINE)
VALUE = re.compile(r"([\d.e+]+) (\S+)")


def build(tree, package, to):
    """Builds the tests of a package."""
    env = os.environ | {"CGO_ENABLED": "0"}
    subprocess.run(["go", "test", "-c", "-trimpath", "-o", to, "./" + package], cwd=tree, env=env, check=True)


def measure(tree, package, program, pattern, options):
    """Runs benchmarks once and returns name -> time."""
    command = ["taskset", "-c", options.cores, program, "-test.run", "^$", "-test.bench", pattern, "-test.benchtime", options.time]
    run = subprocess.run(command, cwd=tree / package, capture_output=True, text=True)
    if run.returncode:
        sys.exit(f"{package} at {tree}:\n{run.stdout[-2000:]}{run.stderr[-2000:]}")
    times = {}
    for name, figures in LINE.findall(run.stdout):
        figures = {unit: float(value) for value, unit in VALUE.findall(figures)}
        times[name] = next((v for unit, v in figures.items() if unit.startswith(("best", "pause-p50"))), figures.get("ns/op"))
    return times


def compare(base, old, new, pattern, options, work):
    """Prints a line for each benchmark of a package that both have."""
    programs = {"base": (base, old, work / "base.test"), "tree": (ROOT, new, work / "tree.test")}
    for tree, package, program in programs.values():
        build(tree, package, program)
    programs["control"] = programs["base"]
    rows = collections.defaultdict(lambda: collections.defaultdict(list))
    for k in range(options.rounds):
        for side in ("base", "tree", "control")[:: 1 if k % 2 == 0 else -1]:
            for name, time in measure(*programs[side], pattern, options).items():
                for rename in options.rename if side != "tree" else []:
                    name = re.sub(*rename.split("=", 1), name)
                rows[name][side].append(time)
    for name, row in rows.items():
        if len(row) == 3:
            base_time = statistics.median(row["base"])
            print(f"{new} {name}: {base_time:.4g} -> {statistics.median(row['tree']):.4g}, ratio {ratio(row, 'tree')}, control {ratio(row, 'control')}", flush=True)


def ratio(row, side):
    all_of = [a / b for a, b in zip(row[side], row["base"])]
    return f"{statistics.median(all_of):.3f} ({min(all_of):.3f}-{max(all_of):.3f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--time", default="0.2s")
    parser.add_argument("--cores", default="1")
    parser.add_argument("--rename", action="append", default=[], metavar="OLD=NEW")
    parser.add_argument("base")
    parser.add_argument("packages", nargs="+", metavar="PACKAGE[:PATTERN]")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        work = pathlib.Path(work)
        subprocess.run(["git", "worktree", "add", "--quiet", "--detach", work / "base", options.base], cwd=ROOT, check=True)
        try:
            for spec in options.packages:
                package, _, pattern = spec.partition(":")
                old, _, new = package.partition("=")
                compare(work / "base", old, new or old, pattern or ".", options, work)
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", work / "base"], cwd=ROOT, check=True)


if __name__ == "__main__":
    main()
