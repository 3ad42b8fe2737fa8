#!/usr/bin/env python3
"""Env steps/s of Gymnasium's environments through rlhost's worker processes, beside gymnasium.vector's AsyncVectorEnv
(one process for each environment) and SyncVectorEnv (all in this process), and EnvPool (threads and C++, as many as it picks)
where it is installed and has the environment, each with as many environments, taking turns. Run it in .venv:

    .venv/bin/python bench/python/gym_bench.py [--seconds 2] [--rounds 3] [--cases 1x1,2x64] [ENV...]

EnvPool needs its packages of assets, which pip installs with it; a virtual environment of its own keeps .venv as it is:

    python3 -m venv pool && pool/bin/pip install envpool ./sdk/python && pool/bin/python bench/python/gym_bench.py

All get the same actions ready made; rlhost's side is driven from Python here too."""

import argparse
import pathlib
import statistics
import sys
import time

import gymnasium
import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "sdk" / "python" / "tests"))
from envhost import Blocks, EnvHost, layout  # noqa: E402

STEPS = 64
STEP = 0xFF22


def ours(use, workers, envs, seconds):
    """Env steps/s of that many workers that share blocks."""
    hosts = [EnvHost(use, envs, first_column=envs * i, block_envs=envs * workers) for i in range(workers)]
    try:
        shape = hosts[0].spec.tensors[1].shape
        blocks = Blocks(1, *layout(STEPS, envs * workers, ("f32", shape)), 2)
        rng = numpy.random.default_rng(1)
        for i, host in enumerate(hosts):
            host.share(blocks)
            assert host.bind(blocks, 0) is None
            assert host.reset(0, [envs * i + n for n in range(envs)]) is None
        for block in blocks.columns:
            block["action"][:] = rng.integers(0, hosts[0].spec.actions, block["action"].shape)
        play(hosts, blocks, 0)  # warms up
        begun, played = time.perf_counter(), 0
        while time.perf_counter() - begun < seconds:
            played += 1
            play(hosts, blocks, played % 2)
        return played * STEPS * envs * workers / (time.perf_counter() - begun)
    finally:
        for host in hosts:
            host.host.close()


def play(hosts, blocks, index):
    for host in hosts:
        host.bind(blocks, index)
    for t in range(STEPS):
        for host in hosts:
            host.ask(STEP, t)
        for host in hosts:
            if complaint := host.answer():
                raise RuntimeError(complaint)


SAME_STEP = {"autoreset_mode": gymnasium.vector.AutoresetMode.SAME_STEP}  # as ours


def asynchronous(use, envs):
    return gymnasium.vector.AsyncVectorEnv([lambda: gymnasium.make(use)] * envs, **SAME_STEP)


def synchronous(use, envs):
    return gymnasium.vector.SyncVectorEnv([lambda: gymnasium.make(use)] * envs, **SAME_STEP)


def pool(use, envs):
    """None where EnvPool is not installed or does not have the environment."""
    try:
        import envpool
    except ImportError:
        return None
    return envpool.make_gymnasium(use, num_envs=envs) if use in envpool.list_all_envs() else None


def theirs(make, use, envs, seconds):
    """Env steps/s of a vector environment; nan where there is none."""
    vector = make(use, envs)
    if vector is None:
        return float("nan")
    try:
        vector.reset()
        rng = numpy.random.default_rng(1)
        actions = rng.integers(0, gymnasium.make(use).action_space.n, (STEPS, envs))
        begun, played = None, 0
        while begun is None or time.perf_counter() - begun < seconds:
            for row in actions:
                vector.step(row)
            if begun is None:
                begun = time.perf_counter()
            else:
                played += 1
        return played * STEPS * envs / (time.perf_counter() - begun)
    finally:
        vector.close()


PEERS = {"AsyncVectorEnv": asynchronous, "SyncVectorEnv": synchronous, "EnvPool": pool}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("env", nargs="*", default=["CartPole-v1", "Acrobot-v1"])
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cases", default="1x1,2x1,2x8,1x64,2x64", help="workers x environments of each")
    args = parser.parse_args()
    print("env, workers x envs: rlhost env steps/s; of each peer its own, and the median ratio of rounds (least-most)")
    for use in args.env:
        for workers, envs in (map(int, case.split("x")) for case in args.cases.split(",")):
            rounds = []
            for _ in range(args.rounds):
                rates = [theirs(make, use, workers * envs, args.seconds) for make in PEERS.values()]
                rounds.append([ours(use, workers, envs, args.seconds), *rates])
            mine, *peers = zip(*rounds)
            print(f"{use} {workers} x {envs}: {statistics.median(mine):,.0f}", flush=True)
            for name, rates in zip(PEERS, peers):
                ratios = [a / b for a, b in zip(mine, rates)]
                if not numpy.isnan(ratios).any():
                    print(f"    {name} {statistics.median(rates):,.0f}  x {statistics.median(ratios):.2f} "
                          f"({min(ratios):.2f}-{max(ratios):.2f})", flush=True)


if __name__ == "__main__":
    main()
