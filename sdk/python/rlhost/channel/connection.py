"""A client's connection to the server of a channel: requests, their replies, and the shared memory of large items.

Any thread may use it. One of the threads that wait reads for all of them; an event loop of asyncio that waits reads when there is something."""

from __future__ import annotations

import collections
import itertools
import json
import mmap
import os
import select
import socket
import struct
import threading
import time
from collections.abc import Callable
from typing import Any

from . import wire
from .errors import STATUSES, Canceled, ChannelError, Invalid, Lost, NoChannel, error

_NOW = socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL
_CALLS = 1 << 14  # of one client that the server lets wait
_LEAVE = 2.0    # seconds that the end of a client takes at most
_MAPPED = 256  # regions that stay mapped for the next items


class Memory(mmap.mmap):
    """A region in this process."""


class Call:
    """A request under way."""

    __slots__ = ("op", "seq", "key", "done", "failed", "count", "flags", "spare", "pages", "body", "files", "abandoned", "tell", "large", "used")

    def __init__(self, op: int, key: bytes = b""):
        self.op = op
        self.seq = 0
        self.key = key
        self.done = False
        self.flags = self.count = self.spare = self.pages = 0
        self.body = b""
        self.failed: ChannelError | None = None
        self.files: list[int] = []
        self.large = False                           # its item lies in a region
        self.used = False                            # its items have been returned, or put back
        self.abandoned = False                       # nobody takes its items
        self.tell: list[Callable[[], object]] = []   # called once it is done


