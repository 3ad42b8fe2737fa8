"""Arenas, loans and leases, and the arrays over their blocks. NumPy is imported with the first array."""

from __future__ import annotations

import base64
import dataclasses
import json
import struct
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _native
from .handle import handle_block, handle_text
from .spec import ACTION, ACTION_MASK, INFO, OBSERVATION, RESET_INFO, EnvSpec, numbered

if TYPE_CHECKING:
    import numpy

# Kinds of columns that each group of agents has its own of, with the role of their tensors.
_OF_GROUPS = {"action": ACTION, "raw_action": ACTION, "past_action": ACTION, "executed_action": ACTION,
              "past_executed_action": ACTION, "obs": OBSERVATION, "past_obs": OBSERVATION, "final_obs": OBSERVATION,
              "action_mask": ACTION_MASK, "info": INFO, "reset_info": RESET_INFO}
_DTYPES = {
    "u8": "|u1", "i8": "|i1", "bool": "|b1", "i16": "<i2", "i32": "<i4", "i64": "<i8", "u64": "<u8", "f16": "<f2",
    "bf16": "<u2", "f32": "<f4", "f64": "<f8",
}


@dataclasses.dataclass(frozen=True)
class Column:
    """Where a column or tensor lies in each block: element (t, env, i) is offset + t*stride_t + env*stride_env +
    i*stride_elem bytes from the block's start, where i counts the flattened shape."""

    name: str
    dtype: str  # u8 i8 i16 i32 i64 u64 f16 bf16 f32 f64 bool
    rows: int
    envs: int
    elems: int
    shape: tuple[int, ...]  # of one environment's element
    offset: int
    stride_t: int
    stride_env: int
    stride_elem: int

    def strides(self) -> tuple[int, ...]:
        """Strides of the array [rows, envs, *shape], in bytes."""
        inner, step = [], self.stride_elem
        for size in reversed(self.shape):
            inner.append(step)
            step *= size
        return (self.stride_t, self.stride_env, *reversed(inner))


def read_columns(schema: dict[str, Any] | None) -> dict[str, Column]:
    """The columns of a schema document, by name, in its order."""
    columns = {}
    for c in (schema or {}).get("columns") or []:
        shape = tuple(c.get("shape") or ()) or ((c["elems"],) if c["elems"] != 1 else ())
        columns[c["name"]] = Column(c["name"], c["dtype"], c["rows"], c["envs"], c["elems"], shape, c["offset"],
                                    c["stride_t"], c["stride_env"], c["stride_elem"])
    return columns


class Meta(NamedTuple):
    """The origin of a trajectory."""

    sequence: int  # counts the blocks of one split, from 0
    first_env: int  # global index of environment 0 of the block
    rollout: int
    split: int
    first_step: int  # env steps of each environment before row 0
    valid_rows: int
    plugin_version: int
    min_version: int  # lowest and highest policy version that acted
    max_version: int


_META = struct.Struct("<QIHHQI4xQQQ8x")


class Trajectory:
    """The columns of one block as arrays [rows, envs, ...] by their names: action, obs, reward, terminated, truncated,
    action_mask, final_obs, active, info (a further one info/1), reset_info, discount, log_prob, value, bootstrap_value, valid, policy_version,
    plugin_version, meta, shaped_reward, raw_action, age, past_obs, past_action, past_reward, core_state, past_shaped_reward,
    executed_action, past_executed_action, played_version; columns that the environment or its policy does not have are missing. They are
    views: valid until the loan or lease ends, read-only in a
    lease. DLPack (torch.from_dlpack) shares those of a loan, and copies those of a lease.

    core_state [rows, envs, numbers] is what a policy keeps of each environment before a row; see state_row. It is zero where
    age[t] is 0, whatever is stored."""

    def __init__(self, arrays: dict[str, numpy.ndarray], steps: int, envs: int, chunk: int = 0,
                 segment: Segment | None = None, start: int = 0):
        self.arrays, self.steps, self.envs = arrays, steps, envs
        self.segment, self.start = segment, start  # the memory in which all of arrays lie, and the block's first byte there
        self.chunk = chunk or steps  # rows from one state that stays to the next

    def __getitem__(self, name: str) -> numpy.ndarray:
        return self.arrays[name]

    def __getattr__(self, name: str) -> numpy.ndarray:
        try:
            return self.arrays[name]
        except KeyError:
            raise AttributeError(f"the block has no column {name}: it has {', '.join(self.arrays)}") from None

    def __contains__(self, name: str) -> bool:
        return name in self.arrays

    def part(self, first: int, envs: int) -> Trajectory:
        """The columns of some of the environments, with all their time steps: views, as these are."""
        width = self.arrays["valid"].shape[1]  # environments times agents
        if not 0 <= first < first + envs <= self.envs:
            raise ValueError(f"environments {first} to {first + envs} of a block of {self.envs}")
        lo, hi = first * width // self.envs, (first + envs) * width // self.envs
        arrays = {name: a[:, lo:hi] if a.shape[1] == width else a for name, a in self.arrays.items()}
        return Trajectory(arrays, self.steps, envs, self.chunk, self.segment, self.start)

    def state_row(self, t: int) -> int:
        """The row of core_state that has the state before row t, which may be steps. That of the row before and that of the row
        behind it lie elsewhere. Only those at whole chunks stay when a later row is written, and so are in a committed block."""
        return t // self.chunk if t % self.chunk == 0 else self.steps // self.chunk + 1 + t % 2

    @property
    def origin(self) -> Meta:
        """The origin of the trajectory, copied."""
        return Meta(*_META.unpack(self.arrays["meta"].tobytes()))


