"""One session at the host, shared by threads."""

from __future__ import annotations

import itertools
import os
import select
import socket
import struct
import threading
import time
from typing import Any

from .errors import ERRORS, FIRST_ERROR, Closed, HostLost, LimitExceeded, ObjectError, Removed
from .wire import (
    ABORT, BATCH, CANCEL, COMMIT, HELLO, LATEST, LOCK, MAX_FRAME, NEW, ONE_WAY, POP, READ, RELEASE, REPLY, REQUEST, R_CLAIM,
    R_SPARE, R_STATUS, SPARE, UNLOCK, VERSION,
)

_LOST = int(socket.MSG_TRUNC) | int(socket.MSG_CTRUNC)
_NOSIGNAL = int(socket.MSG_NOSIGNAL)
_GRACE = 5.0  # seconds beyond its deadline that an answer may take before the host counts as lost


class Connection:
    """One session at the host, which owns its claims. It pairs replies with requests, so that several threads can wait:
    one of them reads the socket, for itself and for the others.

    A reply is a tuple: the fields of its head, its body, and the files that came with it.
    """

    def __init__(self, path: str):
        self.path = path
        self.lost: ObjectError | None = None
        self.lock = threading.Lock()       # guards reading, waiting, replies and orphans
        self.arrived = threading.Condition(self.lock)
        self.reading = False               # a thread is in recv
        self.waiting = 0                   # threads that wait for that
        self.replies: dict[int, tuple[Any, ...]] = {}  # for those
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
            self.call(HELLO, index=VERSION, payload=b"pid %d" % os.getpid())
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
        """Sends a request without a reply. It may run in a finalizer, so it must not lock or raise."""
        if self.lost is None:
            try:
                self.send(REQUEST.pack(op, ONE_WAY, 0, 0, 0, 0, claim, 0, 0, 0), _NOSIGNAL)
            except OSError:
                pass

    def call(self, op: int, flags: int = 0, values: int = 0, number: int = 0, count: int = 0, claim: int = 0,
             index: int = 0, timeout: float | None = 0, payload: bytes | bytearray = b"", behind: int = 0) -> tuple[Any, ...]:
        """Sends a request and returns its reply, or raises the reply's error: Canceled where it still waits when the
        request ``behind`` which it was sent has failed."""
        if timeout is None:
            wait, deadline = -1, None
        elif timeout <= 0:
            wait, deadline = 0, None
        else:
            wait, deadline = min(int(timeout * 1e9), (1 << 63) - 1), time.monotonic() + timeout
        seq = next(self.seqs) & 0xFFFFFFFF
        release = self.take_deferred() if self.deferred else 0
        frame = REQUEST.pack(op, flags, values, seq, number, count, claim, index, release, wait) + payload
        try:
            try:
                self.begin(frame)  # an interrupt may come when it has been sent
            except LimitExceeded:
                if release:
                    self.post(RELEASE, release)
                raise
            return self.finish(seq, deadline, behind)
        except ObjectError:
            raise
        except BaseException:
            self._abandon(seq, op)
            raise

    def give_up(self, claim: int, error: ObjectError) -> None:
        """Gives back the block that a commit with that error has not made an entry."""
        if not isinstance(error, Removed):  # with the object the host has ended its claims
            self.post(ABORT, claim)

    def take_deferred(self) -> int:
        """The claim that the next request must release first, or 0."""
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

    def finish(self, seq: int, deadline: float | None, behind: int = 0) -> tuple[Any, ...]:
        """Returns the reply to a request, or raises its error. See call."""
        reply = self._receive(seq, deadline, behind)
        self.round_trips += 1
        status = reply[R_STATUS]
        if status:
            known = 0 <= status - FIRST_ERROR < len(ERRORS)
            raise (ERRORS[status - FIRST_ERROR] if known else ObjectError)(reply[-2].decode(errors="replace"))
        return reply

    def _receive(self, seq: int, deadline: float | None, behind: int) -> tuple[Any, ...]:
        """Returns the reply to a request."""
        lock = self.lock
        lock.acquire()
        if self.replies and seq in self.replies:
            reply = self.replies.pop(seq)
            lock.release()
            return reply
        behind = self._cancel_behind(seq, behind)
        if self.reading:
            waited, behind = self._wait(seq, behind)
            if waited is not None:
                lock.release()
                return waited
        self.reading = True
        lock.release()
        try:
            while True:
                reply = self._read(deadline)
                if reply[2] == seq:
                    return reply
                self._deliver(reply)
                behind = self._cancel_behind(seq, behind)
        finally:
            lock.acquire()
            self.reading = False
            if self.waiting:
                self.arrived.notify_all()
            lock.release()

    def _cancel_behind(self, seq: int, behind: int) -> int:
        """Cancels a request if the one before it has failed. It returns what is still to be looked at."""
        reply = self.replies.get(behind) if behind else None
        if reply is None:
            return behind
        if reply[R_STATUS]:
            self._cancel(seq)
        return 0

    def _wait(self, seq: int, behind: int) -> tuple[tuple[Any, ...] | None, int]:
        """Waits until another thread has read the reply, or no thread reads. The caller holds the lock."""
        self.waiting += 1
        try:
            while self.reading and seq not in self.replies and self.lost is None:
                self.arrived.wait(1.0)
                behind = self._cancel_behind(seq, behind)
        except BaseException:
            self.lock.release()  # the caller expects it held only on return
            raise
        finally:
            self.waiting -= 1
        reply = self.replies.pop(seq, None)
        if reply is None and self.lost is not None:
            self.lock.release()
            raise self.lost
        return reply, behind

    def _deliver(self, reply: tuple[Any, ...]) -> None:
        """Keeps the reply to another thread's request, or releases the claim of an interrupted one."""
        with self.lock:
            op = self.orphans.pop(reply[2], None)
            if op is None:
                self.replies[reply[2]] = reply
                self.arrived.notify_all()
        if op is not None:
            self._bury(op, reply)

    def _abandon(self, seq: int, op: int) -> None:
        """Cancels a request whose caller was interrupted; a claim that it still brings is released."""
        if self.lost is not None:
            return
        with self.lock:
            late = self.replies.pop(seq, None)
            if late is None:
                self.orphans[seq] = op
        if late is not None:
            self._bury(op, late)
        else:
            self._cancel(seq)
            self._settle(seq)

    def _settle(self, seq: int) -> None:
        """Reads until the reply to a canceled request has come, which it does at once: a lock or an entry that it brings
        is given back now, and not with the next request. It gives up after a second, as for one that was never sent."""
        until = time.monotonic() + 1.0
        while seq in self.orphans and (left := until - time.monotonic()) > 0:
            with self.lock:
                if self.reading:
                    self.arrived.wait(min(left, 0.05))  # the thread that reads gives it back
                    continue
                self.reading = True
            try:
                if select.select([self.socket], [], [], left)[0]:
                    self._deliver(self._read(None))
            except (OSError, ValueError, ObjectError):
                return  # the host is lost, or the store closed
            finally:
                with self.lock:
                    self.reading = False
                    if self.waiting:
                        self.arrived.notify_all()

    def _cancel(self, seq: int) -> None:
        """Tells the host that nobody waits for a request any more. Its reply still comes."""
        try:
            self.send(REQUEST.pack(CANCEL, 0, 0, 0, 0, 0, 0, seq, 0, 0), _NOSIGNAL)
        except OSError:
            pass

    def _bury(self, op: int, reply: tuple[Any, ...]) -> None:
        for fd in reply[-1]:
            os.close(fd)
        if reply[R_STATUS]:
            return
        if op in (READ, LATEST, POP, BATCH):
            self.post(RELEASE, reply[R_CLAIM])
        elif op == LOCK:
            self.post(UNLOCK, reply[R_CLAIM])
        elif op in (NEW, SPARE):
            self.post(ABORT, reply[R_CLAIM])
        elif op == COMMIT and reply[R_SPARE]:
            self.post(ABORT, reply[R_SPARE])

    def _read(self, deadline: float | None) -> tuple[Any, ...]:
        """Reads one reply, of any request."""
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
        return REPLY.unpack_from(buffer) + (buffer[48:n], files)


def _files(control: Any) -> list[int]:
    files: list[int] = []
    for level, kind, data in control:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            files += [fd for fd, in struct.iter_unpack("@i", data[:len(data) // 4 * 4])]
    for fd in files:
        os.set_inheritable(fd, False)
    return files
