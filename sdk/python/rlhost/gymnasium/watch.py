"""Warnings about environments that run but are probably wrong. Each is logged once per process."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy
from gymnasium import spaces

if TYPE_CHECKING:
    from .source import Source

STEPS = 64  # checked steps of a batch: more would cost too much

_said: set[tuple[str, str]] = set()


class Watch:
    """Checks the observations of one batch of a source."""

    def __init__(self, source: Source):
        self._source, self._space = source, source.observation
        if isinstance(self._space, spaces.Box) and is_image(self._space):
            self._say("image", f"observes images {self._space.shape} of numbers from 0 to {self._space.high.max():g}: the network gets "
                      "them flat, as unscaled float32, which learns badly and is slow; gymnasium.wrappers can make them grey, small and "
                      "from 0 to 1, and normalize_obs = true of the policy scales them")

    def look(self, i: int, obs: Any, info: Mapping[str, Any]) -> None:
        """Checks what reset or step of environment i returned. ValueError if the observation has another shape than its
        space: writing it would repeat or cut it."""
        if isinstance(info, Mapping) and "action_mask" in info and not self._source.masked:
            self._say("mask", "returns info[\"action_mask\"] in some steps and not in the first reset, so it is not used: the policy takes "
                      "forbidden actions too")
        if not isinstance(self._space, spaces.Box):
            return
        self.shape(obs)
        outside = (numpy.asarray(obs) < self._space.low) | (numpy.asarray(obs) > self._space.high)
        if outside.any():
            at = tuple(int(k) for k in numpy.argwhere(outside)[0])
            self._say("bounds", f"observes {numpy.asarray(obs)[at]:g} at {list(at)} (environment {i} of its batch), outside of its "
                      f"space's bounds {self._space.low[at]:g} to {self._space.high[at]:g}: correct the space or the observation")

    def shape(self, obs: Any) -> None:
        """The part of look that raises."""
        if isinstance(self._space, spaces.Box) and numpy.shape(obs) != self._space.shape:
            raise ValueError(f"the observation has shape {numpy.shape(obs)}, its space {self._space.shape}")

    def _say(self, what: str, text: str) -> None:
        if (self._source.use, what) not in _said:
            _said.add((self._source.use, what))
            logging.getLogger("rlhost.gymnasium").warning("%s %s", self._source.use, text)


def is_image(space: spaces.Box) -> bool:
    """Whether a space is unscaled pixels: two dimensions or more, from 0 to 255."""
    return len(space.shape) >= 2 and float(space.low.min()) >= 0 and float(space.high.max()) == 255
