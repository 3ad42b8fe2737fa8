"""Claims on a store's entries: for reading, for writing, and pushed."""

from __future__ import annotations

from typing import Any, Iterator

import numpy as np

from .errors import ObjectError, Spent, Torn
from .layout import Object, View
from .wire import (
    ABORT, ALONE, COMMIT, DIMS, LOCK, MEND, RELEASE, R_INDEX, R_SPARE, R_SPARE_BLOCK, TEAR, UNLOCK, VALUE,
)


class Claim:
    """A claim, held until release, or else until the garbage collector ends it."""

    __slots__ = ("_object", "_claim", "__weakref__")

    def _hold(self, o: Object, claim: int) -> None:
        self._object = o
        self._claim = claim


class Entry(Claim):
    """One entry, held for reading. ``array`` is its array, ``arrays`` those of all tracks: read-only views of shared
    memory (a memoryview for bytes; another value itself), invalid after release; numpy.asarray of the entry is
    ``array``. ``with`` releases at its end; it yields the array, which has the entry's ``index``, or, where there are
    several, this entry, whose items they are: ``with store.pop("x") as (obs, rest)``. It is ``torn`` if a program that
    was writing it in place did not finish; see ``lock``."""

    __slots__ = ("index", "arrays", "torn", "_lent", "_block")

    index: int
    arrays: tuple[Any, ...]
    torn: bool
    _lent: int
    _block: int

    @property
    def array(self) -> Any:
        if not self._claim:
            raise self._spent()
        return self.arrays[0]

    def __len__(self) -> int:
        return len(self.arrays)

    def __getitem__(self, track: Any) -> Any:
        if not self._claim:
            raise self._spent()
        return self.arrays[track]

    def __iter__(self) -> Iterator[Any]:
        if not self._claim:
            raise self._spent()
        return iter(self.arrays)

    def __bool__(self) -> bool:
        return bool(self._claim)

    def copy(self) -> Any:
        """Copies of the arrays: one array, or a tuple if there are several tracks. A number of Python's is one again."""
        if not self._claim:
            raise self._spent()
        copies = tuple(copy_of(a) for a in self.arrays)
        return copies[0] if len(copies) == 1 else copies

    def lock(self, timeout: float | None = None, *, shared: bool = False, repair: bool = False) -> Lock:
        """Locks the entry against others that lock it: to write it in place, or with ``shared`` to read it beside others
        that read it. Locked at the end of the timeout. Who asks first has it first.

            with entry.lock() as a:
                a += 1

        Where the block ends in an exception, or the process ends in it, the entry is torn from then on. Torn: it is, and
        neither lock takes it, but with ``repair``, which is for a program that writes all of it again; it is not torn after that."""
        if not self._claim:
            raise self._spent()
        o = self._object
        arrays = self.arrays if shared else o.to_write(self._block, self.arrays)
        reply = o.connection.call(LOCK, 0 if shared else ALONE, claim=self._claim, timeout=timeout)
        lock = Lock(self, arrays, shared, repair)
        if reply[R_SPARE] and (shared or not repair):
            lock.release()
            raise Torn("object %r: entry %d: the program that was writing it in place did not finish: write it again in "
                       "lock(repair=True), or delete it" % (o.name, self.index))
        return lock

    def _spent(self) -> Spent:
        return Spent("object %r: entry %d has been released" % (self._object.name, self.index))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return _as_array(self.array, dtype, copy)

    def release(self) -> None:
        """Releases the entry. A second release raises Spent. The host is told at once, or with the next request if the
        entry was popped and its block takes no room until then."""
        claim = self._claim
        if not claim:
            raise Spent("object %r: entry %d has been released before" % (self._object.name, self.index))
        self._claim = 0
        self.arrays = ()
        connection = self._object.connection
        if self._lent and not connection.deferred:
            connection.deferred.append(claim)  # no writer waits for a lent block
        else:
            connection.post(RELEASE, claim)

    def __enter__(self) -> Any:
        if not self._claim:
            raise self._spent()
        if len(self.arrays) != 1:
            return self
        array = self.arrays[0]
        if type(array) is View:
            array.index = self.index
        return array

    def __exit__(self, *_: object) -> None:
        if self._claim:
            self.release()

    def __del__(self) -> None:
        if getattr(self, "_claim", 0):
            self._object.connection.post(RELEASE, self._claim)

    def __repr__(self) -> str:
        return "<Entry %d of %r%s>" % (self.index, self._object.name, "" if self._claim else ", released")


