"""Descriptions of environments, in the host's layout."""

from __future__ import annotations

import dataclasses
import math
import struct
from collections.abc import Sequence

# Roles of tensors.
ACTION, OBSERVATION, REWARD, TERMINATED, TRUNCATED, ACTION_MASK, FINAL_OBSERVATION, ACTIVE, INFO = range(1, 10)
RESET_PARAM, RESET_INFO = 14, 18
# Modes of autoreset, one bit each.
NEXT_STEP, SAME_STEP, DISABLED = 1, 2, 4

DTYPES = ["", "u8", "i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64", "bool"]
MAX_RANK = 6

# Flags of tensors.
PER_AGENT, AT_T, AT_T1, NO_TIME, OPTIONAL, CRITICAL, NO_LOW, NO_HIGH, IMAGE_HWC, IMAGE_CHW, _RESERVED, BINARY, EPISODE = (
    1 << i for i in range(13))

_TIME = {ACTION: AT_T, OBSERVATION: AT_T1, REWARD: AT_T, TERMINATED: AT_T, TRUNCATED: AT_T, ACTION_MASK: AT_T1,
         FINAL_OBSERVATION: NO_TIME, ACTIVE: AT_T1, INFO: AT_T, RESET_PARAM: NO_TIME, RESET_INFO: AT_T1}
_ABI = (1, 1)
_RENDER_RGB = 1 << 1
_HEAD = struct.Struct("<IHHQQHHHH12I4f6IfIII")
_HEAD_1_0 = 128  # bytes of the head of version 1.0, which has no keys
_GROUP_BYTES, _ARG_BYTES, _BINDING_BYTES = 32, 48, 48
_GROUP = struct.Struct("<II24x")
_FEATURE_AGENTS, _DYNAMIC_AGENTS = 4, 4
_TENSOR = struct.Struct("<HHHBBI6IffIiIH2xfII56x")


def numbered(name: str, index: int, mark: str = "/") -> str:
    """The name of the column, or tensor, with that index among those that have one name: obs, obs/1 and so on."""
    return f"{name}{mark}{index}" if index else name


class _Strings:
    """The string table of a description."""

    def __init__(self) -> None:
        self.data = bytearray(1)

    def add(self, text: str) -> int:
        if not text:
            return 0
        at = len(self.data)
        self.data += text.encode() + b"\0"
        return at


def _text(strings: bytes, at: int) -> str:
    if at >= max(len(strings), 1):
        raise ValueError(f"string at {at} of {len(strings)} bytes")
    return strings[at:].split(b"\0")[0].decode()


@dataclasses.dataclass
class Tensor:
    """One tensor of one environment, without batch or time dimension."""

    role: int
    dtype: str
    shape: tuple[int, ...] = ()
    low: float = 0.0  # bounds of a Box, but for a side with NO_LOW or NO_HIGH
    high: float = 0.0
    n: int = 0  # values of a Discrete tensor, or of each element of a MultiDiscrete one; 0 = Box
    path: str = ""  # part of a Dict or Tuple, such as inventory/0
    index: int = 0  # counts tensors of one role and group
    flags: int = 0  # without an axis of time, that of the role is added
    start: int = 0  # first value of a Discrete tensor
    pair: int = 0  # index of the observation that this is the last of, or of the action that this is the mask of
    scale: float = 0.0  # what the host multiplies an element by where it enters a network; 0 = 1
    counts: Sequence[int] = ()  # values of each element of a MultiDiscrete tensor, where they differ
    lows: Sequence[float] = ()  # bounds of each element of a Box, where they differ
    highs: Sequence[float] = ()
    group: int = 0  # of agents

    @property
    def elems(self) -> int:
        """Elements of one environment."""
        return math.prod(self.shape)

    @property
    def choices(self) -> int:
        """Values of all elements of a discrete tensor: the length of its mask. 0 for a Box."""
        return sum(self.counts) if self.counts else self.n * self.elems

    def _values(self) -> bytes:
        if self.counts:
            return struct.pack(f"<{len(self.counts)}I", *self.counts)
        return struct.pack(f"<{2 * len(self.lows)}f", *self.lows, *self.highs)

    def _pack(self, values: int, strings: _Strings) -> bytes:
        shape = (*self.shape, *[0] * (MAX_RANK - len(self.shape)))
        flags = self.flags if self.flags & (AT_T | AT_T1 | NO_TIME) else self.flags | _TIME[self.role]
        return _TENSOR.pack(self.role, self.index, self.group, DTYPES.index(self.dtype), len(self.shape), flags, *shape, self.low,
                            self.high, self.n, self.start, values, self.pair, self.scale, strings.add(self.path), 0)

    @classmethod
    def _unpack(cls, data: bytes, at: int, strings: bytes) -> Tensor:
        role, index, group, dtype, rank, flags, *rest = _TENSOR.unpack_from(data, at)
        shape, (low, high, n, start, values, pair, scale, path, _doc) = rest[:MAX_RANK], rest[MAX_RANK:]
        if rank > MAX_RANK or not 0 < dtype < len(DTYPES):
            raise ValueError(f"tensor of rank {rank} and type {dtype}")
        t = cls(role, DTYPES[dtype], tuple(shape[:rank]), low, high, n, _text(strings, path), index, flags, start, pair, scale, group=group)
        if values and t.dtype.startswith(("f", "bf")):
            both = struct.unpack_from(f"<{2 * t.elems}f", data, values)
            t.lows, t.highs = both[:t.elems], both[t.elems:]
        elif values:
            t.counts = struct.unpack_from(f"<{t.elems}I", data, values)
        return t