class Connection:
    def __init__(self, name: str, path: str):
        self.name = name
        self.lost: ChannelError | None = None
        self.deferred: list[int] = []  # regions that the next request gives back
        self.forgotten: list[Call] = []  # whose handles are gone
        self.loops: dict[Any, int] = {}  # event loops that read, and for how many
        self.ack = 0                   # replies with items that have been used
        self._got: collections.deque[Call] = collections.deque()  # those that ack does not count, the oldest first
        self._seqs = itertools.count(1)
        self._pending: dict[int, Call] = {}
        self._lock = threading.Lock()
        self._arrived = threading.Condition(self._lock)
        self._reading = False
        self._waiting = 0
        self._buffer = bytearray(wire.MAX_REPLY)
        self._view = memoryview(self._buffer)
        self._mapped: collections.OrderedDict[int, Memory] = collections.OrderedDict()
        self._spare = (0, 0)  # a region for the next large item, and its size
        self._early: Call | None = None  # a put that nobody has waited for
        self.roomy = False  # the last large item found much room
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            self.socket.connect(path)
        except OSError as e:
            self.socket.close()
            if isinstance(e, (FileNotFoundError, ConnectionRefusedError)):
                raise error(NoChannel, f"there is no channel {name!r}: Channel.create makes one, or rlhost channel serve {name}") from None
            raise
        try:
            self.ask(wire.HELLO, size=wire.VERSION)
        except BaseException:
            self.socket.close()
            raise

    # Requests.

    def begin(self, call: Call, flags: int = 0, most: int = 0, weight: float = 0.0, wait: int = -1, region: int = 0, size: int = 0,
              data: Any = b"") -> Call:
        """Sends a request, whose reply ``finish`` waits for. Interrupted, the request is abandoned."""
        if self.lost is not None:
            raise self.lost
        while self.forgotten:
            self.abandon(self.forgotten.pop())
        if len(self._pending) >= _CALLS and not self.drain():
            raise error(Invalid, f"channel {self.name!r}: {_CALLS} calls are under way, which is the most of one client: wait for some of their handles")
        if self._got:
            self._use()
        call.seq = seq = next(self._seqs) & 0xFFFFFFFF
        release = 0
        if self.deferred:
            try:
                release = self.deferred.pop()
            except IndexError:  # another thread was faster
                pass
        frame = wire.REQUEST.pack(call.op, flags, len(call.key), seq, self.ack, most, weight, wait, region, size, release) + call.key + data
        self._pending[seq] = call
        try:
            try:
                self.socket.send(frame, _NOW)
            except BlockingIOError:
                self._send_later(frame)
            except OSError as e:
                self._lose(e.strerror or str(e))
                raise self.lost from None  # type: ignore[misc]
        except BaseException:  # it may have been sent
            self._interrupted(call)
            raise
        return call

    def _use(self) -> None:
        """Counts the replies whose items the program has by now: the next request says so. A program that dies before loses them."""
        with self._lock:
            while self._got and (self._got[0].used or len(self._got) > _CALLS):
                self._got.popleft()
                self.ack = (self.ack + 1) & 0xFFFFFFFF

    def ask(self, op: int, key: bytes = b"", **request: Any) -> Call:
        """Makes a request and waits for its reply, or raises its error."""
        return self.finish(self.begin(Call(op, key), **request))

    def post(self, op: int, region: int = 0, data: bytes = b"") -> bool:
        """Sends a request without a reply, if there is room. It may run in a finalizer: it neither locks nor raises."""
        if self.lost is not None:
            return True
        try:
            self.socket.send(wire.REQUEST.pack(op, 0, 0, 0, self.ack, 0, 0.0, 0, region, 0, 0) + data, _NOW)
        except BlockingIOError:
            return False
        except OSError:
            pass
        return True

    def _send_later(self, frame: bytes) -> None:
        """Sends a frame that there was no room for. The server may wait for this client to read."""
        while True:
            if self.lost is not None:
                raise self.lost
            if not self.drain():
                select.select([], [self.socket], [], 0.001 if self._reading else 1.0)
            try:
                self.socket.send(frame, _NOW)
                return
            except BlockingIOError:
                continue
            except OSError as e:
                self._lose(e.strerror or str(e))

    def finish(self, call: Call) -> Call:
        """Waits for the reply to a request, or raises its error. Interrupted, the request is abandoned."""
        try:
            self.wait(call)
        except BaseException:
            self._interrupted(call)
            raise
        if call.failed is not None:
            raise call.failed
        return call

    def _interrupted(self, call: Call) -> None:
        """Abandons a request, and reads until it is done, which it soon is: what it has got is put back now, and not with the next request.
        It gives up after a second, as for a request that was never sent."""
        try:
            self.abandon(call)
            self.wait(call, 1.0)
        except ChannelError:
            pass  # the server has ended

    def cancel(self, call: Call) -> None:
        """Asks for the end of a request, which may have been answered meanwhile."""
        if not call.done:
            while not self.post(wire.CANCEL, call.seq):
                self.drain()

    def abandon(self, call: Call) -> None:
        """Cancels a request. What it has got all the same is put back."""
        with self._lock:
            call.abandoned, done = True, call.done
        if done:
            self._put_back(call)
        else:
            self.cancel(call)

    def _put_back(self, call: Call) -> None:
        """Puts back, in their order, the items that a request has got and that nobody takes."""
        for fd in call.files:
            os.close(fd)
        if call.op not in (wire.GET, wire.BATCH) or call.failed is not None:
            return
        items, packed = self.items(call)
        for weight, region, size, data in reversed(items):
            if region:
                self.begin(Call(wire.PUT_BACK, call.key), weight=weight, region=region, size=size)
            else:
                self.begin(Call(wire.PUT_BACK, call.key), weight=weight, data=bytes(data))
        call.used = True
        if packed:
            self.free(packed)

    # Replies.

    def wait(self, call: Call, timeout: float | None = None) -> bool:
        """Waits until a request is done, for so many seconds at most, and reports whether it is."""
        end = None if timeout is None else time.monotonic() + timeout
        while not call.done:
            left = 1.0 if end is None else end - time.monotonic()
            if left <= 0:
                return False
            self._wait(call, None if end is None else left)
        return True

    def _wait(self, call: Call, timeout: float | None) -> None:
        """Reads until a request is done, or waits a while where another thread reads."""
        with self._lock:
            if call.done:
                return
            if self._reading:
                self._waiting += 1
                try:
                    self._arrived.wait(1.0 if timeout is None else min(timeout, 1.0))
                finally:
                    self._waiting -= 1
                return
            self._reading = True
        try:
            if timeout is not None and not select.select([self.socket], [], [], timeout)[0]:
                return
            while not call.done and self._read(0 if timeout is None else socket.MSG_DONTWAIT):
                pass
        finally:
            self._stop_reading()

    def _stop_reading(self) -> None:
        with self._lock:
            self._reading = False
            if self._waiting:
                self._arrived.notify_all()

    def drain(self) -> bool:
        """Reads what there is, unless another thread reads. It reports whether there was something."""
        with self._lock:
            if self._reading:
                return False
            self._reading = True
        found = False
        try:
            while self._read(socket.MSG_DONTWAIT):
                found = True
        finally:
            self._stop_reading()
        return found

    def _read(self, flags: int) -> bool:
        """Reads one reply and hands it to its request. False: there is none now."""
        if self.lost is not None:
            raise self.lost
        files: list[int] = []
        try:
            n, control, _, _ = self.socket.recvmsg_into((self._buffer,), 32, flags)
        except BlockingIOError:
            return False
        except OSError as e:
            self._lose(e.strerror or str(e))
            return False
        if control:
            files = [fd for level, kind, data in control if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS
                     for fd, in struct.iter_unpack("@i", data[:len(data) // 4 * 4])]
            for fd in files:
                os.set_inheritable(fd, False)
        if n < wire.REPLY.size:
            self._lose("it closed the connection" if n == 0 else f"it sent {n} bytes")
            return False
        op, status, call_flags, seq, count, pages, spare = wire.REPLY.unpack_from(self._buffer)
        with self._lock:
            if self.lost is not None:
                return False  # the server puts back what comes now
            call = self._pending.pop(seq, None)
            if call is not None and not status and (op == wire.GET or op == wire.BATCH):
                self._got.append(call)
        if call is None:
            self._lose(f"it answered request {seq}, which nobody made")
            return False
        call.flags, call.count, call.pages, call.spare, call.files = call_flags, count, pages, spare, files
        call.body = bytes(self._view[wire.REPLY.size:n])
        if status:
            kind = STATUSES[status - 1] if status <= len(STATUSES) else ChannelError
            text = call.body.decode(errors="replace")
            call.failed = Canceled("the call was canceled") if kind is Canceled else error(kind, f"channel {self.name!r}: {text}")
        self._complete(call)
        return True

    def _complete(self, call: Call) -> None:
        with self._lock:
            call.done = True
            tell, call.tell = call.tell, []
            abandoned = call.abandoned
            if self._waiting:
                self._arrived.notify_all()
        if abandoned:
            self._put_back(call)
        for fn in tell:
            fn()

    def when_done(self, call: Call, fn: Callable[[], object]) -> None:
        """Calls fn once a request is done, on the thread that reads then; at once if it is."""
        with self._lock:
            if not call.done:
                call.tell.append(fn)
                return
        fn()

    def _lose(self, why: str) -> None:
        if self.lost is None:
            self.lost = error(Lost, f"the channel {self.name!r} has ended: {why}")
        self._fail()

    def _fail(self) -> None:
        """Ends all requests with the error that the connection is lost with."""
        pending = list(self._pending.values())
        self._pending.clear()
        for call in pending:
            call.failed, call.abandoned = self.lost, False
            self._complete(call)

    def close(self) -> None:
        """Ends the connection in order: items that were on their way here are put back, and those of handles that are gone."""
        while self.forgotten and self.lost is None:
            try:
                self.abandon(self.forgotten.pop())
            except ChannelError:
                break  # the server has ended
        with self._lock:
            leave, ack = self.lost is None, self.ack + len(self._got) & 0xFFFFFFFF
            if leave:
                self.lost = error(Lost, f"this client has left the channel {self.name!r}")
        if leave:
            try:
                self.socket.settimeout(_LEAVE)
                self.socket.send(wire.REQUEST.pack(wire.BYE, 0, 0, 0, ack, 0, 0.0, 0, 0, 0, 0), socket.MSG_NOSIGNAL)
                while self.socket.recv(1):  # until the server closes: a socket that is closed with unread data loses what it has sent
                    pass
                self.socket.shutdown(socket.SHUT_RDWR)  # ends the recv of other threads
            except OSError:
                pass  # the server has ended
        self.socket.close()
        self._fail()

    def __del__(self) -> None:
        if hasattr(self, "socket"):
            self.close()

    def forget(self) -> None:
        """Ends a connection that is the parent process's."""
        self.lost = error(Lost, "this connection is the parent process's")
        self._lock = threading.Lock()  # another thread of the parent may have held it
        self.socket.close()

    # Items.

    def items(self, call: Call) -> tuple[list[tuple[float, int, int, Any]], int]:
        """The items of a reply: weight, region or 0, bytes, and the data of those in no region; then the region that all of that lies in,
        or 0, which is to be freed once the data has been used."""
        table: Any = call.body
        packed = call.spare if call.flags & wire.PACKED else 0
        if packed:
            table = memoryview(self.map(packed, call.pages))
        at = call.count * wire.ITEM.size
        found = []
        for i in range(call.count):
            weight, region, size = wire.ITEM.unpack_from(table, i * wire.ITEM.size)
            if region:
                found.append((weight, region, size, None))
            else:
                found.append((weight, 0, size, table[at:at + size]))
                at += size
        return found, packed

    def free(self, region: int) -> None:
        """Gives a region back, one with the next request. It may run in a finalizer."""
        if not self.deferred or not self.post(wire.FREE, data=wire.REGION.pack(region)):
            self.deferred.append(region)

    def map(self, region: int, pages: int = 0) -> Memory:
        """The memory of a region of this client's."""
        memory = self._mapped.get(region)
        if memory is not None:
            return memory
        call = self.ask(wire.MAP, region=region)
        if len(call.files) != 1:
            raise ChannelError(f"channel {self.name!r}: region {region} came with {len(call.files)} files")
        fd = call.files[0]
        try:
            memory = Memory(fd, call.pages << wire.PAGE_SHIFT, flags=mmap.MAP_SHARED | mmap.MAP_POPULATE)
        finally:
            os.close(fd)
        with self._lock:
            self._mapped[region] = memory
            while len(self._mapped) > _MAPPED:
                self._mapped.popitem(last=False)  # what still uses it keeps it
        return memory

    def alloc(self, size: int) -> tuple[int, Memory]:
        """A region for an item, of this client's until a request takes it."""
        with self._lock:
            region, room = self._spare
            self._spare = (0, 0)
        if region and not size <= room <= 2 * size + (1 << 16):
            self.deferred.append(region)
            region = 0
        if not region:
            region = self.ask(wire.ALLOC, size=size).spare
        return region, self.map(region)

    def leave_early(self, call: Call) -> None:
        """Leaves a put to the next one, which waits for it."""
        with self._lock:
            other, self._early = self._early, call
        if other is not None:  # of another thread
            self.keep(self.finish(other))

    def settle(self) -> None:
        """Waits for a put that nobody has waited for, and raises its error."""
        with self._lock:
            call, self._early = self._early, None
        if call is not None:
            try:
                self.keep(self.finish(call))
            except ChannelError as e:
                raise type(e)(f"{e}; the item that was put last is lost") from None

    def keep(self, call: Call) -> None:
        """Keeps the region that the reply to a put has brought, for the next item."""
        self.roomy = bool(call.flags & wire.ROOM)
        if not call.spare:
            return
        with self._lock:
            old, self._spare = self._spare[0], (call.spare, call.pages << wire.PAGE_SHIFT)
        if old:
            self.free(old)

    def stat(self, key: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.ask(wire.STAT, key_of(key)).body)
        return found


def key_of(key: str) -> bytes:
    """A key as bytes of a request."""
    if not isinstance(key, str):
        raise TypeError(f"a key is text, not {type(key).__name__}")
    data = key.encode()
    if not 0 < len(data) <= wire.MAX_KEY:
        raise error(Invalid, f"a key of {len(data)} bytes: want 1 to {wire.MAX_KEY}")
    return data
