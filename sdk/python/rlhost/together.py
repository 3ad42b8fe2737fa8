"""Several components in one process and on one loop."""

from __future__ import annotations

import functools
import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, cast

from . import _native
from .component import Component, ConfigError, ConfigErrors, Flow, Signal
from .host import Host
from .requests import Ask, Asked, handlers_of, request
from .values import PAYLOAD as VALUE

Port = tuple[str, str]  # a part, and one of its ports


class Together(Component):
    """A component that is put together from others. They share a process and a loop, and send each other messages that do not leave it.

        class Game(rlhost.Together):
            parts = {"ping": Ping, "pong": Pong}
            wires = [("ping.ping", "pong.on_ping"), ("pong.pong", "ping.on_pong")]

    The parts are written as any component. A port that one of the wires has is inside; every other one is a port of the whole, under the
    name PART_PORT, and so are the requests that parts answer and the questions that they ask others. The table of a part is the one under its
    name: [component.game.ping]. For the host it is one component: it is killed, restarted, swapped and scaled as a whole, and fails with any
    of its parts. It does not save its state.

    Inside, a value is passed as it is, and a message's block is claimed until it has been handled."""

    parts: ClassVar[Mapping[str, type[Component]]] = {}
    wires: ClassVar[Sequence[tuple[str, str]]] = ()

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        cls._set_ports(cls, cls.parts)
        for name, kind in cls.parts.items():
            for slot in kind.slots:
                setattr(cls, f"{name}_{slot.name}", _handler(name, slot.name))
            for asked in handlers_of(kind):
                setattr(cls, f"{name}_{asked}", _answering(name, asked, getattr(kind, asked)))

    def __init__(self) -> None:
        self._parts = {name: kind() for name, kind in self.parts.items()}
        self._waiting: deque[tuple[Callable[[Any], object], Any, int]] = deque()

    def configure(self, config: dict[str, Any]) -> None:
        """Gives each part its table."""
        errors = [ConfigError(key, "is no part", "parts: " + ", ".join(self._parts)) for key in config if key not in self._parts]
        for name, part in self._parts.items():
            try:
                part.configure(dict(config.get(name) or {}))
            except ConfigError as e:
                errors.append(_of(name, e))
            except ConfigErrors as e:
                errors += [_of(name, x) for x in e.errors]
        if errors:
            raise ConfigErrors(errors)
        self._set_ports(self, self._parts)
        for name, part in self._parts.items():
            for slot in part.slots:
                if not hasattr(self, f"{name}_{slot.name}"):  # it depends on the table
                    setattr(self, f"{name}_{slot.name}", getattr(part, slot.name))

    def flow(self) -> Flow | None:
        """What the first part that makes or gathers trajectory blocks says."""
        return next((flow for part in self._parts.values() if (flow := part.flow())), None)

    def start(self, host: Host) -> None:
        """Starts the parts, each with a host of its own."""
        self._inside = {name: _inside(name, part, self.wires, self._parts) for name, part in self._parts.items()}
        for name, part in self._parts.items():
            part.host = cast(Host, _PartHost(self, name, host))
            part.start(part.host)

    def begin(self) -> None:
        """Lets each part make its first step, in their order."""
        for part in self._parts.values():
            part.begin()

    def stop(self) -> None:
        """Stops the parts, the last one first."""
        for part in reversed(self._parts.values()):
            part.stop()

    @staticmethod
    def _set_ports(of: Any, parts: Mapping[str, Any]) -> None:
        """Makes the ports of the parts that no wire has those of the whole. Raises TypeError for a wire that cannot be."""
        signals = {(name, s.name): s for name, part in parts.items() for s in part.signals}
        slots = {(name, s.name): s for name, part in parts.items() for s in part.slots}
        inside: set[Any] = set()
        for wire in of.wires:
            source, sink = (_port(end) for end in wire)
            for port, known, what in ((source, signals, "signal"), (sink, slots, "slot")):
                if port not in known:
                    raise TypeError(f"there is no {what} {'.'.join(port)}, but {', '.join('.'.join(p) for p in known) or 'none'}")
            if signals[source].payload != slots[sink].payload:
                raise TypeError(f"{wire[0]} sends {signals[source].payload}, {wire[1]} takes {slots[sink].payload}")
            inside |= {("signal", source), ("slot", sink)}
        of.signals = [replace(s, name="_".join(at)) for at, s in signals.items() if ("signal", at) not in inside]
        of.slots = [replace(s, name="_".join(at)) for at, s in slots.items() if ("slot", at) not in inside]
        of.asks = [Ask(f"{name}_{a.name}", a.doc, **a.args) for name, part in parts.items() for a in part.asks]

    # Inside.

    def _send(self, run: Callable[[Any], object], message: Any, handle: int) -> None:
        """Has a slot of a part called once the present one has returned."""
        if handle:
            self.host.arena(handle).retain(handle)
        self._waiting.append((run, message, handle))
        self.host.after(0.0, self._deliver)

    def _deliver(self) -> None:
        run, message, handle = self._waiting.popleft()
        try:
            run(message)
        finally:
            if handle:
                self.host.release(handle)


