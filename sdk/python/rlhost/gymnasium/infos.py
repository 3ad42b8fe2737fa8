"""Numbers in what a reset returns as its info: the host gathers them with the episode that begins."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy

from .. import spec

_MOST, _NAME_BYTES = 16, 58  # names, and bytes of one: behind reset/ a metric has 64


def number(value: Any) -> bool:
    """Whether a value of an info is one number."""
    return isinstance(value, (bool, int, float, numpy.bool_, numpy.integer, numpy.floating))


def flat(info: Any, before: str = "") -> Iterator[tuple[str, Any]]:
    """The values of an info with their names; a value of a dict in it has a name such as stats/score."""
    if not isinstance(info, Mapping):
        return
    for name, value in info.items():
        if not isinstance(name, str):
            continue
        if isinstance(value, Mapping):
            yield from flat(value, f"{before}{name}/")
        else:
            yield before + name, value


def numbers(info: Any) -> list[str]:
    """The names of numbers in an info, the first sixteen in the order of the alphabet."""
    named = [name for name, value in flat(info) if number(value)]
    return sorted(name for name in named if 0 < len(name.encode(errors="replace")) <= _NAME_BYTES and name.isprintable())[:_MOST]


def _value(info: Any, name: str) -> Any:
    """The value of a name as flat has it; None where there is none."""
    if not isinstance(info, Mapping):
        return None
    if name in info:
        return info[name]
    first, slash, rest = name.partition("/")
    return _value(info.get(first), rest) if slash else None


def tensors(names: Sequence[str]) -> list[spec.Tensor]:
    """A tensor for each name, which the host need not have."""
    return [spec.Tensor(spec.RESET_INFO, "f32", path=f"reset/{name}", index=i, flags=spec.OPTIONAL) for i, name in enumerate(names)]


def write(columns: Sequence[numpy.ndarray], names: Sequence[str], t: int, row: int, info: Any) -> None:
    """Writes the numbers of an info at t, 0 for what it lacks."""
    for column, name in zip(columns, names):
        value = _value(info, name)
        column[t, row] = value if number(value) else 0
