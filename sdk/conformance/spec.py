"""Reads what rl_describe writes: docs/reference/env-abi.md, from "The description" on."""

import collections
import difflib
import json
import math

import numpy as np

from description import MAX_ELEMS, MAX_TENSORS, Description, Refused, TooOld, must, numbered, record

HEAD = record("IHHQQHHHHIIIIIIIIIIIIffffIIIIIIfI", "size abi_major abi_minor caps needs tensor_bytes binding_bytes group_bytes arg_bytes tensors groups args strings_at "
              "strings_len max_envs episode_limit autoreset flags render_modes render_width render_height render_fps reward_low reward_high reward_threshold "
              "state_version state_max name version doc licence dt reserved")
GROUP = record("8I", "name agents flags agent_names " + numbered("reserved", 4))
TENSOR = record("HHHBBI6IffIiIHHfII14I", f"role index group dtype rank flags {numbered('dim', 6)} low high n start values pair reserved scale path doc {numbered('more', 14)}")
ARG = record("IIIIddIIII", "name doc kind flags min max value choices reserved0 reserved1")

PER_AGENT, AT_T, AT_T1, NO_TIME, OPTIONAL, CRITICAL, NO_LOW, NO_HIGH, HWC, CHW, BINARY, EPISODE = 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 2048, 4096
TENSOR_FLAGS, GATHER = 0x1ffff & ~1024, 0x1f000
NEXT_STEP, SAME_STEP, DISABLED, MODES = 1, 2, 4, 7
U8, I32, F32, BOOL = 1, 4, 8, 10
TYPES = {U8: "u1", 2: "i1", 3: "i2", I32: "i4", 5: "i8", F32: "f4", BOOL: "u1"}
ACTION, OBSERVATION, REWARD, TERMINATED, TRUNCATED, MASK, FINAL, ACTIVE, INFO, DISCOUNT, RESET_PARAM, RESET_INFO = 1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 14, 18
Role = collections.namedtuple("Role", "name time types scalar many required")
ROLES = {
    ACTION: Role("action", AT_T, {I32, F32}, False, True, True),
    OBSERVATION: Role("observation", AT_T1, set(TYPES), False, True, True),
    REWARD: Role("reward", AT_T, {F32}, True, False, True),
    TERMINATED: Role("terminated", AT_T, {U8}, True, False, True),
    TRUNCATED: Role("truncated", AT_T, {U8}, True, False, True),
    MASK: Role("action_mask", AT_T1, {U8}, False, True, False),
    FINAL: Role("final_observation", NO_TIME, set(TYPES), False, True, False),
    ACTIVE: Role("active", AT_T1, {U8}, True, False, False),
    INFO: Role("info", AT_T, {F32}, False, True, False),
    DISCOUNT: Role("discount", AT_T, {F32}, True, False, False),
    RESET_PARAM: Role("reset_param", NO_TIME, {F32}, False, True, False),
    RESET_INFO: Role("reset_info", AT_T1, {F32}, False, True, False),
}
FEATURE = {"actions": 0, "observations": 1, "agents": 2, "info": 3, "discount": 5, "reset_param": 7, "reset_info": 11}
FEATURES = sum(1 << bit for bit in FEATURE.values())
MAX_PIXELS = 1 << 14  # of a side of a picture


