"""Objects as this process sees them: their tracks, and where their blocks lie."""

from __future__ import annotations

import mmap
import os
import pickle
import threading
from typing import TYPE_CHECKING, Any, Sequence

import numpy as np

from .. import plain
from ..leased import Leased
from .connection import Connection
from .errors import BadRequest, LimitExceeded, Removed, TooLarge, WrongDType, WrongTracks
from .wire import (
    ABORT, ANY, BYTES, COLUMN, DESCRIBED, DIMS, DTYPE_OF, LAYOUT, MAX_RANK, OPEN, PICKLED, PLAIN, R_OBJECT, TRACK, VALUE, WRITE, described,
    description, number_of,
)

if TYPE_CHECKING:
    from .claims import Pushed


class Track:
    """One column of an object. Give the shape and dtype of its largest array, or just the bytes of a block; with a
    dtype, only arrays of that dtype fit."""

    __slots__ = ("name", "bytes", "dtype")

    def __init__(self, shape: Sequence[int] | int = (), dtype: Any = None, *, bytes: int | None = None, name: str = ""):
        self.name = name
        self.dtype = None if dtype is None else np.dtype(dtype)
        if bytes is None:
            if self.dtype is None:
                raise TypeError("a track needs a dtype and a shape, or bytes")
            shape = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
            bytes = int(np.prod(shape, dtype=np.int64)) * self.dtype.itemsize
            if number_of(self.dtype, "track %r" % name) == DESCRIBED:
                bytes += len(description(self.dtype, shape)) + 8 * MAX_RANK  # another shape may need more
        self.bytes = bytes

    def _packed(self) -> builtins_bytes:
        name = self.name.encode()
        if len(name) > 255:
            raise LimitExceeded("track %r: a name of %d bytes, at most 255" % (self.name, len(name)))
        number = ANY if self.dtype is None else number_of(self.dtype, "track %r" % self.name)
        return TRACK.pack(self.bytes, number, len(name)) + name


builtins_bytes = bytes

NAMES = {BYTES: "bytes", PLAIN: "plain", DESCRIBED: "described", PICKLED: "pickled"}


class Coded(bytes):
    """A value as bytes of rlhost.plain."""

    number = PLAIN


class Pickled(Coded):
    """A value as bytes of pickle."""

    number = PICKLED


class View(Leased):
    """The array of an entry. It knows the entry's index while it is not computed with."""

    index: int


def array_of(data: Any, pickles: bool) -> Any:
    """An array, bytes or Coded for a value that is written."""
    if isinstance(data, np.ndarray):
        return Pickled(pickle.dumps(data, 5)) if pickles and data.dtype.hasobject else data
    if isinstance(data, (builtins_bytes, bytearray)):
        return data
    if isinstance(data, memoryview):
        return data.cast("B") if data.c_contiguous else data.tobytes()
    if not isinstance(data, _CODED):
        try:
            array = np.asarray(data)
        except ValueError:  # of lists of different lengths
            array = _NONE
        if not array.dtype.hasobject and (array.dtype.kind not in "SU" or isinstance(data, np.generic)):
            return array
    try:
        return Coded(plain.dumps(data))
    except TypeError as e:
        if pickles:
            return Pickled(pickle.dumps(data, 5))
        raise WrongDType("%s; Store(pickle=True) takes objects of any class" % e) from None


_CODED = (str, dict, set, frozenset, type(None))
_NONE = np.array(None)


class Column:
    """Where the blocks of one track lie in an object's memory, in bytes."""

    __slots__ = ("at", "stride", "bytes", "dtype", "name")

    at: int      # of block 0
    stride: int  # from one block to the next
    bytes: int   # of a block
    dtype: int   # the number of the track's dtype
    name: str


