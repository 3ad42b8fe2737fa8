"""What environments of Gymnasium observe: a tensor for each part of the space."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy
from gymnasium import spaces

from .. import spec
from .tensors import box, common_start

# Types of a Box's elements that the host has; others are written as the next larger one.
_DTYPES = {"uint8": "u8", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "bool": "u8", "uint16": "i32",
           "uint32": "i64", "uint64": "i64"}
_CHANNELS = (1, 3, 4)  # of pictures, by which the axis of channels is found


class Observations:
    """The observations of an environment. Parts of a Dict have their keys as paths, parts of a Tuple their numbers."""

    def __init__(self, space: spaces.Space[Any]):
        self.parts = list(_parts(space, ()))
        self.whole = len(self.parts) == 1 and not self.parts[0][0] and not isinstance(space, spaces.Text)  # neither Dict nor Tuple

    def tensors(self, role: int) -> list[spec.Tensor]:
        """The tensors of a role: the observations, or the last ones of an episode."""
        made = []
        for index, (keys, space) in enumerate(self.parts):
            try:
                tensor = describe(role, space)
            except TypeError as e:
                raise TypeError(f"{e} as {'/'.join(map(str, keys))!r}" if keys else str(e)) from None
            tensor.path, tensor.index = "/".join(map(str, keys)), index
            tensor.pair = index if role == spec.FINAL_OBSERVATION else 0
            made.append(tensor)
        return made

    def writer(self, columns: Sequence[numpy.ndarray], t: int) -> Callable[[int, Any], None]:
        """Returns a function that writes what an environment observes to its place in step t of each column."""
        if self.whole:
            whole, shape = columns[0][t], self.parts[0][1].shape

            if not shape:
                put: Callable[[int, Any], None] = whole.__setitem__
                return put

            def write_whole(env: int, obs: Any) -> None:
                if (obs.shape if isinstance(obs, numpy.ndarray) else numpy.shape(obs)) != shape:  # it would be repeated
                    raise misshapen(obs, (), shape)
                whole[env] = obs

            return write_whole
        parts = [(column[t], keys, space.shape, isinstance(space, spaces.Text)) for column, (keys, space) in zip(columns, self.parts)]

        def write(env: int, obs: Any) -> None:
            for column, keys, shape, text in parts:
                part = part_of(obs, keys)
                if text:
                    part = characters(part, column.shape[1])
                elif shape and numpy.shape(part) != shape:
                    raise misshapen(part, keys, shape)
                column[env] = part

        return write


def characters(text: Any, length: int) -> numpy.ndarray:
    """A text as the bytes of its UTF-8, cut or with zeros behind them to a length."""
    if not isinstance(text, str):
        raise ValueError(f"the observation {text!r:.80} is a {type(text).__name__}, its space has texts")
    return numpy.frombuffer(text.encode()[:length].ljust(length, b"\0"), numpy.uint8)


def misshapen(part: Any, keys: tuple[Any, ...], shape: tuple[int, ...] | None) -> ValueError:
    """The error of an observation, or a part of one, that does not have the shape of its space."""
    of = f" of {'/'.join(map(str, keys))}" if keys else ""
    return ValueError(f"the observation{of} has shape {numpy.shape(part)}, its space {shape}")


def part_of(obs: Any, keys: tuple[Any, ...]) -> Any:
    """The part of an observation to which keys lead."""
    for key in keys:
        obs = obs[key]
    return obs


def _parts(space: spaces.Space[Any], keys: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], spaces.Space[Any]]]:
    """The parts of a space with the keys that lead to them."""
    if isinstance(space, spaces.Dict):
        inner: Iterator[tuple[Any, spaces.Space[Any]]] = iter(space.spaces.items())
    elif isinstance(space, spaces.Tuple):
        inner = enumerate(space.spaces)
    else:
        yield keys, space
        return
    for key, part in inner:
        yield from _parts(part, (*keys, key))


def describe(role: int, space: spaces.Space[Any]) -> spec.Tensor:
    """One part as a tensor; TypeError for a space that the host does not have."""
    if isinstance(space, spaces.Discrete):
        return spec.Tensor(role, "i32", n=int(space.n), start=int(space.start))
    if isinstance(space, spaces.MultiDiscrete) and (start := common_start(space)) is not None:
        return spec.Tensor(role, "i32", space.shape, counts=[int(n) for n in space.nvec.ravel()], start=start)
    if isinstance(space, spaces.MultiBinary):
        return spec.Tensor(role, "u8", space.shape, n=2, flags=spec.BINARY)
    if isinstance(space, spaces.Box):
        tensor = box(role, space, _DTYPES.get(space.dtype.name, "f32") if space.dtype else "f32")
        if len(space.shape) == 3 and tensor.dtype == "u8":
            first = space.shape[0] in _CHANNELS and space.shape[2] not in _CHANNELS
            tensor.flags |= spec.IMAGE_CHW if first else spec.IMAGE_HWC
            tensor.scale = 1 / 255 if tensor.high > 1 else 1.0
        return tensor
    if isinstance(space, spaces.Text):
        return spec.Tensor(role, "u8", (int(space.max_length),), 0.0, 255.0)
    raise TypeError(f"the observation space {space}")
