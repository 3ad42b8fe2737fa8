"""The channel that programs use."""

from __future__ import annotations

import functools
import math
import multiprocessing.util
import os
import re
import subprocess
import sys
import threading
import time
import warnings
import weakref
from typing import TYPE_CHECKING, Any, Literal, overload

from . import codec, wire
from ..names import served
from .connection import Call, Connection, key_of
from .errors import ChannelError, Invalid, NoChannel, error
from .handle import Handle

if TYPE_CHECKING:
    from .regions import Region

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}\Z")


def socket_path(name: str) -> str:
    """Where the channel of a name is served."""
    if not isinstance(name, str) or not _NAME.match(name):
        raise error(Invalid, f"a channel called {name!r:.80}: want up to 64 letters, digits and . _ -")
    folder = os.environ.get("XDG_RUNTIME_DIR", "")
    if os.path.isabs(folder):
        path = os.path.join(folder, "rlhost", f"channel-{name}.sock")
        if len(path) <= 103:
            return path
    return f"/tmp/rlhost-{os.geteuid()}/channel-{name}.sock"


class Channel:
    """A queue of items with keys and weights, for programs of this user on this machine.

        jobs = rlhost.Channel.create("jobs", maxsize=1000)
        jobs.put({"prompt": 7, "tokens": tokens}, weight=len(tokens))
        batch = jobs.get_batch(weight=4096)         # here, or after Channel.connect("jobs") in another program

    An item is None, a bool, a number, text, bytes, an array of NumPy of any dtype but object, or a list, tuple or dict of items. Arrays of 64 KiB
    or more lie in shared memory: the receiver's are where the sender's were copied to, and the receiver may change them. Each key is a
    FIFO, which exists while it has items or callers.

    ``put``, ``get`` and ``get_batch`` wait, for ``timeout`` seconds at most where there is one, and then raise ``Full`` or ``Empty``, which are also
    those of the module queue. With ``async_op=True`` they return a ``Handle`` at once. Any thread may use a channel, and it can be handed to
    other processes, where it connects by its name.
    """

    def __init__(self, name: str):
        self.name = name
        self._path = socket_path(name)
        self._connection: Connection | None = None
        self._lock = threading.Lock()
        self._server: _Server | None = None
        _channels.add(self)

    @classmethod
    def create(cls, name: str, maxsize: int = 0, *, max_bytes: int | None = None) -> Channel:
        """A new channel, which this process serves by a process of its own, until this one ends or leaves the channel. Where there is a channel
        of that name already, a warning says so and that one is connected to.

        ``maxsize`` is the most items of each key, 0 any number; ``max_bytes`` the most memory of items that wait, by default 1 GiB."""
        if maxsize < 0 or max_bytes is not None and max_bytes <= 0:
            raise error(Invalid, f"a channel of maxsize {maxsize} and max_bytes {max_bytes}: want 0 or more, and 1 or more")
        try:
            there = cls.connect(name)
        except NoChannel:
            pass
        else:
            return there._existing()
        server = _Server(name, maxsize, max_bytes)
        if server.failed():
            return cls.connect(name)._existing()  # another process was faster
        try:
            channel = cls.connect(name)
        except BaseException:
            server.stop()
            raise
        channel._server = server
        _makers.add(channel)
        return channel

    def _existing(self) -> Channel:
        warnings.warn(f"there is a channel {self.name!r} already: its bounds stay as they are", RuntimeWarning, stacklevel=3)
        return self

    @classmethod
    def connect(cls, name: str, timeout: float = 0) -> Channel:
        """The channel of that name. NoChannel: nobody has made it within so many seconds."""
        channel = cls(name)
        end = time.monotonic() + timeout
        while True:
            try:
                channel._connect()
                return channel
            except NoChannel:
                if time.monotonic() >= end:
                    raise
            time.sleep(0.005)  # a path that does not exist cannot be waited for

    def _connect(self) -> Connection:
        connection = self._connection
        if connection is not None:
            return connection
        with self._lock:
            if self._connection is None:
                _leave_at_exit()
                self._connection = self._reach()
            return self._connection

    def _reach(self) -> Connection:
        """A connection to the socket of the channel's name, or else to the one that the user's registry of names has."""
        try:
            return Connection(self.name, self._path)
        except NoChannel:
            elsewhere = served("rlhost/channels/", self.name)
            if elsewhere is None or elsewhere == self._path:
                raise
            return Connection(self.name, elsewhere)

    def __reduce__(self) -> tuple[type[Channel], tuple[str]]:
        """In another process it is a client of its own."""
        return type(self), (self.name,)

    def __enter__(self) -> Channel:
        return self

    def __exit__(self, *_: object) -> None:
        self.leave()

    def leave(self) -> None:
        """Ends this client. Items that were on their way to it are put back. Where this object has made the channel, its server ends."""
        with self._lock:
            connection, server = self._connection, self._server
            self._server = None
        _makers.discard(self)
        try:
            if connection is not None and connection.lost is None:
                connection.settle()
        finally:
            if connection is not None:
                connection.close()
            if server is not None:
                server.stop()

    # Puts.

    @overload
    def put(self, item: Any, weight: float = 1, key: str = "default", *, timeout: float | None = None, async_op: Literal[False] = False) -> None: ...
    @overload
    def put(self, item: Any, weight: float = 1, key: str = "default", *, timeout: float | None = None, async_op: Literal[True]) -> Handle[None]: ...

    def put(self, item: Any, weight: float = 1, key: str = "default", *, timeout: float | None = None, async_op: bool = False) -> Handle[None] | None:
        """Adds an item, once there is room for it. Where the channel is less than half full, a large item may still be on its way when put
        returns; an error of it is raised by the next put, or by leave."""
        connection = self._connect()
        early = wire.EARLY if timeout is None and not async_op and connection.roomy else 0
        call = self._begin_put(connection, item, weight, key, _wait(timeout), early)
        if async_op:
            return Handle(connection, call, connection.keep)
        if early and call.large:
            connection.leave_early(call)
            return None
        connection.finish(call)
        if call.large:
            connection.keep(call)
        return None

    def put_nowait(self, item: Any, weight: float = 1, key: str = "default") -> None:
        """Adds an item if there is room, else raises Full."""
        connection = self._connect()
        call = connection.finish(self._begin_put(connection, item, weight, key, 0))
        if call.large:
            connection.keep(call)

    put_no_wait = put_nowait

    def _begin_put(self, connection: Connection, item: Any, weight: float, key: str, wait: int, early: int = 0) -> Call:
        name = b"default" if key == "default" else key_of(key)
        if not 0 <= weight < math.inf:
            raise error(Invalid, f"channel {self.name!r}: a weight of {weight}: want a number of 0 or more")
        parts, size = codec.encode(item)
        call = Call(wire.PUT, name)
        if size <= wire.MAX_INLINE:
            return connection.begin(call, weight=weight, wait=wait, data=codec.join(parts, size))
        connection.settle()
        call.large = True
        region, memory = connection.alloc(size)
        with memoryview(memory) as view:
            codec.fill(parts, view)
        return connection.begin(call, wire.NEXT | early, weight=weight, wait=wait, region=region, size=size)

    # Gets.

    @overload
    def get(self, key: str = "default", *, timeout: float | None = None, async_op: Literal[False] = False) -> Any: ...
    @overload
    def get(self, key: str = "default", *, timeout: float | None = None, async_op: Literal[True]) -> Handle[Any]: ...

    def get(self, key: str = "default", *, timeout: float | None = None, async_op: bool = False) -> Any:
        """Takes the oldest item of a key, once there is one."""
        connection = self._connect()
        call = connection.begin(Call(wire.GET, b"default" if key == "default" else key_of(key)), wait=_wait(timeout))
        if async_op:
            return Handle(connection, call, lambda c: self._items(connection, c)[0])
        connection.finish(call)
        return self._items(connection, call)[0]

    def get_nowait(self, key: str = "default") -> Any:
        """Takes the oldest item of a key if there is one that nobody waits for, else raises Empty."""
        connection = self._connect()
        return self._items(connection, connection.ask(wire.GET, key_of(key), wait=0))[0]

    get_no_wait = get_nowait

    @overload
    def get_batch(self, weight: float = 0, key: str = "default", timeout: float | None = None, *, most: int = 0, target_weight: float | None = None,
                  async_op: Literal[False] = False) -> list[Any]: ...
    @overload
    def get_batch(self, weight: float = 0, key: str = "default", timeout: float | None = None, *, most: int = 0, target_weight: float | None = None,
                  async_op: Literal[True]) -> Handle[list[Any]]: ...

    def get_batch(self, weight: float = 0, key: str = "default", timeout: float | None = None, *, most: int = 0, target_weight: float | None = None,
                  async_op: bool = False) -> list[Any] | Handle[list[Any]]:
        """Takes the oldest items of a key, up to a sum of weights, or fewer where one more would be too many; an item that is heavier comes alone.
        With ``most`` they are at most so many. At the end of the timeout it returns what there is, or raises Empty. Where a put of the key waits for
        room, or the channel is closed, a batch cannot grow: it is returned as it is.

        ``target_weight`` is RLinf's name of ``weight``."""
        weight = weight if target_weight is None else target_weight
        if not 0 <= weight < math.inf or not 0 <= most < 1 << 32:
            raise error(Invalid, f"channel {self.name!r}: a batch of a weight of {weight} and at most {most} items: want numbers of 0 or more")
        connection = self._connect()
        call = connection.begin(Call(wire.BATCH, key_of(key)), weight=weight, most=most, wait=_wait(timeout))
        if async_op:
            return Handle(connection, call, lambda c: self._items(connection, c))
        connection.finish(call)
        return self._items(connection, call)

    def peek(self, key: str = "default") -> Any:
        """The oldest item of a key, which stays, or Empty. Its arrays are copies."""
        connection = self._connect()
        return self._items(connection, connection.ask(wire.PEEK, key_of(key)))[0]

    def _items(self, connection: Connection, call: Call) -> list[Any]:
        """The items of a reply. ValueError: a program that is not this package's has put one that it does not understand."""
        copy = bool(call.flags & wire.COPY)
        found, packed = connection.items(call)
        items = []
        try:
            for _, region, size, data in found:
                if not region:
                    items.append(codec.decode(data))
                    continue
                owner = _region()(connection, region, connection.map(region), size)
                items.append(codec.decode(bytes(owner)) if copy else codec.decode(owner.data, owner))
        finally:
            call.used = True
            if packed:
                connection.free(packed)
        return items

    # What there is.

    def stat(self, key: str = "default") -> dict[str, Any]:
        """What the channel has and has done: items, bytes, puts, gets, returned, lost, waiting_puts and more, and of a key, as a dict."""
        return self._connect().stat(key)

    def qsize(self, key: str = "default") -> int:
        """How many items a key has."""
        return int(self.stat(key)["key"]["items"])

    def empty(self, key: str = "default") -> bool:
        """Whether a key has no items."""
        return self.qsize(key) == 0

    def full(self, key: str = "default") -> bool:
        """Whether a key has as many items as it takes, or the channel as many bytes."""
        now = self.stat(key)
        return bool(0 < now["max_items"] <= now["key"]["items"] or now["bytes"] >= now["max_bytes"])

    def close(self) -> None:
        """Closes the channel for everybody: puts raise Closed, and so do gets once nothing is left of their key."""
        self._connect().ask(wire.STOP)

    def __str__(self) -> str:
        now = self.stat()
        keys = ", ".join(f"{k['key']}: {k['items']} of weight {k['weight']:g}" for k in sorted(now["keys_with_items"] or [], key=lambda k: str(k["key"])))
        return f"Channel({self.name!r}, {now['items']} items{', closed' if now['closed'] else ''}{'; ' + keys if keys else ''})"

    def __repr__(self) -> str:
        return f"<Channel {self.name!r}>"

    def _after_fork(self) -> None:
        # The parent's connection must end with the parent: the child does not keep its socket open.
        self._lock = threading.Lock()
        if self._server is not None:
            self._server.forget()
            self._server = None
        if self._connection is not None:
            self._connection.forget()
            self._connection = None


