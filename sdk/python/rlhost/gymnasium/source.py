"""Environments of Gymnasium for the host: their description, and how to make them."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import json
import math
import pathlib
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any

import gymnasium
import numpy
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec

from .. import spec
from .infos import numbers
from .infos import tensors as info_tensors
from .observations import Observations
from .params import ResetParams
from .tensors import box, common_start

# Seeds of the host have 64 bits. Gymnasium takes any whole number, but environments pass it on to generators that take
# 32 bits, such as numpy.random.seed.
SEED_MASK = 0xFFFFFFFF
# Others pass it on to an int of C or C++, which has one bit less for it.
SEED_MASK_INT = 0x7FFFFFFF

_WRAP = ('leave a part of a Dict out by args = { drop = ["NAME"] }, or wrap the environment in one that has a Box, such as '
         'args = { gym_wrap = ["gymnasium.wrappers:FlattenObservation"] }')


# Packages that register environments when imported, by the prefix of the ids: module, name for pip.
_PACKAGES = {"ALE/": ("ale_py", "ale-py"), "MinAtar/": ("minatar.gym", "MinAtar"), "MiniGrid-": ("minigrid", "minigrid"),
             "BabyAI-": ("minigrid", "minigrid")}


class Unusable(ValueError):
    """The environment cannot be made, or has a space that the host does not support. The message names it; code is the
    host's: E010 no such id, E018 its spaces, E019 its constructor."""

    def __init__(self, message: str, code: str = "E018"):
        super().__init__(message)
        self.code = code


class Maker:
    """How environments are made: an id, or what "module:name" makes, with arguments. Of these two are ours: drop lists the
    parts of a Dict that nobody learns from, and gym_wrap the wrappers around what is left, the innermost first, as "module:Class" or a
    table of use and the wrapper's own arguments."""

    def __init__(self, use: str, args: Mapping[str, Any]):
        self.kwargs = dict(args)
        self._wrappers = [wrapper(w) for w in listed(self.kwargs.pop("gym_wrap", []))]
        self._dropped = listed(self.kwargs.pop("drop", []))
        self._id = maker(registered(use))

    def make(self, **how: Any) -> gymnasium.Env[Any, Any]:
        """Makes one; how are arguments of gymnasium.make itself."""
        env = gymnasium.make(self._id, **how, **self.kwargs)
        if self._dropped:
            env = self._without(env)
        for made, args in self._wrappers:
            env = made(env, **args)
        return env

    def _without(self, env: gymnasium.Env[Any, Any]) -> gymnasium.Env[Any, Any]:
        """The environment without the parts that are dropped."""
        space = env.observation_space
        if not isinstance(space, spaces.Dict) or not set(self._dropped) < set(space.spaces):
            has = ", ".join(space.spaces) if isinstance(space, spaces.Dict) else str(space)
            raise Unusable(f"drop = {self._dropped}: want some of the parts of a Dict, but not all; the observation is {has}")
        return gymnasium.wrappers.FilterObservation(env, [name for name in space.spaces if name not in self._dropped])


def listed(value: Any) -> list[Any]:
    """A list; a value alone is a list of one."""
    return list(value) if isinstance(value, (list, tuple)) else [value]


def wrapper(given: Any) -> tuple[Any, dict[str, Any]]:
    """A wrapper's class and its arguments."""
    args = dict(given) if isinstance(given, Mapping) else {"use": given}
    module, colon, name = str(args.pop("use", "")).rpartition(":")
    try:
        found = getattr(importlib.import_module(module), name) if colon else None
    except (ImportError, AttributeError) as e:
        raise Unusable(f"gym_wrap {given!r}: {type(e).__name__}: {e}", "E019") from e
    if not callable(found):
        raise Unusable(f'gym_wrap {given!r}: want "module:Class", or a table with use = "module:Class" and the arguments of the class', "E019")
    return found, args


