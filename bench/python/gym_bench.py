#!/usr/bin/env python3
"""Env steps/s of Gymnasium's environments through rlhost's worker processes, beside gymnasium.vector.AsyncVectorEnv
with the same environments, taking turns. Run it in .venv:

    .venv/bin/python bench/python/gym_bench.py [--seconds 2] [--rounds 3] [--cases 1x1,2x64] [ENV...]

AsyncVectorEnv has one process for each environment, so workers are also shown with many environments each, against as
many environments there. Both get the same actions ready made; rlhost's side is driven from Python here too."""

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
        blocks = Blocks(1, *layout(STEPS, envs * workers, shape), 2)
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


def theirs(use, envs, seconds):
    """Env steps/s of AsyncVectorEnv, in same-step autoreset as ours."""
    vector = gymnasium.vector.AsyncVectorEnv([lambda: gymnasium.make(use)] * envs,
                                             autoreset_mode=gymnasium.vector.AutoresetMode.SAME_STEP)
    try:
        vector.reset(seed=0)
        rng = numpy.random.default_rng(1)
        actions = rng.integers(0, vector.single_action_space.n, (STEPS, envs))
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


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("env", nargs="*", default=["CartPole-v1", "Acrobot-v1"])
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cases", default="1x1,2x1,1x64,2x64", help="workers x environments of each")
    args = parser.parse_args()
    print("env, workers x envs: rlhost env steps/s, AsyncVectorEnv, median ratio of rounds")
    for use in args.env:
        for workers, envs in (map(int, case.split("x")) for case in args.cases.split(",")):
            a, b, ratios = [], [], []
            for _ in range(args.rounds):
                a.append(ours(use, workers, envs, args.seconds))
                b.append(theirs(use, workers * envs, args.seconds))
                ratios.append(a[-1] / b[-1])
            print(f"{use} {workers} x {envs}: {statistics.median(a):,.0f}  {statistics.median(b):,.0f}  "
                  f"x {statistics.median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f})", flush=True)


if __name__ == "__main__":
    main()
