"""The host as a component uses it."""

from __future__ import annotations

import dataclasses
import heapq
import itertools
import json
import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from . import _native
from .arena import Arena, Lease, Loaned
from .component import Component
from .handle import handle_text
from .requests import Asked, Questions
from .spec import EnvSpec
from .values import PAYLOAD as VALUE
from .values import Values

_STOP_REASONS = {"component": 0, "return": 1, "env_steps": 2, "wall_time": 3}
STATS_SECONDS = 0.5  # least time between two reports of metrics


@dataclasses.dataclass(frozen=True)
class Run:
    """Settings of the run, the same for all components."""

    name: str = ""
    seed: int = 0
    policy: str = ""  # the leading one, that stop rules and metrics without a policy's name are about
    dir: str = ""  # run folder; empty in checks and benchmarks
    synchronous: bool = False  # zero lag, bit-reproducible
    stop_return: float | None = None  # mean return that ends the run
    stop_window: int = 0
    stop_env_steps: int = 0
    stop_wall_ns: int = 0


@dataclasses.dataclass(frozen=True)
class Policy:
    """A [policy.NAME] table and its environment."""

    table: dict[str, Any]
    env: str
    group: int = 0  # of the environment's agents, which the policy plays
    network: dict[str, Any] = dataclasses.field(default_factory=dict)  # its description; empty where the host knows none
    params: dict[str, tuple[int, ...]] = dataclasses.field(default_factory=dict)  # shapes of its tensors, in their order


class Stats:
    """The component's metrics by name, of up to 95 characters. The host sees them within about half a second. Any
    thread."""

    def __init__(self, send: Callable[[dict[str, Any]], None]):
        self._send = send
        self._lock = threading.Lock()
        self._counters: dict[str, int] = {}
        self._gauges: dict[str, float] = {}
        self._observed: dict[str, list[float]] = {}
        self._changed: dict[str, None] = {}  # counters and gauges

    def count(self, name: str, add: int = 1) -> None:
        """Adds to a counter, which only goes up."""
        with self._lock:
            self._counters[name] = self._counters.get(name, 0) + add
            self._changed[name] = None

    def counter(self, name: str) -> int:
        """The value of a counter."""
        return self._counters.get(name, 0)

    def gauge(self, name: str, value: float) -> None:
        """Sets a gauge."""
        with self._lock:
            self._gauges[name] = float(value)
            self._changed[name] = None

    def observe(self, name: str, value: float) -> None:
        """Adds an observation to a histogram."""
        with self._lock:
            seen = self._observed.setdefault(name, [])
            seen.append(float(value))
            full = len(seen) >= _OBSERVATIONS
        if full:
            self._report()

    def _report(self) -> None:
        """Sends the changes to the host, in frames of bounded length."""
        with self._lock:
            changed, self._changed = list(self._changed), {}
            observed, self._observed = self._observed, {}
            frames = []
            for at in range(0, len(changed), _NAMES):
                names = changed[at:at + _NAMES]
                frames.append({"counters": {n: self._counters[n] for n in names if n in self._counters},
                               "gauges": {n: self._gauges[n] for n in names if n in self._gauges}})
        frames += [{"histograms": {name: values}} for name, values in observed.items()]
        for frame in frames:
            self._send({"stats": frame})


_OBSERVATIONS, _NAMES = 512, 512  # of one frame, at most


class Timer:
    """Calls a function once or periodically; made by Host.after and Host.every."""

    def __init__(self, run: Callable[[], None], period: float):
        self.run, self.period, self.ended = run, period, False

    def cancel(self) -> None:
        """Ends it: the function is not called any more."""
        self.ended = True


