"""Names with which programs of one user find each other, through a running ``rlhost names serve``.

    from rlhost.names import Names

    with Names() as names:
        names.add("ana/pole/server", "127.0.0.1:5000", ttl=10)      # renewed until close; gone in 10 s if this process dies
        address = names.wait("ana/pole/server", timeout=30)         # in another process
        names.find_subtree("ana/pole")                              # ["ana/pole/server"]

A name is parts joined by "/", a value is text. The calls are those of SRL's name_resolve. A Names may be used from several threads.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal, NamedTuple

from .sockets import Connection, Connections, service_path

__all__ = ["Event", "NameEntryExists", "NameEntryNotFound", "NameLost", "Names", "NamesError", "default_path"]


class NamesError(Exception):
    """A refused call; ``code`` has a page in ``rlhost explain``."""

    def __init__(self, code: str, reason: str):
        super().__init__(f"{code}: {reason}")
        self.code = code


class NameEntryExists(NamesError):
    """The name has a value already."""


class NameEntryNotFound(NamesError):
    """There is no such name."""


class NameLost(NamesError):
    """The name is another program's now, or has ended."""


_ERRORS = {"E102": NameEntryExists, "E103": NameEntryNotFound, "E104": NameLost}


class Event(NamedTuple):
    """A change: a name has a value, or is gone; or, once, everything that there was at the beginning has been told."""

    kind: Literal["set", "deleted", "listed"]
    name: str
    value: str


_KINDS: dict[int, Literal["set", "deleted", "listed"]] = {1: "set", 2: "deleted", 3: "listed"}


def default_path() -> str:
    """Where the names of this user are served, unless ``rlhost names serve --socket`` says otherwise."""
    return service_path("names.sock")


def served(root: str, name: str) -> str | None:
    """The socket of what is served under a name, such as ``served("rlhost/channels/", "jobs")``, if this user's registry knows it."""
    try:
        with Names() as names:
            return names.get(root + name)
    except (NamesError, OSError):
        return None  # also where nobody serves names


def _error(answer: dict[str, Any]) -> NamesError:
    return _ERRORS.get(answer["code"], NamesError)(answer["code"], answer["reason"])


