"""The worker of environments: its calls and messages."""

from __future__ import annotations

import base64
import json
import mmap
import os
import struct
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy

from .. import _native, plain, state
from ..arena import Column, read_columns
from ..control import Refusal
from . import asking
from .batch import Batch, Bound, EnvFault, told
from .crew import Line
from .source import Source, Unusable, drawn

_BIND, _RESET, _STEP, _REPLY = (_native.LINK_ENV_BIND, _native.LINK_ENV_RESET, _native.LINK_ENV_STEP,
                                _native.LINK_ENV_REPLY)
_STEP_ALONE, _STEPPED_ALONE = _native.LINK_ENV_STEP_ALONE, _native.LINK_ENV_STEPPED_ALONE
_TEXT = 4096  # room for an error
_SHORT = 512  # of that for each of several
_METRICS, _METRIC_BYTES = 64, 64  # the most names that the host takes, and bytes of one
_MAKING_SECONDS = 0.2  # between two words about it
_FILE_SECONDS = 10.0  # for an announced file to arrive

# Minus the status codes of environments.
_ARGUMENT, _STATE, _INTERNAL = 1, 3, 128


class Making:
    """Tells the host how many environments were made, where that takes long."""

    def __init__(self, link: _native.Host):
        self._link, self._count, self._told = link, 0, time.monotonic()

    def made(self) -> None:
        self._count += 1
        now = time.monotonic()
        if now - self._told > _MAKING_SECONDS:
            self._told = now
            self._link.wire_send(json.dumps({"stats": {"counters": {"envs_made": self._count}}}).encode())


