"""Pipeline files from Python's values."""

from __future__ import annotations

import json
import math
import os
import pathlib
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any

# What an environment is: an id of Gymnasium, name@version, pettingzoo:MODULE, the path of a module, or what makes one.
Env = Any

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_BUILT_IN = re.compile(r"[a-z0-9_-]+@[0-9]+")
_PLUGIN = re.compile(r"(gymnasium|pettingzoo):.")


def toml(value: Any) -> str:
    """A value as TOML writes it in one line."""
    if hasattr(value, "tolist"):
        value = value.tolist()  # of NumPy
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (str, pathlib.PurePath)):
        return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(k)} = {toml(v)}" for k, v in value.items()) + " }"
    if isinstance(value, (Sequence, range)):
        return "[" + ", ".join(map(toml, value)) + "]"
    raise TypeError(f"{value!r} is a {type(value).__name__}, which TOML cannot write: want a bool, number, str, path, list or dict")


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else json.dumps(name)


def table(name: str, keys: Mapping[str, Any]) -> str:
    """A table with its keys; those that are None are left out, and so is a table of nothing."""
    lines = [f"{_key(k)} = {toml(v)}\n" for k, v in keys.items() if v is not None]
    return f"[{name}]\n{''.join(lines)}\n" if lines else ""


def use(env: Env) -> str:
    """How a pipeline names an environment."""
    if isinstance(env, (str, pathlib.PurePath)):
        text = str(env)
        if text.endswith(".wasm"):
            return os.path.abspath(text)
        if _BUILT_IN.fullmatch(text) or _PLUGIN.match(text):
            return text
        return "gymnasium:" + text
    if hasattr(env, "entry_point") and hasattr(env, "id"):  # a gymnasium.envs.registration.EnvSpec
        return f"gymnasium:{env.id}"
    if callable(env):
        return f"gymnasium:{_home(env)}:{env.__qualname__}"
    raise TypeError(f"{env!r} is no environment: want an id of Gymnasium, name@version, the path of a module, or a class or function that makes one")


def _home(env: Any) -> str:
    """The module of a class or function, or the file of a script, that another process can import it from."""
    name = getattr(env, "__qualname__", "")
    if not name.isidentifier():
        where = "a lambda" if "<lambda>" in name else f"{name or env!r}, which is not at the top of a module"
        raise TypeError(f"the environment is {where}: environments run in processes of their own, which import them by name. "
                        "Write a class or a function at the top of a module")
    if env.__module__ != "__main__":
        return str(env.__module__)
    main = sys.modules["__main__"]
    if spec := getattr(main, "__spec__", None):  # python -m
        return str(spec.name)
    if file := getattr(main, "__file__", None):
        return os.path.abspath(str(file))
    raise TypeError(f"{name} is defined in a notebook or at a prompt: environments run in processes of their own, which cannot import it. "
                    f"Write it into a module (%%writefile my_env.py) and import it: from my_env import {name}")


def name_of(use: str) -> str:
    """A name for runs of an environment, such as cartpole of gymnasium:CartPole-v1."""
    last = re.split(r"[:/]", use)[-1]
    last = re.sub(r"(-v\d+|@\d+|\.wasm)$", "", last).lower()
    return re.sub(r"[^a-z0-9_-]+", "-", last).strip("-") or "run"
