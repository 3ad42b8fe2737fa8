"""A store's connection and its opened objects."""

from __future__ import annotations

import atexit
import dataclasses
import functools
import os
import re
import socket
import sys
import threading
import time
import weakref
from typing import Any, TypeVar

from ..names import served
from .connection import Connection
from .errors import Canceled, Closed, Elsewhere, HostLost, LimitExceeded, NotFound, ObjectError, Removed
from .layout import Object
from .wire import ABORT, NO_FILE, OPEN, R_OBJECT


def default_path() -> str:
    """The default socket of hosts and clients: $RLHOST_OBJECTS, or one in a folder of the user's own."""
    if path := os.environ.get("RLHOST_OBJECTS"):
        return path
    return os.path.join(_folder(), "objects.sock")


@dataclasses.dataclass(frozen=True)
class ConnectionDescriptor:
    """Where a store is, as SMOS says it. The port is a name for a socket of this user's: nothing listens at it, and nothing
    asks for the key, because the kernel tells the server whose process a client is. Elsewhere: the address is another
    machine's, whose memory cannot be shared."""

    ip: str = "localhost"
    port: int = 0
    authkey: bytes = b""

    @property
    def path(self) -> str:
        """The socket that the port stands for."""
        if not _is_here(self.ip):
            raise Elsewhere("a store at %r, port %d: its objects are in the memory of one machine, and that is another one: "
                            "serve a store on each machine" % (self.ip, self.port))
        return os.path.join(_folder(), "store-port-%d.sock" % self.port)