class Names:
    """The names that are served at a path. ``close`` deletes those that this object has added."""

    def __init__(self, path: str | None = None):
        self._path = path or default_path()
        self._lock = threading.Lock()
        self._connections = Connections(self._connect)
        self._own: dict[str, str] = {}  # name: lease, of names that are deleted by close
        self._kept: dict[str, tuple[float, str]] = {}  # name: TTL and lease, of names that are renewed
        self._closed = threading.Event()
        self._changed = threading.Event()
        self._keeper: threading.Thread | None = None

    def __enter__(self) -> Names:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Deletes the names that this object has added with ``delete_on_exit``, and ends its connections."""
        self._closed.set()
        self._changed.set()
        if self._keeper:
            self._keeper.join()
        try:
            self.reset()
        finally:
            self._connections.close()

    def _connect(self) -> Connection:
        nobody = f"nobody serves names at {self._path}: start `rlhost names serve`"
        return Connection(self._path, _error, nobody, "the registry has ended")

    def _ask(self, verb: str, **request: Any) -> Any:
        return self._connections.ask("names." + verb, request, lambda err: isinstance(err, NamesError) and err.code in _ERRORS)

    def add(self, name: str, value: object, delete_on_exit: bool = True, ttl: float | None = None, replace: bool = False) -> None:
        """Gives a name a value. With a TTL, in seconds, it is renewed until close, and gone so long after this process has died.

        Raises NameEntryExists for a name that exists, unless it is replaced.
        """
        reply = self._ask("add", name=name, value=str(value), ttl_ns=_nanoseconds(ttl), replace=replace)
        self._have(reply["name"], reply["lease"], delete_on_exit, ttl)

    def add_subentry(self, name: str, value: object, delete_on_exit: bool = True, ttl: float | None = None) -> str:
        """Adds a name below another, with a last part that no other has, and returns it."""
        reply = self._ask("add", name=name, value=str(value), ttl_ns=_nanoseconds(ttl), child=True)
        self._have(reply["name"], reply["lease"], delete_on_exit, ttl)
        return str(reply["name"])

    def _have(self, name: str, lease: str, delete_on_exit: bool, ttl: float | None) -> None:
        with self._lock:
            self._kept.pop(name, None)
            self._own.pop(name, None)
            if delete_on_exit:
                self._own[name] = lease
            if ttl is not None:
                self._kept[name] = (ttl, lease)
                if not self._keeper:
                    self._keeper = threading.Thread(target=self._keep, name="rlhost names", daemon=True)
                    self._keeper.start()
        self._changed.set()

    def _keep(self) -> None:
        """Renews names three times as often as they would end, until close."""
        due: dict[str, float] = {}
        while not self._closed.is_set():
            self._changed.clear()
            with self._lock:
                kept = dict(self._kept)
            now = time.monotonic()
            due = {name: due.get(name, now + ttl / 3) for name, (ttl, _) in kept.items()}
            for name, (ttl, lease) in kept.items():
                if due[name] > now:
                    continue
                due[name] = now + ttl / 3
                try:
                    self._ask("renew", name=name, lease=lease, ttl_ns=_nanoseconds(ttl))
                except NameLost:
                    self._forget(name, lease)
                except (NamesError, OSError):
                    continue  # tried again
            self._changed.wait(min(due.values()) - time.monotonic() if due else None)

    def _forget(self, name: str, lease: str) -> None:
        with self._lock:
            if self._kept.get(name, (0, ""))[1] == lease:
                del self._kept[name]
            if self._own.get(name) == lease:
                del self._own[name]

    def has(self, name: str) -> bool:
        """Whether a name that this object has added is still its own: not replaced, deleted or ended."""
        with self._lock:
            return name in self._own or name in self._kept

    def get(self, name: str) -> str:
        """The value of a name, or NameEntryNotFound."""
        return str(self._ask("get", name=name)["value"])

    def _list(self, root: str) -> list[dict[str, str]]:
        return self._ask("list", name=root)["entries"] or []

    def get_subtree(self, root: str = "") -> list[str]:
        """The values of a name and of all below it, in the order of their names."""
        return [e["value"] for e in self._list(root)]

    def find_subtree(self, root: str = "") -> list[str]:
        """A name, if it has a value, and all below it, sorted."""
        return [e["name"] for e in self._list(root)]

    def delete(self, name: str) -> None:
        """Deletes a name, or raises NameEntryNotFound."""
        self._ask("delete", name=name, lease="0")

    def clear_subtree(self, root: str = "") -> int:
        """Deletes a name and all below it, and returns how many there were."""
        return int(self._ask("clear", name=root)["cleared"])

    def reset(self) -> None:
        """Deletes the names that this object has added with ``delete_on_exit`` and that are still its own."""
        with self._lock:
            own, self._own, self._kept = self._own, {}, {}
        for name, lease in own.items():
            try:
                self._ask("delete", name=name, lease=lease)
            except NameLost:
                continue

    def wait(self, name: str, timeout: float | None = None) -> str:
        """The value of a name as soon as it has one. A TimeoutError says that it has none in time; 0 is one try."""
        for event in self._watch(name, timeout):
            if event.kind == "set" and event.name == name:
                return event.value
            if event.kind == "listed" and timeout == 0:
                break
        raise TimeoutError(f"{name} has no value after {timeout} s")

    def watch(self, root: str = "") -> Iterator[Event]:
        """What there is, then "listed", then changes, without an end. Of several changes of a name it may tell the last alone."""
        return self._watch(root, None)

    def _watch(self, root: str, timeout: float | None) -> Iterator[Event]:
        c = self._connect()
        end = None if timeout is None else time.monotonic() + (timeout or 60)  # 0: until all has been told
        try:
            c.send({"verb": "names.watch", "request": {"name": root}})
            while True:
                c.socket.settimeout(None if end is None else max(end - time.monotonic(), 1e-3))
                try:
                    e, _ = c.next()
                except TimeoutError:
                    return
                yield Event(_KINDS[e["kind"]], e["name"], e["value"])
        finally:
            c.socket.close()

    def watch_names(self, names: str | Iterable[str], callback: Callable[[], object]) -> threading.Thread:
        """Calls callback, on a thread of its own, once all of the names are gone that are there now."""
        names = [names] if isinstance(names, str) else list(names)

        def gone() -> None:
            for name in names:
                there = False
                for event in self._watch(name, None):
                    there = event.kind == "set" if event.name == name else there
                    if not there and (event.kind == "listed" or event.name == name):
                        break
            callback()

        thread = threading.Thread(target=gone, name="rlhost names", daemon=True)
        thread.start()
        return thread


def _nanoseconds(ttl: float | None) -> int:
    if ttl is None:
        return 0
    if not 0 < ttl < 1e9:
        raise ValueError(f"a TTL of {ttl} s; None is a name without an end")
    return max(int(ttl * 1e9), 1)
