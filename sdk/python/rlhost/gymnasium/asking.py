"""Questions of rlhost.make_vec to environments: their methods and attributes, and the options of a reset."""

from __future__ import annotations

from typing import Any

from .. import plain
from .batch import Batch, told

CALL, SET, OPTIONS = "call", "set", "options"

# A question is (what, name, args, kwargs). SET has the values of all environments of the vector as its args; OPTIONS has kwargs alone.
Question = tuple[str, str, Any, Any]

PLAIN = "None, bool, int, float, str, bytes, arrays of numbers, and tuples, lists and dicts of them"


def answer(batch: Batch, question: Question, first: int) -> tuple[Any, ...]:
    """What the environments of a batch answer: ("values", one for each), or ("failed", index, text) of the first that fails. first is the
    index of the batch's first environment in the vector."""
    what, name, args, kwargs = question
    if what == OPTIONS:
        batch.options = kwargs
        return "values", []
    values = []
    for i, env in enumerate(batch.envs):
        try:
            if what == SET:
                env.set_wrapper_attr(name, args[first + i])
                value = None
            else:
                found = env.get_wrapper_attr(name)
                value = found(*args, **kwargs) if callable(found) else found
            values.append(_sendable(name, value))
        except (Exception, SystemExit) as e:
            return "failed", first + i, told(e, env, name)
    return "values", values


def _sendable(name: str, value: Any) -> Any:
    try:
        plain.dumps(value)
    except TypeError as e:
        raise TypeError(f"{name} is a {type(value).__name__}, which cannot be sent to another process ({e}): "
                        f"write a method that returns a part of it, of {PLAIN}") from None
    return value
