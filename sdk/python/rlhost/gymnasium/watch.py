"""Warnings about environments that run but are probably wrong. Each is logged once per process."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy
from gymnasium import spaces

from .observations import misshapen, part_of

if TYPE_CHECKING:
    from .source import Source

STEPS = 64  # checked steps of a batch: more would cost too much

_said: set[tuple[str, str]] = set()


class Watch:
    """Checks the observations of one batch of a source."""

    def __init__(self, source: Source):
        self._source = source
        self._boxes = [(keys, space) for keys, space in source.observations.parts if isinstance(space, spaces.Box)]
        for keys, space in self._boxes:
            if is_image(space) and space.dtype != numpy.uint8:
                self._say("image", f"observes images {space.shape} of numbers from 0 to {space.high.max():g}{_at(keys)} in {space.dtype}: "
                          "as uint8 they take a quarter of the memory or less, and enter the network scaled")

    def look(self, i: int, obs: Any, info: Mapping[str, Any]) -> None:
        """Checks what reset or step of environment i returned. ValueError if the observation has another shape than its
        space: writing it would repeat or cut it."""
        if isinstance(info, Mapping) and "action_mask" in info and not self._source.masked:
            self._say("mask", "returns info[\"action_mask\"] in some steps and not in the first reset, so it is not used: the policy takes "
                      "forbidden actions too")
        for keys, space, part in self._shaped(obs):
            outside = (part < space.low) | (part > space.high)
            if outside.any():
                at = tuple(int(k) for k in numpy.argwhere(outside)[0])
                self._say("bounds", f"observes {part[at]:g} at {list(at)}{_at(keys)} (environment {i} of its batch), outside of its "
                          f"space's bounds {space.low[at]:g} to {space.high[at]:g}: correct the space or the observation")

    def shape(self, obs: Any) -> None:
        """The part of look that raises."""
        for _ in self._shaped(obs):
            pass

    def _shaped(self, obs: Any) -> Iterator[tuple[tuple[Any, ...], spaces.Box, numpy.ndarray]]:
        """The parts that have a shape, with their keys and spaces."""
        for keys, space in self._boxes:
            part = numpy.asarray(part_of(obs, keys))
            if part.shape != space.shape:
                raise misshapen(part, keys, space.shape)
            yield keys, space, part

    def _say(self, what: str, text: str) -> None:
        if (self._source.use, what) not in _said:
            _said.add((self._source.use, what))
            logging.getLogger("rlhost.gymnasium").warning("%s %s", self._source.use, text, extra={"fields": {"@once": True}})


def _at(keys: tuple[Any, ...]) -> str:
    return f" of {'/'.join(map(str, keys))}" if keys else ""


def is_image(space: spaces.Box) -> bool:
    """Whether a space is unscaled pixels: two dimensions or more, from 0 to 255."""
    return len(space.shape) >= 2 and float(space.low.min()) >= 0 and float(space.high.max()) == 255
