#!/usr/bin/env python3
"""What the progress of a training costs, as processor time of all its processes: of the command line with its live line on a terminal and with plain
lines in a pipe, and from Python with a bar and without:

    .venv/bin/python bench/python/progress_bench.py [--rounds 3] [--steps 6000000] [ENV]

Processor time is little changed by other work on the machine. Ways take turns. Each is compared with the first way of its kind, which runs twice: its
ratio to itself is the control. A ratio above 1 costs more. What Python's own process takes, the bar and its callbacks, is told apart: it is
more exact than the difference of two trainings."""

import argparse
import os
import pty
import resource
import statistics
import subprocess
import sys
import tempfile
import threading

from rlhost.program import environment, program

PYTHON = """import sys, rlhost
rlhost.train(sys.argv[1], int(sys.argv[2]), preset="general", dir=sys.argv[3], progress=sys.argv[4] == "bar")
import resource
used = resource.getrusage(resource.RUSAGE_SELF)
print("own", used.ru_utime + used.ru_stime)"""


def drain(fd):
    try:
        while os.read(fd, 1 << 16):
            pass
    except OSError:  # the other side is closed
        pass


def shell(use, steps, folder, terminal):
    text = f'rlhost = 1\n[run]\nname = "bench"\nstop = {{ env_steps = {steps} }}\n[env.env]\nuse = "{use}"\n[train]\npreset = "general"\nenv = "env"\n'
    file = os.path.join(folder, "p.toml")
    with open(file, "w") as f:
        f.write(text)
    if not terminal:
        subprocess.run([program(), "train", file], cwd=folder, env=environment(), check=True, capture_output=True)
        return None
    own, theirs = pty.openpty()
    child = subprocess.Popen([program(), "train", file], cwd=folder, env={**environment(), "TERM": "xterm"}, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    reader = threading.Thread(target=drain, args=(own,))
    reader.start()
    if child.wait():
        raise subprocess.CalledProcessError(child.returncode, "rlhost train")
    reader.join()
    os.close(own)
    return None


def python(use, steps, folder, bar):
    done = subprocess.run([sys.executable, "-c", PYTHON, use, str(steps), folder, "bar" if bar else ""], env=environment(), check=True, capture_output=True,
                          text=True)
    return float(done.stdout.split()[-1])


def used(way, *args):
    """Processor time of a training, and of Python's own process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryDirectory() as folder:
        own = way(args[0], args[1], folder, args[2])
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, own


WAYS = {"pipe": (shell, False), "pipe again": (shell, False), "terminal": (shell, True),
        "Python": (python, False), "Python again": (python, False), "Python with a bar": (python, True)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("env", nargs="?", default="cartpole@1")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=6_000_000)
    args = parser.parse_args()
    ratios, owns = {name: [] for name in WAYS}, {name: [] for name in WAYS}
    for _ in range(args.rounds):
        base = 1.0
        for name, (way, shown) in WAYS.items():
            spent, own = used(way, args.env, args.steps, shown)
            if name in ("pipe", "Python"):
                base = spent
            ratios[name].append(spent / base)
            if own is not None:
                owns[name].append(own / spent)
            print(f"{name}: {spent:.1f} s of processor time, x {ratios[name][-1]:.4f}" + (f", Python's own {own:.2f} s" if own is not None else ""), flush=True)
    for name, r in ratios.items():
        share = f"; Python's own process {100 * statistics.median(owns[name]):.2f} %" if owns[name] else ""
        print(f"{name}: x {statistics.median(r):.4f} ({min(r):.4f}-{max(r):.4f}){share}")


if __name__ == "__main__":
    main()
