"""Servers of one's own: a program that answers requests outside of any run."""

from __future__ import annotations

import contextlib
import difflib
import logging
import os
import queue
import re
import socket
import struct
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from typing import Any

from .connecting import SERVERS, server_path
from .names import Names, NamesError
from .requests import Handler, fault, handler
from .sockets import HELLO, PROTOCOL, Ended, frame, receive

_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
_CREDENTIALS = struct.Struct("3i")


class Server:
    """Answers requests to programs of the same user: ``rlhost.connect(server=name)``, and ``rlhost.auto_connect(pattern)`` where names are served.

        server = rlhost.Server("ana/scores")
        server.register_handler("add", lambda player, points: scores.update({player: points}))
        server.serve()                      # until close, which another thread or a handler may call

    or, within a loop of one's own, ``server.handle_requests()`` now and then. Handlers run on the thread that calls these; what is asked before
    the first of these calls waits for it. ``status`` is what clients see, and any of READY, RUNNING, PAUSED, COMPLETED, ERROR, LOST, INTERRUPTED.

    A name is parts joined by "/". Where names are served it is registered with a TTL, in seconds, and gone so long after this process has died."""

    def __init__(self, name: str, names: Names | None = None, ttl: float = 10.0):
        if not name or any(not part or any(c <= " " or c == "\x7f" for c in part) for part in name.split("/")):
            raise ValueError(f"a server called {name!r}: want parts without blanks, joined by /, such as ana/scores")
        if not ttl > 0:
            raise ValueError(f"a TTL of {ttl} s, want more than 0")
        self.name, self.path = name, server_path(name)
        self.status = "READY"
        self._handlers: dict[str, Handler] = {}
        self._asked: queue.SimpleQueue[tuple[float, Handler, Mapping[str, Any], Future[bytes]] | None] = queue.SimpleQueue()
        self._handling, self._closed = threading.Event(), threading.Event()
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._socket = _listen(self.path, name)
        threading.Thread(target=self._accept, name=f"rlhost server {name}", daemon=True).start()
        self._names, self._own = names, names is None
        try:
            self._register(ttl)
        except BaseException:
            self.close()
            raise

    def _register(self, ttl: float) -> None:
        names = self._names or Names()
        try:
            names.add(f"{SERVERS}/{self.name}", self.path, ttl=ttl, replace=True)  # this process has the socket, so the name is its own
        except NamesError as e:
            if not self._own or e.code != "E070":
                raise
            names.close()
            return  # nobody serves names: it is found by its own
        self._names = names

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def register_handler(self, command: str, run: Callable[..., Any]) -> None:
        """Makes a function answer a request. Its parameters are the arguments, checked where they have types; see rlhost.request. Raises KeyError
        for a command that has a handler."""
        if not _NAME.fullmatch(command):
            raise ValueError(f"a request called {command!r}, want small letters, digits and _")
        if command in self._handlers:
            raise KeyError(f"{command} has a handler already")
        self._handlers[command] = handler(command, run)

    def handle_requests(self, max_count: int | None = None, timeout: float = 0.0) -> int:
        """Answers the requests that wait, in their order, at most max_count; returns how many. It waits for the first as long as timeout says."""
        self._handling.set()
        count = 0
        while max_count is None or count < max_count:
            try:
                asked = self._asked.get(timeout=timeout) if timeout > 0 and not count else self._asked.get_nowait()
            except queue.Empty:
                break
            if asked is None:
                break  # closed
            count += 1
            _answer(*asked)
        return count

    def serve(self) -> None:
        """Answers requests until close."""
        self.status = "RUNNING"
        while not self._closed.is_set():
            self.handle_requests(timeout=1.0)

    def close(self) -> None:
        """Ends the server and its connections. Requests that wait are not answered."""
        if self._closed.is_set():
            return
        self._closed.set()
        self._handling.set()
        self._asked.put(None)
        with contextlib.suppress(OSError):
            os.unlink(self.path)
        self._socket.close()
        with self._lock:
            for s in self._open:
                with contextlib.suppress(OSError):
                    s.shutdown(socket.SHUT_RDWR)
        if self._names is not None:
            with contextlib.suppress(NamesError, OSError):
                if self._own:
                    self._names.close()
                else:
                    self._names.delete(f"{SERVERS}/{self.name}")

    # On threads of their own.

    def _accept(self) -> None:
        while not self._closed.is_set():
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with self._lock:
                self._open.add(connection)
            threading.Thread(target=self._serve, args=(connection,), name="rlhost request", daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            with connection, contextlib.suppress(Ended, OSError, ValueError, KeyError, TypeError):
                connection.sendall(frame(HELLO))
                _, user, _ = _CREDENTIALS.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
                if user != os.geteuid():
                    connection.sendall(frame({"error": {"code": "E073", "reason": "this server is another user's"}}))
                    return
                if receive(connection)["rlhost_control"] != PROTOCOL:
                    connection.sendall(frame({"error": {"code": "E077", "reason": f"this server speaks version {PROTOCOL} of the protocol"}}))
                    return
                while not self._closed.is_set():
                    connection.sendall(self._reply(receive(connection)))
        finally:
            with self._lock:
                self._open.discard(connection)

    def _reply(self, asked: dict[str, Any]) -> bytes:
        request = asked.get("request") or {}
        within = float(request.get("deadline_seconds") or 30.0)
        if asked.get("verb") == "status":
            return frame({"reply": {"components": [{"name": self.name, "state": self.status.lower()}]}})
        if asked.get("verb") != "request":
            return frame({"error": {"code": "E071", "reason": f"this server knows no request {asked.get('verb')!r}"}})
        command = request.get("name")
        if not command:
            return frame({"reply": {"offers": [{"name": self.name, "requests": [h.document() for h in self._handlers.values()]}]}})
        self._handling.wait(within)  # until then handlers may still be registered
        run = self._handlers.get(command)
        if run is None:
            near = difflib.get_close_matches(command, self._handlers, 1)
            there = ", ".join(self._handlers) or "none"
            return frame({"error": {"code": "E120", "reason": f"{self.name} does not answer the request {command!r}",
                                    "help": (f"did you mean {near[0]!r}? " if near else "") + f"requests: {there}"}})
        args = (request.get("each") or {}).get(self.name, request.get("args") or {})
        return self._wait(run, args, within)

    def _wait(self, run: Handler, args: Any, within: float) -> bytes:
        """Has a request answered by the thread that handles requests, and returns the frame with the answer."""
        answer: dict[str, Any] = {"name": self.name, "state": self.status.lower()}
        if problem := misfit(run, args):
            return frame({"reply": {"answers": [answer | {"error": {"code": "E121", "reason": problem}}]}})
        came: Future[bytes] = Future()
        self._asked.put((time.monotonic() + within, run, args, came))
        if not wait([came], within).done:
            error: dict[str, Any] = {"code": "E123", "reason": f"it did not answer {run.name} in time",
                                     "help": "its handler may still run, or wait for handle_requests"}
            return frame({"reply": {"answers": [answer | {"timed_out": True, "error": error}]}})
        try:
            reply = came.result()
        except BaseException as e:
            return frame({"reply": {"answers": [answer | {"error": _raised(e)}]}})
        head = frame({"reply": {"answers": [answer]}})[4:-4]
        data = head + b',"reply":' + reply + b"}]}}"
        return struct.pack("<I", len(data)) + data


def _raised(error: BaseException) -> dict[str, Any]:
    told = fault(error)
    if told.pop("answer", False):
        return {"code": "E124", "reason": "the answer " + told["text"]}
    return {"code": "E122", "reason": told["text"], "type": told["type"], "place": told["place"]}


def _answer(until: float, run: Handler, args: Mapping[str, Any], came: Future[bytes]) -> None:
    """Calls a handler."""
    if time.monotonic() > until:
        return  # nobody waits for it
    try:
        came.set_result(run.answer(args))
    except (Exception, SystemExit) as e:
        logging.getLogger("rlhost").error("request %s failed", run.name, exc_info=e)
        came.set_exception(e)


_FITS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "bool": (lambda v: isinstance(v, bool), "true or false"),
    "integer": (lambda v: isinstance(v, int) and not isinstance(v, bool), "a whole number such as 3"),
    "number": (lambda v: isinstance(v, (int, float)) and not isinstance(v, bool), "a number"),
    "text": (lambda v: isinstance(v, str), "a text"), "list": (lambda v: isinstance(v, list), "a list"),
    "table": (lambda v: isinstance(v, dict), "a table"), "any": (lambda v: True, "")}


