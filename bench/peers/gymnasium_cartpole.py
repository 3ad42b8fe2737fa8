#!/usr/bin/env python3
"""Gymnasium's vectorised CartPole-v1 (NumPy) alone, in env steps/s. Run it under taskset for one core."""

import itertools

import report


def main():
    args = report.arguments(__doc__, envs=[64, 1024])

    import gymnasium
    import numpy as np

    for envs in args.envs:
        env = gymnasium.make_vec("CartPole-v1", num_envs=envs, vectorization_mode="vector_entry_point")
        env.reset(seed=1)
        actions = itertools.cycle(np.random.default_rng(1).integers(2, size=(512, envs)))
        best, median = report.rates(lambda: env.step(next(actions)), envs, args.seconds)
        report.emit(peer="gymnasium", envs=envs, best_env_steps_per_s=best, median_env_steps_per_s=median)
        env.close()


if __name__ == "__main__":
    main()
