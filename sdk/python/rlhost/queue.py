"""A queue between Python processes that may be killed at any moment."""

from __future__ import annotations

import fcntl
import mmap
import os
import struct
import threading
import weakref
from operator import index
from queue import Empty as Empty
from queue import Full as Full
from typing import Any, Callable, Sequence

from . import _native, plain

# The file beside the ring: byte OWNER marks an attached owner, which holds a lock on that byte; the kernel drops it
# when the process dies. Byte _CLOSED is set once the queue is closed. At _PAGE is the rlh_queue_bound, which begins with the most
# messages, and at _LOST the number of lost messages.
_CLOSED = 0
_OWNERS = 4096
_PAGE = 4096
_LOST = _PAGE + 16
_FILE_BYTES = 8192

# Messages as _native.Queue has them.
_RAW, _CODED, _PLAIN = range(3)
_LEAST = 48  # bytes that a message counts in a queue of bytes
_MAX_SIZE_BYTES = 1_000_000  # as in faster-fifo
_MOST = (1 << 31) - 1
_CODECS = {"plain": _PLAIN, "pickle": _CODED, "bytes": _RAW}

_attached: weakref.WeakSet[Queue] = weakref.WeakSet()


class Queue(_native.Queue):
    """A bounded FIFO for any number of producers and consumers in any processes of this machine: faster-fifo's Queue.

        q = rlhost.Queue(1000 * 1000)
        multiprocessing.Process(target=work, args=(q,)).start()  # fork, spawn or forkserver
        q.put({"reward": 1.5}, timeout=1.0)

    Its methods are those of faster-fifo, and of the standard library's queues. put and put_many raise queue.Full, get and
    get_many queue.Empty at the end of the timeout, which is 10 s where it is not given; None is no limit. Each message is
    received once, and those of one producer in order. A process killed during a call blocks no other: messages it was
    putting were never in the queue, messages it was getting return to the queue's end. The next process that waits
    repairs that, or recover does.

    A message is what rlhost.plain takes: None, numbers, text, bytes, arrays of NumPy, and tuples, lists and dicts of them.
    With codec="pickle" it is any object, and the queue works between processes of one user alone: a pickle can run
    anything. With codec="bytes" it is bytes, or another buffer, whose bytes are copied. dumps and loads turn objects into
    bytes and back in another way, as do methods of these names in a class of one's own. get raises the exceptions of
    loads, and the message is gone.

    Any thread may use it. close tells all processes that the queue is closed, which is_closed says, and nothing else: what
    waits can be got, and put still puts. shut ends the puts. detach lets go of the queue in this process. It lives as long
    as a process has it.
    """

    def __init__(self, max_size_bytes: int | None = None, maxsize: int = 0, loads: Callable[[bytes], Any] | None = None,
                 dumps: Callable[[Any], Any] | None = None, *, codec: str | None = None, message_bytes: int | None = None):
        """max_size_bytes, 1,000,000 by default, is the number of bytes that fit, in messages of any size up to that; each
        is counted as a multiple of 48 bytes, of 112 and more in a queue of more than 3 MB. maxsize is the number of
        messages that fit, where it is not 0. message_bytes, in place of max_size_bytes, is the most that one message may
        have: such a queue has a cell for each of maxsize messages, and is faster where they are small."""
        super().__init__()
        if not 0 <= index(maxsize) <= _MOST:
            raise ValueError(f"maxsize is {maxsize}, want 0, which is no limit, to {_MOST}")
        self._choose(codec, loads, dumps)
        self._ring_fd = _ring(max_size_bytes, maxsize, message_bytes)
        self.max_size_bytes, self.maxsize = max_size_bytes, maxsize
        if max_size_bytes is None and message_bytes is None:
            self.max_size_bytes = _MAX_SIZE_BYTES
        self._peers_fd = os.memfd_create("rlhost-queue", os.MFD_CLOEXEC)
        os.ftruncate(self._peers_fd, _FILE_BYTES)
        os.pwrite(self._peers_fd, struct.pack("<I", self._bound()), _PAGE)
        self._join()

    def _bound(self) -> int:
        """The most messages, 0 where the room bounds them: a put need not count them then."""
        cells = -(-self.max_size_bytes // _LEAST) if self.max_size_bytes else _cells(self.maxsize)
        return self.maxsize if self.maxsize < cells else 0

    def _choose(self, codec: str | None, loads: Callable[[bytes], Any] | None, dumps: Callable[[Any], Any] | None) -> None:
        """Sets how messages become bytes."""
        if (dumps is None) != (loads is None):
            raise TypeError("dumps and loads belong together")
        if codec is not None and codec not in _CODECS:
            raise ValueError(f"codec is {codec!r}, want " + ", ".join(map(repr, _CODECS)))
        own = loads is not None or type(self).dumps is not Queue.dumps or type(self).loads is not Queue.loads
        if codec is not None and own:
            raise TypeError(f"codec={codec!r} has dumps and loads of its own")
        if loads is not None and dumps is not None:
            vars(self).update(dumps=dumps, loads=loads)
            if (dumps, loads) == (plain.dumps, plain.loads):
                codec, own = "plain", False
        self._codec = "own" if own else codec or "plain"

    def dumps(self, message: Any) -> Any:
        """The bytes of a message, or a buffer. A class of one's own may have another."""
        if self._codec == "pickle":
            from multiprocessing.reduction import ForkingPickler
            return ForkingPickler.dumps(message)
        return message if self._codec == "bytes" else plain.dumps(message)

    def loads(self, data: bytes) -> Any:
        """The message of which dumps has made bytes. A class of one's own may have another."""
        if self._codec == "pickle":
            from multiprocessing.reduction import ForkingPickler
            return ForkingPickler.loads(data)
        return data if self._codec == "bytes" else plain.loads(data)

    def _join(self) -> None:
        self._coded = _CODECS.get(self._codec, _CODED)
        self._lock_fd, self._owner, self._mutex = -1, 0, threading.RLock()
        self._peers = mmap.mmap(self._peers_fd, _FILE_BYTES)
        _attached.add(self)
        self._attach()

    def _attach(self) -> None:
        """Takes a free owner number, and repairs the queue after its dead previous owner."""
        with self._mutex:
            if self._owner:
                return
            maker = os.fstat(self._ring_fd).st_uid
            if self._coded == _CODED and maker != os.geteuid():
                raise PermissionError(f"the queue belongs to user {maker} and its codec is not rlhost.plain: what another user "
                                      "puts there is not unpacked")
            if self._lock_fd >= 0:
                os.close(self._lock_fd)
            # Locks belong to an open file, which a file received from another process shares with it.
            self._lock_fd = os.open(f"/proc/self/fd/{self._peers_fd}", os.O_RDWR | os.O_CLOEXEC)
            owner = next((n for n in range(1, _OWNERS) if _lock(self._lock_fd, n)), 0)
            if not owner:
                raise _native.Error(f"the queue has {_OWNERS - 1} processes already")
            self._open(self._ring_fd, owner, self._peers_fd, _PAGE)
            self._owner = owner
            dead = self._peers[owner]
            self._peers[owner] = 1
            if dead:
                self._put_back(self._recover(owner))

    def _sweep(self) -> list[bytes]:
        """Finds dead owners and repairs the queue after them. Waiting calls run it."""
        if not self._mutex.acquire(blocking=False):
            return []
        try:
            found = []
            owner = self._peers.find(b"\1", 1, _OWNERS)
            while owner > 0:
                if owner != self._owner and _lock(self._lock_fd, owner):
                    try:
                        found += self._recover(owner)
                        self._peers[owner] = 0
                    finally:
                        _unlock(self._lock_fd, owner)
                owner = self._peers.find(b"\1", owner + 1, _OWNERS)
            self._put_back(found)
            return found
        finally:
            self._mutex.release()

    def _put_back(self, messages: list[bytes]) -> None:
        for i, data in enumerate(messages):
            try:
                self._put_raw(data)
            except (Full, _native.Closed):
                lost = struct.unpack_from("<Q", self._peers, _LOST)[0] + len(messages) - i
                struct.pack_into("<Q", self._peers, _LOST, lost)
                return

    @property
    def lost(self) -> int:
        """The number of messages that a killed process was getting and that no longer had room."""
        return int(struct.unpack_from("<Q", self._peers, _LOST)[0])

    def get_many_nowait(self, max_messages_to_get: int = _native.MAX_RING_BATCH) -> list[Any]:
        """get_many without waiting."""
        return self.get_many(False, None, max_messages_to_get)

    def put_many_nowait(self, messages: Sequence[Any], whole: bool = True) -> int:
        """put_many without waiting."""
        return self.put_many(messages, False, None, whole)

    def close(self) -> None:
        """Tells all processes that the queue is closed: is_closed says so. It ends no call."""
        if not self._peers.closed:
            self._peers[_CLOSED] = 1

    def is_closed(self) -> bool:
        """Whether a process has closed or shut the queue, or this one has detached it."""
        return self._is_shut() or self._peers[_CLOSED] != 0

    def join_thread(self) -> None:
        """Does nothing, as in faster-fifo: put has put the message when it returns, and there is no thread to wait for."""

    def cancel_join_thread(self) -> None:
        """Does nothing; see join_thread."""

    def detach(self) -> None:
        """Lets go of the queue in this process; other processes keep it. Waiting calls of other threads raise Closed."""
        self._detach()

    def _detached(self) -> None:
        """Releases the owner number after the last call of this process has returned."""
        self._peers[self._owner] = 0
        self._peers.close()
        for fd in (self._lock_fd, self._peers_fd, self._ring_fd):
            os.close(fd)
        self._lock_fd = -1
        _attached.discard(self)

    def __del__(self) -> None:
        self._detach()
        if getattr(self, "_lock_fd", -1) >= 0:  # attaching has failed
            self._detached()

    def __enter__(self) -> Queue:
        return self

    def __exit__(self, *error: object) -> None:
        self.detach()

    def __reduce__(self) -> tuple[Any, ...]:
        """Sends the queue with its files, to a process that multiprocessing starts or connects to."""
        from multiprocessing.reduction import DupFd
        own = {name: value for name, value in vars(self).items() if name not in _OF_A_PROCESS}
        return _received, (type(self), DupFd(self._ring_fd), DupFd(self._peers_fd), own)

    def _after_fork(self) -> None:
        """In the child: the parent's locks must not outlive the parent here. The next call attaches again."""
        os.close(self._lock_fd)
        self._lock_fd = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        self._owner, self._mutex = 0, threading.RLock()


# What a Queue has for this process alone.
_OF_A_PROCESS = ("_ring_fd", "_peers_fd", "_lock_fd", "_owner", "_mutex", "_peers")


def _received(kind: type[Queue], ring: Any, peers: Any, own: dict[str, Any]) -> Queue:
    q = kind.__new__(kind)
    vars(q).update(own)
    q._ring_fd, q._peers_fd = ring.detach(), peers.detach()
    for fd in (q._ring_fd, q._peers_fd):
        os.set_inheritable(fd, False)
    q._join()
    return q


def _cells(maxsize: int) -> int:
    return 1 << max(1, (maxsize - 1).bit_length())


def _ring(max_size_bytes: int | None, maxsize: int, message_bytes: int | None) -> int:
    """The file of a new ring."""
    if message_bytes is None:
        size = _MAX_SIZE_BYTES if max_size_bytes is None else index(max_size_bytes)
        if not 1 <= size < 1 << 32:
            raise ValueError(f"max_size_bytes is {size}, want 1 to {(1 << 32) - 1}")
        return _native.queue_create(size)
    if max_size_bytes is not None:
        raise TypeError("message_bytes stands in place of max_size_bytes")
    if not 1 <= index(message_bytes) <= _native.MAX_RING_PAYLOAD:
        raise ValueError(f"message_bytes is {message_bytes}, want 1 to {_native.MAX_RING_PAYLOAD}")
    if not 1 <= maxsize <= _native.MAX_RING_CELLS:
        raise ValueError(f"maxsize is {maxsize}, want 1 to {_native.MAX_RING_CELLS} beside message_bytes")
    return _native.ring_create(_native.RING_QUEUE, _cells(maxsize), message_bytes)


def _flock(kind: int, byte: int) -> bytes:
    return struct.pack("hhqqixxxx", kind, os.SEEK_SET, byte, 1, 0)


def _lock(fd: int, byte: int) -> bool:
    try:
        fcntl.fcntl(fd, fcntl.F_OFD_SETLK, _flock(fcntl.F_WRLCK, byte))
    except (BlockingIOError, PermissionError):
        return False
    return True


def _unlock(fd: int, byte: int) -> None:
    fcntl.fcntl(fd, fcntl.F_OFD_SETLK, _flock(fcntl.F_UNLCK, byte))


def _children() -> None:
    for q in list(_attached):
        q._after_fork()


os.register_at_fork(after_in_child=_children)