class Tensor:
    """A tensor of the description, with its space: counts of choices, or bounds."""

    def __init__(self, spec, d):
        self.d, self.role, self.counts = d, ROLES.get(d.role), None
        self.label = self.role.name if self.role else f"role {d.role}"
        self.path = spec.string(d.path) if self.role else ""
        runs = self.role and (d.role != RESET_PARAM or d.dtype in self.role.types)
        self.bound = runs or not d.flags & OPTIONAL
        if not self.role and d.flags & CRITICAL:
            raise TooOld(f"{self.label} is critical, and this host does not know it")
        if not self.bound:
            return
        must(self.role or d.dtype in TYPES, f"{self.label} has the type {d.dtype}, which this host does not know, and is not optional")
        must(d.dtype in TYPES, f"{self.label} has dtype {d.dtype}")
        must(d.rank <= 6, f"{self.label} has rank {d.rank}")
        dims = d[6:12]
        self.shape, self.elems = dims[:d.rank], math.prod(dims[:d.rank])
        must(not any(dims[d.rank:]), f"{self.label} has dimensions beyond rank {d.rank}")
        must(all(self.shape), f"{self.label} has a dimension of 0, want at least 1")
        must(self.elems <= MAX_ELEMS, f"{self.label}: the product of its shape is {self.elems}, want at most {MAX_ELEMS}")
        must(d.group < len(spec.agents), f"{self.label} is of group {d.group}, which there is not")
        self.dtype, self.agents = np.dtype(TYPES[d.dtype]), spec.agents[d.group] if d.flags & PER_AGENT else 1
        if self.role:
            self.check(spec)

    def check(self, spec):
        d, role = self.d, self.role
        must(not d.flags & ~TENSOR_FLAGS, f"{self.label} has unknown flags {d.flags & ~TENSOR_FLAGS:#x}")
        must(not d.reserved and not any(d[-14:]), f"{self.label} has reserved bytes that are not 0")
        must(d.flags & (AT_T | AT_T1 | NO_TIME) == role.time, f"{self.label} has another axis of time than its role")
        must(d.dtype in role.types and (not role.scalar or not self.shape), f"{self.label} has dtype {d.dtype} and the shape {self.shape}")
        must(not (role.required and d.flags & OPTIONAL), f"{self.label} is required, and OPTIONAL")
        must(d.role != ACTIVE or d.flags & PER_AGENT, "active is of the environment, want one of each agent")
        must(d.role != RESET_INFO or not d.flags & GATHER, f"{self.label} has one row in an episode, and a flag that gathers several")
        must(d.role not in (INFO, RESET_INFO) or d.rank <= 1, f"{self.label} has rank {d.rank}")
        must((d.flags & GATHER).bit_count() < 2, f"{self.label} has several ways to gather")
        image = d.flags & (HWC | CHW)
        must(not image or image != HWC | CHW and d.rank == 3, f"{self.label} is a picture of rank {d.rank}, want 3 and one order of its axes")
        must(d.role in (MASK, FINAL) or not d.pair, f"{self.label} has a pair")
        must(math.isfinite(d.scale) and d.scale >= 0, f"{self.label} has the scale {d.scale}")
        if d.n or d.values and d.dtype != F32:
            must(d.dtype != F32, f"{self.label} has choices of a float type")
            must(not (d.n and d.values), f"{self.label} has a number of values and one of each element")
            self.counts = np.full(self.elems, d.n, np.int64) if d.n else spec.numbers(self, "u4", self.elems).astype(np.int64)
            must(self.counts.min() > 0, f"{self.label} has an element with no values")
            limits = np.iinfo(self.dtype)
            must(limits.min <= d.start and d.start + int(self.counts.max()) - 1 <= limits.max, f"{self.label} has values outside of its type")
            must(not d.flags & BINARY or d.n == 2, f"{self.label} is binary with {d.n} values")
            return
        must(d.role != ACTION or d.dtype == F32, f"{self.label} is a Box of dtype {d.dtype}")
        bounds = spec.numbers(self, "f4", 2 * self.elems) if d.values else np.repeat(np.float32([d.low, d.high]), self.elems)
        self.low = np.full(self.elems, -np.inf, np.float32) if d.flags & NO_LOW else bounds[:self.elems]
        self.high = np.full(self.elems, np.inf, np.float32) if d.flags & NO_HIGH else bounds[self.elems:]
        must(not np.isnan([self.low, self.high]).any() and (self.low <= self.high).all(), f"{self.label} has bounds that are NaN or reversed")