class Object:
    """An object as this process sees it: the layout of its blocks, and its mappings."""

    def __init__(self, connection: Connection, name: str, number: int, pickles: bool):
        self.connection = connection
        self.pickles = pickles
        self.name = name
        self.number = number
        self.capacity = 0
        self.columns: list[Column] = []
        self.reading: Any = None               # a read-only mapping, or None
        self.writing: Any = None               # a writable mapping, from the first write on
        self.spare = (0, 0)                    # claim and block for the next push
        self.pushed: Pushed | None = None      # the last push, if its reply has not been taken yet
        self.packed: dict[Any, bytes] = {}     # values of a commit, by dtype and shape
        self.mapping = threading.Lock()
        self.settling = threading.Lock()       # one thread takes the reply to a push

    def keep(self, claim: int, block: int) -> None:
        """Keeps a block for the next push, unless there is one."""
        if self.spare[0]:
            self.connection.post(ABORT, claim)
        else:
            self.spare = (claim, block)

    @property
    def single(self) -> bool:
        return len(self.columns) == 1

    def place(self, reply: tuple[Any, ...]) -> None:
        """Takes the layout and the file of a reply to OPEN."""
        body = reply[-2]
        self.capacity, blocks, size, tracks = LAYOUT.unpack_from(body)
        at = LAYOUT.size
        columns = []
        for _ in range(tracks):
            c = Column()
            c.at, c.stride, c.bytes, c.dtype, length = COLUMN.unpack_from(body, at)
            at += COLUMN.size
            c.name = body[at:at + length].decode()
            at += length
            if c.bytes > c.stride or c.at + c.stride * blocks > size:
                raise BadRequest("object %r: its layout does not fit its %d bytes" % (self.name, size))
            columns.append(c)
        self.columns = columns
        self.size = size

    def map(self, write: bool) -> None:
        if (self.writing if write else self.reading) is not None:
            return
        with self.mapping:
            if (self.writing if write else self.reading) is None:
                self._map(write)

    def _map(self, write: bool) -> None:
        reply = self.connection.call(OPEN, WRITE if write else 0, payload=self.name.encode())
        try:
            if reply[R_OBJECT] != self.number:
                raise Removed("object %r was removed and made again" % self.name)
            if len(reply[-1]) != 1:
                raise BadRequest("object %r: %d files came with its layout" % (self.name, len(reply[-1])))
            self.place(reply)
            prot = mmap.PROT_READ | mmap.PROT_WRITE if write else mmap.PROT_READ
            mapped = mmap.mmap(reply[-1][0], self.size, flags=mmap.MAP_SHARED | mmap.MAP_POPULATE, prot=prot)
        finally:
            for fd in reply[-1]:
                os.close(fd)
        if write:
            self.writing = mapped
        else:
            self.reading = mapped

    def array(self, memory: mmap.mmap, track: int, block: int, dtype: int, shape: tuple[int, ...]) -> Any:
        """A view of a block's value; it is read-only if the mapping is."""
        column = self.columns[track]
        at = column.at + block * column.stride
        if dtype in NAMES:
            content = memoryview(memory)[at:at + int(np.prod(shape, dtype=np.int64))]
            return content if dtype == BYTES else self._coded(content, memory, at, dtype)
        kind = View if memory is self.reading else np.ndarray
        return kind(shape, DTYPE_OF[dtype], memory, at)

    def to_write(self, block: int, arrays: Sequence[Any]) -> tuple[Any, ...]:
        """The arrays of an entry as memory that can be written; a value that has none there stands for itself."""
        self.map(True)
        found: list[Any] = []
        for column, a in zip(self.columns, arrays):
            at = column.at + block * column.stride
            if isinstance(a, np.ndarray):
                found.append(np.ndarray(a.shape, a.dtype, self.writing, at))
            else:
                found.append(memoryview(self.writing)[at:at + len(a)] if isinstance(a, memoryview) else a)
        if all(a is b for a, b in zip(found, arrays)):
            raise WrongDType("object %r: an entry that has neither arrays nor bytes cannot be written in place" % self.name)
        return tuple(found)

    def _coded(self, content: memoryview, memory: mmap.mmap, at: int, dtype: int) -> Any:
        try:
            if dtype == PLAIN:
                return plain.loads(bytes(content))
            if dtype == PICKLED:
                return self._unpickled(content)
            kind, shape = described(content)
            return View(shape, kind, memory, at)
        except ValueError as e:
            raise BadRequest("object %r: an entry has %s" % (self.name, e)) from None

    def _unpickled(self, content: memoryview) -> Any:
        if not self.pickles:
            raise WrongDType("object %r: an entry is pickled, and reading it would run code of the program that wrote it: "
                             "Store(pickle=True) allows that" % self.name)
        return pickle.loads(content)

    def pack(self, arrays: Sequence[Any]) -> bytes:
        """The description of arrays in a commit, checked against the tracks."""
        if len(arrays) != len(self.columns):
            raise WrongTracks("object %r: %d arrays for %d tracks" % (self.name, len(arrays), len(self.columns)))
        if len(arrays) == 1 and isinstance(arrays[0], np.ndarray):
            return self._pack(0, arrays[0].dtype, arrays[0].shape)
        out = b""
        for track, a in enumerate(arrays):
            if isinstance(a, np.ndarray):
                out += self._pack(track, a.dtype, a.shape)
            else:
                out += self._pack(track, None, (len(a),), a.number if isinstance(a, Coded) else BYTES)
        return out

    def _pack(self, track: int, dtype: np.dtype | None, shape: tuple[int, ...], number: int = BYTES) -> bytes:
        key = (track, number if dtype is None else dtype, shape)
        packed = self.packed.get(key)
        if packed is not None:
            return packed
        column = self.columns[track]
        what = "object %r: track %d" % (self.name, track)
        if dtype is not None:
            number = number_of(dtype, what)
        if column.dtype not in (ANY, number):
            want = NAMES.get(column.dtype) or str(DTYPE_OF.get(column.dtype, column.dtype))
            raise WrongDType("%s: dtype %s, it takes %s" % (what, NAMES[number] if dtype is None else dtype, want))
        if len(shape) > MAX_RANK:
            raise LimitExceeded("%s: %d dimensions, at most %d" % (what, len(shape), MAX_RANK))
        size = (1 if dtype is None else dtype.itemsize) * int(np.prod(shape, dtype=np.int64))
        if number == DESCRIBED and dtype is not None:
            size += len(description(dtype, shape))
            shape = (size,)
        if size > column.bytes:
            raise TooLarge("%s: %d bytes for a block of %d" % (what, size, column.bytes))
        packed = VALUE.pack(number, len(shape)) + DIMS[len(shape)].pack(*shape)
        if len(self.packed) < 256:
            self.packed[key] = packed
        return packed
