"""Stepping environments of PettingZoo into blocks of shared memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy

from ..gymnasium.batch import Bound, EnvFault
from ..gymnasium.source import SEED_MASK
from .source import MASK, OBSERVATION, Source


class Batch:
    """A fixed number of environments, stepped one after the other into the bound block. An environment has a row for each agent."""

    def __init__(self, source: Source, envs: int, autoreset: int, report: Callable[[int, str, float], None] | None = None):
        self.source, self.agents = source, len(source.agents)
        self.envs: list[Any] = []
        self.bound: Bound | None = None
        self._count, self._play = envs, _Turns if source.turns else _Together
        self.renew()

    def renew(self) -> None:
        """Makes all environments again, with no episode begun and no block bound."""
        self.close()
        self.bound = None
        self.envs = [self._play(self.source) for _ in range(self._count)]

    def close(self) -> None:
        """Closes the environments and ignores their exceptions."""
        for env in self.envs:
            try:
                env.env.close()
            except Exception:
                pass
        self.envs = []

    def reset(self, t: int, mask: Sequence[int] | None, seeds: Sequence[int] | None) -> None:
        """Begins episodes, in all environments or where mask is not 0, and writes what is observed at t."""
        block = self._block()
        for i, env in enumerate(self.envs):
            if mask is not None and not mask[i]:
                continue
            try:
                env.reset(None if seeds is None else seeds[i] & SEED_MASK)
                self._observe(block, i, t)
            except (Exception, SystemExit) as e:
                raise EnvFault(i, e) from e

    def step(self, t: int) -> None:
        """Takes action[t] and writes reward, terminated and truncated [t] and what is observed at t+1."""
        block = self._block()
        actions = self.source.actions.rows([column[t] for column in block.action])
        for results in (block.reward, block.terminated, block.truncated):
            results[t] = 0
        for i, env in enumerate(self.envs):
            first = i * self.agents
            try:
                env.step(actions[first:first + self.agents])
                for k, agent in enumerate(self.source.agents):
                    block.reward[t, first + k] = env.rewards.get(agent, 0)
                    if agent not in env.ended:
                        continue
                    terminated, truncated = env.ended[agent]
                    block.terminated[t, first + k], block.truncated[t, first + k] = terminated, truncated
                    self.source.observations.write(block.final_obs, first + k, self._seen(env.observed(agent)))
                if not env.env.agents:
                    env.reset(None)
                self._observe(block, i, t + 1)
            except (Exception, SystemExit) as e:
                raise EnvFault(i, e) from e

    def _observe(self, block: Bound, i: int, t: int) -> None:
        """Writes what the agents of an environment observe: zeros, and a mask of ones, for those that do not act."""
        rows, acting = [column[t] for column in block.obs], self.envs[i].acting()
        if not acting:
            raise RuntimeError("no agent acts after a reset")
        assert block.active is not None  # the description has it
        for k, agent in enumerate(self.source.agents, i * self.agents):
            block.active[t, k] = agent in acting
            if agent not in acting:
                for row in rows:
                    row[k] = 0
                for mask in block.mask:
                    mask[t, k] = 1
                continue
            observation = self.envs[i].observed(agent)
            self.source.observations.write(rows, k, self._seen(observation))
            if self.source.masked:
                self._write_mask(block, t, k, observation[MASK])

    def _seen(self, observation: Any) -> Any:
        return observation[OBSERVATION] if self.source.masked else observation

    def _write_mask(self, block: Bound, t: int, row: int, given: Any) -> None:
        flat, at = numpy.ravel(given) != 0, 0
        for mask in block.mask:
            mask[t, row] = flat[at:at + mask.shape[2]]
            at += mask.shape[2]

    def _block(self) -> Bound:
        if self.bound is None:
            raise RuntimeError("no block is bound")
        return self.bound


class _Together:
    """A parallel environment."""

    def __init__(self, source: Source):
        self.env, self._agents = source.make(), source.agents
        self.rewards: dict[Any, float] = {}
        self.ended: dict[Any, tuple[bool, bool]] = {}  # agents whose episodes ended in the last step
        self._seen: dict[Any, Any] = {}

    def reset(self, seed: int | None) -> None:
        self._seen, _ = self.env.reset(seed=seed)

    def acting(self) -> Sequence[Any]:
        """The agents that act now."""
        return self.env.agents

    def observed(self, agent: Any) -> Any:
        """What an agent observes now, or has observed last."""
        return self._seen[agent]

    def step(self, actions: Sequence[Any]) -> None:
        """Takes the actions of all possible agents."""
        before = list(self.env.agents)
        self._seen, self.rewards, terminations, truncations, _ = self.env.step(
            {agent: action for agent, action in zip(self._agents, actions) if agent in before})
        self.ended = {agent: (bool(terminations[agent]), bool(truncations[agent])) for agent in before
                      if terminations[agent] or truncations[agent]}


class _Turns:
    """An AEC environment: one agent acts at a time."""

    def __init__(self, source: Source):
        self.env, self._agents = source.make(), source.agents
        self.rewards: dict[Any, float] = {}
        self.ended: dict[Any, tuple[bool, bool]] = {}
        self._last: dict[Any, Any] = {}  # observations of agents that have ended in the last step
        self._over: set[Any] = set()

    def reset(self, seed: int | None) -> None:
        self.env.reset(seed=seed)
        self._over = set()
        self._last = {}

    def acting(self) -> Sequence[Any]:
        """The agent that acts now."""
        return [self.env.agent_selection] if self.env.agents else []

    def observed(self, agent: Any) -> Any:
        """What an agent observes now, or has observed last."""
        return self._last[agent] if agent in self._last else self.env.observe(agent)

    def step(self, actions: Sequence[Any]) -> None:
        """Takes the action of the agent that acts, then takes out those that have ended."""
        env = self.env
        env.step(actions[self._agents.index(env.agent_selection)])
        self.rewards = dict(env.rewards)
        self.ended = {agent: (bool(env.terminations[agent]), bool(env.truncations[agent])) for agent in env.agents
                      if agent not in self._over and (env.terminations[agent] or env.truncations[agent])}
        self._over.update(self.ended)
        self._last = {agent: env.observe(agent) for agent in self.ended}
        while env.agents and (env.terminations[env.agent_selection] or env.truncations[env.agent_selection]):
            env.step(None)
