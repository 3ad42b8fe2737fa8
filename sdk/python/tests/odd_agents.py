"""Environments of PettingZoo for tests: a race of three, of which each drops out by itself, and a game of two in turns."""

import numpy
from gymnasium import spaces
from pettingzoo import AECEnv, ParallelEnv


class Race(ParallelEnv):
    """Agent k runs k+2 steps, then has arrived; after 4 steps whoever is left is cut off."""

    metadata = {"name": "race"}

    def __init__(self, unequal=False, fail=False, told=False, narrow=False):
        self.possible_agents = ["a", "b", "c"]
        self.unequal, self.fail, self.told, self.narrow = unequal, fail, told, narrow

    def observation_space(self, agent):
        return spaces.Box(-100, 100, (3 if self.unequal and agent == "c" else 2,), numpy.float32)

    def action_space(self, agent):
        return spaces.Discrete(4 if self.unequal and agent == "c" else 3)

    def reset(self, seed=None, options=None):
        if self.narrow and (seed or 0) >= 1 << 31:
            raise TypeError("incompatible function arguments")  # of C++
        if seed is not None:
            self.chance = numpy.random.default_rng(seed)
        self.agents, self.count, self.start = list(self.possible_agents), 0, float(self.chance.integers(50))
        return self.seen(), {a: {"lane": i, "start": self.start, "name": a} if self.told else {} for i, a in enumerate(self.agents)}

    def seen(self):
        return {a: numpy.array([self.count, self.start + i, 7][:self.observation_space(a).shape[0]], numpy.float32)
                for i, a in enumerate(self.possible_agents) if a in self.agents}

    def step(self, actions):
        if self.fail:
            raise OSError("the track is wet")
        assert set(actions) == set(self.agents)
        self.count += 1
        terminations = {a: self.count == self.possible_agents.index(a) + 2 for a in self.agents}
        truncations = {a: self.count == 4 for a in self.agents}
        rewards = {a: float(actions[a]) for a in self.agents}
        seen, infos = self.seen(), {a: {} for a in self.agents}
        self.agents = [a for a in self.agents if not terminations[a] and not truncations[a]]
        return seen, rewards, terminations, truncations, infos


class Lives(ParallelEnv):
    """A world without an end: a is dead in each second step and back at once, b in each third and out for a step."""

    metadata = {"name": "lives"}

    def __init__(self):
        self.possible_agents = ["a", "b"]

    def observation_space(self, agent):
        return spaces.Box(-100, 100, (2,), numpy.float32)

    def action_space(self, agent):
        return spaces.Discrete(2)

    def reset(self, seed=None, options=None):
        self.agents, self.age, self.out = ["a", "b"], {"a": 0, "b": 0}, False
        return self.seen(), {a: {} for a in self.agents}

    def seen(self):
        return {a: numpy.array([self.age[a], 7], numpy.float32) for a in self.possible_agents}

    def step(self, actions):
        assert set(actions) == set(self.agents)
        for a in self.agents:
            self.age[a] += 1
        over = {a: self.age[a] == {"a": 2, "b": 3}[a] and a in self.agents for a in self.possible_agents}
        infos = {a: {"final_observation": numpy.array([self.age[a], 9], numpy.float32)} if over[a] else {} for a in self.possible_agents}
        for a in self.possible_agents:
            if over[a]:
                self.age[a] = 0
        self.agents = ["a"] if over["b"] else ["a", "b"]
        return self.seen(), {a: 1.0 for a in self.possible_agents}, over, {a: False for a in self.possible_agents}, infos


class Nim(AECEnv):
    """Two players take one or two of seven matches in turn; who takes the last one has lost."""

    metadata = {"name": "nim"}

    def __init__(self):
        super().__init__()
        self.possible_agents = ["first", "second"]

    def observation_space(self, agent):
        return spaces.Dict({"observation": spaces.Box(0, 7, (1,), numpy.float32), "action_mask": spaces.Box(0, 1, (2,), numpy.int8)})

    def action_space(self, agent):
        return spaces.Discrete(2)

    def observe(self, agent):
        return {"observation": numpy.array([self.left], numpy.float32), "action_mask": numpy.array([1, self.left > 1], numpy.int8)}

    def reset(self, seed=None, options=None):
        self.agents, self.left, self.agent_selection = list(self.possible_agents), 7, "first"
        for name, value in (("rewards", 0), ("_cumulative_rewards", 0), ("terminations", False), ("truncations", False)):
            setattr(self, name, {a: value for a in self.agents})
        self.infos = {a: {"seat": i} for i, a in enumerate(self.agents)}

    def step(self, action):
        if self.terminations[self.agent_selection]:
            self._was_dead_step(action)
            return
        self.left -= 1 + int(action)
        me, other = self.agent_selection, self.possible_agents[1 - self.possible_agents.index(self.agent_selection)]
        self._clear_rewards()
        if self.left <= 0:
            self.rewards = {me: -1, other: 1}
            self.terminations = {a: True for a in self.agents}
        self._accumulate_rewards()
        self.agent_selection = other


class Tag(ParallelEnv):
    """Two adversaries run after an agent, which sees and does more than they; each is paid for its action."""

    metadata = {"name": "tag"}
    possible_agents = ["adversary_0", "adversary_1", "agent_0"]

    def observation_space(self, agent):
        return spaces.Box(-10, 10, (2 if agent == "agent_0" else 3,), numpy.float32)

    def action_space(self, agent):
        return spaces.Discrete(5 if agent == "agent_0" else 3)

    def reset(self, seed=None, options=None):
        self.agents, self.count = list(self.possible_agents), 0
        return self.seen(), {a: {} for a in self.agents}

    def seen(self):
        return {a: numpy.full(self.observation_space(a).shape, self.count, numpy.float32) for a in self.agents}

    def step(self, actions):
        self.count += 1
        rewards, over = {a: float(actions[a]) for a in self.agents}, self.count == 6
        told = {a: over for a in self.agents}, {a: False for a in self.agents}, {a: {} for a in self.agents}
        seen = self.seen()
        if over:
            self.agents = []
        return seen, rewards, *told


def tag():
    return Tag()


def lives():
    return Lives()


def race(**kwargs):
    return Race(**kwargs)


def nim():
    return Nim()


parallel_env = race
