"""A host of the component ABI over wasmtime, written from docs/reference/component-abi.md alone.

It copies blocks into the guest and back, and has one run at a time. What policies ask, and wrappers, which need a host of policies and
environments, are not in it.
"""

import collections
import ctypes
import dataclasses
import json
import time

import numpy as np

from description import Refused, must
from guest import Failed, Fault, Guest
from manifest import ARGUMENTS, BINDING, MESSAGE, TYPES, Manifest
from page import COMPONENT as abi
from page import ENV

IDENTITY, CALL, ANSWER = (abi.records[name] for name in ("identity", "request_call", "answer_call"))
MAX_ANSWER = 122_880
MAX_EMITS, MAX_TIMERS, MAX_METRICS, MAX_LEASES, MAX_RESTARTS, MAX_QUESTIONS = 4096, 64, 256, 64, 3, 256
# Payloads that name a block, and the payload with which it must have come.
CARRY = {"trajectory": "trajectory"} | {asked: asked for asked in ("act_request", "reset_request", "reward_request", "observe_request")} | {
    "actions": "act_request", "reset_params": "reset_request", "shaped_rewards": "reward_request", "observations": "observe_request"}
ANSWERS = {answer: asked for answer, asked in CARRY.items() if answer != asked}


class Ended(Exception):
    """The component ends the run with an error."""


class Unanswered(Exception):
    """A request has no answer; wrong: its arguments are why."""

    def __init__(self, text, wrong=False):
        super().__init__(text)
        self.wrong = wrong


class Block:
    """Columns of numbers, one behind the other: each of a type of the ABI and of [rows][environments][agents][elements]."""

    def __init__(self, columns):
        self.columns, size = {}, 0
        for name, (dtype, *shape) in columns.items():
            self.columns[name] = dtype, shape, size
            size += np.dtype(TYPES[dtype]).itemsize * int(np.prod(shape)) + 63 & ~63
        self.bytes = bytearray(size)

    def column(self, name):
        dtype, shape, at = self.columns[name]
        return np.ndarray(shape, TYPES[dtype], self.bytes, at)


@dataclasses.dataclass
class Message:
    block: Block | None = None
    t: int = 0
    split: int = 0
    policy_version: int = 0
    kind: int = 0
    sender: int = 0
    inline: tuple = (0, 0)


@dataclasses.dataclass
class Receiver:
    """Takes the messages of a signal, as long as it has room."""
    take: object
    room: float = float("inf")

    def full(self):
        return self.room < 1

    def put(self, message):
        self.room -= 1
        self.take(message)


@dataclasses.dataclass
class Named:
    """A block that a token names: until its slot returns, and as long as it is leased."""
    block: Block
    slot: int
    leases: int = 0
    written: set = dataclasses.field(default_factory=set)  # columns that are put into the block when it is emitted
    over: bool = False  # it was emitted, or its slot has returned: it can no longer be written


@dataclasses.dataclass
class Run:
    """What a component is told about its run and about itself, and what its wires let it write, by slot."""
    name: str
    id: int = 0
    index: int = 0
    count: int = 1
    seed: int = 0
    synchronous: bool = True
    writes: dict = dataclasses.field(default_factory=dict)


