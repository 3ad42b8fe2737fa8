"""Acting: a process that computes a policy of your own for the host."""

from __future__ import annotations

import logging
import mmap
import os
import threading
import traceback
from typing import Any

import numpy

from . import _native
from .answers import WrongAnswer, ask
from .control import Refusal
from .faults import told
from .policy import Policy, PolicySpec, described, is_module, make, shapes
from .spec import EnvSpec

_FILE_SECONDS = 10.0  # for the announced scratch area to arrive
_TYPES = {"u8": "u1", "bool": "u1", "i8": "i1", "i16": "<i2", "i32": "<i4", "i64": "<i8", "f32": "<f4", "f64": "<f8", "u16": "<u2", "u32": "<u4", "u64": "<u8", "f16": "<f2"}


class Actor:
    """Answers the host's requests by a policy of a class."""

    capabilities = ["policy"]

    def __init__(self, of: type[Policy]):
        self._of = of
        self._made: Policy | None = None
        self._link: Any = None
        self._memory: Any = None
        self._arrived = threading.Condition()
        self._layout: dict[str, Any] = {}
        self._opened = False

    def open(self, link: _native.Host) -> None:
        self._link = link

    def frame(self, document: dict[str, Any], files: tuple[int, ...]) -> None:
        """Receives the scratch area; called on the wire's thread."""
        file = document.get("file")
        try:
            if file and files:
                memory = numpy.frombuffer(mmap.mmap(files[0], file["bytes"]), numpy.uint8)
                with self._arrived:
                    self._memory = memory
                    self._arrived.notify_all()
        finally:
            for fd in files:
                os.close(fd)

    def call(self, method: str, document: Any) -> Any:
        """Answers Policy and PolicyRun."""
        if method == "Policy":
            return self._make(document)
        return self._run(document)

    def close(self) -> None:
        """Nothing outlives the process."""

    def _make(self, document: Any) -> Any:
        import base64
        spec = PolicySpec(EnvSpec.unpack(base64.b64decode(document["env"]["describe"])), int(document.get("seed") or "0"))
        self._spec, self._made = spec, make(self._of, spec, document.get("table") or {})
        if self._torch:
            import torch
            torch.manual_seed(spec.seed)
            self._made.eval()  # type: ignore[attr-defined]
        self._shapes = shapes(self._made)
        weights = [{"name": name, "shape": list(shape)} for name, shape in self._shapes.items()]
        in_words = described(self._made, spec)
        return {"weights": weights, "state": self._made.state_size, **({"network": in_words.document()} if in_words else {})}

    @property
    def _torch(self) -> bool:
        return is_module(self._made)

    def _run(self, document: Any) -> Any:
        if self._made is None:
            raise Refusal("FAILED_PRECONDITION", "PolicyRun comes after Policy")
        self._link.bind(1, 0, [], 0)  # no slots and no arenas
        self._layout = document
        return {}

    def _open(self) -> None:
        """Makes the arrays over the scratch area, once it has arrived: it takes another way than messages."""
        assert self._made
        with self._arrived:
            if not self._arrived.wait_for(lambda: self._memory is not None, _FILE_SECONDS):
                raise RuntimeError("the scratch area of the host did not arrive")
        document = self._layout
        rows, state = document["rows"], self._made.state_size
        self._obs = {c["path"]: self._column(c, rows, t.shape) for c, t in zip(document["obs"], self._spec.obs.values())}
        self._masks = [self._column(c, rows, (c["elems"],)) for c in document["masks"]]
        self._actions = [self._column(c, rows, (c["elems"],)) for c in document["actions"]]
        self._before, self._after = self._floats("state_at", rows, state), self._floats("after_at", rows, state)
        self._value, self._log_prob = self._floats("value_at", rows), self._floats("log_at", rows)
        self._opened = True

    def _column(self, c: Any, rows: int, shape: tuple[int, ...]) -> numpy.ndarray:
        made: numpy.ndarray = numpy.ndarray((rows, *shape), _TYPES[c["dtype"]], self._memory, c["at"])
        return made

    def _floats(self, key: str, *shape: int) -> numpy.ndarray:
        made: numpy.ndarray = numpy.ndarray(shape, "<f4", self._memory, self._layout[key])
        return made

    # Messages.

    def message(self, m: _native.Message) -> None:
        """Handles a message and answers it."""
        if not self._opened:
            self._open()
        try:
            if m.slot == _native.LINK_POLICY_LOAD:
                self._load()
            elif m.slot == _native.LINK_POLICY_ACT:
                self._act(m.t, bool(m.kind & _native.LINK_POLICY_GREEDY), bool(m.kind & _native.LINK_POLICY_VALUE))
            else:
                return
        except WrongAnswer as e:
            self._refuse(str(e), e.row)
        except (Exception, SystemExit) as e:
            logging.getLogger("rlhost").error("%s", "".join(traceback.format_exception(e)).rstrip())
            self._refuse(told(e))
        else:
            self._link.send(_native.LINK_POLICY_REPLY, 0, 0, 0)

    def _refuse(self, text: str, row: int = -1) -> None:
        data = text.encode(errors="replace")[:self._layout["text"]]
        at = self._layout["text_at"]
        self._memory[at:at + len(data)] = numpy.frombuffer(data, numpy.uint8)
        self._link.send(_native.LINK_POLICY_REPLY, 1, len(data), row + 1)

    def _load(self) -> None:
        assert self._made
        at, values = self._layout["params_at"], {}
        for name, shape in self._shapes.items():
            values[name] = numpy.ndarray(shape, "<f4", self._memory, at).copy()
            at += 4 * values[name].size
        self._made.load_parameters(values)

    def _act(self, rows: int, greedy: bool, value_only: bool) -> None:
        assert self._made
        obs = {path: x[:rows] for path, x in self._obs.items()}
        masks = [m[:rows] != 0 if i in self._spec.masks else None for i, m in enumerate(self._masks)]
        a = ask(self._made, self._spec, obs, self._before[:rows], masks, greedy, value_only)
        self._value[:rows] = a.value
        if self._made.state_size:
            self._after[:rows] = a.state
        if value_only:
            return
        self._log_prob[:rows] = a.log_prob
        for into, given in zip(self._actions, a.actions):
            into[:rows] = given