def _is_here(ip: str) -> bool:
    """Whether an address is this machine's: only then a socket can be bound to it."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(ip, 0, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind) as s:
            s.bind(address)
        return True
    except OSError:
        return False


def _folder() -> str:
    if folder := os.environ.get("XDG_RUNTIME_DIR"):
        return os.path.join(folder, "rlhost")
    return "/tmp/rlhost-%d" % os.geteuid()


_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}\Z")


def named_path(name: str) -> str:
    """The socket of the store of a name: its own in this user's folder, or else the one that the user's registry of names has."""
    if not _NAME.match(name):
        raise LimitExceeded("a store called %.80r: want up to 64 letters, digits and . _ -" % name)
    path = os.path.join(_folder(), "store-%s.sock" % name)
    return path if os.path.exists(path) else served("rlhost/stores/", name) or path


# An object may be removed and made again, or grow, while it is asked for something. Each try but the last is repeated then.
TRIES = (False,) * 15 + (True,)

S = TypeVar("S", bound="Session")


class Session:
    """A store's connection to the host, and the objects that it has used."""

    def __init__(self, path: str | ConnectionDescriptor | None = None, *, name: str | None = None, timeout: float | None = 0,
                 pickle: bool = False):
        if isinstance(path, ConnectionDescriptor):
            path = path.path
        self._pickles = pickle
        self._closed = False
        self._objects: dict[str, Object] = {}
        self._lock = threading.RLock()
        self._connection: Connection | None = None
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            self.path = path or (default_path() if name is None else named_path(name))
            try:
                self._connect()
                break
            except HostLost:
                if deadline is not None and time.monotonic() >= deadline:
                    raise
                time.sleep(0.05)  # a missing path cannot be waited for
        _stores.add(self)

    def _connect(self) -> Connection:
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
                self._connection = connection = Connection(self.path)
            return connection

    def close(self) -> None:
        """Ends the session after all pending pushes: the store's claims are released, and its views must not be used
        any more."""
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

    def __del__(self) -> None:
        """What was pushed last is not lost with a store that nobody has closed. Its entries keep the connection."""
        if getattr(self, "_closed", True):
            return
        try:
            self.flush()
        except ObjectError as e:
            sys.stderr.write("rlhost.objects: %s\n" % e)

    def __enter__(self: S) -> S:
        return self

    def __exit__(self, kind: Any, *_: object) -> None:
        if kind is None:
            self.close()
        else:
            self._close()

    def __reduce__(self: S) -> Any:
        """In another process it is a session of its own at the same host, without this one's claims."""
        return functools.partial(type(self), pickle=self._pickles), (self.path,)

    @property
    def round_trips(self) -> int:
        """The number of answered requests of this session."""
        return self._connect().round_trips

    def flush(self) -> None:
        """Waits for all pending pushes, and raises their error."""
        for name in list(self._objects):
            self._settle(name)

    def _settle(self, name: str) -> None:
        """Waits for the last push to an object."""
        o = self._objects.get(name)
        if o is not None:
            self._settle_in(o)

    def _settle_in(self, o: Object) -> None:
        pushed = o.pushed
        if pushed is None:
            return
        with o.settling:
            pushed._settle()
        if pushed._error is not None:
            self._forget(o)
            raise type(pushed._error)("%s; the entry that was pushed last is lost" % pushed._error)

    # How objects are found.

    def _find(self, name: str) -> Object:
        """The object of that name, cached after the first use."""
        connection = self._connect()
        o = self._objects.get(name)
        if o is not None and o.connection is connection:
            return o
        reply = connection.call(OPEN, NO_FILE, payload=name.encode())
        with self._lock:
            o = self._objects.get(name)
            if o is None or o.connection is not connection or o.number != reply[R_OBJECT]:
                o = Object(connection, name, reply[R_OBJECT], self._pickles)
                o.place(reply)
                self._objects[name] = o
            return o

    def _object_to_write(self, name: str) -> Object:
        o = self._objects.get(name)
        if o is not None and o.writing is not None and o.connection.lost is None:
            return o
        try:
            o = self._find(name)
        except NotFound:
            raise NotFound("object %r: nobody has made it: create does, and put does it where need be" % name) from None
        if o.writing is None:
            with self._lock:
                o.map(True)
        return o

    def _claimed(self, name: str, op: int, flags: int = 0, **request: Any) -> tuple[tuple[Any, ...], Object]:
        """Sends a request for reading, with the mapping in place before the claim."""
        for last in TRIES:
            o = self._objects.get(name)
            if o is None or o.connection.lost is not None:
                o = self._find(name)
            try:
                if o.reading is None:
                    with self._lock:
                        o.map(False)
                pushed = o.pushed
                return o.connection.call(op, flags, 0, o.number, behind=pushed._seq if pushed else 0, **request), o
            except Canceled:
                self._settle_in(o)  # raises the error of the push that it waited behind
                if last:
                    raise
            except Removed:
                self._settle_in(o)  # a push before it is lost, too
                if last or not self._made_anew(o):
                    raise
        raise AssertionError

    def _ask(self, name: str, op: int, flags: int = 0, **request: Any) -> tuple[Any, ...]:
        for last in TRIES:
            o = self._find(name)
            try:
                return o.connection.call(op, flags, 0, o.number, **request)
            except Removed:
                if last or not self._made_anew(o):
                    raise
        raise AssertionError

    def _forget(self, o: Object) -> None:
        with self._lock:
            if self._objects.get(o.name) is o:
                del self._objects[o.name]
            (claim, _), o.spare = o.spare, (0, 0)
        if claim:  # it would keep the memory of the object
            o.connection.post(ABORT, claim)

    def _made_anew(self, o: Object) -> bool:
        """Whether there is another object of that name now, or a larger one in its place, which is found next."""
        try:
            reply = self._connect().call(OPEN, NO_FILE, payload=o.name.encode())
        except NotFound:
            self._forget(o)
            return False
        if reply[R_OBJECT] == o.number:
            return False
        self._forget(o)
        return True

    def _after_fork(self) -> None:
        self._lock = threading.RLock()
        self._objects = {}
        if self._connection is not None:
            # The parent's session must end with the parent: the child does not keep its socket open.
            self._connection.lost = HostLost("this session is the parent process's")
            self._connection.socket.close()
            self._connection = None


_stores: "weakref.WeakSet[Session]" = weakref.WeakSet()


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
