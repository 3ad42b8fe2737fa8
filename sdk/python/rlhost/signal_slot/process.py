"""Processes that run an event loop each."""

from __future__ import annotations

import multiprocessing
import os
import signal as signals
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from .inbox import Inbox, Message, known, log
from .loop import EventLoop, executing
from .objects import EventLoopObject, signal

_started: dict[int, EventLoopProcess] = {}  # by this process, and not known to have ended
_lock = threading.Lock()


class ProcessDied(RuntimeError):
    """A process has ended by a fault: its objects receive no more signals."""

    def __init__(self, process: str, exitcode: int, objects: list[Any]):
        self.process, self.exitcode, self.objects = process, exitcode, objects
        how = f"was killed by {_signal_name(-exitcode)}" if exitcode < 0 else f"ended with status {exitcode}"
        super().__init__(f"the process {process} {how}, and its objects {', '.join(map(str, objects))} with it; connect a slot to its signal "
                         "died to go on without it")


class EventLoopProcess(EventLoopObject):
    """A process with an event loop, which other objects can be put on before it starts."""

    def __init__(self, unique_process_name: str, multiprocessing_context: Any = None, init_func: Callable[..., Any] | None = None,
                 args: Iterable[Any] = (), kwargs: Mapping[str, Any] | None = None, daemon: bool | None = None, queue_bytes: int = 5_000_000):
        """init_func is called in the process before its loop runs. queue_bytes is the loop's; see EventLoop."""
        make = (multiprocessing_context or multiprocessing).Process
        self._process = make(target=self._target, name=unique_process_name, daemon=daemon)
        self._init_func = init_func
        self.set_init_func_args(args, kwargs)
        self._pending: list[Message] = []
        self._inboxes: list[Inbox] = []
        self.known: frozenset[str] = frozenset()  # inboxes of the loops that it can send to
        self._ended_by_us = False
        super().__init__(EventLoop(f"{unique_process_name}_evt_loop", queue_bytes=queue_bytes), unique_process_name)

    @signal
    def died(self) -> None:
        """Emitted in the process that has started this one, with the name of this one and its exit code, when it has ended by a fault. Slots
        must be connected before. Without one, the loops there raise ProcessDied."""

    def set_init_func_args(self, args: Iterable[Any] = (), kwargs: Mapping[str, Any] | None = None) -> None:
        """Sets the arguments of init_func, before the process starts."""
        if self._process.pid is not None:
            raise RuntimeError(f"the process {self._process.name} has been started")
        self._args, self._kwargs = tuple(args), dict(kwargs or {})

    def start(self) -> None:
        """Starts the process. Its objects live there from now on; here, copies of them connect and disconnect."""
        inbox = self.event_loop._inbox
        self.event_loop.process = self
        inbox.here = False
        self._pending, self._inboxes = list(inbox.local), known()
        self.known = frozenset(i.id for i in self._inboxes)
        inbox.local.clear()
        try:
            self._process.start()
        except BaseException:
            inbox.here = True
            inbox.local.extend(self._pending)
            raise
        finally:
            self._pending, self._inboxes = [], []
        while inbox.local:
            inbox.put(inbox.local.popleft())  # of threads that emitted meanwhile
        with _lock:
            _started[id(self)] = self

    def _target(self) -> None:
        inbox = self.event_loop._inbox
        inbox.here = True
        inbox.local.extend(self._pending)
        if self._init_func:
            self._init_func(*self._args, **self._kwargs)
        self.event_loop.exec()

    def stop(self) -> None:
        """Stops the loop of the process once it has run the signals that wait, and with it the process."""
        self.event_loop.stop()

    def terminate(self) -> None:
        """Ends the process by SIGTERM."""
        self._ended_by_us = True
        self._process.terminate()

    def kill(self) -> None:
        """Ends the process by SIGKILL."""
        self._ended_by_us = True
        self._process.kill()

    def join(self, timeout: float | None = None) -> None:
        """Waits until the process has ended."""
        self._process.join(timeout)

    def is_alive(self) -> bool:
        """Whether the process runs."""
        return bool(self._process.is_alive())

    def close(self) -> None:
        """Releases what a process that has ended still holds."""
        with _lock:
            _started.pop(id(self), None)
        self._process.close()

    @property
    def name(self) -> str:
        """The name of the process."""
        return str(self._process.name)

    @property
    def daemon(self) -> bool:
        """Whether it ends with the process that started it."""
        return bool(self._process.daemon)

    @property
    def exitcode(self) -> int | None:
        """Its exit code, negative for a signal; None while it runs."""
        code: int | None = self._process.exitcode
        return code

    @property
    def ident(self) -> int | None:
        """Its process id."""
        pid: int | None = self._process.pid
        return pid

    pid = ident

    def _lost(self, code: int) -> None:
        objects = [o for o in self.event_loop.objects if o not in (self.object_id, self.event_loop.object_id)]
        error = ProcessDied(self.name, code, objects)
        log.error("%s", error)
        if self.died.connected:
            self.died.emit(self.name, code)
            return
        for loop in executing():
            loop._inbox.command(loop.object_id, "_raise", error)


def watch() -> None:
    """Tells which of the processes that this one has started have ended by a fault. Raises RuntimeError where the one that started this one
    has ended."""
    parent = multiprocessing.parent_process()
    if parent is not None and not parent.is_alive():
        raise RuntimeError(f"{parent.name}, which started this process, has ended")
    if not _started:
        return
    lost = []
    with _lock:
        for key, process in list(_started.items()):
            code = process.exitcode
            if code is None:
                continue
            del _started[key]
            if code and not process._ended_by_us:
                lost.append((process, code))
    for process, code in lost:
        process._lost(code)


def _forked() -> None:
    global _lock
    _lock = threading.Lock()
    _started.clear()


os.register_at_fork(after_in_child=_forked)


def _signal_name(number: int) -> str:
    try:
        return signals.Signals(number).name
    except ValueError:
        return f"signal {number}"


def process_name(p: EventLoopProcess | None) -> str:
    """The name of a loop's process; None is this one."""
    return f"main process {os.getpid()}" if p is None else p.name


def process_pid(p: EventLoopProcess | None) -> int | None:
    """The id of a loop's process; None is this one."""
    return os.getpid() if p is None else p.pid
