"""Environments of Gymnasium for the host: their description, and how to make them."""

from __future__ import annotations

import hashlib
import importlib
import inspect
import json
import math
import pathlib
import sys
from typing import Any

import gymnasium
from gymnasium import spaces

from .. import spec

# Seeds of the host have 64 bits. Gymnasium takes any whole number, but environments pass it on to generators that take
# 32 bits, such as numpy.random.seed.
SEED_MASK = 0xFFFFFFFF

_WRAP = ("wrap it in one that has a Box, such as gymnasium.wrappers.FlattenObservation, register that, and use "
         '"gymnasium:your.module:YourEnv-v0"')


# Packages that register environments when imported, by the prefix of the ids: module, name for pip.
_PACKAGES = {"ALE/": ("ale_py", "ale-py"), "MinAtar/": ("minatar.gym", "MinAtar"), "MiniGrid-": ("minigrid", "minigrid"),
             "BabyAI-": ("minigrid", "minigrid")}


class Unusable(ValueError):
    """The environment cannot be made, or has a space that the host does not support. The message names it; code is the
    host's: E010 no such id, E018 its spaces, E019 its constructor."""

    def __init__(self, message: str, code: str = "E018"):
        super().__init__(message)
        self.code = code


class Source:
    """One registered environment with its arguments."""

    def __init__(self, use: str, args: dict[str, str] | None = None):
        self.use, self.kwargs = use, keyword_arguments(args or {})
        env = self.make(check=True)
        try:
            self.observation, self.action = env.observation_space, env.action_space
            self.limit = (env.spec.max_episode_steps if env.spec else None) or 0
            self.hash = self._hash(env)
            self.obs_shape = observation_shape(self.observation, use)
            self.spec = self._describe()
        finally:
            env.close()

    def make(self, check: bool = False) -> gymnasium.Env[Any, Any]:
        """Makes one environment; with check Gymnasium warns about its return values."""
        if check:
            self.use = registered(self.use)
        try:
            return gymnasium.make(self.use, disable_env_checker=not check, **self.kwargs)
        except Exception as e:  # the environment's constructor may raise anything
            unknown = isinstance(e, (gymnasium.error.UnregisteredEnv, gymnasium.error.DeprecatedEnv))
            raise Unusable(f"gymnasium.make({self.use!r}): {type(e).__name__}: {e}", "E010" if unknown else "E019") from e

    @property
    def one_hot(self) -> bool:
        """Whether an observation is a number, which the host receives as a one-hot vector."""
        return isinstance(self.observation, spaces.Discrete)

    def _describe(self) -> spec.EnvSpec:
        low, high = bounds(self.observation)

        def observed(role: int) -> spec.Tensor:
            return spec.Tensor(role, "f32", self.obs_shape, low, high, flags=unbounded(low, high))

        tensors = [
            describe_action(self.action, self.use),
            observed(spec.OBSERVATION),
            spec.Tensor(spec.REWARD, "f32"),
            spec.Tensor(spec.TERMINATED, "u8"),
            spec.Tensor(spec.TRUNCATED, "u8"),
            observed(spec.FINAL_OBSERVATION),
        ]
        name = self.use.rpartition(":")[2]
        return spec.EnvSpec(f"{name}@{gymnasium.__version__}", tensors, spec.SAME_STEP | spec.NEXT_STEP | spec.DISABLED,
                            self.limit)

    def _hash(self, env: gymnasium.Env[Any, Any]) -> str:
        """A hash of the environment's source file, its name and arguments, and Gymnasium's version."""
        told = hashlib.sha256(json.dumps([gymnasium.__version__, self.use, self.kwargs], default=str).encode())
        try:
            told.update(pathlib.Path(inspect.getfile(type(env.unwrapped))).read_bytes())
        except (OSError, TypeError):
            pass  # it is not from a file
        return told.hexdigest()


def registered(use: str) -> str:
    """The id with the module that registers it, if the module is known and the id has none."""
    module, pip = next((found for start, found in _PACKAGES.items() if use.startswith(start)), ("", ""))
    if not module or use in gymnasium.registry:
        return use
    try:
        getattr(importlib.import_module(module), "register_envs", lambda: None)()
    except ImportError as e:
        raise Unusable(f"{use} is registered by the module {module}, which cannot be imported ({e}): "
                       f"{sys.executable} -m pip install {pip}; another module that registers it goes before the id: "
                       f'"gymnasium:{module}:{use}"', "E010") from e
    return use


def keyword_arguments(args: dict[str, str]) -> dict[str, Any]:
    """Turns dotted keys and texts into keyword arguments: a value is parsed as JSON, or else a text."""
    made: dict[str, Any] = {}
    for key, text in args.items():
        *path, last = key.split(".")
        into = made
        for part in path:
            into = into.setdefault(part, {})
        try:
            into[last] = json.loads(text)
        except ValueError:
            into[last] = text
    return made


def describe_action(space: spaces.Space[Any], use: str) -> spec.Tensor:
    if isinstance(space, spaces.Discrete):
        return spec.Tensor(spec.ACTION, "i32", n=int(space.n))
    if isinstance(space, spaces.Box):
        low, high = bounds(space)
        return spec.Tensor(spec.ACTION, "f32", checked(space.shape, use), low, high, flags=unbounded(low, high))
    raise Unusable(f"{use} has the action space {space}: rlhost runs Discrete and Box actions; "
                   "wrap it in a gymnasium.ActionWrapper that has one of these")


def observation_shape(space: spaces.Space[Any], use: str) -> tuple[int, ...]:
    if isinstance(space, spaces.Box):
        return checked(space.shape, use)
    if isinstance(space, spaces.Discrete):
        return (int(space.n),)
    raise Unusable(f"{use} has the observation space {space}: rlhost runs Box, and Discrete as a one-hot vector; {_WRAP}")


def checked(shape: tuple[int, ...], use: str) -> tuple[int, ...]:
    if len(shape) > spec.MAX_RANK or 0 in shape:
        raise Unusable(f"{use} has a Box of shape {shape}: rlhost takes up to {spec.MAX_RANK} dimensions, none of them 0")
    return tuple(int(n) for n in shape)


def unbounded(low: float, high: float) -> int:
    """The flags of a Box whose bounds are equal, that is, which has none."""
    return spec.NO_LOW | spec.NO_HIGH if low == high else 0


def bounds(space: spaces.Space[Any]) -> tuple[float, float]:
    """The least and the largest value of any element; 0, 0 if there is none."""
    if isinstance(space, spaces.Discrete):
        return 0.0, 1.0
    assert isinstance(space, spaces.Box)
    low, high = float(space.low.min()), float(space.high.max())
    largest = 3.0e38
    return (low, high) if math.isfinite(low) and math.isfinite(high) and low >= -largest and high <= largest else (0.0, 0.0)