class Source:
    """One registered environment with its arguments."""

    def __init__(self, use: str, args: dict[str, str] | None = None):
        self.use, given = use, keyword_arguments(args or {})
        self.made: Callable[[], None] = lambda: None  # called for each environment
        self._maker = Maker(use, given)
        env = self.make(check=True)
        try:
            self.observation, self.action = env.observation_space, env.action_space
            self.limit = (env.spec.max_episode_steps if env.spec else None) or 0
            self.hash = source_hash(env, gymnasium.__version__, self.use, given)
            self.observations = observed(self.observation, use)
            self.actions = Actions(self.action, use)
            self.params = reset_params(env, use)
            self.seed_mask, first = seeded(env, self.params.options())
            first = first[1] if isinstance(first, tuple) and len(first) == 2 else None
            self.masked = masked(env, first)
            self.infos = numbers(first)  # at reset
            self.picture, self.keys = pictured(env), keys(env)
            self.spec = self._describe()
        finally:
            env.close()

    def make(self, check: bool = False) -> gymnasium.Env[Any, Any]:
        """Makes one environment; with check Gymnasium warns about its return values."""
        try:
            env = self._maker.make(disable_env_checker=not check)
            self.made()
            return env
        except Unusable:
            raise
        except Exception as e:  # the environment's constructor may raise anything
            unknown = isinstance(e, (gymnasium.error.UnregisteredEnv, gymnasium.error.DeprecatedEnv))
            raise Unusable(f"gymnasium.make({self.use!r}): {type(e).__name__}: {e}", "E010" if unknown else "E019") from e

    def _describe(self) -> spec.EnvSpec:
        tensors = [
            *self.actions.tensors,
            *self.observations.tensors(spec.OBSERVATION),
            spec.Tensor(spec.REWARD, "f32"),
            spec.Tensor(spec.TERMINATED, "u8"),
            spec.Tensor(spec.TRUNCATED, "u8"),
            *self.observations.tensors(spec.FINAL_OBSERVATION),
        ]
        if self.masked:
            tensors += self.actions.masks()
        tensors += info_tensors(self.infos) + self.params.tensors()
        name = self.use.rpartition(":")[2]
        return spec.EnvSpec(f"{name}@{gymnasium.__version__}", tensors, spec.SAME_STEP | spec.NEXT_STEP | spec.DISABLED,
                            self.limit, picture=self.picture, keys=self.keys)


def pictured(env: gymnasium.Env[Any, Any]) -> tuple[int, int, float] | None:
    """The size of the environment's pictures and how many a second; None where it does not draw arrays. An episode has begun."""
    if env.render_mode != "rgb_array":
        return None
    try:
        height, width, _ = drawn(env).shape
    except Exception as e:  # the environment's code may raise anything
        raise Unusable(f'render() with render_mode = "rgb_array": {type(e).__name__}: {e}', "E019") from e
    return width, height, float(env.metadata.get("render_fps") or 0)


# _KEYS are the codes of keys that are no character, as pygame has them.
_KEYS = {1073741903: "right", 1073741904: "left", 1073741905: "down", 1073741906: "up", 32: "space", 13: "enter", 9: "tab"}


def keys(env: gymnasium.Env[Any, Any]) -> str:
    """The keys of a person who plays, as get_keys_to_action has them for gymnasium.utils.play, one a line; not those that are held together."""
    if not env.has_wrapper_attr("get_keys_to_action"):
        return ""
    lines = []
    try:
        for held, action in env.get_wrapper_attr("get_keys_to_action")().items():
            codes = [ord(key) if isinstance(key, str) else key for key in held if key is not None]
            key = _KEYS.get(codes[0]) or chr(codes[0]) if codes else "none"
            if len(codes) < 2 and key.isprintable():
                lines.append(f"{key}=" + ",".join(f"{float(x):.9g}" for x in numpy.asarray(action).ravel()))
    except Exception:  # the environment's code may raise anything, and nobody has asked for a game yet
        return ""
    return "\n".join(lines)


def drawn(env: gymnasium.Env[Any, Any]) -> numpy.ndarray:
    """The picture of an environment: rows of pixels of three bytes."""
    picture = numpy.asarray(env.render())  # type: ignore[func-returns-value,unused-ignore]
    if picture.dtype != numpy.uint8 or picture.ndim != 3 or picture.shape[2] != 3:
        raise ValueError(f"a picture of shape {picture.shape} and type {picture.dtype}: want uint8 of [height, width, 3]")
    return picture


def source_hash(env: Any, version: str, use: str, kwargs: dict[str, Any]) -> str:
    """A hash of the environment's source file, its name and arguments, and the version of the package that it is of."""
    told = hashlib.sha256(json.dumps([version, use, kwargs], default=str).encode())
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


def maker(use: str) -> str | EnvSpec:
    """What gymnasium.make takes: the id, or a description of the class or function that "module:name" names. The module may be the path of
    a file."""
    module, colon, name = use.rpartition(":")
    if not colon:
        return use
    try:
        if module.endswith(".py"):
            made: Any = imported(module)
        else:
            made = importlib.import_module(module)
    except Exception as e:  # the module may raise anything
        raise Unusable(f"{use}: its module cannot be imported: {type(e).__name__}: {e}", "E019") from e
    found = None if name in gymnasium.registry else getattr(made, name, None)
    if callable(found):
        return EnvSpec(id=name, entry_point=found)
    return name


def imported(path: str) -> ModuleType:
    """The module in a file, which is not run as a program."""
    name = pathlib.Path(path).stem
    described = importlib.util.spec_from_file_location(name, path)
    if described is None or described.loader is None:
        raise ImportError(f"{path} is no file of Python")
    module = sys.modules[name] = importlib.util.module_from_spec(described)
    described.loader.exec_module(module)
    return module


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


