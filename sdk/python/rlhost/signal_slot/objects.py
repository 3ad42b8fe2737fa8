"""Objects that live on event loops, and their signals."""

from __future__ import annotations

import types
import uuid
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple, overload

from .inbox import Inbox, find, log

if TYPE_CHECKING:
    from .loop import EventLoop

Slot = tuple[Any, str]  # the id of an object, and one of its methods


class Emitter(NamedTuple):
    """An object's signal."""

    object_id: Any
    signal_name: str


class signal:
    """Declares a signal of an EventLoopObject. The method that it decorates is never called."""

    def __init__(self, declared: Callable[..., Any]):
        self._name, self.__doc__ = declared.__name__, declared.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, obj: None, kind: Any = None) -> signal: ...
    @overload
    def __get__(self, obj: EventLoopObject, kind: Any = None) -> BoundSignal: ...

    def __get__(self, obj: EventLoopObject | None, kind: Any = None) -> signal | BoundSignal:
        if obj is None:
            return self
        if not isinstance(obj, EventLoopObject):
            raise TypeError(f"{type(obj).__name__} has a signal {self._name} and is no EventLoopObject")
        bound = obj.__dict__[self._name] = obj._signal(self._name)  # found there from now on
        return bound


class BoundSignal:
    """The signal of one object."""

    def __init__(self, obj: EventLoopObject, name: str):
        self.obj, self.name = obj, name
        self._emitter = (obj.object_id, name)
        self._slots: dict[Slot, Inbox] = {}
        self._inboxes: tuple[Inbox, ...] = ()

    def connect(self, other: EventLoopObject | Callable[..., Any], slot: str | None = None) -> None:
        """Connects a slot: obj.method, or an object and the name of its method. At any time, also between processes that run."""
        self.obj.connect(self.name, other, slot)

    def disconnect(self, other: EventLoopObject | Callable[..., Any], slot: str | None = None) -> None:
        """Ends a connection."""
        self.obj.disconnect(self.name, other, slot)

    def emit(self, *args: Any) -> None:
        """Has all connected slots called with the arguments. It does not wait: where a loop has no room, its signal is lost and counted."""
        message = (self._emitter, args)
        for inbox in self._inboxes:
            inbox.put(message)

    def emit_many(self, list_of_args: Iterable[tuple[Any, ...]]) -> None:
        """Emits the signal once with each of the arguments."""
        messages = [(self._emitter, tuple(args)) for args in list_of_args]
        for inbox in self._inboxes if messages else ():
            inbox.put_many(messages)

    def broadcast_on(self, event_loop: EventLoop) -> None:
        """Makes the signal one of the loop: objects of that loop subscribe to it by its name."""
        self.connect(event_loop.broadcast)

    @property
    def connected(self) -> bool:
        """Whether a slot is connected."""
        return bool(self._slots)

    def _lead(self, slot: Slot, inbox: Inbox | None) -> bool:
        """Connects a slot, or without an inbox ends its connection; False if there is none."""
        found = slot in self._slots
        if inbox is not None:
            self._slots[slot] = inbox
        elif found:
            del self._slots[slot]
        self._inboxes = tuple({i.id: i for i in self._slots.values()}.values())
        return found


class EventLoopObject:
    """An object on an event loop: all its slots run there, one at a time. Any method is a slot."""

    def __init__(self, event_loop: EventLoop, object_id: Any = None):
        """object_id is any hashable value that no other object of the loop has, and is the same in all processes."""
        self.object_id = self._default_obj_id() if object_id is None else object_id
        if self.object_id in event_loop.objects:
            raise ValueError(f"the loop {event_loop.object_id} has an object {self.object_id} already")
        self._signals: dict[str, BoundSignal] = {}
        self.event_loop = event_loop
        event_loop.objects[self.object_id] = self
        event_loop._rerouted()

    def _default_obj_id(self) -> str:
        return str(uuid.uuid4())

    def connect(self, signal_: str, other: EventLoopObject | Callable[..., Any], slot: str | None = None) -> None:
        """Connects a slot to a signal by its name; see BoundSignal.connect."""
        receiver, method = _method_of(other, slot)
        if self.event_loop.objects.get(receiver.object_id, receiver) is not receiver:
            raise ValueError(f"the loop {self.event_loop.object_id} has another object {receiver.object_id}")
        self.event_loop._check_reaches(receiver.event_loop)
        receiver.event_loop._listen(self.object_id, signal_, (receiver.object_id, method), True)
        self._lead(signal_, (receiver.object_id, method), receiver.event_loop._inbox)

    def disconnect(self, signal_: str, other: EventLoopObject | Callable[..., Any], slot: str | None = None) -> None:
        """Ends a connection; where there is none the log says so."""
        receiver, method = _method_of(other, slot)
        found = self._lead(signal_, (receiver.object_id, method), None)
        receiver.event_loop._listen(self.object_id, signal_, (receiver.object_id, method), False)
        if not found:
            log.warning("%s.%s is not connected to %s.%s", self.object_id, signal_, receiver.object_id, method)

    def register_broadcast(self, signal_: str, event_loop: EventLoop) -> None:
        """See BoundSignal.broadcast_on."""
        self.connect(signal_, event_loop.broadcast)

    def subscribe(self, signal_: str, slot: Callable[..., Any] | str) -> None:
        """Has a method of this object called with each signal of that name that is broadcast on its loop."""
        self.event_loop.connect(signal_, self, slot if isinstance(slot, str) else slot.__name__)

    def unsubscribe(self, signal_: str, slot: Callable[..., Any] | str) -> None:
        """Ends a subscription."""
        self.event_loop.disconnect(signal_, self, slot if isinstance(slot, str) else slot.__name__)

    def emit(self, signal_: str, *args: Any) -> None:
        """Emits a signal by its name."""
        self._signal(signal_).emit(*args)

    def emit_many(self, signal_: str, list_of_args: Iterable[tuple[Any, ...]]) -> None:
        """Emits a signal by its name, once with each of the arguments."""
        self._signal(signal_).emit_many(list_of_args)

    def detach(self) -> None:
        """Takes the object off its loop: no slot of it is called any more."""
        self.event_loop.objects.pop(self.object_id, None)
        self.event_loop._rerouted()

    def _signal(self, name: str) -> BoundSignal:
        bound = self._signals.get(name)
        if bound is None:
            bound = self._signals[name] = BoundSignal(self, name)
        return bound

    def _lead(self, name: str, slot: Slot, inbox: Inbox | None) -> bool:
        """Connects or disconnects where the signal is emitted: in this process, and in the one that the object lives in."""
        own = self.event_loop._inbox
        if not own.here:
            own.command(self.object_id, "_lead_here", name, slot, inbox.id if inbox else None)
        return self._signal(name)._lead(slot, inbox)

    def _lead_here(self, name: str, slot: Slot, inbox: str | None) -> None:
        """The part of _lead that another process has asked for."""
        self._signal(name)._lead(slot, find(inbox) if inbox else None)


def _method_of(other: EventLoopObject | Callable[..., Any], slot: str | None) -> tuple[EventLoopObject, str]:
    receiver: object = other
    if isinstance(other, (types.MethodType, types.BuiltinMethodType)):
        receiver, slot = other.__self__, other.__name__
    if not isinstance(receiver, EventLoopObject) or slot is None:
        raise TypeError(f"{other!r} is no slot: give a method of an EventLoopObject, or such an object and the name of a method")
    return receiver, slot
