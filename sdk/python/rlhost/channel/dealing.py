"""Work for several receivers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from .errors import Invalid, error


def deal(weights: Sequence[float], parts: int, how: Literal["longest_first", "least_loaded", "by_weight"] = "longest_first") -> list[list[int]]:
    """Which items each of several receivers gets, by their indices, so that all weigh about the same.

    ``longest_first`` gives the heaviest item first, each to the receiver that has least; ``least_loaded`` does so in the order of the items;
    ``by_weight`` gives each receiver a run of items."""
    if parts < 1 or not all(0 <= w < math.inf for w in weights):
        raise error(Invalid, f"{len(weights)} weights for {parts} parts: want numbers of 0 or more, and 1 part or more")
    dealt: list[list[int]] = [[] for _ in range(parts)]
    if how == "by_weight":
        total, before = sum(weights), 0.0
        for i, w in enumerate(weights):
            p = int((before + w / 2) / total * parts) if total > 0 else parts * i // len(weights)
            dealt[min(p, parts - 1)].append(i)
            before += w
        return dealt
    if how not in ("longest_first", "least_loaded"):
        raise error(Invalid, f"how={how!r}: want longest_first, least_loaded or by_weight")
    order = sorted(range(len(weights)), key=lambda i: -weights[i]) if how == "longest_first" else range(len(weights))
    loads = [(0.0, 0, p) for p in range(parts)]
    for i in order:
        load, n, p = min(loads)
        loads[p] = (load + weights[i], n + 1, p)
        dealt[p].append(i)
    return dealt