@dataclasses.dataclass
class EnvSpec:
    """An environment's description."""

    name: str  # name@version
    tensors: list[Tensor]
    autoreset: int = SAME_STEP
    episode_limit: int = 0  # time limit that the environment applies itself, 0 = none
    max_envs: int = 0
    caps: int = 0
    reward_threshold: float = math.nan  # mean return that counts as solved; nan = none
    picture: tuple[int, int, float] | None = None  # width and height of pictures in RGB, and how many a second, 0 = not said; None = none
    groups: Sequence[tuple[str, int]] = ()  # of agents: name and how many there are; none = one group of one agent
    keys: str = ""  # actions of the keys of a person who plays, one a line, such as left=0

    @property
    def agents(self) -> int:
        """How many agents an environment has."""
        return sum(agents for _, agents in self.groups) or 1

    def tensor(self, role: int) -> Tensor | None:
        """The first tensor of a role."""
        return next((t for t in self.tensors if t.role == role), None)

    def of_role(self, role: int) -> list[Tensor]:
        """All tensors of a role, in their order."""
        return [t for t in self.tensors if t.role == role]

    def of_group(self, group: int) -> EnvSpec:
        """The description of one group of agents, as if there were no other."""
        if len(self.groups) < 2:
            return self
        tensors = [dataclasses.replace(t, group=0) for t in self.tensors if t.group == group]
        return dataclasses.replace(self, tensors=tensors, groups=(self.groups[group],))

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
        strings, values, records = _Strings(), b"", b""
        name, _, version = self.name.partition("@")
        name_at, version_at, keys_at = strings.add(name), strings.add(version), strings.add(self.keys)
        turns = self.tensor(ACTIVE) is not None
        width, height, fps = self.picture or (0, 0, 0.0)
        needs = _FEATURE_AGENTS if turns or self.agents > 1 else 0
        groups = b"".join(_GROUP.pack(strings.add(name), agents) for name, agents in self.groups)
        end = _HEAD.size + len(groups) + len(self.tensors) * _TENSOR.size
        for t in self.tensors:
            own = t._values()
            records += t._pack(end + len(values) if own else 0, strings)
            values += own
        head = _HEAD.pack(_HEAD.size, *_ABI, self.caps, needs, _TENSOR.size, _BINDING_BYTES, _GROUP_BYTES, _ARG_BYTES, len(self.tensors),
                          len(groups) // _GROUP_BYTES, 0, end + len(values), len(strings.data), self.max_envs, self.episode_limit, self.autoreset,
                          _DYNAMIC_AGENTS if turns else 0, _RENDER_RGB if self.picture else 0, width, height,
                          fps, 0.0, 0.0, self.reward_threshold, 0, 0, name_at, version_at, 0, 0, 0.0, 0, keys_at, 0)
        return head + groups + records + values + bytes(strings.data)

    @classmethod
    def unpack(cls, data: bytes) -> EnvSpec:
        """Reads a description; ValueError or struct.error for invalid bytes."""
        known = data[:min(int.from_bytes(data[:4], "little"), _HEAD.size)]
        (size, major, _minor, caps, _needs, tensor_bytes, _binding, group_bytes, _arg, count, groups, _args, strings_at, strings_len,
         max_envs, limit, autoreset, *rest) = _HEAD.unpack(known.ljust(_HEAD.size, b"\0"))
        modes, width, height, fps = rest[1:5]
        threshold, name, version, keys = rest[7], rest[10], rest[11], rest[16]
        first = size + groups * group_bytes
        if (major != _ABI[0] or size < _HEAD_1_0 or tensor_bytes < _TENSOR.size or count > 64 or
                first + count * tensor_bytes > len(data) or strings_at + strings_len > len(data)):
            raise ValueError("not a description of an environment")
        strings = data[strings_at:strings_at + strings_len]
        tensors = [Tensor._unpack(data, at, strings) for at in range(first, first + count * tensor_bytes, tensor_bytes)]
        full = "@".join(part for part in (_text(strings, name), _text(strings, version)) if part)
        of = [_GROUP.unpack_from(data, size + i * group_bytes) for i in range(groups)]
        return cls(full, tensors, autoreset, limit, max_envs, caps, threshold,
                   (width, height, fps) if modes & _RENDER_RGB else None, tuple((_text(strings, at), agents) for at, agents in of),
                   _text(strings, keys))
