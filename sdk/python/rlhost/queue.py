"""A queue of bytes between Python processes that may be killed at any moment."""

from __future__ import annotations

import fcntl
import mmap
import os
import struct
import threading
import weakref
from operator import index
from typing import Any, Callable, Sequence

from . import _native, plain

# The file beside the ring: byte OWNER marks an attached owner, which holds a lock on that byte; the kernel drops it
# when the process dies. At _LOST is the number of lost messages.
_OWNERS = 4096
_LOST = 4096
_FILE_BYTES = 8192

_attached: weakref.WeakSet[Queue] = weakref.WeakSet()


class Queue(_native.Queue):
    """A bounded FIFO of bytes for any number of producers and consumers in any processes of this machine.

        q = rlhost.Queue(cells=1024, message_bytes=64)
        multiprocessing.Process(target=work, args=(q,)).start()  # fork, spawn or forkserver
        q.put(b"...", timeout=1.0)

    Its methods are those of the standard library's queues and of faster-fifo. block and timeout mean what they mean
    there: put, get and get_many raise queue.Full and queue.Empty at the end of the timeout; None is no limit. put_many
    returns how many it has put by then. Each message is received once, and those of one producer in order. A process
    killed during a call blocks no other: messages it was putting were never in the queue, messages it was getting
    return to the queue's end. The next process that waits repairs that, or recover does.

    A message is bytes, or another buffer, whose bytes are copied. dumps and loads turn other objects into bytes and
    back, for instance those of rlhost.plain. Nothing is pickled unless dumps does it, and then the queue refuses to
    work between different users: a pickle can run anything. get raises the exceptions of loads, and the message is
    gone.

    Any thread may use it, and any may close it: this process's waiting calls then raise rlhost.Closed. It lives as long
    as a process has it open.
    """

    def __init__(self, cells: int = 1024, message_bytes: int = 16, *, max_size_bytes: int | None = None, dumps: Callable[[Any], Any] | None = None,
                 loads: Callable[[bytes], Any] | None = None):
        """cells is the number of messages that fit, rounded up to a power of two; message_bytes is the most that one
        may have. Alternatively, max_size_bytes is the number of bytes that fit, in messages of any size up to that;
        each is counted as a multiple of 48 bytes, of 112 and more in a queue of more than 3 MB."""
        super().__init__()
        sizes = [("cells", cells, _native.MAX_RING_CELLS), ("message_bytes", message_bytes, _native.MAX_RING_PAYLOAD)]
        if max_size_bytes is not None:
            sizes = [("max_size_bytes", max_size_bytes, (1 << 32) - 1)]
        for name, n, most in sizes:
            if not 1 <= index(n) <= most:
                raise ValueError(f"{name} is {n}, want 1 to {most}")
        if (dumps is None) != (loads is None):
            raise TypeError("dumps and loads belong together")
        if max_size_bytes is None:
            cells = 1 << max(1, (cells - 1).bit_length())
            self._ring_fd = _native.ring_create(_native.RING_QUEUE, cells, message_bytes)
        else:
            self._ring_fd = _native.queue_create(max_size_bytes)
        self._peers_fd = os.memfd_create("rlhost-queue", os.MFD_CLOEXEC)
        os.ftruncate(self._peers_fd, _FILE_BYTES)
        self._join(dumps, loads)

    def _join(self, dumps: Callable[[Any], Any] | None, loads: Callable[[bytes], Any] | None) -> None:
        self._dumps, self._loads, self._coded = dumps, loads, dumps is not None
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
            if self._coded and self._loads is not plain.loads and maker != os.geteuid():
                raise PermissionError(f"the queue belongs to user {maker} and its codec is not rlhost.plain: what another user "
                                      "puts there is not unpacked")
            if self._lock_fd >= 0:
                os.close(self._lock_fd)
            # Locks belong to an open file, which a file received from another process shares with it.
            self._lock_fd = os.open(f"/proc/self/fd/{self._peers_fd}", os.O_RDWR | os.O_CLOEXEC)
            owner = next((n for n in range(1, _OWNERS) if _lock(self._lock_fd, n)), 0)
            if not owner:
                raise _native.Error(f"the queue has {_OWNERS - 1} processes already")
            self._open(self._ring_fd, owner)
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
        import queue
        for i, data in enumerate(messages):
            try:
                self._put_raw(data)
            except (queue.Full, _native.Closed):
                lost = struct.unpack_from("<Q", self._peers, _LOST)[0] + len(messages) - i
                struct.pack_into("<Q", self._peers, _LOST, lost)
                return

    @property
    def lost(self) -> int:
        """The number of messages that a killed process was getting and that no longer had room."""
        return int(struct.unpack_from("<Q", self._peers, _LOST)[0])

    def get_many_nowait(self, max_messages_to_get: int = _native.MAX_RING_BATCH) -> list[Any]:
        """get_many without waiting."""
        return self.get_many(max_messages_to_get, block=False)

    def put_many_nowait(self, messages: Sequence[Any], whole: bool = False) -> int:
        """put_many without waiting."""
        return self.put_many(messages, block=False, whole=whole)

    def close(self) -> None:
        """Closes the queue in this process; other processes keep it. Waiting calls of other threads raise Closed."""
        self._close()

    def _detached(self) -> None:
        """Releases the owner number after the last call of this process has returned."""
        self._peers[self._owner] = 0
        self._peers.close()
        for fd in (self._lock_fd, self._peers_fd, self._ring_fd):
            os.close(fd)
        self._lock_fd = -1
        _attached.discard(self)

    def __del__(self) -> None:
        self._close()
        if getattr(self, "_lock_fd", -1) >= 0:  # attaching has failed
            self._detached()

    def __enter__(self) -> Queue:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        """Sends the queue with its files, to a process that multiprocessing starts or connects to."""
        from multiprocessing.reduction import DupFd
        return _received, (type(self), DupFd(self._ring_fd), DupFd(self._peers_fd), self._dumps, self._loads)

    def _after_fork(self) -> None:
        """In the child: the parent's locks must not outlive the parent here. The next call attaches again."""
        os.close(self._lock_fd)
        self._lock_fd = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        self._owner, self._mutex = 0, threading.RLock()


def _received(kind: type[Queue], ring: Any, peers: Any, dumps: Callable[[Any], Any] | None,
              loads: Callable[[bytes], Any] | None) -> Queue:
    q = kind.__new__(kind)
    q._ring_fd, q._peers_fd = ring.detach(), peers.detach()
    for fd in (q._ring_fd, q._peers_fd):
        os.set_inheritable(fd, False)
    q._join(dumps, loads)
    return q


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