class _PartHost:
    """The host of a part: the whole's, but for signals that are inside."""

    def __init__(self, whole: Together, name: str, host: Host):
        self._whole, self._name, self._host = whole, name, host
        self._inside = whole._inside[name]
        self.log = logging.getLogger(f"{host.name}.{name}")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._host, name)

    def emit(self, signal: str, handle: Any = 0, **fields: Any) -> None:
        """As Host.emit."""
        if signal not in self._inside:
            self._host.emit(f"{self._name}_{signal}", handle, **fields)
            return
        of, slots = self._inside[signal]
        if of.payload == VALUE:
            for run in slots:
                self._whole._send(run, handle, 0)
        else:
            self.forward(signal, _native.Message(handle=handle, **fields))

    def forward(self, signal: str, m: _native.Message) -> None:
        """As Host.forward."""
        if signal not in self._inside:
            self._host.forward(f"{self._name}_{signal}", m)
            return
        of, slots = self._inside[signal]
        for run in slots:
            self._whole._send(run, m, 0 if of.on_loan else m.handle)

    def reply(self, signal: str, m: _native.Message, request: _native.Message) -> None:
        """As Host.reply; inside it goes where the signal goes."""
        if signal in self._inside:
            self.forward(signal, m)
        else:
            self._host.reply(f"{self._name}_{signal}", m, request)

    def request(self, ask: str, within: float = 30.0, /, **args: Any) -> Asked:
        """As Host.request, under the part's name."""
        return self._host.request(f"{self._name}_{ask}", within, **args)

    def add_arena(self, name: str, *args: Any, **more: Any) -> Any:
        """As Host.add_arena, under the part's name."""
        return self._host.add_arena(f"{self._name}.{name}", *args, **more)


def _inside(name: str, part: Component, wires: Sequence[tuple[str, str]], parts: Mapping[str, Component]) -> dict[str, tuple[Signal, list[Any]]]:
    """The signals of a part that are inside, each with the slots that it goes to."""
    found: dict[str, tuple[Signal, list[Any]]] = {}
    for source, sink in wires:
        owner, signal = _port(source)
        if owner == name:
            to, slot = _port(sink)
            declared = next(s for s in part.signals if s.name == signal)
            found.setdefault(signal, (declared, []))[1].append(getattr(parts[to], slot))
    return found


def _handler(part: str, slot: str) -> Callable[[Together, Any], object]:
    return lambda self, m: getattr(self._parts[part], slot)(m)


def _answering(part: str, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    """A request of the whole, with the parameters of the part's."""
    @functools.wraps(method)
    def answer(self: Together, **args: Any) -> Any:
        return getattr(self._parts[part], name)(**args)
    return request(answer)


def _port(end: str) -> Port:
    part, _, port = end.partition(".")
    return part, port


def _of(part: str, e: ConfigError) -> ConfigError:
    return ConfigError(f"{part}.{e.key}", e.reason, e.help, e.code)
