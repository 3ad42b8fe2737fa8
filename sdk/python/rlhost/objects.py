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

A Store may be used from several threads; a thread that waits lets the others go on. A forked child connects anew when
it first uses a Store, and holds nothing of what its parent held.
"""

from __future__ import annotations

import atexit
import itertools
import json
import mmap
import os
import socket
import struct
import sys
import threading
import time
import weakref
from typing import Any, Iterator, Sequence, Union

import numpy as np

__all__ = [
    "Store", "Entry", "Batch", "Writing", "Pushed", "Track", "default_path",
    "ObjectError", "NotFound", "Exists", "Removed", "NoEntry", "Empty", "Full", "Busy", "Spent", "Foreign",
    "WrongKind", "TooLarge", "WrongTracks", "WrongDType", "LimitExceeded", "Closed", "HostLost", "BadRequest",
    "Canceled",
]

VERSION = 1
MAX_FRAME = 64 << 10
MAX_RANK = 8

Array = Union[np.ndarray, bytes, bytearray, memoryview]


class ObjectError(Exception):
    """What went wrong with an object; the subclasses say what a caller may want to decide on."""


class NotFound(ObjectError): """There is no object of that name."""
class Exists(ObjectError): """There is an object of that name already."""
class Removed(ObjectError): """The object was removed while it was used."""
class NoEntry(ObjectError, LookupError): """The object has no entry of that index."""
class Empty(ObjectError): """The object has no entry, or none as new as asked for."""
class Full(ObjectError): """Every block of the object is in use."""
class Busy(ObjectError): """The entry is being read."""
class Spent(ObjectError): """What was claimed has been given back before."""
class Foreign(ObjectError): """The claim belongs to another session."""
class WrongKind(ObjectError): """A claim for reading was used to write, or the other way round."""
class TooLarge(ObjectError, ValueError): """The array does not fit the object's blocks."""
class WrongTracks(ObjectError, ValueError): """The number of arrays is not the number of tracks."""
class WrongDType(ObjectError, TypeError): """The array's dtype is not one that the track takes."""
class LimitExceeded(ObjectError, ValueError): """A number is outside of what the host allows."""
class Closed(ObjectError): """The store, or the host's, has been closed."""
class BadRequest(ObjectError): """The host did not understand the request."""
class Canceled(ObjectError): """The operation was cancelled while it waited."""
class HostLost(ObjectError, ConnectionError): """The host is gone. Every claim went with it; the next use connects anew."""


# By the number that the host sends, less 16.
_ERRORS = (NotFound, Exists, Removed, NoEntry, Empty, Full, Busy, Spent, Foreign, WrongKind, TooLarge, WrongTracks,
           WrongDType, LimitExceeded, Closed, BadRequest, BadRequest, Canceled)
_FIRST_ERROR = 16

_HELLO, _CREATE, _OPEN, _REMOVE, _NEW, _SPARE, _COMMIT, _ABORT, _READ, _LATEST, _POP, _BATCH, _RELEASE, _DELETE, _STAT, \
    _LIST, _CANCEL = range(1, 18)
_ONE_WAY, _NEXT, _REVOKE, _REUSE, _WRITE, _NO_FILE, _RANGE = (1 << i for i in range(7))

_REQUEST = struct.Struct("<BBBxIIIQQQq")  # op flags values seq object count claim index release wait
_REPLY = struct.Struct("<BBxxIIIQQQII")   # op status seq object block claim index spare spare_block count
_VIEW = struct.Struct("<QII")             # index block tracks
_VALUE = struct.Struct("<BBxxxxxx")       # dtype rank
_LAYOUT = struct.Struct("<IIQI")          # capacity blocks size tracks
_COLUMN = struct.Struct("<QQQBB")         # at stride bytes dtype name
_CONFIG = struct.Struct("<QqI")           # capacity spares tracks
_TRACK = struct.Struct("<QBB")            # bytes dtype name
_HEAD = _REQUEST.size

_ANY, _BYTES = 0, 32
_DTYPES = {
    1: "u1", 2: "i1", 3: "<i2", 4: "<i4", 5: "<i8", 6: "<f2", 8: "<f4", 9: "<f8", 10: "?",
    16: "<u2", 17: "<u4", 18: "<u8", 19: "<c8", 20: "<c16",
}
_DTYPE_OF = {number: np.dtype(name) for number, name in _DTYPES.items()}
_NUMBER_OF = {dtype: number for number, dtype in _DTYPE_OF.items()}
_DIMS = [struct.Struct("<%dQ" % rank) for rank in range(MAX_RANK + 1)]