class _Memory:
    """The base of arrays over a whole data segment: it keeps the arena, and so the mapping, alive."""

    def __init__(self, native: _native.Arena, writable: bool):
        self.native = native
        # The last block ends with block_bytes, not with the stride.
        size = (native.blocks - 1) * native.stride + native.block_bytes
        self.__array_interface__ = {
            "version": 3, "typestr": "|u1", "shape": (size,), "data": (native.base, not writable),
        }


class Segment:
    """The memory of all blocks of an arena, mapped at least as long as this is kept. The arena keeps it."""

    def __init__(self, name: str, read_only: bool, block_bytes: int, memory: numpy.ndarray):
        self.name, self.read_only, self.block_bytes, self.memory = name, read_only, block_bytes, memory

    @property
    def address(self) -> int:
        """Of the first byte."""
        address: int = self.memory.__array_interface__["data"][0]
        return address


class Arena:
    """Equal blocks of memory that the host owns. Any thread may use it."""

    def __init__(self, native: _native.Arena):
        self._native = native
        self.id, self.name, self.blocks = native.id, native.name, native.blocks
        self.block_bytes, self.stride, self.read_only = native.block_bytes, native.stride, native.read_only
        self.schema: dict[str, Any] = json.loads(native.schema) if native.schema else {}
        self.columns = read_columns(self.schema)
        self._memory: dict[bool, numpy.ndarray] = {}
        self._trajectories: dict[tuple[int, bool, frozenset[str]], Trajectory] = {}
        self._whole_segment: Segment | None = None

    def loan(self, block: int | None = None) -> Loan:
        """Loans any free block, or the block of an index, for writing. Raises Exhausted if none is free."""
        handle = self._native.loan() if block is None else self._native.loan(block)
        return Loan(self, handle)

    def lease(self, handle: int) -> Lease:
        """Claims a committed block for reading. Raises Stale once the block has been reused."""
        return self._lease(handle, frozenset())

    def _lease(self, handle: int, columns: frozenset[str]) -> Lease:
        """Also lets the named columns be written. Raises Refused if the arena is read-only or has no such column."""
        if columns and (self.read_only or not columns <= set(self.columns)):
            why = "it can only be read" if self.read_only else f"it has the columns {', '.join(self.columns) or 'none'}"
            raise _native.Refused(f"arena {self.name}: {', '.join(sorted(columns))} cannot be written: {why}")
        self._native.lease(handle)
        return Lease(self, handle, columns)

    def retain(self, handle: int) -> None:
        """Adds a claim on a committed block."""
        self._native.retain(handle)

    def release(self, handle: int) -> None:
        """Releases one claim: that of retain, or the one that Loan.commit left."""
        self._native.release(handle)

    def revoke(self, handle: int) -> None:
        """Makes a block unreachable for new claims; its holders keep it."""
        self._native.revoke(handle)

    def on_free(self, block: int, run: Any) -> None:
        """Calls run(block) each time the block becomes free, on the thread that learns of it. None: no calls."""
        self._native.on_free(block, run)

    def columns_of(self, policy: str) -> dict[str, str]:
        """The columns of trajectories for a user of the rows of one policy, by the names that a description of the agents that it
        plays gives them: valid and policy_version are the policy's own, 0 in others' rows, and the tensors those of its group."""
        names = (self.schema.get("policies") or "").split()
        if not names:  # one policy acts in all rows, whatever its name
            return {name: name for name in self.columns}
        if policy not in names:
            raise ValueError(f"policy {policy!r} acts in none of the rows of arena {self.name}, those that do: {', '.join(names)}")
        place, groups = names.index(policy), self.schema.get("groups") or []
        own = {name: name for name in self.columns if name.partition("/")[0] not in (*_OF_GROUPS, "valid", "policy_version")}
        own.update(valid=f"valid/{place + 1}", policy_version=f"policy_version/{place + 1}")
        env, group = EnvSpec.unpack(base64.b64decode(self.schema["spec"]["describe"])), groups[place] if place < len(groups) else 0
        for kind, role in _OF_GROUPS.items():
            for i, t in enumerate(env.of_role(role)):
                if t.group == group and numbered(kind, i) in self.columns:
                    own[numbered(kind, t.index)] = numbered(kind, i)
        return own

    def counts(self) -> dict[str, int]:
        """Blocks by state (free, write, live, zombie, closed), and this process's loans and claims."""
        return self._native.count()

    def bytes_of(self, handle: int, writable: bool) -> numpy.ndarray:
        """The block's bytes. The caller holds a loan or a lease."""
        at = handle_block(handle) * self.stride
        return self._whole(writable)[at:at + self.block_bytes]

    def trajectory_of(self, handle: int, writable: bool, columns: frozenset[str] = frozenset()) -> Trajectory:
        """The block's columns, cached for each block. The caller holds a loan, or a lease with writable columns."""
        key = (handle_block(handle), writable, columns)
        made = self._trajectories.get(key)
        if made is None:
            if not self.columns:
                raise _native.Error(f"arena {self.name} does not say what its blocks contain")
            made = self._trajectories[key] = self._make_trajectory(*key)
        return made

    def _whole(self, writable: bool) -> numpy.ndarray:
        whole = self._memory.get(writable)
        if whole is None:
            import numpy
            if writable and self.read_only:
                raise _native.Error(f"arena {self.name} can only be read")
            whole = numpy.asarray(_Memory(self._native, writable))
            if not writable:
                from .leased import Leased
                whole = whole.view(Leased)
            self._memory[writable] = whole
        return whole

    def _make_trajectory(self, block: int, writable: bool, columns: frozenset[str]) -> Trajectory:
        start = block * self.stride
        arrays = {c.name: view(self._whole(writable or c.name in columns), start, c) for c in self.columns.values()}
        return Trajectory(arrays, self.schema.get("steps", 0), self.schema.get("envs", 0), self.schema.get("chunk", 0), self._segment(), start)

    def _segment(self) -> Segment:
        if self._whole_segment is None:
            self._whole_segment = Segment(self.name, self.read_only, self.block_bytes, self._whole(False))
        return self._whole_segment


