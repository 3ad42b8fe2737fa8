"""The network of a policy as the host describes it: inputs, nodes, heads, and the tensors of its parameters."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .layout import Box, Discrete, _actions
from .spec import EnvSpec

if TYPE_CHECKING:
    from .host import Host

_INITIAL = ("gain", "init")  # attributes of nodes that only say how parameters begin


@dataclasses.dataclass(frozen=True)
class Network:
    """A network of any kind that the host has, or one of your own."""

    env: EnvSpec  # for the agents that the policy plays
    actions: tuple[Discrete | Box, ...]  # of the environment, one for each part of a Dict or Tuple
    description: dict[str, Any]  # inputs, nodes, policy, values, as saved states and exported files have it
    shapes: dict[str, tuple[int, ...]]  # of the tensors of parameters by name, in their order

    @classmethod
    def of(cls, host: Host, policy: str) -> Network:
        """That of a policy by its name."""
        known = host.policies[policy]
        if not known.network:
            raise ValueError(f"policy {policy!r}: the host did not describe its network")
        env = host.env(known.env).of_group(known.group)
        return cls(env, _actions(env, known.table.get("action") or {}), known.network, known.params)

    @property
    def external(self) -> bool:
        """Whether it is one of your own."""
        return any("external" in n for n in self.description["nodes"])

    @property
    def chunk(self) -> int:
        """Rows that are learned from together by a network that keeps a state; 0 where it keeps none."""
        return int(self.description.get("chunk", 0))

    @property
    def running(self) -> list[int]:
        """Which of the numbers that enter do so by the running statistics."""
        places: list[int] = []
        at = 0
        for i in self.description["inputs"]:
            width = _product(i["shape"])
            if i.get("norm") == "onehot":
                counts = i["choices"]
                width = sum(counts) if len(counts) == width else width * counts[0]
            elif i.get("norm") == "running":
                places += range(at, at + width)
            at += width * max(i.get("stack", 1), 1)
        return places

    def tensors(self) -> dict[str, tuple[int, ...]]:
        """The parameters' shapes by name."""
        return self.shapes

    def network(self) -> dict[str, Any]:
        """The description."""
        return self.description

    def check(self, network: Mapping[str, Any]) -> None:
        """Raises ValueError unless a network that a state has is this one, but for initial values and chunks."""
        was, now = _lines(network), _lines(self.description)
        for a, b in zip(was + ["nothing more"] * len(now), now + ["nothing more"] * len(was)):
            if a != b:
                raise ValueError(f"the saved policy has {a}, the pipeline's {b}")


def _lines(network: Mapping[str, Any]) -> list[str]:
    """What two descriptions of one function have in common, a line for each part."""
    lines = []
    for kind in ("inputs", "nodes", "policy", "values"):
        for part in network.get(kind) or []:
            lines.append(json.dumps(_plain(part), sort_keys=True))
    return lines


def _plain(part: Any) -> Any:
    if isinstance(part, dict):
        return {key: _plain(value) for key, value in part.items() if key not in _INITIAL}
    return [_plain(x) for x in part] if isinstance(part, list) else part


def _product(shape: Any) -> int:
    n = 1
    for size in shape:
        n *= size
    return n