_GRACE = 5.0  # seconds beyond its deadline that an answer may take before the host counts as lost


def default_path() -> str:
    """Where hosts and clients meet unless somebody says otherwise: $RLHOST_OBJECTS, or a folder of the user's own."""
    if path := os.environ.get("RLHOST_OBJECTS"):
        return path
    if folder := os.environ.get("XDG_RUNTIME_DIR"):
        return os.path.join(folder, "rlhost", "objects.sock")
    return "/tmp/rlhost-%d/objects.sock" % os.geteuid()


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
            bytes = int(np.prod(shape, dtype=np.int64)) * self.dtype.itemsize
        self.bytes = bytes

    def _packed(self) -> builtins_bytes:
        name = self.name.encode()
        if len(name) > 255:
            raise LimitExceeded("track %r: a name of %d bytes, at most 255" % (self.name, len(name)))
        number = _ANY if self.dtype is None else _number_of(self.dtype, "track %r" % self.name)
        return _TRACK.pack(self.bytes, number, len(name)) + name


builtins_bytes = bytes


def _number_of(dtype: np.dtype, what: str) -> int:
    number = _NUMBER_OF.get(dtype.newbyteorder("<"))
    if number is None or not dtype.isnative and dtype.itemsize > 1:
        raise WrongDType("%s: dtype %s cannot be shared: make it %s, or push bytes" % (
            what, dtype, ", ".join(sorted(str(d) for d in _NUMBER_OF))))
    return number


# Places in a reply's head, and behind it what is not in the head.
_R_STATUS, _R_OBJECT, _R_BLOCK, _R_CLAIM, _R_INDEX, _R_SPARE, _R_SPARE_BLOCK, _R_COUNT = 1, 3, 4, 5, 6, 7, 8, 9

_LOST = int(socket.MSG_TRUNC) | int(socket.MSG_CTRUNC)
_NOSIGNAL = int(socket.MSG_NOSIGNAL)


