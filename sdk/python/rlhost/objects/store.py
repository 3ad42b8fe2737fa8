"""The store: making, writing and reading objects."""

from __future__ import annotations

import json
import math
import operator
import struct
from typing import Any, Literal, Sequence, overload

import numpy as np

from .claims import Batch, Entry, Pushed, Writing, copy_of, views_of
from .errors import Empty, Full, NoEntry, NotFound, Removed, TooLarge, WrongTracks
from .layout import Object, Track, array_of
from .session import TRIES, Session
from .wire import (
    ABORT, BATCH, BYTES, COMMIT, CONFIG, CREATE, DELETE, DESCRIBED, GROW, LATEST, LIST, NEW, NEXT, NO_FILE,
    NUMBER_OF, OPEN, POP, RANGE, READ, REMOVE, REQUEST, REUSE, REVOKE, R_BLOCK, R_CLAIM, R_COUNT, R_INDEX, R_SPARE,
    R_SPARE_BLOCK, STAT, TORN, VIEW, description,
)


class Store(Session):
    """A connection to the objects that a running rlhost serves, at ``path``, under ``name`` or at default_path(). It raises
    HostLost if no host serves there; with a timeout it waits that long for one.

    With ``pickle`` it takes and yields objects of any class, by pickle where rlhost.plain does not know them. Reading a
    pickle runs code that its writer has chosen: every process of this user that the store serves."""

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
        self._create(name, capacity, tracks, spares, REUSE if exist_ok else 0)

    def _create(self, name: str, capacity: int, tracks: Sequence[Track], spares: int, flags: int) -> None:
        encoded = name.encode()
        config = CONFIG.pack(capacity, spares, len(tracks)) + b"".join(t._packed() for t in tracks)
        self._connect().call(CREATE, flags, count=len(encoded), payload=encoded + config)

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
        """Copies an array (anything numpy takes), bytes or a value of rlhost.plain (or a sequence of them for an object of
        several tracks) into a new entry. A list or tuple of numbers is an array. NotFound if the object does not exist: use
        create, or put, which creates it.

        Without a timeout it returns while the entry is pending, at most one for each object; the next push waits if
        there was no room for this one, and raises its error. With a timeout it waits for room itself, and raises Full
        at its end. The result can be used as the entry's index."""
        if timeout is None:
            self._settle(name)
        for last in TRIES:
            o = self._object_to_write(name)
            try:
                return self._push(o, data, timeout)
            except (Removed, TooLarge):  # it may have grown
                if last or not self._made_anew(o):
                    raise
        raise AssertionError

    def _push(self, o: Object, data: Any, timeout: float | None) -> Pushed:
        arrays = tuple(array_of(d, self._pickles) for d in ((data,) if o.single else data))
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

    @overload
    def put(self, name: str, data: Any, capacity: int | None = None, timeout: float | None = None, *, as_list: Literal[False] = False,
            redundancy: int = 0) -> Pushed: ...
    @overload
    def put(self, name: str, data: Any, capacity: int | None = None, timeout: float | None = None, *, as_list: Literal[True],
            redundancy: int = 0) -> list[Pushed]: ...

    def put(self, name: str, data: Any, capacity: int | None = None, timeout: float | None = None, *, as_list: bool = False,
            redundancy: int = 0) -> Pushed | list[Pushed]:
        """Pushes, and makes the object first if there is none, or makes it larger if the data does not fit its blocks. A new object has
        ``capacity`` entries, 64 by default, and ``redundancy`` more. A list or tuple with arrays or bytes in it has one for each track;
        any other is a value.

        With ``as_list`` each item of data becomes an entry, and the object has room for all of them at once."""
        if not as_list:
            return self._put(name, data, (64 if capacity is None else capacity) + redundancy, timeout)
        items = list(data)
        room = max(len(items), capacity or 0) + redundancy
        if items:
            self._ensure(name, items, room)
        return [self._put(name, item, room, timeout) for item in items]

    def _put(self, name: str, data: Any, capacity: int, timeout: float | None) -> Pushed:
        if name not in self._objects:
            self._make(name, self._tracks([data]), capacity, REUSE)
        try:
            return self.push(name, data, timeout)
        except TooLarge:
            self._make(name, self._tracks([data]), 1, GROW)
        return self.push(name, data, timeout)

    def _ensure(self, name: str, items: list[Any], room: int) -> None:
        """Makes an object that has room for more entries, or makes it larger."""
        tracks = self._tracks(items)
        try:
            stat = self.stat(name)
            room += stat["Entries"] + stat["Writing"] + stat["Kept"]
        except NotFound:
            pass
        self._make(name, tracks, room, GROW)

    def _make(self, name: str, tracks: list[Track], capacity: int, how: int) -> None:
        self._settle(name)
        try:
            self._create(name, capacity, tracks, 0, how)
        except TooLarge:  # somebody else has made a smaller one
            self._create(name, 1, tracks, 0, GROW)
        o = self._objects.get(name)
        if o is not None:
            self._forget(o)

    def _tracks(self, items: list[Any]) -> list[Track]:
        """The tracks of an object whose entries these can be."""
        found: list[int] = []
        for data in items:
            several = isinstance(data, (list, tuple)) and any(isinstance(d, (np.ndarray, bytes, bytearray, memoryview)) for d in data)
            arrays = [array_of(d, self._pickles) for d in (data if several else (data,))]
            sizes = [Track(a.shape, a.dtype).bytes if isinstance(a, np.ndarray) else len(a) for a in arrays]
            found = found or [1] * len(sizes)
            if len(sizes) != len(found):
                raise WrongTracks("items of %d and of %d tracks: want as many in each" % (len(found), len(sizes)))
            found = [max(a, b) for a, b in zip(found, sizes)]
        return [Track(bytes=n) for n in found]

    def new(self, name: str, shape: Any = (), dtype: Any = None, timeout: float | None = None) -> Writing:
        """Takes a block to write in place. For an object of several tracks, shape is a sequence of (shape, dtype)
        pairs and dtype is not given; without a dtype, shape is a number of bytes. Full at the end of the timeout."""
        for last in TRIES:
            o = self._object_to_write(name)
            try:
                return self._new(o, shape, dtype, timeout)
            except (Removed, TooLarge):  # it may have grown
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
        e.index, e._block, tracks = VIEW.unpack_from(body)
        e.torn = tracks >= TORN
        e.arrays, _ = views_of(o, body, VIEW.size, e._block, tracks & ~TORN)
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
        indices, items, at, torn = [], [], 0, False
        for _ in range(reply[R_COUNT]):
            index, block, tracks = VIEW.unpack_from(reply[-2], at)
            torn, tracks = torn or tracks >= TORN, tracks & ~TORN
            arrays, at = views_of(o, reply[-2], at + VIEW.size, block, tracks)
            indices.append(index)
            items.append(arrays[0] if tracks == 1 else arrays)
        b.indices, b.items, b.torn = tuple(indices), tuple(items), torn
        return b

    def get(self, name: str, index: int | Sequence[int] | None = None) -> Any:
        """A copy of the entry of that index, or of the newest, and None if there is none; for several indices, a list of
        them."""
        try:
            if index is None:
                entry = self.read_latest(name)
            elif isinstance(index, (int, np.integer, Pushed)):
                entry = self.read(name, operator.index(index))
            else:
                return self._get_several(name, [operator.index(i) for i in index])
        except (NoEntry, Empty):
            return None
        try:
            return entry.copy()
        finally:
            entry.release()

    def _get_several(self, name: str, indices: list[int]) -> list[Any]:
        if not indices:
            return []
        try:
            with self.batch_read(name, indices) as batch:
                return _copies(batch)
        except NoEntry:
            return [self.get(name, i) for i in indices]

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
                copies += _copies(batch)
                start = batch.indices[-1] + 1

    def delete(self, name: str, index: int, revoke: bool = False) -> None:
        """Removes an entry from the object. Busy while it is read; with revoke its readers keep it until they release
        it, and there are no new ones."""
        self._ask(name, DELETE, REVOKE if revoke else 0, index=index)


def _copies(batch: Batch) -> list[Any]:
    several = len(batch._object.columns) > 1  # else a tuple is a value
    return [tuple(copy_of(a) for a in item) if several else copy_of(item) for item in batch]


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
