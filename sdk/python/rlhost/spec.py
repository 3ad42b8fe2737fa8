"""Descriptions of environments, in the host's layout."""

from __future__ import annotations

import dataclasses
import math
import struct

# Roles of tensors.
ACTION, OBSERVATION, REWARD, TERMINATED, TRUNCATED, ACTION_MASK, FINAL_OBSERVATION = range(1, 8)
# Modes of autoreset, one bit each.
NEXT_STEP, SAME_STEP, DISABLED = 1, 2, 4

DTYPES = ["", "u8", "i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64", "bool"]
MAX_RANK = 6

_ABI = (1, 0)
_HEAD = struct.Struct("<IHHIIIIII32s")
_TENSOR = struct.Struct("<HHBBH6IffI20s")


@dataclasses.dataclass
class Tensor:
    """One tensor of one environment, without batch or time dimension."""

    role: int
    dtype: str
    shape: tuple[int, ...] = ()
    low: float = 0.0  # bounds of a Box; equal = unbounded
    high: float = 0.0
    n: int = 0  # values of a Discrete tensor, 0 = Box
    name: str = ""
    index: int = 0

    @property
    def elems(self) -> int:
        """Elements of one environment."""
        return math.prod(self.shape)

    def pack(self) -> bytes:
        shape = (*self.shape, *[0] * (MAX_RANK - len(self.shape)))
        return _TENSOR.pack(self.role, self.index, DTYPES.index(self.dtype), len(self.shape), 0, *shape, self.low,
                            self.high, self.n, self.name.encode()[:20])

    @classmethod
    def unpack(cls, data: bytes) -> Tensor:
        role, index, dtype, rank, _, *rest = _TENSOR.unpack(data)
        low, high, n, name = rest[MAX_RANK:]
        if rank > MAX_RANK or not 0 < dtype < len(DTYPES):
            raise ValueError(f"tensor of rank {rank} and type {dtype}")
        return cls(role, DTYPES[dtype], tuple(rest[:rank]), low, high, n, name.split(b"\0")[0].decode(), index)


@dataclasses.dataclass
class EnvSpec:
    """An environment's description."""

    name: str  # name@version
    tensors: list[Tensor]
    autoreset: int = SAME_STEP
    episode_limit: int = 0  # time limit that the environment applies itself, 0 = none
    max_envs: int = 0
    caps: int = 0
    agents: int = 1

    def tensor(self, role: int) -> Tensor | None:
        """The first tensor of a role."""
        return next((t for t in self.tensors if t.role == role), None)

    @property
    def obs_elems(self) -> int:
        """Elements of one environment's observation."""
        t = self.tensor(OBSERVATION)
        return t.elems if t else 0

    @property
    def actions(self) -> int:
        """Values of a Discrete action, 0 if it is a Box."""
        t = self.tensor(ACTION)
        return t.n if t else 0

    def pack(self) -> bytes:
        """The description in the host's layout."""
        head = _HEAD.pack(_HEAD.size, *_ABI, self.caps, self.agents, self.max_envs, self.episode_limit,
                          len(self.tensors), self.autoreset, self.name.encode()[:31])
        return head + b"".join(t.pack() for t in self.tensors)

    @classmethod
    def unpack(cls, data: bytes) -> EnvSpec:
        """Reads a description; ValueError or struct.error for invalid bytes."""
        size, major, _, caps, agents, max_envs, limit, count, autoreset, name = _HEAD.unpack_from(data)
        if major != _ABI[0] or size < _HEAD.size or count > 64 or size + count * _TENSOR.size > len(data):
            raise ValueError("not a description of an environment")
        tensors = [Tensor.unpack(data[at:at + _TENSOR.size])
                   for at in range(size, size + count * _TENSOR.size, _TENSOR.size)]
        return cls(name.split(b"\0")[0].decode(errors="replace"), tensors, autoreset, limit, max_envs, caps, agents)
