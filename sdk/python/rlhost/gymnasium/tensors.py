"""Spaces as tensors of the host."""

from __future__ import annotations

import math

import numpy
from gymnasium import spaces

from .. import spec

LARGEST = 3.0e38  # what is larger is written for an unbounded side


def common_start(space: spaces.MultiDiscrete) -> int | None:
    """The first value of all elements; None if they differ."""
    starts = set(space.start.ravel().tolist())
    return starts.pop() if len(starts) == 1 else None


def box(role: int, space: spaces.Box, dtype: str = "f32") -> spec.Tensor:
    """A Box with elements of that type, with bounds of each element where they differ."""
    lows = numpy.where(space.low <= -LARGEST, -math.inf, space.low).ravel().astype(numpy.float32).tolist()
    highs = numpy.where(space.high >= LARGEST, math.inf, space.high).ravel().astype(numpy.float32).tolist()
    t = spec.Tensor(role, dtype, tuple(int(n) for n in space.shape))
    if len(set(lows)) > 1 or len(set(highs)) > 1:
        t.lows, t.highs = lows, highs
        return t
    low, high = lows[0], highs[0]
    t.flags = (spec.NO_LOW if low == -math.inf else 0) | (spec.NO_HIGH if high == math.inf else 0)
    t.low, t.high = (low, max(low, 0.0)) if high == math.inf else (high if low == -math.inf else low, high)
    if t.flags == spec.NO_LOW | spec.NO_HIGH:
        t.low = t.high = 0.0
    return t
