"""The sockets over which programs of one user ask each other: JSON behind its length, as core/control has it."""

from __future__ import annotations

import json
import os
import socket
import struct
import time
from collections.abc import Callable
from typing import Any

PROTOCOL = 1
HELLO = {"rlhost_control": PROTOCOL}
MAX_FRAME = 16 << 20
_HEAD = struct.Struct("<I")
_LONGEST = 103  # bytes of the path of a socket


def service_path(name: str) -> str:
    """The path of a socket with that name in the user's runtime folder, else in a folder of the user's own in /tmp."""
    folder = os.environ.get("XDG_RUNTIME_DIR", "")
    if os.path.isabs(folder):
        path = os.path.join(folder, "rlhost", name)
        if len(os.fsencode(path)) <= _LONGEST:
            return path
    return f"/tmp/rlhost-{os.geteuid()}/{name}"


class Ended(ConnectionError):
    """The other end has closed the connection."""


def frame(document: Any) -> bytes:
    """A document as it is sent."""
    data = json.dumps(document, separators=(",", ":")).encode()
    return _HEAD.pack(len(data)) + data


def exactly(sock: socket.socket, n: int) -> bytes:
    """The next n bytes."""
    data = bytearray()
    while len(data) < n:
        part = sock.recv(min(n - len(data), 1 << 20))
        if not part:
            raise Ended("the other end has closed the connection")
        data += part
    return bytes(data)


def receive(sock: socket.socket) -> Any:
    """The next document."""
    (length,) = _HEAD.unpack(exactly(sock, _HEAD.size))
    if not 0 < length <= MAX_FRAME:
        raise Ended(f"the other end sends a frame of {length} bytes")
    return json.loads(exactly(sock, length))


class Connection:
    """A connection for one request at a time. error makes an exception of the error that the other end has answered; nobody is the reason of
    E070 where nobody listens, and ended of E080 where the other end closes the connection."""

    def __init__(self, path: str, error: Callable[[dict[str, Any]], Exception], nobody: str, ended: str):
        self._error, self._ended = error, ended
        self.socket = socket.socket(socket.AF_UNIX)
        try:
            self.socket.connect(path)
            self.receive()
            self.send(HELLO)
        except OSError as err:
            self.socket.close()
            if isinstance(err, (FileNotFoundError, ConnectionRefusedError)):
                raise error({"code": "E070", "reason": nobody}) from None
            raise
        self.idle = time.monotonic()

    def send(self, document: Any) -> None:
        self.socket.sendall(frame(document))

    def receive(self) -> Any:
        try:
            return receive(self.socket)
        except Ended:
            raise self._error({"code": "E080", "reason": self._ended}) from None

    def next(self) -> tuple[Any, Any]:
        """The next notice and None, or None and the reply of the request under way."""
        answer = self.receive()
        if "error" in answer:
            raise self._error(answer["error"])
        return answer.get("notice"), answer.get("reply")


class Connections:
    """Connections to one socket, of which each request has one for itself. Any thread."""

    def __init__(self, open: Callable[[], Connection]):
        import threading
        self._open, self._lock = open, threading.Lock()
        self._idle: list[Connection] = []

    def ask(self, verb: str, request: Any, usable: Callable[[Exception], bool] = lambda _: False, timeout: float | None = None) -> Any:
        """Makes a request and returns its reply, without its notices. usable says after which errors the connection can be used again."""
        with self._lock:
            c = self._idle.pop() if self._idle else None
        if c and time.monotonic() - c.idle > 20:  # the other end closes silent ones after a minute
            c.socket.close()
            c = None
        c = c or self._open()
        try:
            c.socket.settimeout(timeout)
            c.send({"verb": verb, "request": request})
            notice, reply = c.next()
            while notice is not None:
                notice, reply = c.next()
        except BaseException as err:
            if isinstance(err, Exception) and usable(err):
                self._keep(c)
            else:
                c.socket.close()
            raise
        self._keep(c)
        return reply

    def _keep(self, c: Connection) -> None:
        c.idle = time.monotonic()
        with self._lock:
            self._idle.append(c)

    def close(self) -> None:
        with self._lock:
            for c in self._idle:
                c.socket.close()
            self._idle.clear()
