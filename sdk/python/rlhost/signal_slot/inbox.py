"""Where the signals for an event loop arrive."""

from __future__ import annotations

import functools
import logging
import os
import pickle
import uuid
import weakref
from collections import deque
from collections.abc import Sequence
from queue import Full
from typing import Any

from ..queue import Queue

log = logging.getLogger("rlhost.signal_slot")
Message = tuple[Any, Any]  # (object, signal) and the arguments; or None and a Command
Command = tuple[Any, str, tuple[Any, ...]]  # an object of the loop, one of its methods, arguments

MOST = 1 << 20  # signals that wait for a loop in its own process
_CONTROL_BYTES = 1 << 16
_TELL_EVERY = 100

_dumps = functools.partial(pickle.dumps, protocol=5)
_all: weakref.WeakValueDictionary[str, Inbox] = weakref.WeakValueDictionary()  # of all loops that this process knows


def configure_logger(logger: logging.Logger) -> None:
    """Makes another logger get what this package's gets."""
    log.handlers[:], log.propagate = logger.handlers, logger.propagate
    log.setLevel(logger.level)


def get_mp_queue(buffer_size_bytes: int = 1_000_000) -> Queue:
    """A queue of any objects between processes of one user."""
    return Queue(max_size_bytes=buffer_size_bytes, dumps=_dumps, loads=pickle.loads)


class Inbox:
    """What has been emitted to one loop, and not yet been run. In the loop's own process that is a list of objects; other processes put bytes
    into a queue in shared memory. Commands, such as the one that stops the loop, have a queue of their own, which signals cannot fill."""

    def __init__(self, name: Any, queue_bytes: int):
        self.name, self.id = name, uuid.uuid4().hex
        self.here = True  # the loop belongs to this process
        self.sleeping = False  # it waits for the queue
        self.local: deque[Message] = deque()
        self.lost = 0  # signals of this process that found the inbox full
        self.queue = get_mp_queue(queue_bytes)
        self.control = get_mp_queue(_CONTROL_BYTES)
        _all[self.id] = self

    def __getstate__(self) -> tuple[Any, ...]:
        return self.name, self.id, self.queue, self.control

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.name, self.id, self.queue, self.control = state
        self.here, self.sleeping, self.local, self.lost = False, False, deque(), 0
        _all[self.id] = self

    def put(self, message: Message) -> None:
        """Adds a signal; where there is no room it is lost, counted, and told in the log."""
        if self.here:
            if len(self.local) < MOST:
                self.local.append(message)
                if self.sleeping:
                    self._wake()
                return
            self._lose(message, 1)
            return
        try:
            self.queue.put_nowait(message)
        except Full:
            self._lose(message, 1)
        except ValueError as e:
            raise self._too_large(message, e) from None

    def put_many(self, messages: Sequence[Message]) -> None:
        """Adds several signals of one object."""
        if self.here:
            for m in messages:
                self.put(m)
            return
        try:
            done = self.queue.put_many(messages, block=False, whole=False)
        except Full:
            done = 0
        except ValueError as e:
            raise self._too_large(messages[0], e) from None
        if done < len(messages):
            self._lose(messages[done], len(messages) - done)

    def command(self, obj: Any, method: str, *args: Any) -> None:
        """Asks the loop to call a method of one of its objects, before signals that are emitted afterwards."""
        if self.here:
            self.local.append((None, (obj, method, args)))
            if self.sleeping:
                self._wake()
            return
        self.control.put((obj, method, args), timeout=60.0)
        self._wake()

    def _wake(self) -> None:
        try:
            self.queue.put_nowait(None)
        except Full:
            pass  # then the loop does not sleep

    def _lose(self, message: Message, count: int) -> None:
        before = self.lost
        self.lost += count
        if before // _TELL_EVERY < self.lost // _TELL_EVERY or before == 0:
            log.error("%s: the queue of the loop %s is full: %d signals to it are lost", _signal(message), self.name, self.lost)

    def _too_large(self, message: Message, error: ValueError) -> ValueError:
        return ValueError(f"{_signal(message)} to the loop {self.name}: {error}; queue_bytes= of EventLoop or EventLoopProcess makes room")


def _signal(message: Message) -> str:
    return f"{message[0][0]}.{message[0][1]}"


def known() -> list[Inbox]:
    """The inboxes of all loops that this process knows."""
    return list(_all.values())


def find(name: str) -> Inbox | None:
    """The inbox with an id."""
    return _all.get(name)


def _forked() -> None:
    for inbox in known():
        inbox.here, inbox.sleeping = False, False
        inbox.local.clear()


os.register_at_fork(after_in_child=_forked)
