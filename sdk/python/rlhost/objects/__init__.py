"""Named objects of arrays, shared with other processes of the same user through a running rlhost.

    from rlhost import objects

    store = objects.Store()
    store.create("obs", capacity=64, shape=(256, 84, 84), dtype="u1")
    store.push("obs", frames)                        # one copy, one request, no wait for its answer
    with store.new("obs", frames.shape, frames.dtype) as a:
        a[...] = frames                              # no copy: `a` is the shared memory
    with store.pop("obs") as a:                      # no copy: a read-only view of the shared memory
        train(a)

An object is a bounded, ordered set of entries; an entry is one array in each track of its object. Its index counts the
entries ever committed. A view cannot change while it is held: a block is reused only when it has no readers. A view is
held until its entry is released, by the end of ``with`` or else by the garbage collector; after that the array must not
be read any more (``copy`` makes one to keep).

Operations that can wait take a timeout in seconds: None waits without a limit, 0 not at all. Everything that a process
holds is released when it ends, for any reason.

Arrays have any dtype without pointers: numbers are the same to programs in Go, text of a fixed length, dates and
records are bytes to them. None, text, and tuples, lists, sets and dicts (of types that rlhost.plain takes) can be pushed
directly, and come out as copies; a list or tuple of numbers is an array.

A Store may be used from several threads; a waiting thread does not block the others. A forked child opens a connection
of its own on its first use of a Store, without its parent's claims; so does a process that receives a Store.
"""

from .child import Server, serve
from .claims import Batch, Entry, Lock, Pushed, Writing
from .errors import (
    BadRequest, Busy, Canceled, Closed, Elsewhere, Empty, Exists, Foreign, Full, HostLost, LimitExceeded, Locked, NoEntry,
    NotFound, ObjectError, Removed, Spent, TooLarge, Torn, WrongDType, WrongKind, WrongTracks,
)
from .layout import Track
from .session import ConnectionDescriptor, default_path
from .store import Store

__all__ = [
    "Store", "Server", "ConnectionDescriptor", "serve", "Entry", "Batch", "Writing", "Pushed", "Lock", "Track", "default_path",
    "ObjectError", "NotFound", "Exists", "Removed", "NoEntry", "Empty", "Full", "Busy", "Spent", "Foreign",
    "Locked", "Torn", "Elsewhere", "WrongKind", "TooLarge", "WrongTracks", "WrongDType", "LimitExceeded", "Closed", "HostLost", "BadRequest",
    "Canceled",
]
