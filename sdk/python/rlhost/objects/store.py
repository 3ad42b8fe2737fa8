"""The store: making, writing and reading objects."""

from __future__ import annotations

import json
import math
import struct
from typing import Any, Sequence

import numpy as np

from .. import plain
from .claims import Batch, Entry, Pushed, Writing, views_of
from .errors import Full, NoEntry, Removed, WrongTracks
from .layout import Coded, Object, Track
from .session import Session
from .wire import (
    ABORT, BATCH, BYTES, COMMIT, CONFIG, CREATE, DELETE, DESCRIBED, LATEST, LIST, NEW, NEXT, NO_FILE, NUMBER_OF, OPEN, POP,
    RANGE, READ, REMOVE, REQUEST, REUSE, REVOKE, R_BLOCK, R_CLAIM, R_COUNT, R_INDEX, R_SPARE, R_SPARE_BLOCK, STAT,
    VIEW, description,
)


class Store(Session):
    """A connection to the objects that a running rlhost serves, at ``path``, under ``name`` or at default_path(). It raises
    HostLost if no host serves there; with a timeout it waits that long for one."""

    # Objects.

    def create(self, name: str, capacity: int, shape: Sequence[int] | int = (), dtype: Any = None, *,
               bytes: int | None = None, tracks: Sequence[Track] | None = None, spares: int = 0,
               exist_ok: bool = False) -> None:
        """Makes an object for ``capacity`` entries: of one track, whose blocks hold arrays of that shape and dtype or
        that many bytes, or of the given tracks. ``spares`` more blocks let as many writers push with one request (0:
        one for every eighth entry, at most 8; -1: none). With exist_ok an existing object of that name that is large
        enough is used; else Exists."""
        if tracks is None:
            tracks = [Track(shape, dtype, bytes=bytes)]
        encoded = name.encode()
        config = CONFIG.pack(capacity, spares, len(tracks)) + b"".join(t._packed() for t in tracks)
        self._connect().call(CREATE, REUSE if exist_ok else 0, count=len(encoded), payload=encoded + config)

    def remove(self, name: str) -> None:
        """Removes an object for all processes. Its readers keep their views."""
        o = self._find(name)
        self._forget(o)
        o.connection.call(REMOVE, number=o.number)

    def wait_for(self, name: str, timeout: float | None = None) -> None:
        """Waits until an object of that name exists. NotFound at the end of the timeout."""
        self._connect().call(OPEN, NO_FILE, timeout=timeout, payload=name.encode())

    def names(self, prefix: str = "") -> list[str]:
        """The names that begin with prefix, in order."""
        found: list[str] = []
        start = prefix.encode()
        after = b""
        while True:
            reply = self._connect().call(LIST, count=len(start), payload=start + after)
            at = 0
            for _ in range(reply[R_COUNT]):
                length = reply[-2][at]
                after = reply[-2][at + 1:at + 1 + length]
                found.append(after.decode(errors="replace"))
                at += 1 + length
            if reply[R_COUNT] == 0:
                return found

    def stat(self, name: str) -> dict[str, Any]:
        """The object's numbers: Entries, Writing, Kept, Spares, Next, Oldest, Newest, Counters and more."""
        stat: dict[str, Any] = json.loads(self._ask(name, STAT)[-2])
        return stat

    def count(self, name: str) -> int:
        """The number of readable entries."""
        return int(self.stat(name)["Entries"])

    # Writing.

    def push(self, name: str, data: Any, timeout: float | None = None) -> "Pushed":
        """Copies an array (anything numpy takes), bytes, a str or a dict (or a sequence of them for an object of
        several tracks) into a new entry. NotFound if the object does not exist: use create, or put, which creates it.
        Without a timeout it returns while the entry is pending, at most one for each object; the next push waits if
        there was no room for this one, and raises its error. With a timeout it waits for room itself, and raises Full
        at its end. The result can be used as the entry's index."""
        if timeout is None:
            self._settle(name)
        for last in (False, True):
            o = self._object_to_write(name)
            try:
                return self._push(o, data, timeout)
            except Removed:
                self._forget(o)
                if last or not self._made_anew(o):
                    raise
        raise AssertionError

    def _push(self, o: Object, data: Any, timeout: float | None) -> Pushed:
        arrays = (_array(data),) if o.single else tuple(_array(d) for d in data)
        values = o.pack(arrays)
        connection = o.connection
        with self._lock:
            (claim, block), o.spare = o.spare, (0, 0)
        if not claim:
            reply = connection.call(NEW, number=o.number, timeout=timeout)
            claim, block = reply[R_CLAIM], reply[R_BLOCK]
        try:
            memory = o.writing
            for track, a in enumerate(arrays):
                column = o.columns[track]
                at = column.at + block * column.stride
                if isinstance(a, np.ndarray):
                    np.copyto(np.ndarray(a.shape, a.dtype, memory, at), a)
                    if a.dtype not in NUMBER_OF:
                        _describe(memory, at, a.dtype, a.shape)
                else:
                    memory[at:at + len(a)] = a
            if timeout is not None:
                return self._push_and_wait(o, claim, len(arrays), values, timeout)
            seq = next(connection.seqs) & 0xFFFFFFFF
            release = connection.take_deferred() if connection.deferred else 0
            connection.begin(REQUEST.pack(COMMIT, NEXT, len(arrays), seq, o.number, 0, claim, 0, release, -1) + values)
        except Full:
            o.keep(claim, block)  # keep the spare block: the push found no room
            raise
        except BaseException as e:
            if not isinstance(e, Removed):
                connection.post(ABORT, claim)
            raise
        pushed = Pushed(o, seq, claim)
        with self._lock:
            alone = o.pushed is None
            if alone:
                o.pushed = pushed
        if not alone:
            with o.settling:
                pushed._settle()
        return pushed

    def _push_and_wait(self, o: Object, claim: int, tracks: int, values: bytes, timeout: float) -> Pushed:
        reply = o.connection.call(COMMIT, NEXT, tracks, o.number, 0, claim, 0, timeout, values)
        pushed = Pushed(o, 0, 0)
        pushed._index = reply[R_INDEX]
        if reply[R_SPARE]:
            o.keep(reply[R_SPARE], reply[R_SPARE_BLOCK])
        return pushed

    def put(self, name: str, data: Any, capacity: int = 64, timeout: float | None = None) -> Pushed:
        """Pushes, and makes the object first if there is none: for ``capacity`` entries as large as this one. A list or
        tuple has one array for each track."""
        if name not in self._objects:
            arrays = [_array(d) for d in (data if isinstance(data, (list, tuple)) else [data])]
            sizes = [Track(a.shape, a.dtype).bytes if isinstance(a, np.ndarray) else len(a) for a in arrays]
            self.create(name, capacity, tracks=[Track(bytes=max(1, n)) for n in sizes], exist_ok=True)
        return self.push(name, data, timeout)

    def new(self, name: str, shape: Any = (), dtype: Any = None, timeout: float | None = None) -> Writing:
        """Takes a block to write in place. For an object of several tracks, shape is a sequence of (shape, dtype)
        pairs and dtype is not given; without a dtype, shape is a number of bytes. Full at the end of the timeout."""
        for last in (False, True):
            o = self._object_to_write(name)
            try:
                return self._new(o, shape, dtype, timeout)
            except Removed:
                self._forget(o)
                if last or not self._made_anew(o):
                    raise
        raise AssertionError

    def _new(self, o: Object, shape: Any, dtype: Any, timeout: float | None) -> Writing:
        wanted = [(shape, dtype)] if o.single else list(shape)
        if len(wanted) != len(o.columns):
            raise WrongTracks("object %r: %d arrays for %d tracks" % (o.name, len(wanted), len(o.columns)))
        plan = []
        for track, (s, d) in enumerate(wanted):
            s = (int(s),) if isinstance(s, (int, np.integer)) else tuple(int(n) for n in s)
            d = None if d is None else np.dtype(d)
            o._pack(track, d, s)
            plan.append((s, d))
        reply = o.connection.call(NEW, number=o.number, timeout=timeout)
        w = Writing()
        w._hold(o, reply[R_CLAIM])
        w.index = None
        w.arrays = tuple(_to_write(o, track, reply[R_BLOCK], s, d) for track, (s, d) in enumerate(plan))
        return w

    # Reading.

    def read(self, name: str, index: int, timeout: float | None = 0) -> Entry:
        """The entry of an index. With a timeout it waits for a future one. NoEntry."""
        return self._entry(name, READ, index, timeout)

    def read_latest(self, name: str, after: int = -1, timeout: float | None = 0) -> Entry:
        """The newest entry. With a timeout it waits for one whose index is greater than ``after``. Empty."""
        return self._entry(name, LATEST, after + 1, timeout)

    def pop(self, name: str, timeout: float | None = None) -> Entry:
        """Takes the oldest entry out of the object and waits for one if there is none: each entry goes to one pop.
        Empty at the end of the timeout. Other readers keep the entry until they release it. Where it waits behind a push
        of this store that fails, it raises that error."""
        return self._entry(name, POP, 0, timeout, NEXT)

    def _entry(self, name: str, op: int, index: int, timeout: float | None, flags: int = 0) -> Entry:
        reply, o = self._claimed(name, op, flags, index=index, timeout=timeout)
        body = reply[-2]
        e = Entry()
        e._hold(o, reply[R_CLAIM])
        e._lent = reply[R_SPARE]
        e.index, block, tracks = VIEW.unpack_from(body)
        e.arrays, _ = views_of(o, body, VIEW.size, block, tracks)
        return e

    def batch_read(self, name: str, indices: Sequence[int]) -> Batch:
        """All entries of those indices, or NoEntry."""
        indices = [int(i) for i in indices]
        payload = struct.pack("<%dQ" % len(indices), *indices)
        return self._batch(*self._claimed(name, BATCH, count=len(indices), payload=payload))

    def batch_range(self, name: str, start: int = 0, count: int = 64) -> Batch:
        """The oldest entries from an index on, at most ``count`` and as many as one reply holds. NoEntry if there is
        none."""
        return self._batch(*self._claimed(name, BATCH, RANGE, count=count, index=start))

    def _batch(self, reply: tuple[Any, ...], o: Object) -> Batch:
        b = Batch()
        b._hold(o, reply[R_CLAIM])
        indices, items, at = [], [], 0
        for _ in range(reply[R_COUNT]):
            index, block, tracks = VIEW.unpack_from(reply[-2], at)
            arrays, at = views_of(o, reply[-2], at + VIEW.size, block, tracks)
            indices.append(index)
            items.append(arrays[0] if tracks == 1 else arrays)
        b.indices, b.items = tuple(indices), tuple(items)
        return b

    def get(self, name: str, index: int | None = None) -> Any:
        """A copy of the entry of that index, or of the newest."""
        with_entry = self.read_latest(name) if index is None else self.read(name, index)
        try:
            return with_entry.copy()
        finally:
            with_entry.release()

    def get_all(self, name: str) -> list[Any]:
        """Copies of all entries, oldest first."""
        copies: list[Any] = []
        start = 0
        while True:
            try:
                batch = self.batch_range(name, start, 1 << 16)
            except NoEntry:
                return copies
            with batch:
                for item in batch:
                    several = isinstance(item, tuple)
                    one = tuple(_copy(a) for a in (item if several else (item,)))
                    copies.append(one if several else one[0])
                start = batch.indices[-1] + 1

    def delete(self, name: str, index: int, revoke: bool = False) -> None:
        """Removes an entry from the object. Busy while it is read; with revoke its readers keep it until they release
        it, and there are no new ones."""
        self._ask(name, DELETE, REVOKE if revoke else 0, index=index)


def _array(data: Any) -> Any:
    if isinstance(data, np.ndarray):
        return data
    if isinstance(data, (str, dict)):
        return Coded(plain.dumps(data))
    if isinstance(data, (bytes, bytearray)):
        return data
    if isinstance(data, memoryview):
        return data.cast("B") if data.c_contiguous else data.tobytes()
    return np.asarray(data)


def _copy(a: Any) -> Any:
    return np.array(a) if isinstance(a, np.ndarray) else bytes(a) if isinstance(a, memoryview) else a


def _describe(memory: Any, at: int, dtype: np.dtype, shape: tuple[int, ...]) -> None:
    text = description(dtype, shape)
    at += dtype.itemsize * math.prod(shape)
    memory[at:at + len(text)] = text


def _to_write(o: Object, track: int, block: int, shape: tuple[int, ...], dtype: np.dtype | None) -> Any:
    """The array of a block for writing."""
    number = BYTES if dtype is None else NUMBER_OF.get(dtype, DESCRIBED)
    if dtype is None or number != DESCRIBED:
        return o.array(o.writing, track, block, number, shape)
    at = o.columns[track].at + block * o.columns[track].stride
    _describe(o.writing, at, dtype, shape)
    return np.ndarray(shape, dtype, o.writing, at)