def lines(table, prefix=""):
    """A table as keys and texts: nested keys joined with dots, elements of a list with commas."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from lines(value, f"{prefix}{key}.")
        else:
            yield prefix + key, ",".join(map(text_of, value)) if isinstance(value, list) else text_of(value)


def text_of(value):
    return str(value).lower() if isinstance(value, bool) else str(value)


class Component(Guest):
    """A component in an instance of a module."""

    kind, candidates, page, module = "component", ("rl_component_v1rc",), abi, "rl_component"
    capabilities = {"declare": "metric", "report": "metric", "stop": "stop", "log": "log", "log_enabled": "log"}

    def __init__(self, wasm, table=None, grants=()):
        super().__init__(wasm, grants)
        self.table = "".join(f"{k}={v}\n" for k, v in sorted(lines(table or {}), key=lambda kv: kv[0].encode())).encode()
        self.receivers, self.waiting, self.parked = {}, collections.deque(), collections.deque()
        self.tokens, self.last_token, self.current, self.timers, self.last_timer = {}, 0, 0, {}, 0
        self.ask_other, self.coming, self.last_question = None, collections.deque(), 0
        self.metrics, self.stops, self.faults, self.paused, self.state = [], [], 0, False, None
        try:
            self.configure()
        except Fault as e:
            raise Refused(str(e)) from None

    def configure(self):
        """A fresh instance, up to its manifest."""
        self.begun, self.open = False, {}
        self.instantiate()
        self.windows = {}  # memory of the guest for each block
        self.status("rl_configure", self.put(self.table), len(self.table))
        self.manifest = Manifest(self.needed("rl_manifest", what="its manifest"))
        must("rl_request" in self.exports or not self.manifest.requests, "it has requests and does not export rl_request")
        must("rl_answer" in self.exports or not self.manifest.asks, "it asks others and does not export rl_answer")
        self.answer_at, self.answering = 0, False
        self.message_at = self.alloc(self.manifest.h.message_bytes)
        self.bindings_at = self.alloc(self.manifest.h.binding_bytes * max(1, self.manifest.h.columns))

    # Its life.

    def start(self, run):
        self.run = run
        for slot, columns in zip(self.manifest.slots, self.manifest.columns):
            for c in columns:
                if c.flags & abi.COLUMN_WRITE and c.name not in run.writes.get(slot.name, ()):
                    raise Fault(f"slot {slot.name} may not write {c.name}: no wire grants it")
        self.begin()

    def begin(self):
        """Starts a fresh instance, from the state that another one has given."""
        self.random = np.random.default_rng(self.run.seed)
        name = self.run.name.encode()
        size = ctypes.sizeof(IDENTITY)
        identity = bytes(IDENTITY(size, self.run.index, self.run.count, self.run.synchronous, self.run.seed, size, len(name))) + name
        self.begun = True
        self.status("rl_start", self.put(identity), len(identity))
        if self.state is not None and "rl_restore" in self.exports:
            self.status("rl_restore", self.put(self.state), len(self.state))

    def restore(self, state):
        """Continues from a state of another instance; Failed if the guest does not take it."""
        if state is not None:
            self.status("rl_restore", self.put(state), len(state))
            self.state = state

    def snapshot(self):
        """The state for another instance, or None: it begins from scratch."""
        if any(n.leases for n in self.tokens.values()) or self.manifest.stateless or "rl_snapshot" not in self.exports:
            return None
        try:
            return self.needed("rl_snapshot", what="its state")
        except Fault as e:
            if self.dead:
                self.recover(e)
            raise

    def pause(self):
        self.paused = True
        if "rl_pause" in self.exports:
            self.status("rl_pause")

    def resume(self):
        if "rl_resume" in self.exports:
            self.status("rl_resume")
        self.paused = False
        self.work()

    def stop(self):
        if "rl_stop" in self.exports:
            self.status("rl_stop")
        self.tokens.clear()  # the leases that are left

    def recover(self, why):
        """Goes on after a fault as the instance was when it had started: nothing of it outlives a call but its state."""
        self.faults += 1
        self.logged.append((3, str(why)))
        if self.faults > MAX_RESTARTS:
            raise Ended(f"{why}: restarted {MAX_RESTARTS} times already")
        self.tokens.clear()
        self.current, clock = 0, self.clock
        self.configure()
        self.begin()
        self.clock = clock

    # Its messages.

    def send(self, slot, message):
        """Gives the component a message, which waits while it is paused or its own messages wait for room."""
        self.waiting.append(([s.name for s in self.manifest.slots].index(slot), message))
        self.work()

    def work(self):
        """Handles what waits, and calls the timers that are due."""
        while self.parked and not self.parked[0][0].full():
            receiver, message = self.parked.popleft()
            receiver.put(message)
        while (self.waiting or self.coming) and not self.held():
            if self.waiting:
                self.handle(*self.waiting.popleft())
            else:
                self.answered(*self.coming.popleft())
        now = time.monotonic_ns()
        for question in [question for question, (_, end) in self.open.items() if end <= now]:
            self.answer_to(question, (abi.ANSWER_LATE, "it did not answer in time"))
        for timer in [timer for timer, (due, _) in self.timers.items() if due <= now]:
            if timer in self.timers and not self.held():
                self.ring(timer, now)

    def held(self):
        return self.paused or bool(self.parked)

    def handle(self, slot, m):
        named = Named(m.block, slot) if m.block else None
        if named:
            self.last_token = self.current = self.last_token + 1
            self.tokens[self.current] = named
        asks = self.manifest.slots[slot].payload in ANSWERS.values()
        self.request = m if asks else None
        if not self.enter(lambda: self.call_slot(slot, m, named)):
            if asks:  # who sent it waits
                self.waiting.appendleft((slot, m))
        elif named:
            self.put_back(named)
            token, self.current = self.current, 0
            self.forget(token)

    def call_slot(self, slot, m, named):
        columns = self.bind(named) if named and self.looks(slot) else 0
        record = MESSAGE(self.current, columns, m.t, m.split, m.policy_version, tuple(m.inline), m.kind, 0, m.sender + 1)
        self.write(self.message_at, bytes(record).ljust(self.manifest.h.message_bytes, b"\0"))
        self.status("rl_slot", slot, self.message_at)
        if self.request:
            raise Fault("rl_slot did not answer the request")

    def ring(self, timer, now):
        every = self.timers[timer][1]
        self.timers[timer] = now + every, every
        if not every:
            del self.timers[timer]
        self.enter(lambda: self.status("rl_timer", timer))

    def enter(self, call, clock=None):
        """Makes a call with a message, or at another time of the clock: whether it went well. After a fault there is another instance."""
        self.clock = self.clock + 1_000_000 - self.clock % 1_000_000 if clock is None else clock
        self.emits = 0
        try:
            call()
        except Failed as e:
            raise Ended(str(e)) from None
        except Fault as e:
            self.recover(e)
            return False
        return True

    # The requests that it answers.

    def ask(self, name, args=None):
        """The answer to a request."""
        args = args or {}
        self.fit(self.manifest.requests[name], args)
        size, text = ctypes.sizeof(CALL), json.dumps(args).encode()
        call = bytes(CALL(size, list(self.manifest.requests).index(name), size, len(text))) + text
        self.answering = True
        try:
            self.answer_at = self.answer_at or self.alloc(MAX_ANSWER)
            n = self.answer("rl_request", self.put(call), len(call), self.answer_at, MAX_ANSWER)
        except Failed as e:
            raise Unanswered(str(e), e.status == ENV.STATUS_ARGUMENT) from None
        except Fault as e:
            self.recover(e)
            raise Unanswered(str(e)) from None
        finally:
            self.answering = False
        if n > MAX_ANSWER:
            raise Unanswered(f"the answer has {n} bytes, at most {MAX_ANSWER}")
        try:
            return json.loads(self.read(self.answer_at, n))
        except ValueError as e:
            raise Unanswered(f"the answer is not JSON: {e}") from None

    def fit(self, wants, args):
        """Refuses arguments that do not fit the description of their request."""
        for name in args:
            if name not in wants:
                raise Unanswered(f"there is no argument {name}", True)
        for name, (optional, kind) in wants.items():
            if name not in args:
                if not optional:
                    raise Unanswered(f"the argument {name} is missing", True)
                continue
            value = args[name]
            number = kind in ("integer", "number")
            if not isinstance(value, ARGUMENTS[kind]) or number and isinstance(value, bool):
                raise Unanswered(f"the argument {name} is {value!r}, want {kind}", True)

    # The questions that it asks others.

    def on_ask(self, ask, at, n, within):
        n &= 0xffffffff
        args = b"" if n == 0 else self.peek(at, n) if n <= MAX_ANSWER else None
        if not self.begun:
            return ENV.STATUS_STATE
        if args is None or within < 0 or not 0 <= ask < len(self.manifest.asks):
            return ENV.STATUS_ARGUMENT
        if len(self.open) == MAX_QUESTIONS:
            return ENV.STATUS_MEMORY
        self.last_question += 1
        self.open[self.last_question] = ask, time.monotonic_ns() + (within or 30_000_000_000)
        name = list(self.manifest.asks)[ask]
        try:
            args = json.loads(args or b"{}")
            self.fit(self.manifest.asks[name], args)
        except (ValueError, Unanswered) as e:
            self.answer_to(self.last_question, (abi.ANSWER_REFUSED, str(e)))
        else:
            self.ask_other(self.last_question, name, args)
        return self.last_question

    def answer_to(self, question, fault=None, reply=None):
        """Has rl_answer called with a JSON value, or with the fault, text, type and place of an error."""
        if question in self.open:
            ask, _ = self.open[question]
            self.open[question] = ask, float("inf")
            self.coming.append((question, fault or (0, json.dumps(reply))))

    def answered(self, question, answer):
        if question not in self.open:  # it was asked before a fault
            return
        fault, *texts = answer
        size, at, places, texts = ctypes.sizeof(ANSWER), ctypes.sizeof(ANSWER), [], [text.encode() for text in texts]
        for text in texts + [b""] * (3 - len(texts)):
            places += [at, len(text)]
            at += len(text)
        record = bytes(ANSWER(size, question, self.open.pop(question)[0], fault, *places)) + b"".join(texts)
        self.enter(lambda: self.status("rl_answer", self.put(record), len(record)), self.clock)

    # Blocks.

    def looks(self, slot):
        return self.manifest.columns[slot] or self.manifest.slots[slot].flags & abi.PORT_BLOCKS

    def bind(self, named):
        """Copies a block into the guest, and writes the bindings of its slot's columns. A leased block stays as it is."""
        block = named.block
        if id(block) not in self.windows:
            self.windows[id(block)] = self.alloc(len(block.bytes), 64)
        if not any(n.leases for n in self.tokens.values() if n.block is block):
            self.write(self.windows[id(block)], bytes(block.bytes))
        each = self.manifest.h.binding_bytes
        for i, c in enumerate(self.manifest.columns[named.slot]):
            there = block.columns.get(c.name)
            if not there and not c.flags & abi.COLUMN_OPTIONAL:
                raise Ended(f"the block has no column {c.name}")
            if there and c.dtype not in (0, there[0]):
                raise Ended(f"the column {c.name} has the type {there[0]}, want {c.dtype}")
            record = self.binding(named, c.name, c.flags & abi.COLUMN_WRITE) if there else b""
            self.write(self.bindings_at + i * each, record.ljust(each, b"\0"))
        return self.bindings_at

    def binding(self, named, name, write):
        dtype, (rows, envs, agents, elems), at = named.block.columns[name]
        size = np.dtype(TYPES[dtype]).itemsize
        if write:
            named.written.add(name)
        return bytes(BINDING(self.windows[id(named.block)] + at, size * elems * agents * envs if rows > 1 else 0, size * elems * agents, size * elems if agents > 1 else 0,
                               size, rows, size, envs, agents, elems, dtype, bool(write)))

    def put_back(self, named):
        """Puts what the guest has written into the block, once."""
        for name in named.written if not named.over else ():
            column, at = named.block.column(name), named.block.columns[name][2]
            named.block.bytes[at:at + column.nbytes] = self.read(self.windows[id(named.block)] + at, column.nbytes)
        named.over = True

    def forget(self, token):
        """Ends a token whose slot has returned, unless its block is leased."""
        if token != self.current and not self.tokens[token].leases:
            del self.tokens[token]

    def on_lease(self, token):
        named = self.tokens.get(token)
        if not named:
            return ENV.STATUS_ARGUMENT
        if self.manifest.slots[named.slot].payload in ANSWERS.values():
            return ENV.STATUS_STATE
        if sum(n.leases for n in self.tokens.values()) == MAX_LEASES:
            raise Fault(f"the guest leases more than {MAX_LEASES} blocks")
        named.leases += 1
        return 0

    def on_release(self, token):
        named = self.tokens.get(token)
        if not named or not named.leases:
            return ENV.STATUS_ARGUMENT
        named.leases -= 1
        self.forget(token)
        return 0

    def on_column(self, token, at, n, access, to):
        named, name = self.tokens.get(token), self.peek(at, n)
        if not named or not name or access not in (0, abi.COLUMN_WRITE) or self.peek(to, self.manifest.h.binding_bytes) is None:
            return ENV.STATUS_ARGUMENT
        if not self.looks(named.slot) or access and named.over:
            return ENV.STATUS_STATE
        name = name.decode(errors="replace")
        if name not in named.block.columns:
            return ENV.STATUS_UNSUPPORTED
        if access and name not in self.run.writes.get(self.manifest.slots[named.slot].name, ()):
            return ENV.STATUS_DENIED
        return self.write(to, self.binding(named, name, access).ljust(self.manifest.h.binding_bytes, b"\0"))

    # What it sends, counts and asks for.

    def on_emit(self, signal, at):
        raw = self.peek(at, self.manifest.h.message_bytes)
        if raw is None or not 0 <= signal < len(self.manifest.signals):
            return ENV.STATUS_ARGUMENT
        m, port = MESSAGE.from_buffer_copy(raw), self.manifest.signals[signal]
        if port.payload in ANSWERS:
            return self.reply(port, m)
        named = self.tokens.get(m.block)
        came = named and self.manifest.slots[named.slot].payload
        if bool(m.block) != bool(named) or m.sender > 1 << 16 or port.payload in CARRY and came != CARRY[port.payload]:
            return ENV.STATUS_ARGUMENT
        if self.answering or self.emits == MAX_EMITS:
            return ENV.STATUS_STATE
        self.emits += 1
        if named:
            self.put_back(named)
        sender = m.sender - 1 if m.sender else self.run.id
        return self.deliver(port.name, Message(named and named.block, m.t, m.split, m.policy_version, m.kind, sender, tuple(m.inline_)))

    def reply(self, port, m):
        """Sends the answer to the request that is handled: the request itself, but for the version."""
        if not self.request or m.block != self.current:
            return ENV.STATUS_STATE
        self.put_back(self.tokens[self.current])
        answer, self.request = dataclasses.replace(self.request, policy_version=m.policy_version), None
        return self.deliver(port.name, answer)

    def deliver(self, signal, message):
        receiver = self.receivers.get(signal)
        if not receiver:
            return abi.OUTCOME_DROPPED
        if receiver.full():
            self.parked.append((receiver, message))
            return abi.OUTCOME_PARKED
        receiver.put(message)
        return abi.OUTCOME_SENT

    def on_timer(self, after, every):
        if after < 0 or every < 0 or "rl_timer" not in self.exports:
            return ENV.STATUS_ARGUMENT
        if len(self.timers) == MAX_TIMERS:
            return ENV.STATUS_MEMORY
        self.last_timer += 1
        self.timers[self.last_timer] = time.monotonic_ns() + after, every
        return self.last_timer

    def on_cancel(self, timer):
        return 0 if self.timers.pop(timer, None) else ENV.STATUS_STATE

    def on_declare(self, kind, at, n):
        name = (self.peek(at, n) if 0 < n <= 128 else None) or b" "
        metric = name.decode(errors="replace"), kind
        if kind not in (abi.METRIC_COUNTER, abi.METRIC_GAUGE, abi.METRIC_HISTOGRAM) or not metric[0].isprintable() or " " in metric[0]:
            return ENV.STATUS_ARGUMENT
        if metric[0].startswith(("learner/", "charts/")):
            return ENV.STATUS_DENIED
        for number, (known, _) in enumerate(self.metrics):
            if known == metric:
                return number
        if len(self.metrics) == MAX_METRICS:
            return ENV.STATUS_MEMORY
        self.metrics.append((metric, []))
        return len(self.metrics) - 1

    def on_report(self, number, value):
        if 0 <= number < len(self.metrics):
            (_, kind), values = self.metrics[number]
            if kind != abi.METRIC_COUNTER or 0 <= value < float("inf"):
                values.append(value)

    def on_stop(self, reason):
        if not 0 <= reason <= 3:
            return ENV.STATUS_ARGUMENT
        self.stops.append(reason)
        return 0
