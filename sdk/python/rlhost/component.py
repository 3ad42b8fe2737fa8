"""Components: ports, configuration, life cycle, state."""

from __future__ import annotations

import dataclasses
import difflib
import typing
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from .requests import Ask, handlers_of

if TYPE_CHECKING:
    import numpy

    from .host import Host

_T = TypeVar("_T")


# Requests about blocks that who asks has on loan, and their answers.
_ON_LOAN = frozenset({"act_request", "actions", "reset_request", "reset_params", "reward_request", "shaped_rewards", "observe_request", "observations"})


@dataclasses.dataclass(frozen=True)
class Signal:
    """A named output. It connects to slots with an equal payload."""

    name: str  # snake_case
    payload: str  # such as trajectory, weights
    doc: str = ""  # one sentence
    on_loan: bool = False  # messages name a block that the sender has on loan until it is answered; true of requests that the host knows
    schema: int = 0  # what sender and receiver must agree on, 64 bits such as the beginning of a hash; 0: not said
    value_bytes: int = 1 << 16  # of one with the payload "value": the most that a value may have as bytes of rlhost.plain

    def __post_init__(self) -> None:
        object.__setattr__(self, "on_loan", self.on_loan or self.payload in _ON_LOAN)


@dataclasses.dataclass(frozen=True)
class Slot:
    """A named input: a message calls the component's method of that name, with the message, or with the value where the payload is "value"."""

    name: str
    payload: str
    doc: str = ""
    on_loan: bool = False
    schema: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "on_loan", self.on_loan or self.payload in _ON_LOAN)


class ConfigError(Exception):
    """An error in one key of a component's table. The host adds file, line and column."""

    def __init__(self, key: str, reason: str, help: str = "", code: str = ""):
        super().__init__(f"`{key}` {reason}" + (f": {help}" if help else ""))
        self.key, self.reason, self.help, self.code = key, reason, help, code


class ConfigErrors(Exception):
    """Several ConfigErrors at once."""

    def __init__(self, errors: Iterable[ConfigError]):
        self.errors = list(errors)
        super().__init__("; ".join(map(str, self.errors)))


class NoSnapshot(Exception):
    """The state cannot be saved; the message says why."""


@dataclasses.dataclass
class State:
    """A component's saved state: small JSON values, float32 tensors and blobs by name."""

    meta: Any = None
    tensors: dict[str, numpy.ndarray] = dataclasses.field(default_factory=dict)
    blobs: dict[str, bytes] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class Flow:
    """A component that makes or gathers trajectory blocks, as the host needs to know it."""

    splits: int = 0
    blocks: int = 0
    block_rows: int = 0
    envs: int = 0
    dataset_rows: int = 0


class Component:
    """One node of a running pipeline. Subclass it and serve the class.

    All methods run on the main thread, one at a time: configure, start, perhaps restore, begin, then slots and
    snapshots, and stop. An exception in a slot ends the component with its last line as the reason; the traceback is logged.
    """

    kind: ClassVar[str] = ""  # snake_case, the name in the pipeline's file; empty: the class's name in snake_case
    doc: ClassVar[str] = ""  # one sentence; empty: the first line of the class's documentation
    # The ports, in the order of their indexes in messages. Where they depend on the table, configure sets them on self.
    signals: Sequence[Signal] = ()
    slots: Sequence[Slot] = ()
    asks: Sequence[Ask] = ()  # the questions that it asks other components; see Host.request

    host: Host  # from start on

    def configure(self, config: dict[str, Any]) -> None:
        """Reads the component's table and checks it; raises ConfigError or ConfigErrors. It takes no resources and
        may run again. Without an override any key is an error."""
        if config:
            raise ConfigErrors(ConfigError(key, "is not a key", "this kind takes none") for key in config)

    def start(self, host: Host) -> None:
        """Takes resources, such as arenas. Nothing is emitted yet: a state may be restored first."""

    def begin(self) -> None:
        """Makes the first step, such as an emit. Messages arrive after it."""

    def flow(self) -> Flow | None:
        """Called after configure, for components that make or gather trajectory blocks."""
        return None

    def snapshot(self) -> State:
        """Returns the state from which restore continues as if uninterrupted. Called at a dataset boundary, but not while leases of
        others' blocks are kept beyond a slot: they are no part of a state."""
        raise NoSnapshot(f"{kind_of(type(self))} does not save its state")

    def restore(self, state: State) -> None:
        """Replaces the state by a snapshot of a component with the same configuration."""
        raise NoSnapshot(f"{kind_of(type(self))} does not save its state")

    def stop(self) -> None:
        """Releases everything, also after a failed start."""


