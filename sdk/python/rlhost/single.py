"""One environment of the host as an environment of Gymnasium."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium
import numpy
from gymnasium.vector.utils import iterate

from . import pipelines
from .vector import make_vec


class Single(gymnasium.Env[Any, Any]):
    """An environment that make_vec makes, alone. It draws no end: where an episode ends, the host begins the next one at once."""

    begins_at_once = True

    def __init__(self, env: pipelines.Env, args: Mapping[str, Any] | None = None, wrap: Sequence[Mapping[str, Any]] | None = None, camera: int = 0):
        self._venv, self._camera = make_vec(env, 1, args=args, wrap=wrap), camera
        self.observation_space, self.action_space = self._venv.single_observation_space, self._venv.single_action_space
        self.metadata = self._venv.metadata
        self.render_mode = "rgb_array"

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        obs, info = self._venv.reset(seed=None if seed is None else [seed])
        return self._one(obs), self._told(info)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        obs, reward, terminated, truncated, info = self._venv.step(_batch(self.action_space, action))
        return self._one(info.get("final_obs", obs)), float(reward[0]), bool(terminated[0]), bool(truncated[0]), self._told(info)

    def render(self) -> Any:
        return self._venv.render(self._camera)[0]

    def close(self) -> None:
        self._venv.close()

    def _one(self, obs: Any) -> Any:
        return next(iter(iterate(self._venv.observation_space, obs)))

    def _told(self, info: dict[str, Any]) -> dict[str, Any]:
        mask = info.get("action_mask")
        if mask is None:
            return {}
        return {"action_mask": tuple(m[0] for m in mask) if isinstance(mask, tuple) else mask[0]}


def _batch(space: gymnasium.Space[Any], action: Any) -> Any:
    """An action as a batch of one."""
    if isinstance(space, gymnasium.spaces.Dict):
        return {name: _batch(part, action[name]) for name, part in space.spaces.items()}
    if isinstance(space, gymnasium.spaces.Tuple):
        return tuple(_batch(part, a) for part, a in zip(space.spaces, action))
    return numpy.asarray(action)[None]
