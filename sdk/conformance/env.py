"""A host of the environment ABI over wasmtime, written from docs/reference/env-abi.md alone."""

import ctypes
import itertools
import struct

import numpy as np

from description import MAX_BYTES, Refused, must
from guest import Failed, Fault, Guest
from page import ENV as abi
from spec import FEATURES, IMAGE, Spec


class Env(Guest):
    """A batch of environments of a module, in one instance."""

    kind, candidates, page, module, features = "env", ("rl_abi_v1rc", "rl_abi_v1"), abi, "rl", FEATURES
    capabilities = {"log": "log", "log_enabled": "log", "metric_env": "metric", "clock_ns": "clock"}

    def __init__(self, wasm, args=None, grants=(), envs=2, mode=abi.AUTORESET_SAME_STEP, steps=4, params=None):
        super().__init__(wasm, grants)
        self.n, self.mode, self.steps, self.params, self.metrics, self.streams = envs, mode, steps, params or {}, {}, {}
        names = {e.name for e in self.compiled.exports}
        must(("rl_save" in names) == ("rl_load" in names), "rl_save and rl_load are exported both or not at all")
        try:
            self.spec = self.describe({})
            if args:  # their types say how they are written
                self.spec = self.describe({k: self.spec.written(k, v) for k, v in args.items()})
        except Fault as e:
            raise Refused(str(e)) from None
        self.create()

    def stream(self):
        """The random stream of the environment that is worked on, or else that of the instance."""
        asks = self.working in ("rl_reset", "rl_step", "rl_step_range") and "rl_current_env" in self.exports
        return self.streams.get(self.exports["rl_current_env"](self.store) if asks else -1, self.random)

    def on_clock_ns(self):
        return self.clock

    def on_metric_env(self, env, at, n, value, gather):
        name = self.peek(at, n) if 0 < n <= 128 else None
        if name and 0 <= env < self.n and gather in (0, abi.TENSOR_SUM, abi.TENSOR_MEAN, abi.TENSOR_MAX, abi.TENSOR_MIN) and (name in self.metrics or len(self.metrics) < 256):
            self.metrics.setdefault(name, {})[env] = value, gather

    def describe(self, config):
        self.instantiate()
        text = "".join(f"{k}={v}\n" for k, v in sorted(config.items(), key=lambda kv: kv[0].encode())).encode()
        self.config = self.put(text), len(text)
        return Spec(self.needed("rl_describe", *self.config, most=MAX_BYTES, what="its description"))

    def create(self):
        h = self.spec.h
        if h.max_envs and self.n > h.max_envs or not h.autoreset & self.mode:
            raise Fault(f"{self.n} environments in the mode {self.mode}, want at most {h.max_envs} in one of {h.autoreset}")
        self.batch = self.answer("rl_create", *self.config, self.n, self.mode)
        self.blocks, self.now, self.t = [self.block(), self.block()], 0, 0
        self.running = [np.zeros((self.n, a), bool) for a in self.spec.agents]
        self.bind()

    def block(self):
        """Memory for each tensor: where, and the strides of time, environment, agent and element; then how many rows."""
        block = []
        for t in self.spec.tensors:
            if not t.bound:
                block.append([0] * 6)
                continue
            size, dense = t.dtype.itemsize, t.d.flags & IMAGE or t.d.dtype == abi.U8 and t.d.rank == 3
            rows = 1 if t.d.flags & abi.TENSOR_NO_TIME else self.steps + (t.d.flags & abi.TENSOR_AT_T1 > 0)
            if self.spec.h.caps & abi.CAP_STRIDES and not dense:  # [time][elem][env][agent]
                agent, env, elem = size, size * t.agents, size * t.agents * self.n
                time = elem * t.elems
            else:  # [time][env][agent][elem], with a gap behind each environment
                elem, agent, env = size, size * t.elems, size * (t.elems * t.agents + 1)
                time = env * self.n
            if not t.role:  # nothing reads it: all rows are one
                block.append([self.alloc(size * t.elems, 64), 0, 0, 0, size, rows])
                continue
            at = self.alloc(time * rows, 64)
            self.write(at, b"\xff" * (time * rows))
            block.append([at, time if rows > 1 or not t.d.flags & abi.TENSOR_NO_TIME else 0, env, agent if t.agents > 1 else 0, elem, rows])
        return block

    def bind(self):
        """Binds the block that is used now; every row begins at a multiple of an element, so that is what row_align says."""
        each = self.spec.h.binding_bytes
        aligns = [t.dtype.itemsize if t.bound else 0 for t in self.spec.tensors]
        record = b"".join(struct.pack("<7I", *place, align).ljust(each, b"\0") for place, align in zip(self.blocks[self.now], aligns))
        for k, t in self.of("reset_param"):
            self.view(k)[:] = self.params.get(t.path, np.nan)
        self.status("rl_bind", self.batch, self.put(record), len(self.spec.tensors))

    def view(self, k, block=None):
        """The tensor k of a block, the bound one if none is named, as an array: rows, environments, agents, elements."""
        (at, time, env, agent, elem, rows), t = self.blocks[self.now if block is None else block][k], self.spec.tensors[k]
        memory = (ctypes.c_ubyte * self.memory.data_len(self.store)).from_address(ctypes.addressof(self.memory.data_ptr(self.store).contents))
        return np.ndarray((rows, self.n, t.agents, t.elems), t.dtype, memory, at, (time, env, agent, elem))

    def of(self, role, group=None):
        return [(k, t) for k, t in enumerate(self.spec.tensors) if t.kind == role and t.bound and group in (None, t.d.group)]

    def reset(self, mask=None, seeds=None):
        for e, seed in enumerate(seeds or ()):
            if mask is None or mask[e]:
                self.streams[e] = np.random.default_rng(seed)
        self.status("rl_reset", self.batch, self.t, 0 if mask is None else self.put(bytes(mask)), 0 if seeds is None else self.put(struct.pack(f"<{self.n}Q", *seeds)))
        which = np.ones(self.n, bool) if mask is None else np.array(mask, bool)
        for running in self.running:
            running[which] = False
        self.check_row(self.t, which, np.zeros(self.n, bool))
        self.check_begun(self.t, which)

    def act(self, values):
        """Writes the actions of the next step: a function of the tensor gives them."""
        if self.t == self.steps:  # the last row is the first of the next block
            last, self.now, self.t = self.now, 1 - self.now, 0
            for k, t in enumerate(self.spec.tensors):
                if t.role and t.d.flags & abi.TENSOR_AT_T1:
                    self.view(k)[0] = self.view(k, last)[self.steps]
            self.bind()
        for k, t in self.of("action"):
            self.view(k)[self.t] = values(t)

    def step(self):
        """One step. It returns rewards and flags by group, and which environments' episodes have ended."""
        t, out, ends = self.t, [], []
        self.clock += 1_000_000
        try:
            if "rl_step_range" in self.exports:
                for first in (range(self.n) if t % 2 else reversed(range(self.n))):
                    self.status("rl_step_range", self.batch, t, first, 1)
            else:
                self.status("rl_step", self.batch, t)
        except Failed as e:
            raise Failed(f"action outside its space: {self.outside(t)}", e.status) if e.status == abi.STATUS_ACTION else e from None
        self.t += 1
        played = np.zeros(self.n, bool)
        for g, running in enumerate(self.running):
            reward, term, trunc = (self.view(self.of(role, g)[0][0])[t, :, :, 0] for role in ("reward", "terminated", "truncated"))
            self.finite("reward", reward)
            self.flag("terminated", term)
            self.flag("truncated", trunc)
            active = self.of("active", g)
            running |= self.view(active[0][0])[t, :, :, 0] > 0 if active else True
            played |= running.any(1)
            ends.append(running & ((term | trunc) > 0))
            running &= ~ends[g]
            out.append((reward.copy(), term.copy(), trunc & (1 - term)))  # where both are set terminated counts
            if any(not ((0 <= self.view(k)[t]) & (self.view(k)[t] <= 1)).all() for k, _ in self.of("discount", g)):
                raise Fault("discount is outside of 0 to 1")
        over = played & ~np.any([r.any(1) for r in self.running], 0)
        for k, x in self.of("final_observation") if self.mode == abi.AUTORESET_SAME_STEP else ():
            self.finite("last observation, final_obs,", self.view(k)[0][ends[x.d.group] if x.d.flags & abi.TENSOR_PER_AGENT else ends[x.d.group].all(1)[:, None]])
        for k, x in self.of("info"):
            self.finite(f'info "{x.path}"', self.view(k)[t][over if x.d.flags & abi.TENSOR_EPISODE else slice(None)])
        self.check_row(self.t, np.ones(self.n, bool), over if self.mode != abi.AUTORESET_SAME_STEP else ~over & over)
        if self.mode == abi.AUTORESET_SAME_STEP:
            self.check_begun(self.t, over)
        return out, over

    def outside(self, t):
        """The first action at t that is outside its space, and whose it is."""
        for k, x in self.of("action"):
            first, last = (x.low, x.high) if x.counts is None else (x.d.start, x.d.start + x.counts - 1)
            low, high, actions = np.broadcast_to(first, x.elems), np.broadcast_to(last, x.elems), self.view(k)[t]
            for e, agent, i in np.argwhere(~((low <= actions) & (actions <= high))):
                return f"env {e}, agent {sum(self.spec.agents[:x.d.group]) + agent}: action is {actions[e, agent, i]}, want {low[i]} to {high[i]}"
        return ""

    def check_row(self, t, which, ended):
        """What has rows 0 to T, as it stands at t."""
        for k, x in self.of("observation"):
            self.finite("observation", self.view(k)[t][which])
        for k, x in self.of("active"):
            self.flag("active", self.view(k)[t][which])
        for k, x in self.of("action_mask"):
            mask = self.view(k)[t]
            self.flag("action_mask", mask[which])
            parts = np.split(mask[which], np.cumsum(x.other.counts)[:-1], axis=-1)
            if not all(part.any(-1).all() for part in parts) or not mask[ended].all():
                raise Fault("a mask without a legal value, or with an illegal one behind an end")

    def check_begun(self, t, which):
        for k, x in self.of("reset_info"):
            self.finite(f'reset_info "{x.path}"', self.view(k)[t][which])

    def finite(self, name, x):
        bad = x[~np.isfinite(x)] if x.dtype.kind == "f" else ()
        if len(bad):
            raise Fault(f"{name} is {'NaN' if np.isnan(bad[0]) else 'Inf'}")

    def flag(self, name, x):
        if (x > 1).any():
            raise Fault(f"{name} is {x.max()}, want 0 or 1")

    def render(self, env, mode, camera=0):
        picture, h = self.needed("rl_render", self.batch, env, mode | camera << 8, what="its picture"), self.spec.h
        if mode and len(picture) != (want := h.render_width * h.render_height * (mode + 2)):
            raise Fault(f"a picture of {len(picture)} bytes, want {want}")
        try:
            return picture if mode else picture.decode()
        except UnicodeDecodeError:
            raise Fault("a picture of text that is not UTF-8") from None

    def save(self, env):
        state, h = self.needed("rl_save", self.batch, env), self.spec.h
        version, n = struct.unpack_from("<II", state.ljust(8, b"\xff"))
        if version != h.state_version or n != len(state) - 8 or len(state) > h.state_max > 0:
            raise Fault(f"a state of version {version} that says {n} bytes and has {len(state) - 8}, want version {h.state_version} and {h.state_max} bytes at most")
        return state

    def load(self, env, state):
        self.status("rl_load", self.batch, env, self.put(state), len(state))

    def infos(self):
        """The names of the first 256 infos, and the value of each in each environment in the last step."""
        names = ((f"{t.path or 'info'}/{i}" if t.d.rank else t.path or "info", self.view(k)[self.t - 1, :, 0, i]) for k, t in self.of("info") for i in range(t.elems))
        return dict(itertools.islice(names, 256))
