"""What a policy of your own answers, checked."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy

from .layout import Box, Discrete
from .policy import Policy, PolicySpec, is_module


class WrongAnswer(Exception):
    """What act returned is not what it is to return. row is that at fault, -1 for none."""

    def __init__(self, text: str, row: int = -1):
        super().__init__(text)
        self.row = row


@dataclasses.dataclass
class Answer:
    """What act returned, as arrays."""

    actions: list[numpy.ndarray]  # by action, [rows, elements]
    log_prob: numpy.ndarray  # [rows]
    value: numpy.ndarray  # [rows]
    state: numpy.ndarray  # [rows, state_size]


def ask(policy: Policy, spec: PolicySpec, obs: Mapping[str, numpy.ndarray], state: numpy.ndarray, masks: Sequence[numpy.ndarray | None],
        greedy: bool, value_only: bool = False) -> Answer:
    """Has a policy act on rows. Raises WrongAnswer; an exception of act itself passes through. Of value_only the answer has no actions."""
    rows, name = len(state), type(policy).__name__
    with _quiet(policy):
        given = {path: _given(policy, x) for path, x in obs.items()}
        legal = tuple(None if m is None else _given(policy, m) for m in masks)
        answer = policy.act(next(iter(given.values())) if len(given) == 1 else given, _given(policy, state),
                            legal[0] if len(legal) == 1 else legal, greedy)
    if not isinstance(answer, tuple) or len(answer) != 4:
        raise WrongAnswer(f"act of {name} returned {_kind(answer)}, want (action, log_prob, value, state)")
    action, log_prob, value, after = answer
    value = _numbers("value", value, (rows,))
    after = _numbers("state", after, (rows, policy.state_size)) if policy.state_size else state
    if value_only:
        return Answer([], value, value, after)
    log_prob = _numbers("log_prob", log_prob, (rows,))
    several = action if len(spec.actions) > 1 else (action,)
    if not isinstance(several, tuple) or len(several) != len(spec.actions):
        raise WrongAnswer(f"action is {_kind(several)}, want a tuple of {len(spec.actions)}, one for each part of the space")
    names = [f"action {i}" for i in range(len(several))] if len(several) > 1 else ["action"]
    return Answer([_chosen(what, of, x, rows) for what, of, x in zip(names, spec.actions, several)], log_prob, value, after)


def _quiet(policy: Policy) -> contextlib.AbstractContextManager[Any]:
    if not is_module(policy):
        return contextlib.nullcontext()
    import torch
    quiet: contextlib.AbstractContextManager[Any] = torch.no_grad()
    return quiet


def _given(policy: Policy, array: numpy.ndarray) -> Any:
    """An array as act gets it: copied, because its memory is written again."""
    array = array.copy()
    if not is_module(policy):
        return array
    import torch
    first = next(iter(policy.parameters()), None)  # type: ignore[attr-defined]
    made = torch.from_numpy(array)
    return made if first is None else made.to(first.device)


def _numbers(what: str, given: Any, shape: tuple[int, ...]) -> numpy.ndarray:
    array = _array(what, given)
    if array.shape != shape:
        raise WrongAnswer(f"{what} has the shape {list(array.shape)}, want {list(shape)}")
    if array.dtype.kind not in "fiu":
        raise WrongAnswer(f"{what} is of {array.dtype}, want numbers")
    array = array.astype(numpy.float32)
    bad = ~numpy.isfinite(array.reshape(len(array), -1)).all(1)
    if bad.any():
        raise WrongAnswer(f"{what} is {array[bad][0].tolist()}", int(bad.argmax()))
    return array


def _chosen(what: str, of: Discrete | Box, given: Any, rows: int) -> numpy.ndarray:
    """An action [rows, elements]. One element may come without its axis."""
    array = _array(what, given)
    elems = of.elems if isinstance(of, Box) else len(of.counts)
    if elems == 1 and array.shape == (rows,):
        array = array[:, None]
    if array.shape != (rows, elems):
        raise WrongAnswer(f"{what} has the shape {list(array.shape)}, want {[rows] if elems == 1 else [rows, elems]}")
    if isinstance(of, Box):
        return _numbers(what, array, (rows, elems))
    if array.dtype.kind not in "iub":
        raise WrongAnswer(f"{what} is of {array.dtype}, want whole numbers")
    array = array.astype(numpy.int64)
    bad = ((array < 0) | (array >= numpy.array(of.counts))).any(1)
    if bad.any():
        raise WrongAnswer(f"{what} is {array[bad][0].tolist()}, want 0 to {max(of.counts) - 1}", int(bad.argmax()))
    return array.astype(numpy.int32)


def _array(what: str, given: Any) -> numpy.ndarray:
    """An array of what act returned."""
    if hasattr(given, "detach"):
        given = given.detach().cpu().numpy()
    if given is None:
        raise WrongAnswer(f"{what} is None")
    made: numpy.ndarray = numpy.asarray(given)
    return made


def _kind(given: Any) -> str:
    return f"a tuple of {len(given)}" if isinstance(given, tuple) else f"a {type(given).__name__}"
