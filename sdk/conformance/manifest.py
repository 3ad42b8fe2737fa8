"""Reads what rl_manifest writes: docs/reference/component-abi.md, from "The manifest" on."""

import collections
import ctypes
import re

from description import Description, must
from page import COMPONENT as abi
from page import ENV, blank

HEAD, PORT, COLUMN, REQUEST, MESSAGE, BINDING = (abi.records[name] for name in ("component_spec", "port_desc", "column_desc", "request_desc", "component_message", "column_binding"))
TYPES = {ENV.U8: "u1", ENV.I8: "i1", ENV.I16: "i2", ENV.I32: "i4", ENV.I64: "i8", ENV.F32: "f4", abi.F64: "f8", ENV.BOOL: "u1"}
SNAKE = re.compile(r"[a-z][a-z0-9_]*")

Port = collections.namedtuple("Port", "name payload flags")
Column = collections.namedtuple("Column", "name flags dtype")

# What the values of arguments are, by their types.
ARGUMENTS = {"bool": (bool,), "integer": (int,), "number": (int, float), "text": (str,), "list": (list,), "table": (dict,), "any": (object,)}


class Manifest(Description):
    """The manifest of a component: its signals, its slots, and the columns that each slot looks at."""

    head, minor, least = HEAD, 2, ctypes.sizeof(HEAD)

    def read(self, blob, h):
        super().read(blob, h)
        for name, size, least in (("message_bytes", h.message_bytes, MESSAGE), ("binding_bytes", h.binding_bytes, BINDING)):
            must(ctypes.sizeof(least) <= size <= 4096 and size % 8 == 0, f"{name} is {size}, want a multiple of 8")
        for name, n in (("signals", h.signals), ("slots", h.slots), ("columns", h.columns)):
            must(n <= 256, f"{n} {name}, want at most 256")
        at = h.size
        ports = [self.port(p) for p in self.records(PORT, at, h.port_bytes, h.signals + h.slots, "port")]
        at += h.port_bytes * len(ports)
        self.signals, self.slots = ports[:h.signals], ports[h.signals:]
        for kind in self.signals, self.slots:
            must(len({p.name for p in kind}) == len(kind), "two ports have the same name")
        self.columns = [[] for _ in self.slots]
        for c in self.records(COLUMN, at, h.column_bytes, h.columns, "column"):
            must(c.slot < len(self.slots), f"a column is of slot {c.slot}, which there is not")
            column = self.column(c)
            must(column.name not in {other.name for other in self.columns[c.slot]}, f"a slot has the column {column.name} twice")
            self.columns[c.slot].append(column)
        at += h.column_bytes * h.columns
        self.requests = self.read_requests(at, h.requests, "request") if h.abi_minor > 0 and h.requests else {}
        at += h.request_bytes * len(self.requests)
        self.asks = self.read_requests(at, h.asks, "ask") if h.abi_minor > 1 and h.asks else {}
        self.name, self.version = self.line(h.name), self.line(h.version)
        must(self.name, "the component has no name")
        self.stateless = h.flags & abi.COMPONENT_STATELESS > 0

    def read_requests(self, at, count, what):
        """The arguments of each request or ask, by its name: whether they may be left out, and their types, by their names."""
        must(count <= 256, f"{count} {what}s, want at most 256")
        requests = {}
        for r in self.records(REQUEST, at, self.h.request_bytes, count, what):
            name = self.line(r.name)
            must(SNAKE.fullmatch(name) and len(name) <= 64, f"the {what} {name!r}: want small letters, digits and _")
            must(blank(r), f"the {what} {name} has reserved bytes that are not 0")
            must(name not in requests, f"the {what} {name} is there twice")
            requests[name] = {}
            for arg in filter(None, self.line(r.args).split(", ")):
                of, _, kind = arg.partition(" ")
                must(of and kind, f"the argument {arg!r}: want NAME TYPE")
                must(kind.removesuffix("?") in ARGUMENTS, f"the argument {of} has the unknown type {kind}")
                must(of not in requests[name], f"the argument {of} is there twice")
                requests[name][of] = kind.endswith("?"), kind.removesuffix("?")
        return requests

    def line(self, at):
        text = self.string(at)
        must("\n" not in text, f"{text!r} has several lines")
        return text

    def port(self, p):
        name, payload = self.line(p.name), self.line(p.payload)
        must(SNAKE.fullmatch(name) and SNAKE.fullmatch(payload), f"the port {name!r} of the payload {payload!r}: want names in snake_case")
        must(not p.flags & ~(abi.PORT_ON_LOAN | abi.PORT_BLOCKS), f"{name} has unknown flags {p.flags:#x}")
        must(blank(p), f"{name} has reserved bytes that are not 0")
        return Port(name, payload, p.flags)

    def column(self, c):
        name = self.line(c.name)
        must(name, "a column has no name")
        must(not c.flags & ~(abi.COLUMN_WRITE | abi.COLUMN_OPTIONAL), f"the column {name} has unknown flags {c.flags:#x}")
        must(c.dtype == 0 or c.dtype in TYPES, f"the column {name} has the unknown type {c.dtype}")
        must(blank(c), f"the column {name} has reserved bytes that are not 0")
        return Column(name, c.flags, c.dtype)
