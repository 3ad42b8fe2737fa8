"""Environments that are registered by importing this module."""

import gymnasium
import numpy
from gymnasium import spaces


class Odd(gymnasium.Env):
    """Counts its steps, and misbehaves on request."""

    def __init__(self, observation="box", action="discrete", fail=""):
        self.observation_space = {
            "box": spaces.Box(-1e6, 1e6, (2, 3), numpy.float64),
            "image": spaces.Box(0, 255, (4, 4, 3), numpy.uint8),
            "discrete": spaces.Discrete(5, start=-1),
            "wide_image": spaces.Box(0, 255, (4, 4, 3)),
            "text": spaces.Text(3),
            "binary": spaces.MultiBinary(3),
            "choices": spaces.MultiDiscrete([5, 6], start=[3, 3]),
            "starts": spaces.MultiDiscrete([5, 6], start=[3, 4]),
            "graph": spaces.Graph(spaces.Box(0, 1, (2,)), None),
            "mission": spaces.Dict({"place": spaces.Box(0, 9, (1,)), "words": spaces.Text(30)}),
            "tuple": spaces.Tuple([spaces.Discrete(9), spaces.Dict({"place": spaces.Box(0, 9, (1,)), "eye": spaces.Box(0, 9, (2,), numpy.uint8)})]),
        }[observation]
        self.action_space = {
            "discrete": spaces.Discrete(3, start=-1), "box": spaces.Box(-2, 2, (2,)),
            "multi": spaces.MultiDiscrete([2, 3], start=[4, 4]), "uneven": spaces.MultiDiscrete([2, 3], start=[0, 5]),
            "binary": spaces.MultiBinary(3), "text": spaces.Text(3),
            "wide": spaces.Box(numpy.array([[-1, 0], [0, -numpy.inf]], "f4"), numpy.array([[1, 1], [2, 5]], "f4")),
            "tuple": spaces.Tuple([spaces.Discrete(3, start=-1), spaces.Dict({"arm": spaces.Box(-2, 2, (2,))})]),
        }[action]
        self.fail, self.resets, self.count = fail, 0, 0

    def observe(self):
        if isinstance(self.observation_space, spaces.Discrete):
            return self.count % 5 - 1
        if isinstance(self.observation_space, spaces.MultiBinary):
            return numpy.array([self.count % 2, 0, self.count % 2], numpy.int8)
        if isinstance(self.observation_space, spaces.Text):
            return "abc"[:self.count % 4]
        if isinstance(self.observation_space, spaces.Dict):
            return {"place": numpy.array([self.count], "f4"), "words": f"go{self.count}"}
        if isinstance(self.observation_space, spaces.MultiDiscrete):
            return numpy.array([3, 3 + self.count % 4], numpy.int64)
        if isinstance(self.observation_space, spaces.Tuple):
            wrong = self.fail == "part" and self.count == 2
            return self.count, {"eye": numpy.full(3 if wrong else 2, self.count, numpy.uint8), "place": numpy.array([self.count / 2])}
        if self.count == 2 and (self.fail == "scalar" or self.fail == "late" and self.resets > 20):
            return 0.5
        if self.fail == "outside":
            return numpy.full(self.observation_space.shape, 2e6)
        shape = (3,) if self.fail == "shape" else self.observation_space.shape
        return numpy.full(shape, self.count, self.observation_space.dtype)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        if self.fail == "int":
            if seed is not None and seed >= 1 << 31:
                raise OverflowError("signed integer is greater than maximum")
            self.seed = seed or 0
        self.resets += 1
        self.count = 0
        if self.fail == "reset" and self.resets > 1:
            raise OSError("no second episode")
        if self.fail == "int":
            return self.observe(), {"seed": float(self.seed)}
        if self.fail == "nested":
            return self.observe(), {"stats": {"resets": self.resets, "of": {"x": 7}, "name": "a"}, "odd": {}}
        if self.fail == "told":
            return self.observe(), {"word": "x", "resets": self.resets, "odd": self.resets % 2 == 1} if self.resets != 3 else {}
        return self.observe(), self.info()

    def info(self):
        if self.fail == "nested":
            return {"episode_extra_stats": {"score": 2.0 * self.count, "who": "me", "deep": {"y": True}}, "lives": 3}
        return {"action_mask": numpy.array([self.count % 2, 1, 0], numpy.int8)} if self.fail == "masked" else {}

    def step(self, action):
        self.count += 1
        if self.fail == "step" and self.count == 3:
            raise RuntimeError("the third step")
        if self.fail == "exit" and self.count == 3:
            raise SystemExit("out")
        if self.fail == "four":
            return self.observe(), 0.0, False, {}
        if self.fail == "shaped":
            return numpy.zeros(5), 0.0, False, False, {}
        if self.fail == "within":
            numpy.linalg.inv(numpy.zeros((2, 2)))
        assert self.action_space.contains(action), action
        if isinstance(action, tuple):
            action = numpy.append(action[1]["arm"], action[0])
        total = "much" if self.fail == "reward" and self.count == 3 else float(numpy.sum(action))
        if self.fail == "array":
            total = numpy.array([total])
        return self.observe(), total, self.count == 5, False, {"action_mask": [1, 0, 1]} if self.fail == "mask" else self.info()


class Painted(Odd):
    """Draws its count, or something that is no picture."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 12}

    def __init__(self, render_mode=None, picture="good"):
        super().__init__()
        self.render_mode, self.picture = render_mode, picture

    def render(self):
        if self.picture == "raises" or self.picture == "late" and self.count:
            raise RuntimeError("no brush")
        return {"flat": numpy.zeros((4, 5), numpy.uint8), "floats": numpy.zeros((4, 5, 3)), "none": None}.get(
            self.picture, numpy.full((4, 5, 3), self.count, numpy.uint8))


class Played(Odd):
    """Says what keys do as the environments of ale_py do, or fails to."""

    def __init__(self, keys="good"):
        super().__init__()
        self.keys = keys

    def get_keys_to_action(self):
        if self.keys == "raises":
            raise RuntimeError("no keyboard")
        return {(None,): 1, "a": 0, (ord("d"),): 2, (1073741906,): numpy.int64(2), ("a", "d"): 1, (27,): 0, " ": 1}


gymnasium.register("Played-v0", Played, max_episode_steps=4)
gymnasium.register("Painted-v0", Painted, max_episode_steps=4)
gymnasium.register("Odd-v0", Odd, max_episode_steps=4)
gymnasium.register("OddLong-v0", Odd)
