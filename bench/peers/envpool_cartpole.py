#!/usr/bin/env python3
"""EnvPool's CartPole-v1 alone with one thread, in env steps/s: all environments in step, and half of them at a time.
Run it under taskset for one core."""

import itertools

import report


def main():
    args = report.arguments(__doc__, envs=[64, 256, 1024])

    import envpool
    import numpy as np

    def drawn(envs):
        """Random actions, made before they are taken, as those of `rlhost bench` are."""
        return itertools.cycle(np.random.default_rng(1).integers(2, size=(512, envs), dtype=np.int32))

    def make(envs, batch):
        return envpool.make("CartPole-v1", env_type="gymnasium", num_envs=envs, batch_size=batch, num_threads=1, seed=1)

    for envs in args.envs:
        env = make(envs, envs)
        env.reset()
        actions = drawn(envs)
        best, median = report.rates(lambda: env.step(next(actions)), envs, args.seconds)
        report.emit(peer="envpool", mode="sync", envs=envs, best_env_steps_per_s=best, median_env_steps_per_s=median)
        env.close()

    envs = max(args.envs)
    env = make(envs, envs // 2)
    actions = drawn(envs // 2)
    env.async_reset()

    def step():
        info = env.recv()[-1]
        env.send(next(actions), info["env_id"])

    best, median = report.rates(step, envs // 2, args.seconds)
    report.emit(peer="envpool", mode="async", envs=envs, best_env_steps_per_s=best, median_env_steps_per_s=median)


if __name__ == "__main__":
    main()
