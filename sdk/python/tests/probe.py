"""The component that does as it is told: the probe of the suite that every runtime passes."""

import dataclasses
import os
import struct
import time

import numpy

import rlhost

MASK = (1 << 64) - 1


@dataclasses.dataclass
class Nested:
    value: int = 0


@dataclasses.dataclass
class Config:
    scale: int = 1
    label: str = ""
    blocks: int = 4
    block_bytes: int = 4096
    fail_start: bool = False
    inputs: int = 0  # slots on_input_0, on_input_1, ...
    carries: str = "number"  # their payload
    nested: Nested = dataclasses.field(default_factory=Nested)


def float_of(word):
    return struct.unpack("<d", struct.pack("<Q", word))[0]


def word_of(number):
    return struct.unpack("<Q", struct.pack("<d", float(number)))[0]


def sum_of(held):
    return int(held.array.sum(dtype=numpy.uint64))


class Probe(rlhost.Component):
    """Does as it is told."""

    kind = "probe"
    signals = [rlhost.Signal("numbers", "number", "answers in numbers", schema=0x8000000000000005), rlhost.Signal("blocks", "tensor", "its own blocks"),
               rlhost.Signal("answers", "answer", "answers to on_ask", on_loan=True),
               rlhost.Signal("asks", "ask", "its own blocks, still on loan", on_loan=True)]
    slots = [rlhost.Slot("on_number", "number", "orders", schema=7), rlhost.Slot("on_block", "tensor", "orders about a block"),
             rlhost.Slot("on_ask", "ask", "a block to be answered in"), rlhost.Slot("on_answer", "answer", "what was asked for")]

    def configure(self, config):
        self.config = c = rlhost.decode(config, Config)
        errors = []
        if not 1 <= c.scale <= 1000:
            errors.append(rlhost.ConfigError("scale", f"is {c.scale}, want 1 to 1000"))
        if c.label == "bad":
            errors.append(rlhost.ConfigError("label", 'is "bad"', "use another word", "E020"))
        if not 1 <= c.blocks <= 64:
            errors.append(rlhost.ConfigError("blocks", f"is {c.blocks}, want 1 to 64"))
        if not 64 <= c.block_bytes <= 1048576:
            errors.append(rlhost.ConfigError("block_bytes", f"is {c.block_bytes}, want 64 to 1048576"))
        if not 0 <= c.inputs <= 8:
            errors.append(rlhost.ConfigError("inputs", f"is {c.inputs}, want 0 to 8"))
        if errors:
            raise rlhost.ConfigErrors(errors)
        self.slots = [*Probe.slots, *(rlhost.Slot(f"on_input_{i}", c.carries, "says which input it is") for i in range(c.inputs))]
        for i in range(c.inputs):
            setattr(self, f"on_input_{i}", lambda m, i=i: self.host.emit("numbers", kind=m.kind, t=i))

    def start(self, host):
        if self.config.fail_start:
            raise RuntimeError("told to fail")
        self.arena = host.add_arena("probe", self.config.blocks, self.config.block_bytes)
        self.numbers = self.sum = 0
        self.history = numpy.zeros(4, numpy.float32)
        self.leases, self.loans, self.held, self.asked = [], [], [], {}

    def say(self, m):
        self.host.forward("numbers", m)

    # Orders in numbers.

    def on_number(self, m):
        self.numbers += 1
        self.history[:] = [*self.history[1:], m.inline[0] % (1 << 16)]
        if m.kind < len(ORDERS):
            ORDERS[m.kind](self, m)

    def count(self, m):
        self.say(m.replace(inline=(self.numbers, self.sum)))

    def add(self, m):
        self.sum = self.sum + m.inline[0] * self.config.scale & MASK

    def make(self, m):
        for _ in range(max(m.inline[1], 1)):
            try:
                loan = self.arena.loan()
            except rlhost.Exhausted:
                self.say(m.replace(t=1))
                return
            loan.array[:] = (numpy.arange(self.config.block_bytes, dtype=numpy.uint64) + numpy.uint64(m.inline[0] % 256)) % 256
            self.commit(loan, m, m.kind, m.inline[0])

    def commit(self, loan, m, kind, x):
        handle = loan.commit()
        self.host.forward("blocks", m.replace(handle=handle, kind=kind, inline=(x, self.config.block_bytes)))
        self.arena.release(handle)

    def loan(self):
        """A loan, or None."""
        try:
            return self.arena.loan()
        except rlhost.Exhausted:
            return None

    def abort(self, m):
        loan = self.loan()
        if loan:
            loan.array[0] = 1
            loan.abort()
        self.say(m.replace(inline=(int(bool(loan)), m.inline[1])))

    def release(self, m):
        if not self.leases:
            self.say(m.replace(handle=0, inline=(0, 0)))
        for lease in self.leases:
            total = sum_of(lease)
            lease.release()
            self.say(m.replace(handle=0, inline=(total, lease.handle)))
        self.leases = []

    def lease(self, m, keep=False):
        code = 0
        try:
            lease = self.host.lease(m.inline[0])
            if keep:
                self.leases.append(lease)
            else:
                lease.release()
        except rlhost.Stale:
            code = 1
        except rlhost.Foreign:
            code = 2
        except rlhost.OutOfRange:
            code = 3
        except rlhost.NotCommitted:
            code = 4
        self.say(m.replace(inline=(m.inline[0], code)))

    def pair(self, m):
        self.lease(m, keep=True)

    def stop_run(self, m):
        self.host.stop(["component", "return", "env_steps", "wall_time"][m.inline[0] % 4])

    def boundary(self, m):
        self.host.boundary()
        self.say(m)

    def fail(self, m):
        self.host.fail("told to fail")

    def stat(self, m):
        self.host.stats.count("probe/told", m.inline[0])
        self.host.stats.gauge("probe/gauge", float_of(m.inline[1]))
        self.host.stats.observe("probe/histogram", float_of(m.inline[1]))
        self.say(m)

    def log(self, m):
        self.host.log.warning("probe says %d", m.inline[0])

    def burst(self, m):
        for t in range(m.inline[0]):
            self.say(m.replace(t=t))

    def ask(self, m):
        loan = self.loan()
        if not loan:
            self.say(m.replace(t=1))
            return
        loan.array[:16].view("<u8")[:] = [m.inline[0], 0]
        self.asked[loan.handle] = loan
        self.host.forward("asks", m.replace(handle=loan.handle))

    def reply(self, m):
        held, self.held = self.held, []
        for question in held:
            self.answer(question)
        self.say(m.replace(inline=(len(held), m.inline[1])))

    def tell_history(self, m):
        self.say(m.replace(inline=(word_of(self.history[0]), word_of(self.history[3]))))

    def sleep(self, m):
        time.sleep(m.inline[0] / 1000)
        self.say(m)

    def exit(self, m):
        os._exit(m.inline[0])

    def tell_config(self, m):
        c = self.config
        self.say(m.replace(inline=(c.scale, c.nested.value & MASK), t=len(c.label.encode()), split=self.host.index,
                           policy_version=self.host.seed))

    def keep(self, m):
        loan = self.loan()
        if loan:
            self.loans.append(loan)
        self.say(m.replace(inline=(int(bool(loan)), m.inline[1])))

    # Blocks.

    def on_block(self, m):
        if m.kind == 0:
            with self.host.lease(m.handle) as lease:
                total = sum_of(lease)
            self.say(m.replace(handle=0, inline=(total, m.handle)))
        elif m.kind == 1:
            self.leases.append(self.host.lease(m.handle))
            self.say(m.replace(handle=0, inline=(len(self.leases), m.handle)))
        elif m.kind == 2:
            self.host.forward("blocks", m)
        elif m.kind == 3:
            first, second = self.host.lease(m.handle), self.host.lease(m.handle)
            first.release()
            self.say(m.replace(handle=0, inline=(sum_of(second), m.handle)))
            second.release()

    def on_ask(self, m):
        try:
            words = self.host.loaned(m.handle).array[:16].view("<u8")
        except rlhost.Error:
            self.say(m.replace(handle=0, kind=99))
            return
        words[1] = int(words[0]) * 2 + 1 & MASK
        if m.kind == 1:
            self.held.append(m)
        else:
            self.answer(m)

    def answer(self, m):
        self.host.forward("answers", m)

    def on_answer(self, m):
        loan = self.asked.pop(m.handle, None)
        if loan:
            self.commit(loan, m, 13, int(loan.array[8:16].view("<u8")[0]))

    # The rest of its life.

    def snapshot(self):
        return rlhost.State({"numbers": self.numbers, "sum": self.sum}, {"history": self.history.copy()},
                            {"label": self.config.label.encode()})

    def restore(self, state):
        label = state.blobs.get("label", b"").decode(errors="replace")
        if label != self.config.label:
            raise ValueError(f"the state's label is {label!r}, this instance's {self.config.label!r}")
        if not isinstance(state.meta, dict) or "history" not in state.tensors:
            raise ValueError(f"the state with label {label!r} cannot be read")
        self.numbers, self.sum = state.meta["numbers"], state.meta["sum"]
        self.history[:] = state.tensors["history"]

    def stop(self):
        for lease in getattr(self, "leases", []):
            lease.release()
        for loan in [*getattr(self, "loans", []), *getattr(self, "asked", {}).values()]:
            loan.abort()


# By the kind of a message to on_number.
ORDERS = [Probe.say, Probe.count, Probe.add, Probe.make, Probe.abort, Probe.release, Probe.lease, Probe.stop_run,
          Probe.boundary, Probe.fail, Probe.stat, Probe.log, Probe.burst, Probe.ask, Probe.reply, Probe.tell_history,
          Probe.sleep, Probe.exit, Probe.tell_config, Probe.keep, Probe.pair]

if __name__ == "__main__":
    rlhost.serve(Probe)
