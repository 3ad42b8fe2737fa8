#!/usr/bin/env python3
"""EnvPool's Pong-v5 alone with one thread, in env steps/s: all environments in step. A step is one frame, which comes as
84×84 grey pixels and is not stacked. Run it under taskset for one core."""

import itertools

import report


def main():
    args = report.arguments(__doc__, envs=[64, 1024])

    import envpool
    import numpy as np

    for envs in args.envs:
        env = envpool.make("Pong-v5", env_type="gymnasium", num_envs=envs, batch_size=envs, num_threads=1, seed=1,
                           frame_skip=1, stack_num=1, noop_max=1)
        env.reset()
        actions = itertools.cycle(np.random.default_rng(1).integers(2, size=(512, envs), dtype=np.int32))
        best, median = report.rates(lambda: env.step(next(actions)), envs, args.seconds, burst=1)
        report.emit(peer="envpool", envs=envs, best_env_steps_per_s=best, median_env_steps_per_s=median)
        env.close()


if __name__ == "__main__":
    main()