class _Connection:
    """One session at the host: everything that is claimed belongs to one. It pairs replies with requests, so that
    threads can wait side by side: one of them reads the socket, for itself and for the others.

    A reply is a tuple: the fields of its head, its body, and the files that came with it.
    """

    def __init__(self, path: str):
        self.path = path
        self.lost: ObjectError | None = None
        self.lock = threading.Lock()       # guards reading, waiting, replies and orphans
        self.arrived = threading.Condition(self.lock)
        self.reading = False               # a thread is in recv
        self.waiting = 0                   # threads that wait for it
        self.replies: dict[int, Any] = {}  # to those
        self.orphans: dict[int, int] = {}  # requests whose caller was interrupted: op by seq
        self.seqs = itertools.count(1)
        self.buffer = bytearray(MAX_FRAME)
        self.deferred: list[int] = []      # a claim whose release goes with the next request
        self.round_trips = 0
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            self.socket.connect(path)
        except OSError as e:
            self.socket.close()
            raise HostLost("no host serves objects at %s: %s" % (path, e.strerror or e)) from None
        # Lets a thread that waits look up once a second without a system call for each request.
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("@ll", 1, 0))
        self.send = self.socket.send
        try:
            self.call(_HELLO, index=VERSION, payload=b"pid %d" % os.getpid())
        except BaseException:
            self.socket.close()
            raise

    def close(self) -> None:
        if self.lost is None:
            self.lost = Closed("the store has been closed")
        try:
            self.socket.shutdown(socket.SHUT_RDWR)  # ends the recv of other threads
        except OSError:
            pass
        self.socket.close()

    def _lose(self, why: str) -> ObjectError:
        if self.lost is None:
            self.lost = HostLost("the host at %s is lost: %s" % (self.path, why))
            try:
                self.socket.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        return self.lost

    def post(self, op: int, claim: int) -> None:
        """Sends a request without a reply. It may run in a finalizer, so it takes no lock and raises nothing."""
        if self.lost is None:
            try:
                self.send(_REQUEST.pack(op, _ONE_WAY, 0, 0, 0, 0, claim, 0, 0, 0), _NOSIGNAL)
            except OSError:
                pass

    def call(self, op: int, flags: int = 0, values: int = 0, number: int = 0, count: int = 0, claim: int = 0,
             index: int = 0, timeout: float | None = 0, payload: bytes | bytearray = b"") -> tuple[Any, ...]:
        """Sends a request and returns its reply, or raises what the reply says."""
        if timeout is None:
            wait, deadline = -1, None
        elif timeout <= 0:
            wait, deadline = 0, None
        else:
            wait, deadline = min(int(timeout * 1e9), (1 << 63) - 1), time.monotonic() + timeout
        seq = next(self.seqs) & 0xFFFFFFFF
        release = self.take_deferred() if self.deferred else 0
        frame = _REQUEST.pack(op, flags, values, seq, number, count, claim, index, release, wait) + payload
        try:
            self.begin(frame)
        except LimitExceeded:
            if release:
                self.post(_RELEASE, release)
            raise
        try:
            return self.finish(seq, deadline)
        except ObjectError:
            raise
        except BaseException:
            self._abandon(seq, op)
            raise

    def take_deferred(self) -> int:
        """The claim that a request is to release before anything else, or 0."""
        try:
            return self.deferred.pop()
        except IndexError:  # another thread was faster
            return 0

    def begin(self, frame: bytes) -> None:
        """Sends a request whose reply finish takes."""
        if len(frame) > MAX_FRAME:
            raise LimitExceeded("a request of %d bytes, at most %d: ask for less at a time" % (len(frame), MAX_FRAME))
        if self.lost is not None:
            raise self.lost
        try:
            self.send(frame, _NOSIGNAL)
        except OSError as e:
            raise self._lose(e.strerror or str(e)) from None

    def finish(self, seq: int, deadline: float | None) -> tuple[Any, ...]:
        """Returns the reply to a request, or raises what it says."""
        reply = self._receive(seq, deadline)
        self.round_trips += 1
        status = reply[_R_STATUS]
        if status:
            known = 0 <= status - _FIRST_ERROR < len(_ERRORS)
            raise (_ERRORS[status - _FIRST_ERROR] if known else ObjectError)(reply[-2].decode(errors="replace"))
        return reply

    def _receive(self, seq: int, deadline: float | None) -> tuple[Any, ...]:
        """Returns the reply to a request."""
        lock = self.lock
        lock.acquire()
        if self.replies and seq in self.replies:
            reply = self.replies.pop(seq)
            lock.release()
            return reply
        if self.reading:
            reply = self._wait(seq)
            if reply is not None:
                lock.release()
                return reply
        self.reading = True
        lock.release()
        try:
            while True:
                reply = self._read(deadline)
                if reply[2] == seq:
                    return reply
                self._deliver(reply)
        finally:
            lock.acquire()
            self.reading = False
            if self.waiting:
                self.arrived.notify_all()
            lock.release()

    def _wait(self, seq: int) -> tuple[Any, ...] | None:
        """Waits until another thread has read the reply, or nobody reads any more. The lock is held."""
        self.waiting += 1
        try:
            while self.reading and seq not in self.replies and self.lost is None:
                self.arrived.wait(1.0)
        except BaseException:
            self.lock.release()  # the caller expects it so, and will not come to release it
            raise
        finally:
            self.waiting -= 1
        reply = self.replies.pop(seq, None)
        if reply is None and self.lost is not None:
            self.lock.release()
            raise self.lost
        return reply

    def _deliver(self, reply: tuple[Any, ...]) -> None:
        """Keeps the reply to another thread's request, or gives back what an interrupted one has brought."""
        with self.lock:
            op = self.orphans.pop(reply[2], None)
            if op is None:
                self.replies[reply[2]] = reply
                self.arrived.notify_all()
        if op is not None:
            self._bury(op, reply)

    def _abandon(self, seq: int, op: int) -> None:
        """Cancels a request whose caller was interrupted; what it may still bring is given back when it comes."""
        if self.lost is not None:
            return
        with self.lock:
            late = self.replies.pop(seq, None)
            if late is None:
                self.orphans[seq] = op
        if late is not None:
            self._bury(op, late)
            return
        try:
            self.send(_REQUEST.pack(_CANCEL, 0, 0, 0, 0, 0, 0, seq, 0, 0), _NOSIGNAL)
        except OSError:
            pass

    def _bury(self, op: int, reply: tuple[Any, ...]) -> None:
        for fd in reply[-1]:
            os.close(fd)
        if reply[_R_STATUS]:
            return
        if op in (_READ, _LATEST, _POP, _BATCH):
            self.post(_RELEASE, reply[_R_CLAIM])
        elif op in (_NEW, _SPARE):
            self.post(_ABORT, reply[_R_CLAIM])
        elif op == _COMMIT and reply[_R_SPARE]:
            self.post(_ABORT, reply[_R_SPARE])

    def _read(self, deadline: float | None) -> tuple[Any, ...]:
        """Reads one reply, whosever it is."""
        buffer = self.buffer
        while True:
            if self.lost is not None:
                raise self.lost
            try:
                n, control, flags, _ = self.socket.recvmsg_into((buffer,), 64)
                break
            except BlockingIOError:
                if deadline is not None and time.monotonic() > deadline + _GRACE:
                    raise self._lose("it does not answer") from None
            except OSError as e:
                raise self._lose(e.strerror or str(e)) from None
        if n == 0:
            raise self._lose("it closed the connection")
        if n < 48 or flags & _LOST:
            raise self._lose("it sent %d bytes that are no reply" % n)
        files = _files(control) if control else ()
        return _REPLY.unpack_from(buffer) + (buffer[48:n], files)