class Lock:
    """A locked entry. ``array`` (``arrays`` for several tracks) is the shared memory, to write unless it is shared; ``with``
    yields it and unlocks the entry at its end. After ``release`` the arrays must not be used any more."""

    __slots__ = ("entry", "arrays", "_shared", "_repair", "_locked")

    entry: Entry
    arrays: tuple[Any, ...]

    def __init__(self, entry: Entry, arrays: tuple[Any, ...], shared: bool, repair: bool):
        self.entry = entry
        self.arrays = arrays
        self._shared, self._repair, self._locked = shared, repair, True

    @property
    def array(self) -> Any:
        return self.arrays[0]

    def release(self, torn: bool = False) -> None:
        """Unlocks the entry; with ``torn`` it is marked as half written. A second release raises Spent."""
        entry = self.entry
        if not self._locked or not entry._claim:
            raise Spent("object %r: entry %d has been unlocked before" % (entry._object.name, entry.index))
        self._locked, self.arrays = False, ()
        flags = 0 if self._shared else TEAR if torn else MEND if self._repair else 0
        entry._object.connection.call(UNLOCK, flags, claim=entry._claim)

    def __enter__(self) -> Any:
        return self.arrays[0] if len(self.arrays) == 1 else self.arrays

    def __exit__(self, kind: Any, *_: object) -> None:
        if self._locked and self.entry._claim:
            self.release(torn=kind is not None)


class Batch(Claim):
    """Several entries of one object, held for reading as one. A sequence of their arrays (or tuples of arrays);
    ``indices`` are their indices. It is ``torn`` if one of them is; see Entry."""

    __slots__ = ("indices", "items", "torn")

    indices: tuple[int, ...]
    items: tuple[Any, ...]
    torn: bool

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, i: Any) -> Any:
        if not self._claim:
            raise Spent("object %r: the batch has been released" % self._object.name)
        return self.items[i]

    def __iter__(self) -> Iterator[Any]:
        if not self._claim:
            raise Spent("object %r: the batch has been released" % self._object.name)
        return iter(self.items)

    def release(self) -> None:
        """Releases all entries. A second release raises Spent."""
        claim = self._claim
        if not claim:
            raise Spent("object %r: the batch has been released before" % self._object.name)
        self._claim = 0
        self.items = ()
        self._object.connection.post(RELEASE, claim)

    def __enter__(self) -> "Batch":
        return self

    def __exit__(self, *_: object) -> None:
        if self._claim:
            self.release()

    def __del__(self) -> None:
        if getattr(self, "_claim", 0):
            self._object.connection.post(RELEASE, self._claim)


