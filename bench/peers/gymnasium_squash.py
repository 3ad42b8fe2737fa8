#!/usr/bin/env python3
"""Squash, whose rules are those of examples/plugins/squash-c, as a vector environment of Gymnasium in NumPy, as its
CartPoleVectorEnv is one; alone, in env steps/s. Run it under taskset for one core."""

import itertools

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

import report

SIDE, WIDTH, HEIGHT, PADDLE_ROW, BALL, FALL, DRIFT, PACE = 84, 16, 3, 78, 4, 3, 3, 4
LEFT, RIGHT, ACTIONS = 1, 2, 3
GREY, WHITE = 128, 255


class Squash(VectorEnv):
    """Observations are the same array at every step, which is the fastest that Gymnasium's interface allows."""

    metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP}

    def __init__(self, num_envs, max_steps=1000):
        self.num_envs, self.max_steps = num_envs, max_steps
        self.single_observation_space = gymnasium.spaces.Box(0, 255, (SIDE, SIDE, 1), np.uint8)
        self.single_action_space = gymnasium.spaces.Discrete(ACTIONS)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.row, self.column, self.down, self.right, self.paddle, self.steps = np.zeros((6, num_envs), np.int64)
        self.pace = np.array([0, -PACE, PACE])
        self.over = np.zeros(num_envs, bool)
        self.picture = np.zeros((num_envs, SIDE, SIDE), np.uint8)
        self.each = np.arange(num_envs)[:, None, None]

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.start(np.ones(self.num_envs, bool))
        self.over[:] = False
        return self.look(), {}

    def start(self, which):
        """Begins the episodes of the environments that a mask names."""
        n = np.count_nonzero(which)
        self.row[which], self.down[which], self.steps[which], self.paddle[which] = 0, FALL, 0, (SIDE - WIDTH) // 2
        self.column[which] = self.np_random.integers(SIDE - BALL + 1, size=n)
        self.right[which] = self.np_random.integers(2 * DRIFT + 1, size=n) - DRIFT

    def step(self, actions):
        again = self.over.copy()
        self.paddle = np.clip(self.paddle + self.pace[actions], 0, SIDE - WIDTH)
        self.fly()
        low = (self.down > 0) & (self.row + BALL > PADDLE_ROW)
        off = self.column + BALL // 2 - (self.paddle + WIDTH // 2)
        hit = low & (np.abs(off) <= (WIDTH + BALL) // 2)
        self.row[hit], self.down[hit] = PADDLE_ROW - BALL, -FALL
        self.right[hit] = np.trunc(off[hit] / 3)
        self.steps += 1
        reward, terminated, truncated = hit.astype(np.float64), low & ~hit, self.steps >= self.max_steps
        if again.any():
            self.start(again)
            reward[again], terminated[again], truncated[again] = 0, False, False
        self.over = terminated | truncated
        return self.look(), reward, terminated, truncated, {}

    def fly(self):
        """Moves the balls and turns them round at the left, the right and the upper side."""
        row, column = self.row + self.down, self.column + self.right
        self.row, self.column = np.clip(row, 0, SIDE - BALL), np.clip(column, 0, SIDE - BALL)
        self.down[row < 0] = FALL
        self.right = np.where(column != self.column, -self.right, self.right)

    def look(self):
        self.picture.fill(0)
        for row, column, height, width, shade in ((PADDLE_ROW, self.paddle, HEIGHT, WIDTH, GREY),
                                                  (self.row, self.column, BALL, BALL, WHITE)):
            rows = (row + np.arange(height)[:, None]) if np.isscalar(row) else row[:, None, None] + np.arange(height)[:, None]
            self.picture[self.each, rows, column[:, None, None] + np.arange(width)] = shade
        return self.picture[..., None]


def main():
    args = report.arguments(__doc__, envs=[64, 1024])

    for envs in args.envs:
        env = Squash(envs)
        env.reset(seed=1)
        actions = itertools.cycle(np.random.default_rng(1).integers(2, size=(512, envs)))
        best, median = report.rates(lambda: env.step(next(actions)), envs, args.seconds, burst=1)
        report.emit(peer="gymnasium", envs=envs, best_env_steps_per_s=best, median_env_steps_per_s=median)


if __name__ == "__main__":
    main()
