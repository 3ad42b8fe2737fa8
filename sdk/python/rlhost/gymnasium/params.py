"""Reset parameters: numbers that an environment reads where an episode begins, and that a curriculum sets.

An environment, or a wrapper around it, declares them:

    class Lander(gymnasium.Env):
        reset_params = {"gravity": (9.8, 0.1, 20.0)}  # default, smallest, largest

        def reset(self, seed=None, options=None):
            super().reset(seed=seed)
            self.gravity = (options or {}).get("gravity", 9.8)

The host passes all of them as options of each reset, also where an episode begins by itself: the default where nobody sets one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy

from .. import spec

_Wrapper = gymnasium.Wrapper[Any, Any, Any, Any]


class ResetParams:
    """The declared reset parameters of an environment; false where it has none. ValueError for a wrong declaration."""

    def __init__(self, env: gymnasium.Env[Any, Any]):
        given = env.get_wrapper_attr("reset_params") if env.has_wrapper_attr("reset_params") else {}
        if not isinstance(given, Mapping):
            raise ValueError(f"reset_params is a {type(given).__name__}, want a dict of name: (default, smallest, largest)")
        self._bounds = {name: _bounds(name, of) for name, of in given.items()}

    def __bool__(self) -> bool:
        return bool(self._bounds)

    def tensors(self) -> list[spec.Tensor]:
        """All of them as one tensor, in the order of the declaration: its path has their names."""
        if not self._bounds:
            return []
        of = list(self._bounds.values())
        return [spec.Tensor(spec.RESET_PARAM, "f32", (len(of),), lows=[low for _, low, _ in of], highs=[high for _, _, high in of],
                            path=",".join(self._bounds), flags=spec.OPTIONAL)]

    def options(self, row: numpy.ndarray | None = None) -> dict[str, Any]:
        """Options for a reset from an environment's numbers, of which NaN is none: the defaults without any."""
        values = [math.nan] * len(self._bounds) if row is None else row.ravel().tolist()
        return {name: of[0] if math.isnan(value) else value for (name, of), value in zip(self._bounds.items(), values)}


def _bounds(name: Any, given: Any) -> tuple[float, float, float]:
    """The default, smallest and largest value of a declared parameter."""
    if not isinstance(name, str) or not name.isidentifier():
        raise ValueError(f"reset_params has the name {name!r}: want one such as gravity")
    try:
        default, low, high = (float(x) for x in given)
    except (TypeError, ValueError):
        raise ValueError(f"reset_params[{name!r}] is {given!r:.80}, want three numbers: default, smallest, largest") from None
    if not (low <= default <= high and math.isfinite(low) and math.isfinite(high)):
        raise ValueError(f"reset_params[{name!r}] is {given!r:.80}, want a default between finite bounds: default, smallest, largest")
    return default, low, high


class Attributes(_Wrapper):
    """Makes attributes of an environment its reset parameters: each keyword names one of the innermost environment, with its default,
    smallest and largest value. gym_wrap = [{ use = "rlhost.gymnasium.params:Attributes", gravity = [9.8, 0.1, 20.0] }]"""

    def __init__(self, env: gymnasium.Env[Any, Any], **attributes: Any):
        super().__init__(env)
        for name in attributes:
            if not hasattr(env.unwrapped, name):
                raise ValueError(f"{env} has no attribute {name}: it has {', '.join(sorted(n for n in vars(env.unwrapped) if n[0] != '_'))}")
        inner = env.get_wrapper_attr("reset_params") if env.has_wrapper_attr("reset_params") else {}
        self.reset_params = {**inner, **attributes}
        self._names = list(attributes)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        for name in self._names:
            setattr(self.env.unwrapped, name, (options or {}).get(name, self.reset_params[name][0]))
        return self.env.reset(seed=seed, options=options)