class Spec(Description):
    """The description of an environment."""

    head, features = HEAD, FEATURES

    def read(self, blob, h):
        super().read(blob, h)
        must(not h.reserved, "the head has reserved bytes that are not 0")
        at, lists = h.size, []
        for kind, each, n, name in ((GROUP, h.group_bytes, h.groups, "group"), (TENSOR, h.tensor_bytes, h.tensors, "tensor"), (ARG, h.arg_bytes, h.args, "arg")):
            lists.append(self.records(kind, at, each, n, name))
            at += each * n
        must(48 <= h.binding_bytes <= 4096 and h.binding_bytes % 4 == 0, f"binding_bytes is {h.binding_bytes}")
        self.name, self.version, _, _ = (self.string(s) for s in (h.name, h.version, h.doc, h.licence))
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
            must(not any(a[-2:]), f"the argument {name} has reserved bytes that are not 0")
            if a.kind > 5:  # it is of a later version: a text
                continue
            must(a.kind, f"the argument {name} has no type")
            must(a.min <= a.max, f"the argument {name} has the bounds {a.min} and {a.max}")
            must(a.kind != 5 or self.string(a.choices), f"the argument {name} has no choices")
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
            must(not g.flags and not any(g[4:]), "a group has reserved bytes that are not 0")
            names = self.string(g.agent_names).split("\n") if g.agent_names else [str(i) for i in range(g.agents)]
            must(len(names) == g.agents, f"agent_names has {len(names)} names, want {g.agents}")
            must(len(set(names)) == len(names), "two agents are called the same")
            must(not any(set("/ ") & set(n) or not n for n in names), "names of agents are without slashes and spaces, and not empty")
        names = [self.string(g.name) for g in groups]
        must(len(names) < 2 or len(set(names)) == len(names) and all(names) and not any(set("/ ") & set(n) for n in names), "groups without names of their own")
        self.agents = [g.agents for g in groups] or [1]
        must(sum(self.agents) <= 32768, f"{sum(self.agents)} agents")
        must(sum(self.agents) == 1 or self.h.autoreset & SAME_STEP, "agents need same_step")

    def check_group(self, group):
        """What the tensors of a group have to be to each other."""
        of = {role: [t for t in self.tensors if t.d.role == role and t.d.group == group] for role in ROLES}
        for role, r in ROLES.items():
            must(of[role] or not r.required, f"group {group} has no tensor with role {r.name}")
            must((r.many or len(of[role]) < 2) and len({t.path for t in of[role]}) == len(of[role]), f"two tensors with role {r.name} and one path")
            must([t.d.index for t in of[role]] == list(range(len(of[role]))), f"an index of {r.name} does not count up from 0")
        for role, other in ((FINAL, OBSERVATION), (MASK, ACTION)):
            must(len({t.d.pair for t in of[role]}) == len(of[role]), f"two tensors with role {ROLES[role].name} of one {ROLES[other].name}")
            for t in of[role]:
                must(t.d.pair < len(of[other]), f"{t.label} is of {ROLES[other].name} {t.d.pair}, which there is not")
                t.other = of[other][t.d.pair]
                want = t.other.elems if role == FINAL else 0 if t.other.counts is None else int(t.other.counts.sum())
                must(t.elems == want and (role == MASK or t.dtype == t.other.dtype), f"{t.label} has {t.elems} elements, want {want}")
        must(not self.h.autoreset & SAME_STEP or len(of[FINAL]) == len(of[OBSERVATION]), "same_step is offered, and an observation has no final_observation")

    def written(self, name, text):
        """A value of an argument as the guest reads it: parsed by its type and written anew."""
        near = difflib.get_close_matches(name, self.args, 1)
        must(not self.args or name in self.args, f"there is no argument {name}{', did you mean ' + near[0] + '?' if near else ''} There are {', '.join(sorted(self.args))}")
        arg = self.args.get(name)
        try:
            if arg and arg.kind in (1, 2):
                value = int(text) if arg.kind == 1 else float.fromhex(text) if "0x" in text else float(text)
                must(math.isfinite(value) and (arg.min == arg.max == 0 or arg.min <= value <= arg.max), f"{name} is {text}, want {arg.min} to {arg.max}")
                text = json.dumps(int(value) if value == int(value) else value)
        except ValueError:
            raise Refused(f"{name} is {text!r}, which is no number") from None
        must(not arg or arg.kind != 3 or text in ("true", "false"), f"{name} is {text!r}, want true or false")
        must(not arg or arg.kind != 5 or text in self.string(arg.choices).split("\n"), f"{name} is {text!r}, which is no choice")
        must("\n" not in text, f"{name} has several lines")
        return text
