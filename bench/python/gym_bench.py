#!/usr/bin/env python3
"""Env steps/s of rlhost.make_vec, beside gymnasium.vector's AsyncVectorEnv (one process for each environment), SyncVectorEnv (all in
this process) and the vectorised CartPole of Gymnasium, and EnvPool (threads and C++, as many as it picks) where it is installed
and has the environment. All have as many environments, get the same actions ready made, have every array read, and take turns:

    .venv/bin/python bench/python/gym_bench.py [--seconds 2] [--rounds 3] [--cases 1x1,2x64] [--peers SyncVectorEnv] [--busy 2] [ENV...]

ENV is an id of Gymnasium, or ID=OURS where rlhost steps another environment of the same task, such as CartPole-v1=cartpole@1. The first
case is stepped by rlhost twice: its ratio to itself is the control. --busy keeps as many processors busy beside it. The last lines are
the geometric means over the environments. EnvPool needs packages of assets, which pip installs with
it; a virtual environment of its own keeps .venv as it is:

    python3 -m venv pool && pool/bin/pip install envpool ./sdk/python && pool/bin/python bench/python/gym_bench.py"""

import argparse
import collections
import multiprocessing
import statistics
import time

import gymnasium
import numpy

import rlhost

STEPS = 64
SAME_STEP = {"autoreset_mode": gymnasium.vector.AutoresetMode.SAME_STEP}  # as ours


def asynchronous(use, envs):
    return gymnasium.vector.AsyncVectorEnv([lambda: gymnasium.make(use)] * envs, **SAME_STEP) if envs <= 128 else None


def synchronous(use, envs):
    return gymnasium.vector.SyncVectorEnv([lambda: gymnasium.make(use)] * envs, **SAME_STEP)


def vectorised(use, envs):
    """None where Gymnasium has no vectorised form of the environment."""
    if gymnasium.spec(use).vector_entry_point is None:
        return None
    return gymnasium.make_vec(use, envs, vectorization_mode="vector_entry_point")


def pool(use, envs):
    """None where EnvPool is not installed or does not have the environment."""
    try:
        import envpool
    except ImportError:
        return None
    return envpool.make_gymnasium(use, num_envs=envs) if use in envpool.list_all_envs() else None


PEERS = {"rlhost again": None, "AsyncVectorEnv": asynchronous, "SyncVectorEnv": synchronous, "vectorised": vectorised, "EnvPool": pool}


def spin():
    while True:
        pass


def rate(vector, seconds):
    """Env steps/s of a vector environment; nan where there is none."""
    if vector is None:
        return float("nan")
    try:
        envs = len(vector.reset()[0])
        space = getattr(vector, "single_action_space", None) or vector.action_space
        rng = numpy.random.default_rng(1)
        shape = (STEPS, envs, *space.shape)
        actions = rng.integers(0, space.n, shape) if hasattr(space, "n") else rng.uniform(-1, 1, shape).astype("f4")
        begun, played = None, 0
        while begun is None or time.perf_counter() - begun < seconds:
            for row in actions:
                for read in vector.step(row)[:4]:
                    read.max()
            if begun is None:
                begun = time.perf_counter()
            else:
                played += 1
        return played * STEPS * envs / (time.perf_counter() - begun)
    finally:
        vector.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("env", nargs="*", default=["CartPole-v1", "Acrobot-v1", "CartPole-v1=cartpole@1"])
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cases", default="1x1,2x1,2x8,1x64,2x64", help="workers x environments of each")
    parser.add_argument("--copy", action="store_true", help="let rlhost copy its arrays, as is its default")
    parser.add_argument("--peers", default=",".join(PEERS), help="those to compare with, separated by commas")
    parser.add_argument("--busy", type=int, default=0, help="loops that run beside it")
    args = parser.parse_args()
    loops = [multiprocessing.get_context("spawn").Process(target=spin, daemon=True) for _ in range(args.busy)]
    for loop in loops:
        loop.start()
    print("env, workers x envs: rlhost env steps/s; of each peer its own, and the median ratio of rounds (least-most)")
    medians = collections.defaultdict(list)
    for both in args.env:
        use, _, own = both.partition("=")
        own = own or use
        for case in args.cases.split(","):
            compare(use, own, case, args, medians)
    for (case, name), ratios in medians.items():
        print(f"{case} to {name}: geometric mean x {statistics.geometric_mean(ratios):.2f} of {len(ratios)}")


def compare(use, own, case, args, medians):
    """Measures one case, prints it, and adds the median ratios to medians."""
    workers, envs = map(int, case.split("x"))

    def ours(_, envs):
        return rlhost.make_vec(own, envs, workers=workers, copy=args.copy)

    peers, rounds = args.peers.split(","), []
    for _ in range(args.rounds):
        rates = [rate((PEERS[name] or ours)(use, workers * envs), args.seconds) for name in peers]
        rounds.append([rate(ours(use, workers * envs), args.seconds), *rates])
    mine, *theirs = zip(*rounds)
    print(f"{use} {own if own != use else ''} {workers} x {envs}: {statistics.median(mine):,.0f}", flush=True)
    for name, rates in zip(peers, theirs):
        ratios = [a / b for a, b in zip(mine, rates)]
        if not numpy.isnan(ratios).any():
            medians[case, name].append(statistics.median(ratios))
            print(f"    {name} {statistics.median(rates):,.0f}  x {statistics.median(ratios):.2f} "
                  f"({min(ratios):.2f}-{max(ratios):.2f})", flush=True)


if __name__ == "__main__":
    main()
