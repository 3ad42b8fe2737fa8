"""A module over wasmtime: what environments and components have in common, written from docs/reference/env-abi.md alone."""

import ctypes
import re
import struct

import numpy as np
import wasmtime

from description import MAX_ELEMS, MAX_TENSORS, Refused, TooOld, must
from page import ENV


class Fault(Exception):
    """The guest fails once it is loaded."""


class Failed(Fault):
    """A call returned a negative status."""

    def __init__(self, text, status):
        super().__init__(text)
        self.status = status


HOST = ENV.records["host_desc"]
WASI = "wasi_snapshot_preview1"
FUEL, MEMORY = 100_000_000, 1 << 28
CONFIG = wasmtime.Config()
CONFIG.consume_fuel = True
for later in ("threads", "tail_call", "multi_memory", "memory64", "relaxed_simd", "exceptions", "gc", "function_references"):
    setattr(CONFIG, "wasm_" + later, False)
ENGINE = wasmtime.Engine(CONFIG)


def signature(of):
    """The type of a function, as pages have it."""
    return " ".join(map(str, of.params)) + " -> " + "".join(map(str, of.results))


class Guest:
    """An instance of a module. Its class says what the ABI of its kind has."""

    kind = ""  # env or component
    candidates = ()  # markers of versions before the first
    page = None  # its exports and imports
    module = ""  # of the imports
    capabilities = {}  # that imports need
    features = 0  # that this host runs

    def __init__(self, wasm, grants):
        self.granted, self.logged = grants, []
        try:
            self.compiled = wasmtime.Module(ENGINE, wasm)
        except wasmtime.WasmtimeError as e:
            raise Refused(f"not a module of WebAssembly 2.0: {e}") from None
        types = {e.name: e.type for e in self.compiled.exports}
        self.look_at_marker(types)
        must("_start" not in types, "a module with _start is a command")
        must(isinstance(types.get("memory"), wasmtime.MemoryType), "the module exports no memory")
        for name, (want, required) in (self.page.exports | {"_initialize": (" -> ", False)}).items():
            self.look_at_export(name, want, required, types.get(name))

    def look_at_marker(self, types):
        markers = [(m[1], int(m[2])) for name in types if (m := re.fullmatch(r"rl_(env|component)_v(\d+)", name))]
        must({kind for kind, _ in markers} != {"env", "component"}, "E015: the marker of an environment and that of a component")
        if (self.kind, 1) in markers:
            return
        later = max((version for kind, version in markers if kind == self.kind), default=0)
        if later > 1:
            raise TooOld(f"the guest needs ABI {later}")
        must(not types.keys() & set(self.candidates), "E050: the guest was built for a candidate of the ABI, or before: build it again")
        raise Refused(f"it does not export rl_{self.kind}_v1")

    def look_at_export(self, name, want, required, have):
        must(have is not None or not required, f"the module does not export {name}")
        if have is not None:
            must(isinstance(have, wasmtime.FuncType), f"the module exports {name}, which is no function")
            must(signature(have) == want, f"the module exports {name} as {signature(have)}, want {want}")

    def instantiate(self):
        """A fresh instance: imports, _initialize, rl_host."""
        self.dead, self.clock, self.given, self.random = False, 0, [], np.random.default_rng(7)
        self.store, linker = wasmtime.Store(ENGINE), wasmtime.Linker(ENGINE)
        self.store.set_limits(memory_size=MEMORY)
        self.store.set_wasi(wasmtime.WasiConfig())
        self.store.set_fuel(FUEL)
        linker.define_wasi()
        linker.allow_shadowing = True
        for i in self.compiled.imports:
            self.link(linker, i)
        try:
            self.exports = linker.instantiate(self.store, self.compiled).exports(self.store)
        except (wasmtime.Trap, wasmtime.WasmtimeError) as e:
            raise Fault(f"the module does not start: {e}") from None
        self.memory = self.exports["memory"]
        if "_initialize" in self.exports:
            self.call("_initialize")
        if "rl_host" in self.exports:
            self.status("rl_host", self.put(bytes(HOST(ctypes.sizeof(HOST), 1, 0, self.features, MAX_TENSORS, MAX_ELEMS, MEMORY))), ctypes.sizeof(HOST))

    def link(self, linker, i):
        if i.module == WASI:
            mine = {"clock_time_get": self.wasi_clock, "random_get": lambda at, n: self.write(at, self.stream().bytes(n & 0xffffffff))}.get(i.name)
            if mine:
                linker.define_func(WASI, i.name, i.type, mine)
            return
        name = f"the import {i.module}.{i.name}"
        must(isinstance(i.type, wasmtime.FuncType) and i.module in (self.module, "rl_optional"), f"{name} does not exist")
        known, capability = self.page.imports.get(i.name), self.capabilities.get(i.name)
        must(known in (None, signature(i.type)), f"{name} has the parameters and results {signature(i.type)}")
        granted = known and (capability is None or capability in self.granted)
        numbers = all(len(types) <= 16 and {str(t) for t in types} <= {"i32", "i64", "f32", "f64"} for types in (i.type.params, i.type.results))
        must(known or numbers, f"{name} has more than 16 parameters or results, or others than numbers")
        if i.module != "rl_optional":
            must(known, f"{name} does not exist")
            must(granted, f"{name} is not granted")
        linker.define_func(i.module, i.name, i.type, getattr(self, "on_" + i.name) if granted else self.nothing(i))

    def nothing(self, i):
        """What stands for an optional function that is not there."""
        if not i.type.results:
            return lambda *_: None
        result = {"i32": 0 if i.name == "log_enabled" else -4, "i64": 0}.get(str(i.type.results[0]), 0.0)
        return lambda *_: result

    def stream(self):
        """The random stream of the instance."""
        return self.random

    def wasi_clock(self, _id, _precision, at):
        """No time but the virtual one, which goes on a little when it is read."""
        self.clock += 1
        return self.write(at, struct.pack("<Q", self.clock))

    def on_log(self, level, at, n):
        text = self.peek(at, n)
        if text is not None:
            self.logged.append((level, text[:4096].decode(errors="replace")))

    def on_log_enabled(self, level):
        return int(level >= 1)

    def call(self, name, *args):
        """Calls a function; after a trap the instance is called no more but to ask whom it was about."""
        self.store.set_fuel(FUEL)
        self.working = name
        try:
            return self.exports[name](self.store, *args)
        except (wasmtime.Trap, wasmtime.WasmtimeError) as e:
            self.dead = True
            whom = "".join(f", {who} {self.exports['rl_current_' + who](self.store)}" for who in ("env", "agent") if "rl_current_" + who in self.exports)
            raise Fault(f"trap in {name}{whom}: {str(e).splitlines()[-1]}") from None

    def answer(self, name, *args):
        """Calls a function whose negative results are errors."""
        r = self.call(name, *args)
        if r < 0:
            n = self.call("rl_last_error", 0, 0) if "rl_last_error" in self.exports else 0
            at = self.alloc(n) if n > 0 else 0
            text = self.read(at, self.call("rl_last_error", at, n)).decode(errors="replace") if n > 0 else ""
            word = next((ENV.about["STATUS_" + status] for status, n in ENV.named("STATUS_").items() if n == r), f"status {r}")
            raise Failed(f"{name}: {word}: {text}", r)
        return r

    def status(self, name, *args):
        if r := self.answer(name, *args):
            raise Fault(f"{name} returns a status that there is not: it is neither 0 nor an error, got {r}")

    def needed(self, name, *args, most=MEMORY, what="its answer"):
        """Calls a function that returns a needed length, twice."""
        n = self.answer(name, *args, 0, 0)
        at = self.alloc(n) if n <= most else 0
        again = self.answer(name, *args, at, n) if at else n
        if n > most or again != n:
            raise Fault(f"{name} needs {n} bytes for {what}, then {again}, want at most {most}")
        return self.read(at, n)

    def alloc(self, n, align=8):
        """Memory of the guest, which it gives once and which this host never gives back."""
        at = self.call("rl_alloc", n, align) & 0xffffffff
        if at == 0 or at % align or at + n > self.memory.data_len(self.store):
            raise Fault(f"rl_alloc({n}, {align}) returns {at}, which is 0, not aligned, or outside of the memory")
        if any(at < end and begin < at + n for begin, end in self.given):
            raise Fault(f"rl_alloc({n}, {align}) returns {at}, which has been given already")
        self.given.append((at, at + n))
        return at

    def read(self, at, n):
        return bytes(self.memory.read(self.store, at & 0xffffffff, (at & 0xffffffff) + n))

    def peek(self, at, n):
        """Bytes at a place that the guest names, or None where they are not all in its memory."""
        at, n = at & 0xffffffff, n & 0xffffffff
        return self.read(at, n) if at + n <= self.memory.data_len(self.store) else None

    def write(self, at, data):
        self.memory.write(self.store, data, at & 0xffffffff)
        return 0

    def put(self, data):
        at = self.alloc(max(len(data), 1))
        self.write(at, data)
        return at
