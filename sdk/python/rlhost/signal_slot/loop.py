"""Event loops and their timers."""

from __future__ import annotations

import heapq
import time
import weakref
from collections.abc import Callable
from queue import Empty
from typing import TYPE_CHECKING, Any

from .inbox import Command, Inbox, Message, log
from .objects import Emitter, EventLoopObject, Slot, signal

if TYPE_CHECKING:
    from .process import EventLoopProcess

_WATCH_SECONDS = 0.25  # between two looks at the processes that this one started, and at the one that started it

_executing: weakref.WeakSet[EventLoop] = weakref.WeakSet()  # loops that this process runs


class EventLoopStatus:
    """How a loop has ended."""

    NORMAL_TERMINATION, INTERRUPTED = range(2)


class EventLoop(EventLoopObject):
    """Runs the slots of its objects, one at a time, on the thread that calls exec. Any thread, and any process, may emit signals to it."""

    def __init__(self, unique_loop_name: Any, serial_mode: bool = False, queue_bytes: int = 5_000_000):
        """queue_bytes is the room for signals of other processes. serial_mode is for programs written for signal-slot: signals of the loop's
        own process never go through the queue."""
        self.objects: dict[Any, EventLoopObject] = {}
        self.process: EventLoopProcess | None = None  # that the loop runs in; None is the one that made it
        self._current: tuple[Any, str] | None = None  # emitter of the slot that runs
        self.verbose = False
        self._inbox = Inbox(unique_loop_name, queue_bytes)
        self._listeners: dict[tuple[Any, str], dict[Slot, None]] = {}
        self._routes: dict[tuple[Any, str], list[tuple[Slot, Callable[..., Any]]]] = {}
        self._timers: list[tuple[float, int, Timer]] = []
        self._begun = 0  # timers
        self._stopping = False
        self._watched = 0.0
        super().__init__(self, unique_loop_name)

    @signal
    def start(self) -> None:
        """Emitted when the loop begins."""

    @signal
    def terminate(self) -> None:
        """Emitted when the loop ends. Slots on the loop itself still run; what they emit to it does not."""

    @property
    def curr_emitter(self) -> Emitter | None:
        """What emitted the signal that is being delivered."""
        return Emitter(*self._current) if self._current else None

    @property
    def lost(self) -> int:
        """Signals of this process to the loop that found no room."""
        return self._inbox.lost

    def stop(self) -> None:
        """Ends the loop once the signals that wait have been delivered. From any process; it never finds the queue full."""
        self._inbox.command(self.object_id, "_end")

    def _end(self) -> None:
        self._stopping = True

    def _raise(self, error: Exception) -> None:
        raise error

    def exec(self) -> int:
        """Runs until stop: returns NORMAL_TERMINATION, or INTERRUPTED after Ctrl-C. It raises what a slot raises, and ProcessDied when a
        process that this one has started is lost, unless a slot is connected to its signal died."""
        if not self._inbox.here:
            raise RuntimeError(f"the loop {self.object_id} runs in the process {getattr(self.process, 'name', 'that made it')}")
        _executing.add(self)
        try:
            self.start.emit()
            while not self._stopping:
                self._iterate(None)
            self._drain()
            self.terminate.emit()
            self._drain()
        except KeyboardInterrupt:
            log.info("%s: interrupted", self)
            return EventLoopStatus.INTERRUPTED
        finally:
            self._stopping = False
            _executing.discard(self)
        return EventLoopStatus.NORMAL_TERMINATION

    def process_events(self, wait: float = 0.05) -> None:
        """Runs what waits, for a program that has a loop of its own; where nothing does it waits for so many seconds."""
        self._iterate(wait)

    def broadcast(self, *args: Any) -> None:
        """Calls the slots on this loop that subscribe to the signal which is delivered now."""
        if self._current:
            self._call((self.object_id, self._current[1]), args)

    def __str__(self) -> str:
        return f"the loop {self.object_id}"

    # One round.

    def _iterate(self, most: float | None) -> None:
        wait = self._fire()
        if most is not None:
            wait = min(wait, most)
        now = time.monotonic()
        if now - self._watched >= _WATCH_SECONDS:
            self._watched = now
            from .process import watch
            watch()
        self._run(self._wait(min(wait, _WATCH_SECONDS)))

    def _wait(self, seconds: float) -> list[Message | None]:
        """The signals of other processes. It waits for some if nothing else is there to be run."""
        inbox = self._inbox
        if inbox.local:
            return [] if inbox.queue.empty() else self._received(0.0)
        inbox.sleeping = True
        try:
            # Commands come with a message in the queue, which ends the wait.
            return self._received(0.0 if inbox.local else seconds)
        finally:
            inbox.sleeping = False

    def _received(self, seconds: float) -> list[Message | None]:
        try:
            return self._inbox.queue.get_many(timeout=seconds)
        except Empty:
            return []

    def _run(self, received: list[Message | None]) -> None:
        """Runs the signals of this process that wait now, commands, and the signals received."""
        inbox = self._inbox
        local = inbox.local
        for _ in range(len(local)):
            self._take(local.popleft())
        while not inbox.control.empty():
            self._obey(inbox.control.get())
        for message in received:
            self._take(message)

    def _take(self, message: Message | None) -> None:
        if message is None:
            return  # it has ended a wait
        emitter, args = message
        if emitter is None:
            self._obey(args)
        else:
            self._call(emitter, args)

    def _drain(self) -> None:
        """Runs what waits now."""
        left = len(self._inbox.queue)
        received: list[Message | None] = []
        while len(received) < left and (more := self._received(0.0)):
            received += more
        self._run(received)

    def _obey(self, command: Command) -> None:
        obj, method, args = command
        if obj in self.objects:
            getattr(self.objects[obj], method)(*args)

    def _call(self, emitter: tuple[Any, str], args: tuple[Any, ...]) -> None:
        routes = self._routes.get(emitter)
        if routes is None:
            routes = self._routes[emitter] = self._route(emitter)
        for slot, run in routes:
            self._current = emitter
            if self.verbose:
                log.debug("%s: %s.%s calls %s.%s", self, *emitter, *slot)
            try:
                run(*args)
            except Exception:
                log.exception("%s: %s.%s, connected to %s.%s, has failed with the arguments %s", self, *slot, *emitter, _short(args))
                raise

    def _route(self, emitter: tuple[Any, str]) -> list[tuple[Slot, Callable[..., Any]]]:
        routes = []
        for object_id, name in self._listeners.get(emitter, ()):
            run = getattr(self.objects.get(object_id), name, None)
            if callable(run):
                routes.append(((object_id, name), run))
            elif object_id in self.objects:
                log.warning("%s: %s has no method %s, which is connected to %s.%s", self, object_id, name, *emitter)
        return routes

    # Connections.

    def _listen(self, object_id: Any, signal_: str, slot: Slot, connected: bool) -> None:
        """Connects or disconnects a slot of this loop, in this process and in the one that the loop runs in."""
        if not self._inbox.here:
            self._inbox.command(self.object_id, "_listen_here", object_id, signal_, slot, connected)
        self._listen_here(object_id, signal_, slot, connected)

    def _listen_here(self, object_id: Any, signal_: str, slot: Slot, connected: bool) -> None:
        slots = self._listeners.setdefault((object_id, signal_), {})
        if connected:
            slots[slot] = None
        else:
            slots.pop(slot, None)
        self._rerouted()

    def _rerouted(self) -> None:
        self._routes.clear()

    def _check_reaches(self, other: EventLoop) -> None:
        """Raises RuntimeError unless the process of this loop knows the other loop."""
        process = self.process
        if process is not None and not self._inbox.here and other._inbox.id not in process.known:
            raise RuntimeError(f"the loop {other.object_id} was made after the process {process.name} was started, so that objects there cannot send "
                               "signals to it: make all loops first")

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_routes": {}}

    # Timers.

    def _schedule(self, timer: Timer, at: float) -> None:
        self._begun += 1
        heapq.heappush(self._timers, (at, self._begun, timer))

    def _fire(self) -> float:
        """Fires the timers that are due; returns the seconds until the next one is."""
        now = time.monotonic()
        due = []
        while self._timers and self._timers[0][0] <= now:
            at, _, timer = heapq.heappop(self._timers)
            if timer._at == at and timer not in due:
                due.append(timer)
        for timer in due:
            timer.fire()
        if self._timers:
            return max(0.0, self._timers[0][0] - now)
        return _WATCH_SECONDS


