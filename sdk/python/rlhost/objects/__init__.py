"""Named objects of arrays, shared with other processes of the same user through a running rlhost.

    from rlhost import objects

    store = objects.Store()
    store.create("obs", capacity=64, shape=(256, 84, 84), dtype="u1")
    store.push("obs", frames)                        # one copy, one request, whose answer is not waited for
    with store.new("obs", frames.shape, frames.dtype) as a:
        a[...] = frames                              # no copy: `a` is the shared memory
    with store.pop("obs") as a:                      # no copy: a read-only view of the shared memory
        train(a)

An object is a bounded, ordered set of entries; an entry is one array in each track of its object. Its index counts the
entries ever committed. What a view shows cannot change while it is held, whatever others do: a block is reused only
when nobody reads it. A view is held until its entry is released, which ``with`` does at its end and the garbage
collector for those that forgot; after that the array must not be looked at any more (``copy`` makes one to keep).

Operations that can wait take a timeout in seconds: None waits for as long as it takes, 0 not at all. Everything that
a process holds is given back when it ends, however it ends.

Arrays have any dtype without pointers: numbers are the same to programs in Go, text of a fixed length, dates and records
are bytes to them. A str and a dict (of what rlhost.plain takes) can be pushed as they are, and come out as copies.

A Store may be used from several threads; a thread that waits lets the others go on. A forked child connects anew when
it first uses a Store, and holds nothing of what its parent held; so does a process that a Store is sent to.
"""

from .child import serve
from .claims import Batch, Entry, Pushed, Writing
from .errors import (
    BadRequest, Busy, Canceled, Closed, Empty, Exists, Foreign, Full, HostLost, LimitExceeded, NoEntry, NotFound,
    ObjectError, Removed, Spent, TooLarge, WrongDType, WrongKind, WrongTracks,
)
from .layout import Track
from .session import default_path
from .store import Store

__all__ = [
    "Store", "serve", "Entry", "Batch", "Writing", "Pushed", "Track", "default_path",
    "ObjectError", "NotFound", "Exists", "Removed", "NoEntry", "Empty", "Full", "Busy", "Spent", "Foreign",
    "WrongKind", "TooLarge", "WrongTracks", "WrongDType", "LimitExceeded", "Closed", "HostLost", "BadRequest",
    "Canceled",
]