@functools.lru_cache(None)
def _region() -> type[Region]:
    """What items in shared memory are, which needs NumPy."""
    from .regions import Region
    return Region


def _wait(timeout: float | None) -> int:
    """A time as requests have it."""
    if timeout is None:
        return -1
    if not timeout >= 0:
        raise error(Invalid, f"a timeout of {timeout} s: want None or 0 or more")
    return int(min(timeout, 1e9) * 1e9)


class _Server:
    """The process that serves a channel. It ends when its standard input does."""

    def __init__(self, name: str, maxsize: int, max_bytes: int | None):
        from ..program import program
        command = [program(), "channel", "serve", name, "--attached", "--maxsize", str(maxsize)]
        if max_bytes is not None:
            command += ["--bytes", str(max_bytes)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def failed(self) -> bool:
        """Whether it does not serve, because another one does."""
        assert self.process.stdout is not None
        if self.process.stdout.readline():
            return False
        self.stop()
        return True

    def stop(self) -> None:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()

    def forget(self) -> None:
        """Leaves the server to the parent process, which has started it."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()  # it ends although this process lives
        self.process.stdout.close()
        self.process.returncode = 0  # it is no child of this one


_channels: weakref.WeakSet[Channel] = weakref.WeakSet()
_makers: set[Channel] = set()  # whose servers last until this process ends
_exits = 0  # the process that leaves its channels at its end


def _leave_at_exit() -> None:
    """Lets this process leave its channels at its end, also where it is one of multiprocessing, which runs nothing of atexit."""
    global _exits
    if _exits != os.getpid():
        _exits = os.getpid()
        multiprocessing.util.Finalize(None, _exit, exitpriority=1)


def _exit() -> None:
    for channel in list(_channels):
        try:
            channel.leave()
        except ChannelError as e:
            sys.stderr.write(f"rlhost.channel: {e}\n")


def _forked() -> None:
    _makers.clear()
    for channel in list(_channels):
        channel._after_fork()


os.register_at_fork(after_in_child=_forked)