def executing() -> list[EventLoop]:
    """The loops that run in this process."""
    return [loop for loop in list(_executing) if loop._inbox.here]


def _short(args: tuple[Any, ...]) -> str:
    text = repr(args)
    return text if len(text) < 1000 else text[:1000] + "…"


class Timer(EventLoopObject):
    """Emits timeout each so many seconds, or once. It runs from the beginning."""

    def __init__(self, event_loop: EventLoop, interval_sec: float, single_shot: bool = False, object_id: Any = None):
        super().__init__(event_loop, object_id)
        self._interval, self._single_shot = interval_sec, single_shot
        self._at: float | None = None  # when it is due
        self.start()

    @signal
    def timeout(self) -> None:
        """The time has passed."""

    def set_interval(self, interval_sec: float) -> None:
        """Sets the interval. A wait that is longer than that becomes as short."""
        if self._asked("set_interval", interval_sec):
            return
        self._interval = interval_sec
        if self._at is not None:
            self._due(min(self._at, time.monotonic() + interval_sec))

    def stop(self) -> None:
        """Stops the timer until start."""
        if not self._asked("stop"):
            self._at = None

    def start(self) -> None:
        """Begins an interval now."""
        if not self._asked("start"):
            self._due(time.monotonic() + self._interval)

    def fire(self) -> None:
        """Emits the signal and begins the next interval. Intervals that have passed meanwhile are skipped."""
        if self._single_shot:
            self._at = None
        else:
            due, now = self._at or 0.0, time.monotonic()
            missed = (now - due) // self._interval if self._interval > 0 else 0.0
            self._due(max(due + (missed + 1) * self._interval, now) if self._at else now + self._interval)
        self._emit()

    def next_timeout(self) -> float:
        """When it is due, on the clock of time.monotonic; infinite while it is stopped."""
        return float("inf") if self._at is None else self._at

    def remaining_time(self) -> float:
        """The seconds until it is due."""
        return max(0.0, self.next_timeout() - time.monotonic())

    def _asked(self, method: str, *args: Any) -> bool:
        """Whether the timer runs in another process, which has been asked."""
        inbox = self.event_loop._inbox
        if not inbox.here:
            inbox.command(self.object_id, method, *args)
        return not inbox.here

    def _due(self, at: float) -> None:
        self._at = at
        self.event_loop._schedule(self, at)

    def _emit(self) -> None:
        self.timeout.emit()

    def _default_obj_id(self) -> str:
        return f"Timer_{super()._default_obj_id()}"


class TightLoop(Timer):
    """Emits iteration in every round of the loop."""

    def __init__(self, event_loop: EventLoop, object_id: Any = None):
        super().__init__(event_loop, 0.0, object_id=object_id)

    @signal
    def iteration(self) -> None:
        """A round begins."""

    def _emit(self) -> None:
        self.iteration.emit()
