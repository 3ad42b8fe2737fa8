"""Reads what rl_describe writes: docs/reference/env-abi.md, from "The description" on."""

import difflib
import functools
import json
import math
import operator

import numpy as np

from description import MAX_ELEMS, MAX_TENSORS, Description, Refused, TooOld, must
from page import ENV as abi
from page import blank

TYPES = {abi.U8: "u1", abi.I8: "i1", abi.I16: "i2", abi.I32: "i4", abi.I64: "i8", abi.F32: "f4", abi.BOOL: "u1"}
TAKEN = {"action": (abi.I32, abi.F32), "reset_param": (abi.F32,)}  # of the types that the table of roles leaves open
TIMES = {"T": abi.TENSOR_AT_T, "T+1": abi.TENSOR_AT_T1, "1": abi.TENSOR_NO_TIME}
KNOWN = functools.reduce(operator.or_, (n for name, n in abi.named("TENSOR_").items() if name != "BYTES"))
MODES = functools.reduce(operator.or_, abi.named("AUTORESET_").values())
FEATURES = sum(abi.named("FEATURE_").values())
IMAGE = abi.TENSOR_IMAGE_HWC | abi.TENSOR_IMAGE_CHW
MAX_PIXELS = 1 << 14  # of a side of a picture


class Tensor:
    """A tensor of the description, with its space: counts of choices, or bounds."""

    def __init__(self, spec, d):
        self.d, self.role, self.counts = d, abi.roles.get(d.role), None
        self.kind = self.role and self.role.name
        self.label = self.kind or f"role {d.role}"
        self.path = spec.string(d.path) if self.role else ""
        self.bound = self.role and (self.kind != "reset_param" or d.dtype == abi.F32) or not d.flags & abi.TENSOR_OPTIONAL
        if not self.role and d.flags & abi.TENSOR_CRITICAL:
            raise TooOld(f"{self.label} is critical, and this host does not know it")
        if not self.bound:
            return
        must(d.dtype in TYPES, f"{self.label} has dtype {d.dtype}, which this host does not know")
        must(d.rank <= 6, f"{self.label} has rank {d.rank}")
        dims = d.shape[:]
        self.shape, self.elems = dims[:d.rank], math.prod(dims[:d.rank])
        must(not any(dims[d.rank:]), f"{self.label} has dimensions beyond rank {d.rank}")
        must(all(self.shape), f"{self.label} has a dimension of 0, want at least 1")
        must(self.elems <= MAX_ELEMS, f"{self.label}: the product of its shape is {self.elems}, want at most {MAX_ELEMS}")
        must(d.group < len(spec.agents), f"{self.label} is of group {d.group}, which there is not")
        self.dtype, self.agents = np.dtype(TYPES[d.dtype]), spec.agents[d.group] if d.flags & abi.TENSOR_PER_AGENT else 1
        if self.role:
            self.check(spec)

    def check(self, spec):
        d, role = self.d, self.role
        types = TAKEN.get(self.kind, TYPES) if role.dtype == "any" else [abi.numbers[role.dtype.upper()]]
        must(not d.flags & ~KNOWN, f"{self.label} has unknown flags {d.flags & ~KNOWN:#x}")
        must(blank(d), f"{self.label} has reserved bytes that are not 0")
        must(d.flags & abi.TENSOR_TIME == TIMES[role.rows], f"{self.label} has another axis of time than its role")
        must(d.dtype in types and (not role.scalar or not self.shape), f"{self.label} has dtype {d.dtype} and the shape {self.shape}")
        must(not (role.required and d.flags & abi.TENSOR_OPTIONAL), f"{self.label} is required, and OPTIONAL")
        must(self.kind != "active" or d.flags & abi.TENSOR_PER_AGENT, "active is of the environment, want one of each agent")
        must(self.kind != "reset_info" or not d.flags & abi.TENSOR_GATHER, f"{self.label} has one row in an episode, and a flag that gathers several")
        must(self.kind not in ("info", "reset_info") or d.rank <= 1, f"{self.label} has rank {d.rank}")
        must((d.flags & abi.TENSOR_GATHER).bit_count() < 2, f"{self.label} has several ways to gather")
        must(not d.flags & IMAGE or d.flags & IMAGE != IMAGE and d.rank == 3, f"{self.label} is a picture of rank {d.rank}, want 3 and one order of its axes")
        must(self.kind in ("action_mask", "final_observation") or not d.pair, f"{self.label} has a pair")
        must(math.isfinite(d.scale) and d.scale >= 0, f"{self.label} has the scale {d.scale}")
        if d.n or d.values and d.dtype != abi.F32:
            must(d.dtype != abi.F32, f"{self.label} has choices of a float type")
            must(not (d.n and d.values), f"{self.label} has a number of values and one of each element")
            self.counts = np.full(self.elems, d.n, np.int64) if d.n else spec.numbers(self, "u4", self.elems).astype(np.int64)
            must(self.counts.min() > 0, f"{self.label} has an element with no values")
            limits = np.iinfo(self.dtype)
            must(limits.min <= d.start and d.start + int(self.counts.max()) - 1 <= limits.max, f"{self.label} has values outside of its type")
            must(not d.flags & abi.TENSOR_BINARY or d.n == 2, f"{self.label} is binary with {d.n} values")
            return
        must(self.kind != "action" or d.dtype == abi.F32, f"{self.label} is a Box of dtype {d.dtype}")
        bounds = spec.numbers(self, "f4", 2 * self.elems) if d.values else np.repeat(np.float32([d.low, d.high]), self.elems)
        self.low = np.full(self.elems, -np.inf, np.float32) if d.flags & abi.TENSOR_NO_LOW else bounds[:self.elems]
        self.high = np.full(self.elems, np.inf, np.float32) if d.flags & abi.TENSOR_NO_HIGH else bounds[self.elems:]
        must(not np.isnan([self.low, self.high]).any() and (self.low <= self.high).all(), f"{self.label} has bounds that are NaN or reversed")


