"""Environments for threads."""

import os
import threading
import time

import gymnasium
import numpy

MEET = 4
_meeting = threading.Barrier(MEET)


class Meeting(gymnasium.Env):
    """Its resets and steps end when as many others are in theirs."""

    made = 0
    observation_space = gymnasium.spaces.Box(0, 100, (), numpy.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self):
        self.number = Meeting.made
        Meeting.made += 1

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        if self.number > 0:  # the first one is made to be described
            _meeting.wait(30)
        self.count = 0
        return numpy.float32(0), {}

    def step(self, action):
        _meeting.wait(30)
        self.count += 1
        return numpy.float32(self.count), 1.0, False, False, {}


class Uneven(gymnasium.Env):
    """Steps that take more or less long, and tell a number at the end of an episode."""

    observation_space = gymnasium.spaces.Box(0, 1, (2,), numpy.float64)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.total = 0.0
        return self.np_random.random(2), {}

    def step(self, action):
        drawn = self.np_random.exponential()
        time.sleep(drawn / 1000)
        self.total += drawn * action
        return self.np_random.random(2), drawn, drawn > 3, False, {"total": self.total}


class Held(gymnasium.Env):
    """Its step of action 1 ends when a file is there, and that of action 2 raises."""

    observation_space = gymnasium.spaces.Box(0, 1000, (1,), numpy.float32)
    action_space = gymnasium.spaces.Discrete(3)

    def __init__(self, file):
        self.file = file

    def observed(self):
        return numpy.array([self.steps], numpy.float32), {}

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return self.observed()

    def step(self, action):
        while action == 1 and not os.path.exists(self.file):
            time.sleep(0.001)
        if action == 2:
            raise RuntimeError("asked to")
        self.steps += 1
        obs, info = self.observed()
        return obs, float(os.getpid()), False, False, info