class Actions:
    """The actions of an environment: a tensor for each part of its space, and how a row of them becomes an action."""

    def __init__(self, space: spaces.Space[Any], use: str):
        self._space = space
        self.tensors: list[spec.Tensor] = []
        self._choice = isinstance(space, spaces.Discrete)
        for path, part in _parts(space, ""):
            t = describe_action(part, use)
            t.index, t.path = len(self.tensors), path
            self.tensors.append(t)

    def masks(self) -> list[spec.Tensor]:
        """The masks of the discrete parts, none for a Box."""
        return [spec.Tensor(spec.ACTION_MASK, "u8", (t.choices,), 0, 1, path=t.path, index=i, pair=t.index)
                for i, t in enumerate(t for t in self.tensors if t.choices)]

    def rows(self, columns: Sequence[numpy.ndarray]) -> Sequence[Any]:
        """The actions of all environments from the columns of one row, as the environments take them."""
        made: Sequence[Any] = columns[0].tolist() if self._choice else _actions(self._space, iter(columns))
        return made


def _parts(space: spaces.Space[Any], path: str) -> Iterator[tuple[str, spaces.Space[Any]]]:
    """The parts of a space with their paths: those of a Tuple by number, those of a Dict by name."""
    if isinstance(space, spaces.Tuple):
        inner: Iterator[tuple[Any, spaces.Space[Any]]] = enumerate(space.spaces)
    elif isinstance(space, spaces.Dict):
        inner = iter(space.spaces.items())
    else:
        yield path, space
        return
    for name, part in inner:
        yield from _parts(part, f"{path}/{name}" if path else str(name))


def _actions(space: spaces.Space[Any], columns: Iterator[numpy.ndarray]) -> Any:
    if isinstance(space, spaces.Tuple):
        return list(zip(*[_actions(part, columns) for part in space.spaces]))
    if isinstance(space, spaces.Dict):
        parts = [_actions(part, columns) for part in space.spaces.values()]
        return [dict(zip(space.spaces, values)) for values in zip(*parts)]
    column = next(columns)
    if isinstance(space, spaces.Discrete):
        return column.tolist()
    rows = column.reshape(len(column), *(space.shape or ())).astype(space.dtype)  # a copy: environments may keep their action
    if isinstance(space, spaces.MultiDiscrete) and common_start(space) is None:
        rows += space.start
    return rows


def reset_params(env: gymnasium.Env[Any, Any], use: str) -> ResetParams:
    """The reset parameters of an environment, or why the host cannot take them."""
    try:
        return ResetParams(env)
    except ValueError as e:
        raise Unusable(f"{use}: {e}") from e


def seeded(env: Any, options: Mapping[str, Any] | None = None) -> tuple[int, Any]:
    """The bits of seeds that an environment takes, and what its first reset returns; None where none succeeds."""
    for mask in SEED_MASK, SEED_MASK_INT:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of Gymnasium about what it returns
                return mask, env.reset(seed=mask, **({"options": dict(options)} if options else {}))
        except Exception:  # the host will reset again, and say whose fault it is
            pass
    return SEED_MASK, None


def masked(env: gymnasium.Env[Any, Any], info: Any) -> bool:
    """Whether an environment says which actions are legal: info["action_mask"] of its first reset, or a method action_masks."""
    return env.has_wrapper_attr("action_masks") or isinstance(info, Mapping) and info.get("action_mask") is not None


def describe_action(space: spaces.Space[Any], use: str) -> spec.Tensor:
    """One part of the actions."""
    if isinstance(space, spaces.Discrete):
        return spec.Tensor(spec.ACTION, "i32", n=int(space.n), start=int(space.start))
    if isinstance(space, spaces.MultiDiscrete):
        return spec.Tensor(spec.ACTION, "i32", checked(space.shape, use), counts=space.nvec.ravel().tolist(), start=common_start(space) or 0)
    if isinstance(space, spaces.MultiBinary):
        return spec.Tensor(spec.ACTION, "i32", checked(space.shape, use), n=2, flags=spec.BINARY)
    if isinstance(space, spaces.Box):
        checked(space.shape, use)
        return box(spec.ACTION, space)
    raise Unusable(f"{use} has the action space {space}: rlhost runs Discrete, MultiDiscrete, MultiBinary and Box actions, and a Tuple "
                   "or Dict of them; wrap it in a gymnasium.ActionWrapper that has one of these")


def observed(space: spaces.Space[Any], use: str) -> Observations:
    """What an environment observes, or why the host cannot take it."""
    try:
        observations = Observations(space)
        for tensor in observations.tensors(spec.OBSERVATION):
            checked(tensor.shape, use)
    except TypeError as e:
        raise Unusable(f"{use} has {e}: rlhost runs Box, Discrete, MultiDiscrete, MultiBinary and Text observations, and a Dict or Tuple of "
                       f"them; {_WRAP}") from e
    return observations


def checked(shape: tuple[int, ...], use: str) -> tuple[int, ...]:
    if len(shape) > spec.MAX_RANK or 0 in shape:
        raise Unusable(f"{use} has a Box of shape {shape}: rlhost takes up to {spec.MAX_RANK} dimensions, none of them 0")
    return tuple(int(n) for n in shape)