class Worker:
    """Runs one batch of environments for the host."""

    capabilities = ["env"]

    def __init__(self, source: Callable[..., Any] = Source, batch: Callable[..., Any] = Batch) -> None:
        """Environments are loaded by source and stepped by batch, which have the methods of those of Gymnasium."""
        self._load_source, self._make_batch = source, batch
        self._source: Any = None
        self._batch: Any = None
        self._made: dict[str, Any] = {}
        self._bound_link = False
        self._metrics: dict[str, int] = {}
        self._files: dict[int, tuple[Any, dict[str, Column]]] = {}
        self._arrived = threading.Condition()
        self._texts = 0  # of environments that are stepped alone
        self._blocks: dict[tuple[int, int], Bound] = {}

    def open(self, link: _native.Host) -> None:
        self._link = link
        self._send = link.send

    def frame(self, document: dict[str, Any], files: tuple[int, ...]) -> None:
        """Receives a file of blocks; called on the wire's thread."""
        file = document.get("file")
        try:
            if file and files:
                memory = numpy.frombuffer(mmap.mmap(files[0], file["bytes"]), numpy.uint8)
                with self._arrived:
                    self._files[file["number"]] = (memory, read_columns(file.get("schema")))
                    self._arrived.notify_all()
        finally:
            for fd in files:
                os.close(fd)

    def call(self, method: str, document: Any) -> Any:
        """Answers a control call."""
        try:
            return {"EnvLoad": self._load, "EnvMake": self._make, "EnvState": self._state}[method](document)
        except Unusable as e:
            raise Refusal("UNKNOWN", f"{e.code} {e}") from None

    def close(self) -> None:
        """Closes the environments."""
        if self._batch:
            self._batch.close()

    def _load(self, document: Any) -> Any:
        self._source = self._load_source(document["use"], document.get("args"))
        self._threads = max(document.get("threads", 1), 1)
        return {"spec": {"describe": base64.b64encode(self._source.spec.pack()).decode()}, "hash": self._source.hash, "threads": self._threads, "alone": hasattr(self._make_batch, "step_alone"), "again": True}

    def _make(self, document: Any) -> Any:
        if not self._source:
            raise Refusal("FAILED_PRECONDITION", "EnvMake comes after EnvLoad")
        self.close()
        with self._arrived:
            self._files.clear()  # of the batch before
        self._blocks.clear()
        envs = document["envs"]
        self._source.made = Making(self._link).made
        self._batch = self._make_batch(self._source, envs, document["autoreset"], self._report, self._threads)
        self._made = {"seeds_at": 0, "mask_at": 8 * envs, "text_at": 9 * envs + 7 & ~7, "text": _TEXT}
        if not self._bound_link:
            self._link.bind(1, 0, [], 0)  # no slots and no arenas
            self._bound_link = True
        self._line = Line(self._step_alone, min(self._threads, envs))
        self._made["done_at"] = self._made["text_at"] + _TEXT
        self._made["bytes"] = self._made["done_at"] + 8
        self._first = document.get("first_column", 0)
        return self._made

    def _state(self, document: Any) -> Any:
        if document.get("do") == "ask":
            return self._ask(document["state"]["call"])
        if document.get("do") == "render":
            return self._render(document.get("env", 0))
        if document.get("do") != "renew":
            raise Refusal("UNIMPLEMENTED", f"environments of Python have no {document.get('do')}: "
                          "Gymnasium and PettingZoo do not say what their state is")
        self._require().renew()
        return {"call": 0, "bytes": 0}

    def _render(self, index: int) -> Any:
        """Sends a picture of an environment."""
        batch = self._require()
        if not isinstance(batch, Batch) or self._source.picture is None:
            raise Refusal("UNIMPLEMENTED", 'environments of Gymnasium draw with args = { render_mode = "rgb_array" }')
        try:
            return self._give(drawn(batch.envs[index]).tobytes())
        except Exception as e:  # the environment's code may raise anything
            raise Refusal("FAILED_PRECONDITION", told(e, batch.envs[index], "render")) from None

    def _ask(self, call: int) -> Any:
        """Answers a question of rlhost.make_vec."""
        question = plain.loads(self._link.state_take(call, _FILE_SECONDS))
        batch = self._require()
        if not isinstance(batch, Batch):
            raise Refusal("UNIMPLEMENTED", "environments of PettingZoo are not asked: Gymnasium's are")
        return self._give(plain.dumps(asking.answer(batch, question, self._first)))

    def _give(self, data: bytes) -> Any:
        """Sends bytes beside the answer to a call."""
        sent = next(state.calls)
        self._link.state_send(sent, data)
        return {"call": sent, "bytes": len(data)}

    def _require(self) -> Any:
        if not self._batch:
            raise Refusal("FAILED_PRECONDITION", "no environments have been made")
        return self._batch

    # Messages.

    def message(self, m: _native.Message) -> None:
        """Handles a message and answers it."""
        try:
            batch = self._require()
            if isinstance(batch.done, list):
                batch.done = memoryview(self._file(0)[0])[self._made["done_at"]:][:8].cast("Q")
            if m.slot == _STEP:
                batch.step(m.t)
            elif m.slot == _STEP_ALONE:
                self._line.put(m.inline[0], m.t)
                return
            elif m.slot == _RESET:
                batch.reset(m.t, *self._reset_arguments(m.kind))
            elif m.slot == _BIND:
                batch.bound = self._bound(*m.inline)
            else:
                return
        except EnvFault as e:
            self._refuse(m.t, _INTERNAL, str(e), _native.LINK_ENV_FAULT_STATUS, e.env + 1)
        except (IndexError, ValueError, KeyError) as e:
            self._refuse(m.t, _ARGUMENT, str(e), _native.LINK_ENV_FAULT_REFUSED)
        except (RuntimeError, Refusal) as e:
            self._refuse(m.t, _STATE, str(e), _native.LINK_ENV_FAULT_REFUSED)
        else:
            self._send(_REPLY, 0, 0, 0, m.t)

    def _step_alone(self, env: int, t: int) -> None:
        """Makes and answers a step of one environment, in any thread."""
        try:
            self._require().step_alone(env, t)
        except EnvFault as e:
            self._refuse_alone(env, _INTERNAL, str(e), _native.LINK_ENV_FAULT_STATUS)
        except Exception as e:
            self._refuse_alone(env, _ARGUMENT, str(e), _native.LINK_ENV_FAULT_REFUSED)
        else:
            self._send(_STEPPED_ALONE, 0, 0, env + 1)

    def _report(self, env: int, name: str, value: float) -> None:
        """Adds a number of an environment to the metrics under env/."""
        number = self._metrics.get(name)
        if number is None:
            if len(self._metrics) == _METRICS or not 0 < len(name.encode(errors="replace")) <= _METRIC_BYTES:
                return
            number = self._metrics[name] = len(self._metrics)
            self._link.wire_send(json.dumps({"metric": {"number": number, "name": name}}).encode())
        self._send(_native.LINK_ENV_METRIC, 0, struct.unpack("<Q", struct.pack("<d", value))[0], env + 1, number)

    def _refuse(self, t: int, status: int, text: str, fault: int, env: int = 0) -> None:
        data = text.encode()[:_TEXT]
        scratch = self._file(0)[0]
        at = self._made["text_at"]
        scratch[at:at + len(data)] = numpy.frombuffer(data, numpy.uint8)
        self._send(_REPLY, status, len(data), env, t, fault)

    def _refuse_alone(self, env: int, status: int, text: str, fault: int) -> None:
        """Refuses a step of one environment. The last texts stay, since others may be refused before the host has read this one."""
        with self._arrived:
            self._texts += 1
            at = self._texts % (_TEXT // _SHORT) * _SHORT
        data = text.encode()[:_SHORT]
        self._file(0)[0][self._made["text_at"] + at:][:len(data)] = numpy.frombuffer(data, numpy.uint8)
        self._send(_STEPPED_ALONE, status, len(data), env + 1, at, fault)

    def _reset_arguments(self, kind: int) -> tuple[Any, Any]:
        scratch, envs = self._file(0)[0], len(self._require().envs)
        mask = seeds = None
        if kind & _native.LINK_ENV_MASK:
            mask = scratch[self._made["mask_at"]:][:envs].tolist()
        if kind & _native.LINK_ENV_SEEDS:
            seeds = scratch[self._made["seeds_at"]:][:8 * envs].view("<u8").tolist()
        return mask, seeds

    def _bound(self, number: int, offset: int) -> Bound:
        """The views of a block, cached."""
        known = self._blocks.get((number, offset))
        if known is None:
            memory, columns = self._file(number)
            batch = self._require()
            known = Bound.of(memory, offset, columns, self._first * batch.agents, len(batch.envs) * batch.agents)
            self._blocks[number, offset] = known
        return known

    def _file(self, number: int) -> tuple[Any, dict[str, Column]]:
        """A file of the host; waits if it has not arrived yet."""
        with self._arrived:
            if not self._arrived.wait_for(lambda: number in self._files, _FILE_SECONDS):
                raise RuntimeError(f"file {number} of the host did not arrive")
            return self._files[number]
