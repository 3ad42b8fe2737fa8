"""Stepping environments of PettingZoo into blocks of shared memory."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy

from ..gymnasium import infos
from ..gymnasium.batch import Array, Bound, EnvFault
from ..gymnasium.crew import Crew
from .source import MASK, OBSERVATION, Group, Source

FINAL = "final_observation"  # the key of an agent's infos


@dataclasses.dataclass
class Part:
    """The columns of a block that one group of agents has."""

    group: Group
    first: int  # its first agent
    action: list[Array]
    obs: list[Array]
    final_obs: list[Array]
    mask: list[Array]
    infos: list[Array]  # at reset

    @classmethod
    def of(cls, block: Bound, groups: Sequence[Group]) -> list[Part]:
        """Divides the columns of a block, which are in the order of the groups."""
        parts, first = [], 0
        columns = [iter(of_kind) for of_kind in (block.action, block.obs, block.final_obs, block.mask, block.infos)]
        for group in groups:
            actions, observations = len(group.actions.tensors), len(group.observations.tensors(0))
            counts = (actions, observations, observations, len(group.actions.masks()) if group.masked else 0, len(group.infos) if block.infos else 0)
            parts.append(cls(group, first, *([next(column) for _ in range(n)] for column, n in zip(columns, counts))))
            first += len(group.agents)
        return parts

    def actions(self, t: int, agents: int) -> Sequence[Any]:
        """The actions of the group's agents, those of an environment, of so many agents, one after the other."""
        columns = [column[t] for column in self.action]
        if agents > len(self.group.agents):
            own = slice(self.first, self.first + len(self.group.agents))
            columns = [c.reshape(-1, agents, *c.shape[1:])[:, own].reshape(-1, *c.shape[1:]) for c in columns]
        return self.group.actions.rows(columns)

    def seen(self, observation: Any) -> Any:
        """What an agent observes, without the mask."""
        return observation[OBSERVATION] if self.group.masked else observation


class Batch:
    """A fixed number of environments, stepped into the bound block: one after the other, or by threads, as those of Gymnasium. An environment
    has a row for each agent."""

    def __init__(self, source: Source, envs: int, autoreset: int, report: Callable[[int, str, float], None] | None = None, threads: int = 1):
        self.source, self.agents = source, len(source.agents)
        self.envs: list[Any] = []
        self.bound: Bound | None = None
        self.done: Any = [0]  # as of an environment of Gymnasium
        self._parts: tuple[Bound | None, list[Part]] = None, []
        self._crew = Crew(min(threads, envs))
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

        def some(order: Iterator[Any], note: Callable[[int], None]) -> None:
            for i, env in order:
                if mask is None or mask[i]:
                    try:
                        env.reset(None if seeds is None else seeds[i] & self.source.seed_mask)
                        self._observe(block, i, t)
                        self._tell(i, t)
                    except (Exception, SystemExit) as e:
                        raise EnvFault(i, e) from e
                note(i)

        self._divided()  # before threads look for it
        self._crew.share(some, self.done, self.envs)

    def step(self, t: int) -> None:
        """Takes action[t] and writes reward, terminated and truncated [t] and what is observed at t+1."""
        block, parts = self._block(), self._divided()
        actions = [part.actions(t, self.agents) for part in parts]
        for results in (block.reward, block.terminated, block.truncated):
            results[t] = 0

        def some(order: Iterator[Any], note: Callable[[int], None]) -> None:
            for i, env in order:
                try:
                    env.step([action for part, all in zip(parts, actions) for action in all[i * len(part.group.agents):][:len(part.group.agents)]])
                    self._write(block, i, t)
                except (Exception, SystemExit) as e:
                    raise EnvFault(i, e) from e
                note(i)

        self._crew.share(some, self.done, self.envs)

    def _write(self, block: Bound, i: int, t: int) -> None:
        """Writes what step t of an environment has brought, and begins its next episode if it has ended."""
        env, first = self.envs[i], i * self.agents
        for k, agent in enumerate(self.source.agents, first):
            block.reward[t, k] = env.rewards.get(agent, 0)
            if agent in env.ended:
                block.terminated[t, k], block.truncated[t, k] = env.ended[agent]
        for part in self._divided():
            for k, agent in enumerate(part.group.agents, first + part.first):
                if agent in env.ended:
                    part.group.observations.writer(part.final_obs, 0)(k, part.seen(env.last(agent)))
        if not env.env.agents:
            env.reset(None)
            self._tell(i, t + 1)
        self._observe(block, i, t + 1)

    def _observe(self, block: Bound, i: int, t: int) -> None:
        """Writes what the agents of an environment observe: zeros, and a mask of ones, for those that do not act."""
        acting = self.envs[i].acting()
        if not acting:
            raise RuntimeError("no agent acts after a reset")
        assert block.active is not None  # the description has it
        for part in self._divided():
            write = part.group.observations.writer(part.obs, t)
            for k, agent in enumerate(part.group.agents, i * self.agents + part.first):
                block.active[t, k] = agent in acting
                if agent not in acting:
                    for column in part.obs:
                        column[t, k] = 0
                    for mask in part.mask:
                        mask[t, k] = 1
                    continue
                observation = self.envs[i].observed(agent)
                write(k, part.seen(observation))
                if part.group.masked:
                    self._write_mask(part, t, k, observation[MASK])

    def _tell(self, i: int, t: int) -> None:
        """Writes the numbers in the infos of the episode that begins in environment i."""
        told = self.envs[i].infos()
        for part in self._divided():
            for k, agent in enumerate(part.group.agents, i * self.agents + part.first):
                infos.write(part.infos, part.group.infos, t, k, told.get(agent))

    def _write_mask(self, part: Part, t: int, row: int, given: Any) -> None:
        flat, at = numpy.ravel(given) != 0, 0
        for mask in part.mask:
            mask[t, row] = flat[at:at + mask.shape[2]]
            at += mask.shape[2]

    def _divided(self) -> list[Part]:
        """The bound block's columns by groups, kept as long as it is bound."""
        block = self._block()
        if self._parts[0] is not block:
            self._parts = block, Part.of(block, self.source.groups)
        return self._parts[1]

    def _block(self) -> Bound:
        if self.bound is None:
            raise RuntimeError("no block is bound")
        return self.bound


