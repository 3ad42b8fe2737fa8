"""Requests: questions that a component answers by their names."""

from __future__ import annotations

import dataclasses
import inspect
import json
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

from .faults import place, raised

_F = TypeVar("_F", bound=Callable[..., Any])

MAX_BYTES = 120 << 10  # of arguments, and of an answer, as JSON
_MARK = "_rlhost_request"


def request(method: _F) -> _F:
    """Makes a method of a Component answer the request of its name:

        @rlhost.request
        def set_lr(self, lr: float, warm: bool = True) -> float:
            '''Sets the learning rate, and returns the former one.'''

    Its parameters are the arguments, checked by their types before it is called; one with a default may be left out. It is called on the main
    thread, between two messages. What it returns is the answer: anything that JSON can write, or a NumPy array or number. An exception is
    the answer, too: the component continues."""
    setattr(method, _MARK, True)
    return method


class Ask:
    """A question that a component asks another one, with the types of its arguments: Ask("weigh", "what an item weighs", item=str). The key asks of
    its table says which component answers."""

    def __init__(self, name: str, doc: str = "", /, **args: Any):
        self.name, self.doc, self.args = name, doc, args

    def document(self) -> dict[str, Any]:
        """The description for the host."""
        return {"name": self.name, "doc": self.doc, "args": [{"name": name, "type": _type_of(hint)} for name, hint in self.args.items()]}


class Asked(Future[Any]):
    """The answer to a question, once it is there: between two messages, so that nothing can wait for it. Give add_done_callback a function."""

    def result(self, timeout: float | None = None) -> Any:
        """The answer. Raises a RequestError where there is none, and RuntimeError before it has come."""
        if not self.done():
            raise RuntimeError("an answer comes between two messages: get it in a function for add_done_callback")
        return super().result()


class Questions:
    """The questions of a component that have no answer yet."""

    def __init__(self, asks: Sequence[Ask], send: Callable[[dict[str, Any]], None]):
        self._asks, self._send = {a.name: a for a in asks}, send
        self._open: dict[int, Asked] = {}
        self._made = 0

    def ask(self, name: str, within: float, args: Mapping[str, Any]) -> Asked:
        """Asks one."""
        ask = self._asks.get(name)
        if ask is None:
            raise KeyError(f"the component asks no question {name}: " + (", ".join(self._asks) or "its class has no asks"))
        if args.keys() != ask.args.keys():
            raise TypeError(f"the question {name} has the arguments {', '.join(ask.args) or 'none'}, not {', '.join(args) or 'none'}")
        given = json.loads(encode(dict(args)))
        self._made += 1
        asked = self._open[self._made] = Asked()
        self._send({"ask": {"call": self._made, "name": name, "args": given, "within_ns": int(within * 1e9)}})
        return asked

    def told(self, answer: Mapping[str, Any]) -> None:
        """Takes an answer of the host."""
        asked = self._open.pop(answer["call"], None)
        if asked is None:
            return
        error = answer.get("error")
        if error is None:
            asked.set_result(answer.get("reply"))
            return
        from .connecting import _error
        code = "E124" if error.get("answer") else _CODES.get(error.get("why", ""), "E122")
        asked.set_exception(_error("", {"code": code, "reason": error["text"], "type": error.get("type", ""), "place": error.get("place", "")}))


_CODES = {"args": "E121", "late": "E123", "lost": "E125", "busy": "E072"}


class NotAnAnswer(Exception):
    """What a method has returned cannot be an answer."""


@dataclasses.dataclass(frozen=True)
class Handler:
    """A request, and how it is answered."""

    name: str
    doc: str
    args: tuple[dict[str, Any], ...]
    run: Callable[..., Any]
    tables: Mapping[str, Any]  # arguments that are dataclasses, by name

    def document(self) -> dict[str, Any]:
        return {"name": self.name, "doc": self.doc, "args": list(self.args)}

    def answer(self, args: Mapping[str, Any]) -> bytes:
        """Calls the method and returns its answer as JSON."""
        values = {name: self.tables[name](**value) if name in self.tables else value for name, value in args.items()}
        return encode(self.run(**values))


def handlers_of(component: Any) -> dict[str, Handler]:
    """The requests that a component, or a class of components, answers, by name in the order of the class."""
    found = {}
    for name in _marked(component if isinstance(component, type) else type(component)):
        found[name] = handler(name, getattr(component, name), bound=not isinstance(component, type))
    return found


def _marked(cls: type) -> Iterator[str]:
    seen: dict[str, bool] = {}
    for base in reversed(cls.__mro__):
        for name, value in vars(base).items():
            seen[name] = getattr(value, _MARK, False)
    return (name for name, marked in seen.items() if marked)


def handler(name: str, run: Callable[..., Any], bound: bool = True) -> Handler:
    """The handler of a request that a function answers. Raises TypeError for a parameter that no argument by name can fill."""
    try:
        hints = typing.get_type_hints(run)
    except NameError as e:
        raise TypeError(f"{name} answers a request, so the types of its parameters must be known: {e}") from None
    args, tables = [], {}
    for p in list(inspect.signature(run).parameters.values())[0 if bound else 1:]:
        if p.kind in (p.POSITIONAL_ONLY, p.VAR_POSITIONAL, p.VAR_KEYWORD):
            raise TypeError(f"{name} answers a request, so its parameter {p.name} must have a name that an argument can give")
        hint = hints.get(p.name, Any)
        if dataclasses.is_dataclass(hint):
            tables[p.name] = hint
        args.append({"name": p.name, "type": _type_of(hint), "optional": p.default is not p.empty})
    doc = (inspect.getdoc(run) or "").split("\n")[0]
    return Handler(name, doc, tuple(args), run, tables)


_TYPES: dict[Any, str] = {bool: "bool", int: "integer", float: "number", str: "text", list: "list", tuple: "list", Sequence: "list",
                          dict: "table", Mapping: "table"}


def _type_of(hint: Any) -> str:
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return "any"  # None, too
    if dataclasses.is_dataclass(hint):
        return "table"
    return _TYPES.get(typing.get_origin(hint) or hint, "any")


def encode(value: Any) -> bytes:
    """An answer as JSON."""
    try:
        data = json.dumps(value, separators=(",", ":"), allow_nan=False, default=_plain).encode()
    except (TypeError, ValueError) as e:
        raise NotAnAnswer(f"is no JSON: {e}") from None
    if len(data) > MAX_BYTES:
        raise NotAnAnswer(f"has {len(data)} bytes, at most {MAX_BYTES}")
    return data


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    if callable(getattr(value, "tolist", None)):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} {value!r}"[:200])


def fault(error: BaseException) -> dict[str, Any]:
    """The error of a handler as the host takes it."""
    if isinstance(error, NotAnAnswer):
        return {"text": str(error), "answer": True}
    kind, text = raised(error)
    return {"type": kind, "text": text[:_TEXT], "place": place(error)}


_TEXT = 8 << 10
