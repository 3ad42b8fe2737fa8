"""Environments of PettingZoo for the host: their description, and how to make them."""

from __future__ import annotations

import importlib
from typing import Any

import pettingzoo
from gymnasium import spaces

from .. import spec
from ..gymnasium.source import Actions, Unusable, keyword_arguments, observed, source_hash

# The parts of an observation that says which actions are legal.
OBSERVATION, MASK = "observation", "action_mask"


class Source:
    """A function that makes environments, with its arguments."""

    def __init__(self, use: str, args: dict[str, str] | None = None):
        self.use, self.kwargs = use, keyword_arguments(args or {})
        self._factory = factory(use)
        env = self.make()
        try:
            self.agents: list[Any] = list(env.possible_agents)
            self.turns = isinstance(env, pettingzoo.AECEnv)
            self._read_spaces(env)
            self.hash = source_hash(env, pettingzoo.__version__, self.use, self.kwargs)
            self.spec = self._describe(env)
        finally:
            env.close()

    def make(self) -> Any:
        """Makes one environment."""
        try:
            return self._factory(**self.kwargs)
        except Exception as e:  # it may raise anything
            raise Unusable(f"{self.use}: {type(e).__name__}: {e}", "E019") from e

    def _read_spaces(self, env: Any) -> None:
        """Takes the spaces of all agents, which must be the same."""
        if not self.agents:
            raise Unusable(f"{self.use} has no possible_agents")
        first = self.agents[0]
        for what, space_of in (("observation", env.observation_space), ("action", env.action_space)):
            for agent in self.agents[1:]:
                if space_of(agent) != space_of(first):
                    raise Unusable(f"{self.use} has agents with unequal spaces: {first!r} has the {what} space {space_of(first)} and {agent!r} "
                                   f"{space_of(agent)}. They would need a policy each, which rlhost does not run yet; pad them to be equal, "
                                   "as supersuit.pad_observations_v0 and pad_action_space_v0 do")
        space = env.observation_space(first)
        self.masked = isinstance(space, spaces.Dict) and set(space.spaces) == {OBSERVATION, MASK}
        self.observations = observed(space[OBSERVATION] if self.masked else space, self.use)
        self.actions = Actions(env.action_space(first), self.use)
        if self.masked and sum(t.choices for t in self.actions.tensors) != space[MASK].shape[0]:
            raise Unusable(f"{self.use} has an action_mask of {space[MASK].shape[0]} values for the actions {env.action_space(first)}")

    def _describe(self, env: Any) -> spec.EnvSpec:
        tensors = [
            *self.actions.tensors,
            *self.observations.tensors(spec.OBSERVATION),
            spec.Tensor(spec.REWARD, "f32"),
            spec.Tensor(spec.TERMINATED, "u8"),
            spec.Tensor(spec.TRUNCATED, "u8"),
            *self.observations.tensors(spec.FINAL_OBSERVATION),
            *(self.actions.masks() if self.masked else []),
            spec.Tensor(spec.ACTIVE, "u8"),
        ]
        for tensor in tensors:
            tensor.flags |= spec.PER_AGENT
        name = (getattr(env, "metadata", None) or {}).get("name") or self.use.rpartition(".")[2]
        return spec.EnvSpec(f"{name}@{pettingzoo.__version__}", tensors, spec.SAME_STEP, agents=len(self.agents))


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
