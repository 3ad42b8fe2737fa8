#!/usr/bin/env python3
"""How busy the processes of environments are whose steps take 1 ms and an exponential rest of 4 ms, 20 ms at most:

    .venv/bin/python bench/python/uneven_bench.py [--seconds 15] [--rounds 1] [CASE...]

A case is sync or async with splits x workers x threads of a training with 16 environments, such as async:2x1x1, or lock or alone with
workers x threads and, for alone, a batch size of rlhost.make_vec, such as alone:2x1x4. Busy is the share of the time between the first and the
last step that a process is in a step, summed over its threads. The first lines are what two processes of 8 environments can reach:
if each batch waits for the slower one, and if only each 64 or 128 rows do."""

import argparse
import collections
import glob
import os
import random
import statistics
import tempfile
import time

import gymnasium
import numpy

import rlhost

ENVS = 16
CASES = ["sync:1x2x1", "sync:1x1x2", "sync:2x1x1", "async:1x2x1", "async:2x1x1", "async:4x1x1", "lock:2x1", "lock:1x2", "alone:2x1x4", "alone:2x1x8"]


def drawn(rng):
    return 0.001 + min(rng.expovariate(250), 0.019)


class Uneven(gymnasium.Env):
    """Sleeps in its steps. Each process adds up what it sleeps, in a file of the folder."""

    observation_space = gymnasium.spaces.Box(-1, 1, (4,), numpy.float32)
    action_space = gymnasium.spaces.Discrete(2)
    busy, first, noted = 0.0, None, 0.0

    def __init__(self, folder):
        self.folder, self.rng = folder, random.Random()

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        if seed is not None:
            self.rng.seed(seed)
        return numpy.zeros(4, numpy.float32), {}

    def step(self, action):
        begun = time.monotonic()
        if Uneven.first is None:
            Uneven.first = begun
        time.sleep(drawn(self.rng))
        now = time.monotonic()
        Uneven.busy += now - begun
        self.steps += 1
        if now > Uneven.noted + 0.1:
            Uneven.noted = now
            with open(os.path.join(self.folder, str(os.getpid())), "w") as f:
                f.write(f"{Uneven.first} {now} {Uneven.busy}")
        return numpy.zeros(4, numpy.float32), 1.0, False, self.steps == 200, {}


def floor(rows, rng=random.Random(1)):
    """The busy share of two processes of 8 environments that wait for each other after so many rows."""
    sums = [[sum(drawn(rng) for _ in range(8 * rows)) for _ in range(2)] for _ in range(4000 // rows)]
    return sum(map(sum, sums)) / (2 * sum(map(max, sums)))


def train(mode, seconds, folder, splits, workers, threads):
    run = rlhost.train(Uneven, 10**9, preset="general", envs=ENVS, workers=workers, args={"folder": folder}, dir=folder + "/runs", progress=False,
                       stop={"wall_time": f"{seconds:.0f}s"}, keys={"train.mode": mode, "component.rollout.splits": splits, "env.env.threads": threads,
                                                               "run.evaluation.episodes": 1})
    return run.env_steps / seconds


def vector(seconds, folder, workers, threads, batch=None):
    venv = rlhost.make_vec(Uneven, ENVS, workers=workers, threads=threads, batch_size=batch, args={"folder": folder})
    venv.reset(seed=1)
    made, begun = 0, time.monotonic()
    if batch:
        venv.send(numpy.zeros(ENVS, int))
    while time.monotonic() - begun < seconds:
        if batch:
            ids = venv.recv()[4]["env_id"]
            venv.send(numpy.zeros(batch, int), ids)
            made += batch
        else:
            venv.step(numpy.zeros(ENVS, int))
            made += ENVS
    venv.close()
    return made / seconds


def measure(case, seconds):
    """Env steps/s, and the busy share of each process that was much in steps."""
    kind, _, numbers = case.partition(":")
    numbers = [int(n) for n in numbers.split("x")]
    with tempfile.TemporaryDirectory() as folder:
        rate = train(kind, seconds, folder, *numbers) if kind in ("sync", "async") else vector(seconds, folder, *numbers)
        told = [[float(x) for x in open(file).read().split()] for file in glob.glob(folder + "/[0-9]*") if os.path.isfile(file)]
    return rate, sorted(busy / (last - first) for first, last, busy in told if last - first > seconds / 2)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("case", nargs="*", default=CASES)
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--rounds", type=int, default=1)
    args = parser.parse_args()
    for rows in 1, 64, 128:
        print(f"two processes that wait for each other after {rows} rows: {floor(rows):.3f} busy at most")
    results = collections.defaultdict(list)
    for _ in range(args.rounds):
        for case in args.case:
            rate, busy = measure(case, args.seconds)
            results[case].append((rate, busy))
            print(f"{case}: {rate:.0f} env steps/s, busy {', '.join(f'{b:.3f}' for b in busy)}", flush=True)
    for case, rounds in results.items():
        means = [statistics.mean(busy) for _, busy in rounds if busy]
        print(f"{case}: {statistics.median(rate for rate, _ in rounds):.0f} env steps/s, mean busy {statistics.median(means):.3f}")


if __name__ == "__main__":
    main()