def misfit(run: Handler, args: Any) -> str:
    """Why arguments do not fit a request; empty where they do."""
    if not isinstance(args, dict):
        return f"the arguments are {args!r}, want a table"[:200]
    known = {a["name"]: a for a in run.args}
    for name in args:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            return f"there is no argument {name}: " + (f"did you mean {near[0]}?" if near else "arguments: " + (", ".join(known) or "none"))
    for name, a in known.items():
        if name not in args:
            if not a["optional"]:
                return f"the argument {name} is missing"
            continue
        fits, wanted = _FITS[a["type"]]
        if not fits(args[name]):
            return f"the argument {name} is {args[name]!r}, want {wanted}"
    return ""


def _listen(path: str, name: str) -> socket.socket:
    """A socket at a path in a folder of this user's own. One that a dead server has left is replaced."""
    folder = os.path.dirname(path)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    info = os.stat(folder)
    if info.st_uid != os.geteuid() or info.st_mode & 0o077:
        raise PermissionError(f"the folder {folder} is not this user's alone")
    listening = socket.socket(socket.AF_UNIX)
    try:
        try:
            listening.bind(path)
        except OSError:
            with socket.socket(socket.AF_UNIX) as probe:
                try:
                    probe.connect(path)
                except ConnectionRefusedError:
                    os.unlink(path)
                else:
                    raise FileExistsError(f"a server called {name} runs already, or another program listens at {path}") from None
            listening.bind(path)
        listening.listen(128)
    except BaseException:
        listening.close()
        raise
    return listening