class Spec(Description):
    """The description of an environment."""

    head, features, minor, least = abi.records["spec"], FEATURES, 1, 128

    def read(self, blob, h):
        super().read(blob, h)
        at, lists = h.size, []
        for name, each, n in (("group", h.group_bytes, h.groups), ("tensor", h.tensor_bytes, h.tensors), ("arg", h.arg_bytes, h.args)):
            lists.append(self.records(abi.records[name + "_desc"], at, each, n, name))
            at += each * n
        must(abi.BINDING_BYTES <= h.binding_bytes <= 4096 and h.binding_bytes % 4 == 0, f"binding_bytes is {h.binding_bytes}")
        self.name, self.version, _, _, self.keys = (self.string(s) for s in (h.name, h.version, h.doc, h.licence, h.keys))
        must(self.name, "the environment has no name")
        must("@" not in self.name + self.version, "the name or the version has an @")
        must(h.autoreset & MODES, "no mode of autoreset is offered that this host knows")
        must(not h.render_modes & 6 or 1 <= h.render_width <= MAX_PIXELS and 1 <= h.render_height <= MAX_PIXELS, f"pictures of {h.render_width} x {h.render_height}")
        must(h.render_fps >= 0, f"{h.render_fps} pictures a second")
        must(h.reward_low <= h.reward_high, f"rewards from {h.reward_low} to {h.reward_high}")
        must(math.isfinite(h.dt) and h.dt >= 0, f"the seconds of simulated time in a step are {h.dt}")
        self.read_groups(lists[0])
        must(h.tensors <= MAX_TENSORS, f"{h.tensors} tensors, want at most {MAX_TENSORS}")
        self.tensors = [Tensor(self, d) for d in lists[1]]
        for group in range(len(self.agents)):
            self.check_group(group)
        self.args = {self.string(a.name): a for a in lists[2]}
        must(len(self.args) == h.args <= 256 and not any("=" in name or not name for name in self.args), "names of arguments are not unique")
        for name, a in self.args.items():
            must(blank(a), f"the argument {name} has reserved bytes that are not 0")
            if a.kind > abi.ARG_CHOICE:  # it is of a later version: a text
                continue
            must(a.kind, f"the argument {name} has no type")
            must(a.min <= a.max, f"the argument {name} has the bounds {a.min} and {a.max}")
            must(a.kind != abi.ARG_CHOICE or self.string(a.choices), f"the argument {name} has no choices")
            if default := self.string(a.value):
                self.written(name, default)

    def numbers(self, tensor, dtype, n):
        at = tensor.d.values
        must(at % 4 == 0 and self.h.size <= at and at + 4 * n <= len(self.blob), f"{tensor.label} has values outside the description")
        return np.frombuffer(self.blob, dtype, n, at)

    def read_groups(self, groups):
        must(len(groups) <= 64, f"{len(groups)} groups")
        for g in groups:
            must(1 <= g.agents <= 4096, f"a group of {g.agents} agents")
            must(not g.flags and blank(g), "a group has reserved bytes that are not 0")
            names = self.string(g.agent_names).split("\n") if g.agent_names else [str(i) for i in range(g.agents)]
            must(len(names) == g.agents, f"agent_names has {len(names)} names, want {g.agents}")
            must(len(set(names)) == len(names), "two agents are called the same")
            must(not any(set("/ ") & set(n) or not n for n in names), "names of agents are without slashes and spaces, and not empty")
        names = [self.string(g.name) for g in groups]
        must(len(names) < 2 or len(set(names)) == len(names) and all(names) and not any(set("/ ") & set(n) for n in names), "groups without names of their own")
        self.agents = [g.agents for g in groups] or [1]
        must(sum(self.agents) <= 32768, f"{sum(self.agents)} agents")
        must(sum(self.agents) == 1 or self.h.autoreset & abi.AUTORESET_SAME_STEP, "agents need same_step")

    def check_group(self, group):
        """What the tensors of a group have to be to each other."""
        of = {role.name: [t for t in self.tensors if t.role is role and t.d.group == group] for role in abi.roles.values()}
        for role in abi.roles.values():
            have = of[role.name]
            must(have or not role.required, f"group {group} has no tensor with role {role.name}")
            must((role.many or len(have) < 2) and len({t.path for t in have}) == len(have), f"two tensors with role {role.name} and one path")
            must([t.d.index for t in have] == list(range(len(have))), f"an index of {role.name} does not count up from 0")
        for role, other in (("final_observation", "observation"), ("action_mask", "action")):
            must(len({t.d.pair for t in of[role]}) == len(of[role]), f"two tensors with role {role} of one {other}")
            for t in of[role]:
                must(t.d.pair < len(of[other]), f"{t.label} is of {other} {t.d.pair}, which there is not")
                t.other = of[other][t.d.pair]
                want = t.other.elems if other == "observation" else 0 if t.other.counts is None else int(t.other.counts.sum())
                must(t.elems == want and (other == "action" or t.dtype == t.other.dtype), f"{t.label} has {t.elems} elements, want {want}")
        finals = len(of["final_observation"]) == len(of["observation"])
        must(not self.h.autoreset & abi.AUTORESET_SAME_STEP or finals, "same_step is offered, and an observation has no final_observation")

    def written(self, name, text):
        """A value of an argument as the guest reads it: parsed by its type and written anew."""
        near = difflib.get_close_matches(name, self.args, 1)
        must(not self.args or name in self.args, f"there is no argument {name}{', did you mean ' + near[0] + '?' if near else ''} There are {', '.join(sorted(self.args))}")
        arg = self.args.get(name)
        try:
            if arg and arg.kind in (abi.ARG_INTEGER, abi.ARG_NUMBER):
                value = int(text) if arg.kind == abi.ARG_INTEGER else float.fromhex(text) if "0x" in text else float(text)
                must(math.isfinite(value) and (arg.min == arg.max == 0 or arg.min <= value <= arg.max), f"{name} is {text}, want {arg.min} to {arg.max}")
                text = json.dumps(int(value) if value == int(value) else value)
        except ValueError:
            raise Refused(f"{name} is {text!r}, which is no number") from None
        must(not arg or arg.kind != abi.ARG_BOOL or text in ("true", "false"), f"{name} is {text!r}, want true or false")
        must(not arg or arg.kind != abi.ARG_CHOICE or text in self.string(arg.choices).split("\n"), f"{name} is {text!r}, which is no choice")
        must("\n" not in text, f"{name} has several lines")
        return text