def _files(control: Any) -> list[int]:
    files: list[int] = []
    for level, kind, data in control:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            files += [fd for fd, in struct.iter_unpack("@i", data[:len(data) // 4 * 4])]
    for fd in files:
        os.set_inheritable(fd, False)
    return files


class _Column:
    __slots__ = ("at", "stride", "bytes", "dtype", "name")


class _Object:
    """An object as this process sees it: where its blocks are, and its mappings."""

    def __init__(self, connection: _Connection, name: str, number: int):
        self.connection = connection
        self.name = name
        self.number = number
        self.capacity = 0
        self.columns: list[_Column] = []
        self.reading: mmap.mmap | None = None  # mapped to read only
        self.writing: mmap.mmap | None = None  # mapped once something is written
        self.spare = (0, 0)                    # claim and block for the next push
        self.pushed: Pushed | None = None      # the last push, if its reply has not been taken yet
        self.packed: dict[Any, bytes] = {}     # values of a commit, by dtype and shape
        self.settling = threading.Lock()       # one thread takes the reply to a push

    def keep(self, claim: int, block: int) -> None:
        """Keeps a block for the next push, unless there is one."""
        if self.spare[0]:
            self.connection.post(_ABORT, claim)
        else:
            self.spare = (claim, block)

    @property
    def single(self) -> bool:
        return len(self.columns) == 1

    def place(self, reply: tuple[Any, ...]) -> None:
        """Takes in the layout and the file that a reply to _OPEN brought."""
        body = reply[-2]
        self.capacity, blocks, size, tracks = _LAYOUT.unpack_from(body)
        at = _LAYOUT.size
        columns = []
        for _ in range(tracks):
            c = _Column()
            c.at, c.stride, c.bytes, c.dtype, length = _COLUMN.unpack_from(body, at)
            at += _COLUMN.size
            c.name = body[at:at + length].decode()
            at += length
            if c.bytes > c.stride or c.at + c.stride * blocks > size:
                raise BadRequest("object %r: its layout does not fit its %d bytes" % (self.name, size))
            columns.append(c)
        self.columns = columns
        self.size = size

    def map(self, write: bool) -> mmap.mmap:
        have = self.writing if write else self.reading
        if have is not None:
            return have
        reply = self.connection.call(_OPEN, _WRITE if write else 0, payload=self.name.encode())
        try:
            if reply[_R_OBJECT] != self.number:
                raise Removed("object %r was removed and made anew" % self.name)
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
        return mapped

    def array(self, memory: mmap.mmap, track: int, block: int, dtype: int, shape: tuple[int, ...]) -> Any:
        """A view of what lies in a block; it is read-only if the mapping is."""
        column = self.columns[track]
        at = column.at + block * column.stride
        if dtype == _BYTES:
            view = memoryview(memory)[at:at + int(np.prod(shape, dtype=np.int64))]
            return view
        return np.ndarray(shape, _DTYPE_OF[dtype], memory, at)

    def pack(self, arrays: Sequence[Any]) -> bytes:
        """What a commit says of arrays, checked against the tracks."""
        if len(arrays) != len(self.columns):
            raise WrongTracks("object %r: %d arrays for %d tracks" % (self.name, len(arrays), len(self.columns)))
        if len(arrays) == 1 and isinstance(arrays[0], np.ndarray):
            return self._pack(0, arrays[0].dtype, arrays[0].shape)
        out = b""
        for track, a in enumerate(arrays):
            if isinstance(a, np.ndarray):
                out += self._pack(track, a.dtype, a.shape)
            else:
                out += self._pack(track, None, (len(a),))
        return out

    def _pack(self, track: int, dtype: np.dtype | None, shape: tuple[int, ...]) -> bytes:
        key = (track, dtype, shape)
        packed = self.packed.get(key)
        if packed is not None:
            return packed
        column = self.columns[track]
        what = "object %r: track %d" % (self.name, track)
        number = _BYTES if dtype is None else _number_of(dtype, what)
        if column.dtype not in (_ANY, number):
            want = "bytes" if column.dtype == _BYTES else str(_DTYPE_OF.get(column.dtype, column.dtype))
            raise WrongDType("%s: dtype %s, it takes %s" % (what, "bytes" if dtype is None else dtype, want))
        if len(shape) > MAX_RANK:
            raise LimitExceeded("%s: %d dimensions, at most %d" % (what, len(shape), MAX_RANK))
        size = (1 if dtype is None else dtype.itemsize) * int(np.prod(shape, dtype=np.int64))
        if size > column.bytes:
            raise TooLarge("%s: %d bytes for a block of %d" % (what, size, column.bytes))
        packed = _VALUE.pack(number, len(shape)) + _DIMS[len(shape)].pack(*shape)
        if len(self.packed) < 256:
            self.packed[key] = packed
        return packed


class _Claim:
    """Something that is held, until release or, for those who forget it, the garbage collector ends it."""

    __slots__ = ("_object", "_claim", "__weakref__")

    def _hold(self, o: _Object, claim: int) -> None:
        self._object = o
        self._claim = claim

    def _what(self) -> str:
        return "object %r" % self._object.name


class Entry(_Claim):
    """One entry, held for reading. ``array`` is its array, ``arrays`` those of all tracks: read-only views of shared
    memory (of bytes, a memoryview), not to be looked at after release. ``with`` gives the array, or the arrays if
    there are several, and releases at its end."""

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
        copies = tuple(a.copy() if isinstance(a, np.ndarray) else bytes(a) for a in self.arrays)
        return copies[0] if len(copies) == 1 else copies

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
            connection.post(_RELEASE, claim)

    def __enter__(self) -> Any:
        if not self._claim:
            raise Spent("object %r: entry %d has been released" % (self._object.name, self.index))
        return self.arrays[0] if len(self.arrays) == 1 else self.arrays

    def __exit__(self, *_: object) -> None:
        if self._claim:
            self.release()

    def __del__(self) -> None:
        if getattr(self, "_claim", 0):
            self._object.connection.post(_RELEASE, self._claim)

    def __repr__(self) -> str:
        return "<Entry %d of %r%s>" % (self.index, self._object.name, "" if self._claim else ", released")


class Batch(_Claim):
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
        self._object.connection.post(_RELEASE, claim)

    def __enter__(self) -> "Batch":
        return self

    def __exit__(self, *_: object) -> None:
        if self._claim:
            self.release()

    def __del__(self) -> None:
        if getattr(self, "_claim", 0):
            self._object.connection.post(_RELEASE, self._claim)


class Writing(_Claim):
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

    def commit(self) -> int:
        """Makes the entry readable. A second commit raises Spent."""
        if not self._claim:
            raise Spent("object %r: this entry has been committed or aborted before" % self._object.name)
        o = self._object
        values = o.pack(self.arrays)
        claim, self._claim, self.arrays = self._claim, 0, ()
        reply = o.connection.call(_COMMIT, values=len(o.columns), claim=claim, payload=values)
        self.index = reply[_R_INDEX]
        return reply[_R_INDEX]

    def abort(self) -> None:
        """Gives the block back. A second one, or one after commit, raises Spent."""
        if not self._claim:
            raise Spent("object %r: this entry has been committed or aborted before" % self._object.name)
        claim, self._claim, self.arrays = self._claim, 0, ()
        self._object.connection.post(_ABORT, claim)

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
            self._object.connection.post(_ABORT, self._claim)


class Pushed:
    """An entry on its way: the host has it before anything that this store asks for later. It is its index wherever an
    integer is needed, and waits for it then; ``index`` does so too, and raises what went wrong."""

    __slots__ = ("_object", "_seq", "_index", "_error")

    def __init__(self, o: _Object, seq: int):
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
            self._index = reply[_R_INDEX]
            if reply[_R_SPARE]:
                o.keep(reply[_R_SPARE], reply[_R_SPARE_BLOCK])
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


class Store:
    """A connection to the objects that a running rlhost serves, at ``path`` or default_path(). It raises HostLost if
    nobody serves there; with a timeout it waits so long for a host to appear."""

    def __init__(self, path: str | None = None, *, timeout: float | None = 0):
        self.path = path or default_path()
        self._closed = False
        self._objects: dict[str, _Object] = {}
        self._lock = threading.RLock()
        self._connection: _Connection | None = None
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            try:
                self._connect()
                break
            except HostLost:
                if deadline is not None and time.monotonic() >= deadline:
                    raise
                time.sleep(0.05)  # a path that does not exist yet has nothing to wait on
        _stores.add(self)

    def _connect(self) -> _Connection:
        connection = self._connection
        if connection is not None and connection.lost is None:
            return connection
        with self._lock:
            if self._closed:
                raise Closed("the store has been closed")
            connection = self._connection
            if connection is None or isinstance(connection.lost, HostLost):
                self._objects = {}
                self._connection = None
                self._connection = connection = _Connection(self.path)
            return connection

    def close(self) -> None:
        """Ends the session once everything that was pushed has found its place: what this store holds is given back, and
        its views must not be used any more."""
        try:
            if not self._closed:
                self.flush()
        finally:
            self._close()

    def _close(self) -> None:
        with self._lock:
            self._closed = True
            if self._connection is not None:
                self._connection.close()
            self._objects = {}

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, kind: Any, *_: object) -> None:
        if kind is None:
            self.close()
        else:
            self._close()

    @property
    def round_trips(self) -> int:
        """How many requests have been answered in this session."""
        return self._connect().round_trips

    # Objects.

    def create(self, name: str, capacity: int, shape: Sequence[int] | int = (), dtype: Any = None, *,
               bytes: int | None = None, tracks: Sequence[Track] | None = None, spares: int = 0,
               exist_ok: bool = False) -> None:
        """Makes an object for ``capacity`` entries: of one track, whose blocks hold arrays of that shape and dtype or
        just so many bytes, or of the given tracks. ``spares`` blocks more let as many writers push with one request
        (0: one for every eighth entry, at most 8; -1: none). With exist_ok an object of that name that is large enough
        will do; else that is Exists."""
        if tracks is None:
            tracks = [Track(shape, dtype, bytes=bytes)]
        encoded = name.encode()
        config = _CONFIG.pack(capacity, spares, len(tracks)) + b"".join(t._packed() for t in tracks)
        self._connect().call(_CREATE, _REUSE if exist_ok else 0, count=len(encoded), payload=encoded + config)

    def remove(self, name: str) -> None:
        """Withdraws an object from everybody. Those who read it keep what they read."""
        o = self._find(name)
        self._forget(o)
        o.connection.call(_REMOVE, number=o.number)

    def wait_for(self, name: str, timeout: float | None = None) -> None:
        """Waits until somebody has made an object of that name. NotFound at the end of the timeout."""
        self._connect().call(_OPEN, _NO_FILE, timeout=timeout, payload=name.encode())

    def names(self, prefix: str = "") -> list[str]:
        """The names that begin with prefix, in order."""
        found: list[str] = []
        start = prefix.encode()
        after = b""
        while True:
            reply = self._connect().call(_LIST, count=len(start), payload=start + after)
            at = 0
            for _ in range(reply[_R_COUNT]):
                length = reply[-2][at]
                after = reply[-2][at + 1:at + 1 + length]
                found.append(after.decode(errors="replace"))
                at += 1 + length
            if reply[_R_COUNT] == 0:
                return found

    def stat(self, name: str) -> dict[str, Any]:
        """How the object is: Entries, Writing, Kept, Spares, Next, Oldest, Newest, Counters and more."""
        return json.loads(self._ask(name, _STAT)[-2])

    def count(self, name: str) -> int:
        """How many entries can be read."""
        return int(self.stat(name)["Entries"])

    # Writing.

    def push(self, name: str, data: Any, timeout: float | None = None) -> "Pushed":
        """Copies an array (anything numpy takes, or bytes; a sequence of them for an object of several tracks) into a
        new entry. Without a timeout it returns as soon as the entry is on its way, at most one for each object; the
        next push waits if there was no room for this one, and raises what went wrong with it. With a timeout it waits for
        room itself, and raises Full at its end. What it returns is good for the entry's index."""
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

    def _push(self, o: _Object, data: Any, timeout: float | None) -> Pushed:
        arrays = (_array(data),) if o.single else tuple(_array(d) for d in data)
        values = o.pack(arrays)
        connection = o.connection
        with self._lock:
            (claim, block), o.spare = o.spare, (0, 0)
        if not claim:
            reply = connection.call(_NEW, number=o.number, timeout=timeout)
            claim, block = reply[_R_CLAIM], reply[_R_BLOCK]
        try:
            memory = o.writing
            for track, a in enumerate(arrays):
                column = o.columns[track]
                at = column.at + block * column.stride
                if isinstance(a, np.ndarray):
                    np.copyto(np.ndarray(a.shape, a.dtype, memory, at), a)
                else:
                    memory[at:at + len(a)] = a
            if timeout is not None:
                return self._push_and_wait(o, claim, len(arrays), values, timeout)
            seq = next(connection.seqs) & 0xFFFFFFFF
            release = connection.take_deferred() if connection.deferred else 0
            connection.begin(_REQUEST.pack(_COMMIT, _NEXT, len(arrays), seq, o.number, 0, claim, 0, release, -1) + values)
        except Full:
            o.keep(claim, block)  # a spare block waits for room, and stays ours in vain
            raise
        except BaseException as e:
            if not isinstance(e, Removed):
                connection.post(_ABORT, claim)
            raise
        pushed = Pushed(o, seq)
        with self._lock:
            alone = o.pushed is None
            if alone:
                o.pushed = pushed
        if not alone:
            with o.settling:
                pushed._settle()
        return pushed

    def _push_and_wait(self, o: _Object, claim: int, tracks: int, values: bytes, timeout: float) -> Pushed:
        reply = o.connection.call(_COMMIT, _NEXT, tracks, o.number, 0, claim, 0, timeout, values)
        pushed = Pushed(o, 0)
        pushed._index = reply[_R_INDEX]
        if reply[_R_SPARE]:
            o.keep(reply[_R_SPARE], reply[_R_SPARE_BLOCK])
        return pushed

    def flush(self) -> None:
        """Waits until everything that was pushed has found its place, and raises what went wrong."""
        for name in list(self._objects):
            self._settle(name)

    def _settle(self, name: str) -> None:
        """Waits for the last push to an object."""
        o = self._objects.get(name)
        pushed = o.pushed if o is not None else None
        if o is None or pushed is None:
            return
        with o.settling:
            pushed._settle()
        if pushed._error is not None:
            self._forget(o)
            raise type(pushed._error)("%s; the entry that was pushed last is lost" % pushed._error)

    def put(self, name: str, data: Any, capacity: int = 64, timeout: float | None = None) -> Pushed:
        """Pushes, and makes the object first if there is none: for ``capacity`` entries as large as this one. A list or
        tuple has one array for each track."""
        if name not in self._objects:
            arrays = [_array(d) for d in (data if isinstance(data, (list, tuple)) else [data])]
            sizes = [a.nbytes if isinstance(a, np.ndarray) else len(a) for a in arrays]
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

    def _new(self, o: _Object, shape: Any, dtype: Any, timeout: float | None) -> Writing:
        wanted = [(shape, dtype)] if o.single else list(shape)
        if len(wanted) != len(o.columns):
            raise WrongTracks("object %r: %d arrays for %d tracks" % (o.name, len(wanted), len(o.columns)))
        plan = []
        for track, (s, d) in enumerate(wanted):
            s = (int(s),) if isinstance(s, (int, np.integer)) else tuple(int(n) for n in s)
            d = None if d is None else np.dtype(d)
            o._pack(track, d, s)
            plan.append((s, d))
        reply = o.connection.call(_NEW, number=o.number, timeout=timeout)
        w = Writing()
        w._hold(o, reply[_R_CLAIM])
        w.index = None
        w.arrays = tuple(
            o.array(o.writing, track, reply[_R_BLOCK], _BYTES if d is None else _NUMBER_OF[d], s) for track, (s, d) in enumerate(plan))
        return w

    # Reading.

    def read(self, name: str, index: int, timeout: float | None = 0) -> Entry:
        """The entry of an index. With a timeout, one that is still to come is waited for. NoEntry."""
        return self._entry(name, _READ, index, timeout)

    def read_latest(self, name: str, after: int = -1, timeout: float | None = 0) -> Entry:
        """The newest entry. With a timeout it waits for one whose index is greater than ``after``. Empty."""
        return self._entry(name, _LATEST, after + 1, timeout)

    def pop(self, name: str, timeout: float | None = None) -> Entry:
        """Takes the oldest entry out of the object and waits for one if there is none: each entry goes to one pop. Empty
        at the end of the timeout. Others who read the entry keep it until they release it."""
        return self._entry(name, _POP, 0, timeout, _NEXT)

    def _entry(self, name: str, op: int, index: int, timeout: float | None, flags: int = 0) -> Entry:
        reply, o = self._claimed(name, op, flags, index=index, timeout=timeout)
        body = reply[-2]
        e = Entry()
        e._hold(o, reply[_R_CLAIM])
        e._lent = reply[_R_SPARE]
        e.index, block, tracks = _VIEW.unpack_from(body)
        e.arrays, _ = _arrays(o, body, _VIEW.size, block, tracks)
        return e

    def batch_read(self, name: str, indices: Sequence[int]) -> Batch:
        """All entries of those indices, or NoEntry and none."""
        indices = [int(i) for i in indices]
        payload = struct.pack("<%dQ" % len(indices), *indices)
        return self._batch(*self._claimed(name, _BATCH, count=len(indices), payload=payload))

    def batch_range(self, name: str, start: int = 0, count: int = 64) -> Batch:
        """The oldest entries from an index on, at most ``count`` and as many as one reply holds. NoEntry if there is
        none."""
        return self._batch(*self._claimed(name, _BATCH, _RANGE, count=count, index=start))

    def _batch(self, reply: tuple[Any, ...], o: _Object) -> Batch:
        b = Batch()
        b._hold(o, reply[_R_CLAIM])
        indices, items, at = [], [], 0
        for _ in range(reply[_R_COUNT]):
            index, block, tracks = _VIEW.unpack_from(reply[-2], at)
            arrays, at = _arrays(o, reply[-2], at + _VIEW.size, block, tracks)
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
        """Takes an entry out of the object. While others read it that is Busy; with revoke they keep what they have
        until they release it, and nobody else gets it."""
        self._ask(name, _DELETE, _REVOKE if revoke else 0, index=index)

    # How objects are found.

    def _find(self, name: str) -> _Object:
        """The object of that name, from memory if it has been used before."""
        connection = self._connect()
        o = self._objects.get(name)
        if o is not None and o.connection is connection:
            return o
        reply = connection.call(_OPEN, _NO_FILE, payload=name.encode())
        with self._lock:
            o = self._objects.get(name)
            if o is None or o.connection is not connection or o.number != reply[_R_OBJECT]:
                o = _Object(connection, name, reply[_R_OBJECT])
                o.place(reply)
                self._objects[name] = o
            return o

    def _object_to_write(self, name: str) -> _Object:
        o = self._objects.get(name)
        if o is not None and o.writing is not None and o.connection.lost is None:
            return o
        o = self._find(name)
        if o.writing is None:
            with self._lock:
                o.map(True)
        return o

    def _claimed(self, name: str, op: int, flags: int = 0, **request: Any) -> tuple[tuple[Any, ...], _Object]:
        """Asks for something to read, with the mapping in place before anything is claimed."""
        for last in (False, True):
            o = self._objects.get(name)
            if o is None or o.connection.lost is not None:
                o = self._find(name)
            try:
                if o.reading is None:
                    with self._lock:
                        o.map(False)
                return o.connection.call(op, flags, 0, o.number, **request), o
            except Removed:
                self._forget(o)
                if last or not self._made_anew(o):
                    raise
        raise AssertionError

    def _ask(self, name: str, op: int, flags: int = 0, **request: Any) -> tuple[Any, ...]:
        for last in (False, True):
            o = self._find(name)
            try:
                return o.connection.call(op, flags, 0, o.number, **request)
            except Removed:
                self._forget(o)
                if last or not self._made_anew(o):
                    raise
        raise AssertionError

    def _forget(self, o: _Object) -> None:
        with self._lock:
            if self._objects.get(o.name) is o:
                del self._objects[o.name]

    def _made_anew(self, o: _Object) -> bool:
        """Whether there is another object of the name of one that was removed."""
        try:
            return self._find(o.name).number != o.number
        except NotFound:
            return False

    def _after_fork(self) -> None:
        self._lock = threading.RLock()
        self._objects = {}
        if self._connection is not None:
            # The parent's session must end with the parent: the child does not keep its socket open.
            self._connection.lost = HostLost("this session is the parent process's")
            self._connection.socket.close()
            self._connection = None


def _array(data: Any) -> Any:
    if isinstance(data, np.ndarray):
        return data
    if isinstance(data, (bytes, bytearray)):
        return data
    if isinstance(data, memoryview):
        return data.cast("B") if data.c_contiguous else data.tobytes()
    return np.asarray(data)


def _copy(a: Any) -> Any:
    return a.copy() if isinstance(a, np.ndarray) else bytes(a)


def _arrays(o: _Object, body: bytes, at: int, block: int, tracks: int) -> tuple[tuple[Any, ...], int]:
    """The views of one entry that a reply describes from `at` on."""
    arrays = []
    for track in range(tracks):
        dtype, rank = _VALUE.unpack_from(body, at)
        at += _VALUE.size
        shape = _DIMS[rank].unpack_from(body, at)
        at += 8 * rank
        arrays.append(o.array(o.reading, track, block, dtype, shape))
    return tuple(arrays), at


_stores: "weakref.WeakSet[Store]" = weakref.WeakSet()


def _exit() -> None:
    for store in list(_stores):
        try:
            store.close()
        except ObjectError as e:
            sys.stderr.write("rlhost.objects: %s\n" % e)


atexit.register(_exit)


def _forked() -> None:
    for store in list(_stores):
        store._after_fork()


os.register_at_fork(after_in_child=_forked)
