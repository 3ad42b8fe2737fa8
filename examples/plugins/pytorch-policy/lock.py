"""A lock of twenty digits, for trying exploration: there is a reward for the whole word alone, and a wrong digit begins it anew."""

import gymnasium
import numpy

LENGTH = 20
WORD = numpy.random.default_rng(7).integers(0, 2, LENGTH)


class Lock(gymnasium.Env):
    """The observation says which digit is asked for. Chance opens it once in a million words."""

    observation_space = gymnasium.spaces.Box(0, 1, (LENGTH + 1,), numpy.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def look(self):
        return numpy.eye(LENGTH + 1, dtype=numpy.float32)[self.digit]

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.digit = self.steps = 0
        return self.look(), {}

    def step(self, action):
        self.digit = self.digit + 1 if action == WORD[self.digit] else 0
        self.steps += 1
        opened = self.digit == LENGTH
        return self.look(), float(opened), opened, self.steps >= 3 * LENGTH, {}


gymnasium.register("Lock-v0", Lock)
