"""Environments that tests train on by their class."""

import os

import gymnasium
import numpy


class Warm(gymnasium.Env):
    """Heats a room; its observation is nested, with a number in it."""

    def __init__(self, start=15.0):
        self.observation_space = gymnasium.spaces.Dict({
            "room": gymnasium.spaces.Dict({"off": gymnasium.spaces.Box(-60.0, 60.0, (2,), numpy.float32)}), "season": gymnasium.spaces.Discrete(3)})
        self.action_space = gymnasium.spaces.Discrete(2)
        self.start = start

    def observe(self):
        return {"room": {"off": numpy.array([self.room - 20.0, self.outside], numpy.float32)}, "season": 1}

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.steps, self.room, self.outside = 0, self.np_random.uniform(self.start, 25.0), self.np_random.uniform(-10.0, 10.0)
        return self.observe(), {}

    def step(self, action):
        self.steps += 1
        self.room += 0.05 * (self.outside - self.room) + (2.0 if action == 1 else 0.0)
        return self.observe(), float(abs(self.room - 20.0) < 1.5), False, self.steps >= 50, {}


def warm(start=15.0):
    return Warm(start)


class Outer:
    class Inner(Warm):
        pass


class Tuned(gymnasium.Env):
    """Observes its gravity and the option that its episode began with."""

    observation_space = gymnasium.spaces.Box(-1000.0, 1000.0, (2,), numpy.float32)
    action_space = gymnasium.spaces.Discrete(2)
    reset_params = {"gravity": (9.8, 0.1, 20.0), "wind": (0.0, -5.0, 5.0)}

    def __init__(self, gravity=9.8):
        self.gravity, self.table = gravity, numpy.arange(6.0).reshape(2, 3)

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.options = dict(options or {})
        self.gravity = self.options.get("gravity", self.gravity)
        self.steps = 0
        return self.observe(), {}

    def observe(self):
        return numpy.array([self.gravity, self.options.get("wind", 0.0)], numpy.float32)

    def step(self, action):
        self.steps += 1
        return self.observe(), 1.0, self.steps >= 3, False, {}

    def heavier(self, by, times=1):
        self.gravity += by * times
        return {"gravity": self.gravity, "steps": (self.steps, None)}

    def die(self):
        os._exit(3)

    def broken(self):
        raise RuntimeError("out of gas")


class Declaring(Tuned):
    def __init__(self, declared):
        super().__init__()
        self.reset_params = declared


class Listing(Tuned):
    """Observes how far it is, and a list of any length."""

    observation_space = gymnasium.spaces.Dict({"place": Tuned.observation_space, "heard": gymnasium.spaces.Sequence(gymnasium.spaces.Discrete(3))})

    def observe(self):
        return {"place": super().observe(), "heard": (1, 2)}


class Named(gymnasium.Wrapper):
    label = "outer"
