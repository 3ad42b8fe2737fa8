"""Environments of PettingZoo for the host: their description, and how to make them."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from typing import Any

import pettingzoo
from gymnasium import spaces

from .. import spec
from ..gymnasium.infos import numbers
from ..gymnasium.infos import tensors as info_tensors
from ..gymnasium.source import Actions, Unusable, keyword_arguments, observed, seeded, source_hash

# The parts of an observation that says which actions are legal.
OBSERVATION, MASK = "observation", "action_mask"


class Group:
    """Agents that share their spaces. Their rows follow those of the group before, in the order of agents."""

    def __init__(self, env: Any, agents: list[Any], name: str, use: str):
        self.agents, self.name = agents, name
        space = env.observation_space(agents[0])
        self.masked = isinstance(space, spaces.Dict) and set(space.spaces) == {OBSERVATION, MASK}
        self.observations = observed(space[OBSERVATION] if self.masked else space, use)
        self.actions = Actions(env.action_space(agents[0]), use)
        self.infos: list[str] = []  # numbers that each agent has at reset
        if self.masked and sum(t.choices for t in self.actions.tensors) != space[MASK].shape[0]:
            raise Unusable(f"{use} has an action_mask of {space[MASK].shape[0]} values for the actions {env.action_space(agents[0])}")

    def tensors(self, group: int) -> list[spec.Tensor]:
        """Describes what each agent observes and does."""
        tensors = [
            *self.actions.tensors,
            *self.observations.tensors(spec.OBSERVATION),
            spec.Tensor(spec.REWARD, "f32"),
            spec.Tensor(spec.TERMINATED, "u8"),
            spec.Tensor(spec.TRUNCATED, "u8"),
            *self.observations.tensors(spec.FINAL_OBSERVATION),
            *(self.actions.masks() if self.masked else []),
            spec.Tensor(spec.ACTIVE, "u8"),
            *info_tensors(self.infos),
        ]
        for tensor in tensors:
            tensor.flags |= spec.PER_AGENT
            tensor.group = group
        return tensors


class Source:
    """A function that makes environments, with its arguments."""

    def __init__(self, use: str, args: dict[str, str] | None = None):
        self.use, self.kwargs = use, keyword_arguments(args or {})
        self.made: Callable[[], None] = lambda: None  # called for each environment
        self._factory = factory(use)
        env = self.make()
        try:
            self.turns = isinstance(env, pettingzoo.AECEnv)
            self.groups = self._divide(env)
            self.agents: list[Any] = [agent for group in self.groups for agent in group.agents]
            self._find_infos(env)
            self.hash = source_hash(env, pettingzoo.__version__, self.use, self.kwargs)
            self.spec = self._describe(env)
        finally:
            env.close()

    def make(self) -> Any:
        """Makes one environment."""
        try:
            env = self._factory(**self.kwargs)
            self.made()
            return env
        except Exception as e:  # it may raise anything
            raise Unusable(f"{self.use}: {type(e).__name__}: {e}", "E019") from e

    def _divide(self, env: Any) -> list[Group]:
        """Puts agents of equal spaces into a group."""
        alike: list[list[Any]] = []
        for agent in getattr(env, "possible_agents", None) or []:
            for group in alike:
                if (env.observation_space(agent), env.action_space(agent)) == (env.observation_space(group[0]), env.action_space(group[0])):
                    group.append(agent)
                    break
            else:
                alike.append([agent])
        if not alike:
            raise Unusable(f"{self.use} has no possible_agents: which agents there will be must be known before it begins")
        return [Group(env, agents, name, self.use) for agents, name in zip(alike, names(alike))]

    def _find_infos(self, env: Any) -> None:
        """Resets the environment, and finds the numbers in the infos of all agents of a group."""
        self.seed_mask, given = seeded(env)
        try:
            infos = env.infos if self.turns else given[1]
        except Exception:  # the host will ask for it again, and say whose fault it is
            return
        for group in self.groups:
            of_all = [numbers(infos.get(agent)) for agent in group.agents]
            group.infos = [name for name in of_all[0] if all(name in of_one for of_one in of_all)]

    def _describe(self, env: Any) -> spec.EnvSpec:
        tensors = [tensor for i, group in enumerate(self.groups) for tensor in group.tensors(i)]
        name = (getattr(env, "metadata", None) or {}).get("name") or self.use.rpartition(".")[2]
        groups = tuple((group.name, len(group.agents)) for group in self.groups) if len(self.agents) > 1 else ()
        return spec.EnvSpec(f"{name}@{pettingzoo.__version__}", tensors, spec.SAME_STEP, groups=groups)


def names(groups: list[list[Any]]) -> list[str]:
    """The names of groups: what their agents' names have before the number, such as adversary of adversary_0, where that tells them apart."""
    if len(groups) == 1:
        return ["agents"]
    before = [{re.sub(r"[_ /]*[0-9]*$", "", str(agent)) for agent in group} for group in groups]
    found = [re.sub(r"[/ ]", "_", next(iter(name))) if len(name) == 1 else "" for name in before]
    return [name if name and found.count(name) == 1 else f"group{i}" for i, name in enumerate(found)]


def factory(use: str) -> Any:
    """The function that a name such as package.module or package.module:function means."""
    module, _, name = use.partition(":")
    try:
        found = importlib.import_module(module)
    except ImportError as e:
        raise Unusable(f"the module {module} cannot be imported: {e}", "E010") from e
    for name in [name] if name else ["parallel_env", "env"]:
        if callable(made := getattr(found, name, None)):
            return made
    raise Unusable(f"the module {module} has no function {name if ':' in use else 'parallel_env or env'}", "E010")
