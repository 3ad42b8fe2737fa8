"""What a store hands out: entries to read or to write, and what was pushed."""

from __future__ import annotations

from typing import Any, Iterator

import numpy as np

from .errors import ObjectError, Spent
from .layout import Object
from .wire import ABORT, COMMIT, DIMS, RELEASE, R_INDEX, R_SPARE, R_SPARE_BLOCK, VALUE


class Claim:
    """Something that is held, until release or, for those who forget it, the garbage collector ends it."""

    __slots__ = ("_object", "_claim", "__weakref__")

    def _hold(self, o: Object, claim: int) -> None:
        self._object = o
        self._claim = claim


class Entry(Claim):
    """One entry, held for reading. ``array`` is its array, ``arrays`` those of all tracks: read-only views of shared
    memory (of bytes, a memoryview; of a str or dict, itself), not to be looked at after release; numpy.asarray of the entry
    is ``array``. ``with`` gives the array, or the arrays if there are several, and releases at its end."""

    __slots__ = ("index", "arrays", "_lent")

    index: int
    arrays: tuple[Any, ...]
    _lent: int

    @property
    def array(self) -> Any:
        if not self._claim:
            raise Spent("object %r: entry %d has been released" % (self._object.name, self.index))
        return self.arrays[0]

    def copy(self) -> Any:
        """The arrays, copied to memory of their own: one array, or a tuple if there are several tracks."""
        if not self._claim:
            raise Spent("object %r: entry %d has been released" % (self._object.name, self.index))
        copies = tuple(np.array(a) if isinstance(a, np.ndarray) else bytes(a) if isinstance(a, memoryview) else a
                       for a in self.arrays)
        return copies[0] if len(copies) == 1 else copies

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return _as_array(self.array, dtype, copy)

    def release(self) -> None:
        """Gives the entry back. A second release raises Spent. The host hears of it at once, or of an entry that was popped
        with the next request, if its block takes no room until then."""
        claim = self._claim
        if not claim:
            raise Spent("object %r: entry %d has been released before" % (self._object.name, self.index))
        self._claim = 0
        self.arrays = ()
        connection = self._object.connection
        if self._lent and not connection.deferred:
            connection.deferred.append(claim)  # nobody waits for a lent block
        else:
            connection.post(RELEASE, claim)

    def __enter__(self) -> Any:
        if not self._claim:
            raise Spent("object %r: entry %d has been released" % (self._object.name, self.index))
        return self.arrays[0] if len(self.arrays) == 1 else self.arrays

    def __exit__(self, *_: object) -> None:
        if self._claim:
            self.release()

    def __del__(self) -> None:
        if getattr(self, "_claim", 0):
            self._object.connection.post(RELEASE, self._claim)

    def __repr__(self) -> str:
        return "<Entry %d of %r%s>" % (self.index, self._object.name, "" if self._claim else ", released")


class Batch(Claim):
    """Several entries of one object, held for reading as one. A sequence of their arrays (or tuples of arrays);
    ``indices`` says which they are."""

    __slots__ = ("indices", "items")

    indices: tuple[int, ...]
    items: tuple[Any, ...]

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
        """Gives all entries back. A second release raises Spent."""
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
    """An entry that is being written in place. ``array`` (``arrays`` for several tracks) is the shared memory, its
    contents undefined at first. ``commit`` makes it readable and returns its index, ``abort`` gives it back unwritten;
    ``with`` commits at its end, or aborts if an exception leaves it."""

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
        reply = o.connection.call(COMMIT, values=len(o.columns), claim=claim, payload=values)
        index: int = reply[R_INDEX]
        self.index = index
        return index

    def abort(self) -> None:
        """Gives the block back. A second one, or one after commit, raises Spent."""
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
    """An entry on its way: the host has it before anything that this store asks for later. It is its index wherever an
    integer is needed, and waits for it then; ``index`` does so too, and raises what went wrong."""

    __slots__ = ("_object", "_seq", "_index", "_error")

    def __init__(self, o: Object, seq: int):
        self._object = o
        self._seq = seq
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
        """Takes the reply, which also brings the block for the next push. The object's settling is held."""
        if not self._seq:
            return
        o = self._object
        try:
            reply = o.connection.finish(self._seq, None)  # interrupted, it can be tried again
        except ObjectError as e:
            self._error = e
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


def _as_array(data: Any, dtype: Any, copy: bool | None) -> Any:
    """What numpy.asarray of a claim is: the same memory, valid as long as the claim."""
    return np.asarray(data, dtype) if copy is None else np.array(data, dtype, copy=copy)


def views_of(o: Object, body: bytes, at: int, block: int, tracks: int) -> tuple[tuple[Any, ...], int]:
    """The views of one entry that a reply describes from `at` on."""
    arrays = []
    for track in range(tracks):
        dtype, rank = VALUE.unpack_from(body, at)
        at += VALUE.size
        shape = DIMS[rank].unpack_from(body, at)
        at += 8 * rank
        arrays.append(o.array(o.reading, track, block, dtype, shape))
    return tuple(arrays), at