def kind_of(component: type[Component]) -> str:
    """The kind's name in the pipeline's file."""
    if component.kind:
        return component.kind
    name = component.__name__
    return "".join("_" + c.lower() if c.isupper() and i else c.lower() for i, c in enumerate(name))


def doc_of(component: type[Component]) -> str:
    """One sentence about the kind."""
    own = component.__dict__.get("__doc__") or ""
    return component.doc or own.strip().split("\n")[0]


def check_kind(component: type[Component]) -> None:
    """Raises TypeError, naming the missing parts, for a class that cannot be served."""
    if not (isinstance(component, type) and issubclass(component, Component)):
        raise TypeError(f"{component!r} is not a subclass of rlhost.Component")
    check_ports(component, component.__name__)
    handlers_of(component)


def check_ports(component: type[Component] | Component, name: str) -> None:
    """Raises TypeError if a slot has no method, or two ports one name."""
    for slot in component.slots:
        if not callable(getattr(component, slot.name, None)):
            raise TypeError(f"{name} has a slot {slot.name} and no method of that name")
    for ports in (component.signals, component.slots):
        names = [p.name for p in ports]
        if len(set(names)) != len(names):
            raise TypeError(f"{name} names a port twice: {names}")


def decode(config: Mapping[str, Any], into: type[_T]) -> _T:
    """Makes a dataclass from a table: its fields are the keys, with their defaults; nested tables are nested
    dataclasses. Unknown keys, missing keys and values of another type are ConfigErrors."""
    errors: list[ConfigError] = []
    made = _decode(config, into, "", errors)
    if errors:
        raise ConfigErrors(errors)
    return made


def _decode(config: Mapping[str, Any], into: type[_T], prefix: str, errors: list[ConfigError]) -> _T:
    if not dataclasses.is_dataclass(into):
        raise TypeError(f"{into!r} is not a dataclass")
    types = typing.get_type_hints(into)
    fields = {f.name: f for f in dataclasses.fields(into)}
    for key in config:
        if key not in fields:
            close = difflib.get_close_matches(key, fields, 1)
            errors.append(ConfigError(prefix + key, "is not a key", f"did you mean `{close[0]}`?" if close else "keys: " + ", ".join(fields)))
    values = {}
    for name, field in fields.items():
        if name in config:
            values[name] = _value(config[name], types[name], prefix + name, errors)
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            errors.append(ConfigError(prefix + name, "is missing", code="E004"))
            values[name] = None
    return typing.cast(_T, into(**values))


_WORDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a text", list: "a list", dict: "a table"}


def _value(value: Any, wanted: Any, key: str, errors: list[ConfigError]) -> Any:
    if dataclasses.is_dataclass(wanted) and isinstance(value, Mapping):
        return _decode(value, typing.cast("type[Any]", wanted), key + ".", errors)
    plain = typing.get_origin(wanted) or wanted
    if plain is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if plain is int and isinstance(value, float) and value.is_integer():
        return int(value)
    if plain not in _WORDS or (isinstance(value, plain) and not (plain is int and isinstance(value, bool))):
        return value
    errors.append(ConfigError(key, f"is {value!r}, want {_WORDS[plain]}"))
    return value