class Writing(Claim):
    """An entry to write in place. ``array`` (``arrays`` for several tracks) is the shared memory, its contents
    undefined at first. ``commit`` makes it readable and returns its index, ``abort`` returns it unwritten; ``with``
    commits at its end, or aborts on an exception."""

    __slots__ = ("arrays", "index")

    arrays: tuple[Any, ...]
    index: int | None

    @property
    def array(self) -> Any:
        if not self._claim:
            raise Spent("object %r: this entry has been committed or aborted" % self._object.name)
        return self.arrays[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return _as_array(self.array, dtype, copy)

    def commit(self) -> int:
        """Makes the entry readable. A second commit raises Spent."""
        if not self._claim:
            raise Spent("object %r: this entry has been committed or aborted before" % self._object.name)
        o = self._object
        values = o.pack(self.arrays)
        claim, self._claim, self.arrays = self._claim, 0, ()
        try:
            reply = o.connection.call(COMMIT, values=len(o.columns), claim=claim, payload=values)
        except ObjectError as e:
            o.connection.give_up(claim, e)
            raise
        index: int = reply[R_INDEX]
        self.index = index
        return index

    def abort(self) -> None:
        """Returns the block unwritten. Raises Spent after commit or abort."""
        if not self._claim:
            raise Spent("object %r: this entry has been committed or aborted before" % self._object.name)
        claim, self._claim, self.arrays = self._claim, 0, ()
        self._object.connection.post(ABORT, claim)

    def __enter__(self) -> Any:
        return self.array if len(self.arrays) == 1 else self.arrays

    def __exit__(self, kind: Any, *_: object) -> None:
        if not self._claim:
            return
        if kind is None:
            self.commit()
        else:
            self.abort()

    def __del__(self) -> None:
        if getattr(self, "_claim", 0):
            self._object.connection.post(ABORT, self._claim)


class Pushed:
    """A pending entry: the host handles it before any later request of this store. It can be used as its index, an
    integer, and waits for it then; so does ``index``, which raises the error if the push failed."""

    __slots__ = ("_object", "_seq", "_claim", "_index", "_error")

    def __init__(self, o: Object, seq: int, claim: int):
        self._object = o
        self._seq = seq
        self._claim = claim
        self._index = -1
        self._error: ObjectError | None = None

    @property
    def index(self) -> int:
        if self._seq:
            o = self._object
            with o.settling:
                self._settle()
        if self._error is not None:
            raise self._error
        return self._index

    def _settle(self) -> None:
        """Takes the reply, which also brings the block for the next push. The caller holds the object's settling."""
        if not self._seq:
            return
        o = self._object
        try:
            reply = o.connection.finish(self._seq, None)  # interrupted, it can be tried again
        except ObjectError as e:
            self._error = e
            o.connection.give_up(self._claim, e)
        else:
            self._index = reply[R_INDEX]
            if reply[R_SPARE]:
                o.keep(reply[R_SPARE], reply[R_SPARE_BLOCK])
        self._seq = 0
        if o.pushed is self:
            o.pushed = None

    def __index__(self) -> int:
        return self.index

    __int__ = __index__

    def __eq__(self, other: object) -> bool:
        return self.index == other

    def __hash__(self) -> int:
        return hash(self.index)

    def __repr__(self) -> str:
        return "<Pushed to %r%s>" % (self._object.name, "" if self._seq else ": %d" % self._index)


_PYTHON = frozenset(np.dtype(t) for t in (bool, int, float, complex))


def copy_of(a: Any) -> Any:
    """A copy of what an entry has in one track."""
    if isinstance(a, np.ndarray):
        return a.item() if a.ndim == 0 and a.dtype in _PYTHON else np.array(a)
    return bytes(a) if isinstance(a, memoryview) else a


def _as_array(data: Any, dtype: Any, copy: bool | None) -> Any:
    """The result of numpy.asarray of a claim: the same memory, valid as long as the claim."""
    return np.asarray(data, dtype) if copy is None else np.array(data, dtype, copy=copy)


def views_of(o: Object, body: bytes, at: int, block: int, tracks: int) -> tuple[tuple[Any, ...], int]:
    """The views of one entry, described in a reply from `at` on."""
    arrays = []
    for track in range(tracks):
        dtype, rank = VALUE.unpack_from(body, at)
        at += VALUE.size
        shape = DIMS[rank].unpack_from(body, at)
        at += 8 * rank
        arrays.append(o.array(o.reading, track, block, dtype, shape))
    return tuple(arrays), at