def view(memory: numpy.ndarray, start: int, column: Column, envs: tuple[int, int] | None = None) -> numpy.ndarray:
    """The array of one column of the block that begins at start; envs is the first environment and the number of
    them."""
    import numpy
    first, count = envs or (0, column.envs)
    made: numpy.ndarray = type(memory)((column.rows, count, *column.shape), _DTYPES[column.dtype], memory,
                                       start + column.offset + first * column.stride_env, column.strides())
    return made


class _Held:
    """The common part of a loan and a lease: a block and its arrays."""

    def __init__(self, arena: Arena, handle: int, writable: bool, columns: frozenset[str] = frozenset()):
        self.arena, self.handle, self._writable, self._columns, self._open = arena, handle, writable, columns, True

    @property
    def array(self) -> numpy.ndarray:
        """The block's bytes, uint8 [block_bytes]."""
        self._check()
        return self.arena.bytes_of(self.handle, self._writable)

    @property
    def trajectory(self) -> Trajectory:
        """The block's columns."""
        self._check()
        return self.arena.trajectory_of(self.handle, self._writable, self._columns)

    def rows_of(self, policy: str) -> Trajectory:
        """The block's columns for a user of the rows of one policy, as Arena.columns_of names them."""
        whole = self.trajectory
        arrays = {name: whole.arrays[column] for name, column in self.arena.columns_of(policy).items()}
        return Trajectory(arrays, whole.steps, whole.envs, whole.chunk, whole.segment, whole.start)

    def values(self) -> dict[str, float]:
        """The block's numbers by name, copied, in an arena that has names."""
        names = self.arena.schema.get("names") or []
        return dict(zip(names, self.array[:8 * len(names)].view("<f8").tolist()))

    def _check(self) -> None:
        if not self._open:
            raise _native.Error(f"{type(self).__name__.lower()} of {handle_text(self.handle)} has ended")

    def _end(self) -> None:
        self._check()
        self._open = False


class Lease(_Held):
    """A reader's claim on a committed block. It ends with release, or with its with block."""

    def __init__(self, arena: Arena, handle: int, columns: frozenset[str] = frozenset()):
        super().__init__(arena, handle, False, columns)

    def release(self) -> None:
        """Releases the claim. Arrays of the lease must not be used any more."""
        self._end()
        self.arena._native.release(self.handle)

    def __enter__(self) -> Lease:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._open:
            self.release()


class Loan(_Held):
    """The single writer's claim on a block. Each ends in commit or abort; a with block aborts if it was not
    committed."""

    def __init__(self, arena: Arena, handle: int):
        super().__init__(arena, handle, True)

    def commit(self) -> int:
        """Makes the block readable for receivers of its handle, and leaves the caller one claim: release it with
        Arena.release when the handle has been emitted, or later."""
        self._end()
        self.arena._native.commit(self.handle)
        return self.handle

    def abort(self) -> None:
        """Returns the block unwritten."""
        self._end()
        self.arena._native.abort(self.handle)

    def __enter__(self) -> Loan:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._open:
            self.abort()


class Loaned(_Held):
    """A block on loan to the sender of a request, to be written in part; the loan stays with the sender."""

    def __init__(self, arena: Arena, handle: int):
        arena._native.loaned(handle)
        super().__init__(arena, handle, True)