class Host:
    """The host as one component sees it. Except for log and stats it belongs to the main thread."""

    def __init__(self, link: _native.Host, configuration: Mapping[str, Any], component: Component):
        c = configuration
        self._questions = Questions(component.asks, self._send)
        self.name: str = c["name"]  # component[i] where there are several instances
        self.id: int = c["id"]
        self.index: int = c["index"]
        self.count: int = c["count"]
        run = c.get("run") or {}
        self.run = Run(**{f.name: run[f.name] for f in dataclasses.fields(Run) if f.name in run} | {"seed": int(run.get("seed") or "0")})
        self.seed = self.run.seed  # of the run
        self.peers: dict[str, int] = c.get("peers") or {}  # instances of each kind in the pipeline
        self.readers: dict[str, int] = c.get("readers") or {}  # by signal: blocks that its receivers may hold at once
        self.published: int = c.get("published") or 0  # by learners of the component's policy before it: the newest version
        # By slot: columns that the wires let the component write in blocks of the slot's messages.
        self.grants = {slot: frozenset(columns) for slot, columns in (c.get("grants") or {}).items()}
        self.policies = {name: Policy(p.get("table") or {}, p.get("env") or "", p.get("group") or 0, p.get("network") or {},
                                       {w["name"]: tuple(w["shape"]) for w in p.get("params") or []})
                         for name, p in (c.get("policies") or {}).items()}
        self._envs: dict[str, Any] = c.get("envs") or {}
        self.log = logging.getLogger(self.name)
        self._link = link
        self.stats = Stats(self._send)
        self._signals = {s.name: i for i, s in enumerate(component.signals)}
        self._arenas: dict[int, Arena] = {}
        self._value_signals = [s for s in component.signals if s.payload == VALUE]
        self._values: dict[str, Values] = {}
        self._timers: list[tuple[float, int, Timer]] = []
        self._order = itertools.count()
        self._reported = 0.0
        self._failed = False
        self._slot = ""  # that runs now

    # Messages.

    def emit(self, signal: str, handle: Any = 0, *, kind: int = 0, t: int = 0, split: int = 0, policy_version: int = 0,
             inline: tuple[int, int] = (0, 0)) -> None:
        """Sends a message from a signal to the connected slots. The block in it is claimed until the receivers have it,
        so the caller may release it at once; if the signal is on_loan the caller keeps the loan until it is answered.
        It waits while the host has too many messages pending.

        From a signal with the payload "value" it sends a value instead of a handle, whatever rlhost.plain takes: emit("told", {"a": 1}).
        Its slots are called with the value. Raises ValueError for one of more than the signal's value_bytes, TypeError for one of
        another type, Exhausted while receivers keep all blocks."""
        if values := self._values.get(signal):
            handle, length = values.put(handle)
            try:
                self._link.emit(self._signals[signal], _native.Message(handle=handle, inline=(length, 0)))
            finally:
                values.release(handle)
            return
        m = _native.Message(handle=handle, kind=kind, t=t, split=split, policy_version=policy_version, inline=inline)
        self._link.emit(self._signals[signal], m)

    def forward(self, signal: str, m: _native.Message) -> None:
        """Forwards a message, or a copy of it made by m.replace. It keeps its sender, who receives a reply to it."""
        self._link.emit(self._signals[signal], m)

    def reply(self, signal: str, m: _native.Message, request: _native.Message) -> None:
        """Answers a request from a signal: the message goes to the request's sender."""
        self._link.emit(self._signals[signal], m, request)

    # Memory.

    def arena(self, handle_or_name: int | str) -> Arena:
        """The arena of a handle or a name."""
        if isinstance(handle_or_name, str):
            native = self._link.arena_named(handle_or_name)
            if native is None:
                raise _native.Error(f"no arena is called {handle_or_name}")
            return self._arenas.get(native.key) or self._keep(native)
        known = self._arenas.get(self._link.arena_key(handle_or_name))
        if known:
            return known
        native = self._link.arena_of(handle_or_name)
        if native is None:
            raise _native.Foreign(f"handle {handle_text(handle_or_name)} belongs to no arena")
        return self._keep(native)

    def add_arena(self, name: str, blocks: int, block_bytes: int, *, names: list[str] | None = None,
                  schema: dict[str, Any] | None = None) -> Arena:
        """Asks the host for an arena, which all components see as COMPONENT.name. With names its blocks are lists of
        float64 numbers; schema is any other document. Raises Refused."""
        if names is not None:
            schema = {"kind": "names", "names": names}
        document = None if schema is None else json.dumps(schema)
        return self._keep(self._link.add_arena(f"{self.name}.{name}", blocks, block_bytes, document))

    def lease(self, handle: int, write: Iterable[str] = ()) -> Lease:
        """Claims a committed block for reading; use it in a with block. write names columns to write in place, such as
        reward, in the slot that received the block: raises Refused unless the wires of that slot grant them."""
        columns = frozenset(write)
        if not columns <= self.grants.get(self._slot, frozenset()):
            raise self._ungranted(columns)
        return self.arena(handle)._lease(handle, columns)

    def _ungranted(self, columns: frozenset[str]) -> _native.Refused:
        names = ", ".join(sorted(columns))
        if not self._slot:
            return _native.Refused(f"{names} cannot be written here: wires grant it to a slot, while it has the block's message")
        port = f"{self.name.split('[')[0]}.{self._slot}"
        return _native.Refused(f"E038 slot {port}: may not write {names}: no wire grants it; add write = "
                               f"{json.dumps(sorted(columns))} to each [[wire]] with slot = {json.dumps(port)}")

    def loaned(self, handle: int) -> Loaned:
        """The block of a message to a slot that is on_loan, to be written in part before it is answered."""
        return Loaned(self.arena(handle), handle)

    def release(self, handle: int) -> None:
        """Releases one claim, such as the one that Loan.commit left."""
        self.arena(handle).release(handle)

    def _keep(self, native: _native.Arena) -> Arena:
        made = self._arenas[native.key] = Arena(native)
        return made

    # The run.

    def boundary(self) -> None:
        """For learners: a dataset has been learned from and its weights are published. It returns when the host is
        done; snapshot runs within it."""
        self._report_stats()
        self._link.boundary()

    def stop(self, reason: str) -> None:
        """Asks the host to end the run at the next dataset boundary; reason is return, env_steps, wall_time or
        component, which is one of its own."""
        self._link.stop_run(_STOP_REASONS[reason])

    def fail(self, reason: str) -> None:
        """Ends the component with an error message for the user. The slot must still return; no other will run, and the message counts
        as not taken."""
        if not self._failed:
            self._failed = True
            self._report_stats()
            self._send({"fail": {"reason": reason}})

    def env(self, name: str) -> EnvSpec:
        """The description of a pipeline's environment."""
        import base64
        return EnvSpec.unpack(base64.b64decode(self._envs[name]["describe"]))

    def request(self, ask: str, within: float = 30.0, /, **args: Any) -> Asked:
        """Asks another component a question of the class's asks, and returns at once:

            host.request("weigh", item="apple").add_done_callback(lambda asked: print(asked.result()))

        The function is called on the main thread, between two messages, at the latest after so many seconds: result returns the answer, or raises
        RequestTimeout, WorkerLost, HandlerError, BadArguments or another RequestError. An exception in the function is logged."""
        return self._questions.ask(ask, within, args)

    def after(self, seconds: float, run: Callable[[], None]) -> Timer:
        """Calls a function once, after the time has passed and the run has begun, when no slot runs."""
        return self._start(Timer(run, 0.0), time.monotonic() + seconds)

    def every(self, seconds: float, run: Callable[[], None]) -> Timer:
        """Calls a function each so many seconds, as after does. Calls that it could not make in time are skipped."""
        if not seconds > 0:
            raise ValueError(f"every {seconds} seconds: want more than 0")
        return self._start(Timer(run, seconds), time.monotonic() + seconds)

    def _start(self, timer: Timer, at: float) -> Timer:
        heapq.heappush(self._timers, (at, next(self._order), timer))
        return timer

    # For the loop that serves the component.

    def _make_values(self) -> None:
        self._values = {s.name: Values(self, s) for s in self._value_signals}

    def _send(self, frame: dict[str, Any]) -> None:
        self._link.wire_send(json.dumps(frame, separators=(",", ":")).encode())

    def _report_stats(self) -> None:
        self._reported = time.monotonic()
        self.stats._report()

    def _tick(self) -> float:
        """Runs due timers and reports metrics; returns the seconds until it must run again."""
        now = time.monotonic()
        idle = self._failed or not self._link.begun()
        while self._timers and self._timers[0][0] <= now and not idle:
            at, _, timer = heapq.heappop(self._timers)
            if timer.period and not timer.ended:
                missed = (time.monotonic() - at) // timer.period
                self._start(timer, at + (missed + 1) * timer.period)
            if not timer.ended:
                timer.run()
        if now - self._reported >= STATS_SECONDS:
            self._report_stats()
        wait = STATS_SECONDS
        if self._timers and not idle:
            wait = min(wait, max(0.0, self._timers[0][0] - time.monotonic()))
        return wait