class _Together:
    """A parallel environment."""

    def __init__(self, source: Source):
        self.env: Any = source.make()
        self._agents = source.agents
        self.rewards: dict[Any, float] = {}
        self.ended: dict[Any, tuple[bool, bool]] = {}  # agents whose episodes ended in the last step
        self._seen: dict[Any, Any] = {}
        self._infos: dict[Any, dict[str, Any]] = {}

    def reset(self, seed: int | None) -> None:
        self._seen, self._infos = self.env.reset(seed=seed)

    def infos(self) -> dict[Any, dict[str, Any]]:
        """The infos of the agents, by what reset or step returned last."""
        return self._infos

    def acting(self) -> Sequence[Any]:
        """The agents that act now."""
        agents: Sequence[Any] = self.env.agents
        return agents

    def observed(self, agent: Any) -> Any:
        """What an agent observes now, or has observed last."""
        return self._seen[agent]

    def last(self, agent: Any) -> Any:
        """What an agent whose episode has ended has observed last: that of its infos, where it is back in the same step."""
        return self._infos.get(agent, {}).get(FINAL, self._seen[agent])

    def step(self, actions: Sequence[Any]) -> None:
        """Takes the actions of all possible agents."""
        before = list(self.env.agents)
        self._seen, self.rewards, terminations, truncations, self._infos = self.env.step(
            {agent: action for agent, action in zip(self._agents, actions) if agent in before})
        self.ended = {agent: (bool(terminations[agent]), bool(truncations[agent])) for agent in before
                      if terminations[agent] or truncations[agent]}


class _Turns:
    """An AEC environment: one agent acts at a time."""

    def __init__(self, source: Source):
        self.env: Any = source.make()
        self._agents = source.agents
        self.rewards: dict[Any, float] = {}
        self.ended: dict[Any, tuple[bool, bool]] = {}
        self._last: dict[Any, Any] = {}  # observations of agents that have ended in the last step
        self._over: set[Any] = set()

    def reset(self, seed: int | None) -> None:
        self.env.reset(seed=seed)
        self._over = set()
        self._last = {}

    def infos(self) -> dict[Any, dict[str, Any]]:
        """The infos of the agents."""
        infos: dict[Any, dict[str, Any]] = self.env.infos
        return infos

    def acting(self) -> Sequence[Any]:
        """The agent that acts now."""
        return [self.env.agent_selection] if self.env.agents else []

    def observed(self, agent: Any) -> Any:
        """What an agent observes now, or has observed last."""
        return self._last[agent] if agent in self._last else self.env.observe(agent)

    def last(self, agent: Any) -> Any:
        """What an agent whose episode has ended has observed last."""
        return self.observed(agent)

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
