"""Your own learner: datasets and published parameters are named tensors, reports are named numbers."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import struct
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ._native import Exhausted
from .arena import Trajectory
from .component import Component, ConfigError, ConfigErrors, Signal, Slot, State, decode
from .device import Upload, check_device
from .layout import Box, Discrete, PolicyLayout
from .network import Network
from .spec import ACTIVE

if TYPE_CHECKING:
    import numpy

    from . import _native
    from .host import Host

_WEIGHTS = struct.Struct("<QII48x")  # version, parameters, normalised elements; the network's hash, which is not known here
_WEIGHTS_HEAD = _WEIGHTS.size  # bytes before the parameters
_DATASET = struct.Struct("<QII")  # index, count, parts; then count handles, and the parts
_PART = struct.Struct("<IIII")  # place in the list of handles, first environment, environments, number
_REPORTS = 128  # the most that wait for the runner
_VERSIONS = 65_536  # the most whose optimiser steps are remembered


def _threads() -> int:
    """How many threads libraries may have in this process: what a pipeline says by the key threads, else 1."""
    said = os.environ.get("OMP_NUM_THREADS", "")
    return int(said) if said.isdecimal() and said != "0" else 1


@dataclasses.dataclass
class LearnerConfig:
    """A learner's table: the keys of the built-in one, which presets set, and those of the framework."""

    policy: str = "main"
    learning_rate: float = 2.5e-4
    lr_anneal_env_steps: int = 0  # learning rate falls to 0 over these; 0 = constant
    anneal_clip: bool = False
    gamma: float = 0.99
    gae_lambda: float = 0.95
    discount: str = "replace"  # the environment's, where it has one: in the place of gamma, or "multiply" with it
    clip: float = 0.2
    epochs: int = 4
    minibatch: int = 128
    accumulate: int = 1  # minibatches of an optimiser step; see Learner.accumulates
    learners: int = 1  # that divide each minibatch; see Learner.configure
    hosts: int = 0  # other hosts that do
    burn_in_rows: int = 0  # first rows of each chunk that only warm a state up; see Learner.warms
    entropy_coef: float = 0.01
    value_coef: float = 0.5  # of 1/2 MSE
    value_clip: float = 0.0
    max_grad_norm: float = 0.5
    separate_grad_norms: bool = False  # clip actor and critic each by its own norm, unless they share parameters
    normalize_advantage: bool = True
    normalize_returns: bool = False  # learn values in units of the returns' running deviation; see Learner.returned
    target_kl: float = 0.0
    kl_coef: float = 0.0  # of the divergence from the policy that acted, in the loss
    bounds_loss_coef: float = 0.0  # of squared distances of Box actions' means from their bounds, in half ranges
    adaptive_kl: float = 0.0  # the learning rate follows this divergence between its bounds; 0 = off
    learning_rate_min: float = 1e-5
    learning_rate_max: float = 1e-2
    vtrace: bool = False
    rho_bar: float = 1.0
    c_bar: float = 1.0
    vtrace_recompute: str = "dataset"  # when V-trace's ratios are computed: dataset or epoch
    shuffle: bool = True  # an order of its own for each epoch; else rows come as they were gathered
    adam_beta1: float = 0.9
    adam_beta2: float = 0.999
    adam_eps: float = 1e-5
    threads: int = dataclasses.field(default_factory=_threads)  # of the framework: what a pipeline says, else 1, with which small networks are fastest
    device: str = "cpu"  # where PyTorch computes: cpu, cuda or cuda:N

    def check(self) -> None:
        """Raises ConfigErrors for values that make learning impossible."""
        bounds = (("learning_rate", 0, 1), ("gamma", 0, 1), ("gae_lambda", 0, 1), ("clip", 1e-6, 10), ("epochs", 1, 1000),
                  ("minibatch", 1, 1 << 24), ("accumulate", 1, 4096), ("burn_in_rows", 0, 1 << 24), ("entropy_coef", 0, 10), ("value_coef", 0, 100), ("value_clip", 0, 1e6),
                  ("max_grad_norm", 0, 1e6), ("target_kl", 0, 100), ("kl_coef", 0, 1e6), ("rho_bar", 1e-6, 1e6), ("c_bar", 1e-6, 1e6),
                  ("bounds_loss_coef", 0, 1e6), ("adaptive_kl", 0, 100), ("learning_rate_min", 1e-12, 1), ("learning_rate_max", 1e-12, 1), ("adam_eps", 1e-12, 1),
                  ("adam_beta1", 0, 0.999999), ("adam_beta2", 0, 0.999999),
                  ("threads", 1, 256))
        errors = [ConfigError(key, f"is {getattr(self, key)}, want {low} to {high}")
                  for key, low, high in bounds if not low <= getattr(self, key) <= high]
        if self.vtrace_recompute not in ("dataset", "epoch"):
            errors.append(ConfigError("vtrace_recompute", f'is "{self.vtrace_recompute}", want dataset or epoch'))
        if self.discount not in ("replace", "multiply"):
            errors.append(ConfigError("discount", f'is "{self.discount}", want replace or multiply'))
        if self.learning_rate_min > self.learning_rate_max:
            errors.append(ConfigError("learning_rate_min", f"is {self.learning_rate_min}, above learning_rate_max"))
        if self.adaptive_kl and self.lr_anneal_env_steps:
            errors.append(ConfigError("adaptive_kl", "has the learning rate follow the divergence and lr_anneal_env_steps the env "
                                      "steps: set either to 0"))
        try:
            check_device(self.device)
        except ConfigError as e:
            errors.append(e)
        if errors:
            raise ConfigErrors(errors)

    def rates(self, env_steps: int) -> tuple[float, float]:
        """Learning rate and clip at an env step."""
        left = max(0.0, 1 - env_steps / self.lr_anneal_env_steps) if self.lr_anneal_env_steps else 1.0
        return self.learning_rate * left, self.clip * (left if self.anneal_clip else 1.0)


class Dataset:
    """The trajectories of one round. Iterating gives each block's Trajectory: named arrays [rows, envs, ...] over
    shared memory, with its strides, valid until release, or until learn returns. Where dataset_rows is no whole number of blocks, one has
    the environments of a part of its block, with all their time steps."""

    def __init__(self, blocks: Sequence[Trajectory], index: int, release: Callable[[], None] = lambda: None,
                 upload: Upload | None = None):
        self._upload = upload
        self.blocks, self.index, self.release = list(blocks), index, release
        """After everything has been copied release frees the blocks, so that rollouts need not wait for learning."""

    def __iter__(self) -> Iterator[Trajectory]:
        return iter(self.blocks)

    def __len__(self) -> int:
        return len(self.blocks)

    def __contains__(self, name: str) -> bool:
        return name in self.blocks[0]

    def __getitem__(self, name: str) -> numpy.ndarray:
        """A column of all blocks side by side, copied: [rows, envs of all blocks, ...]."""
        import numpy
        return numpy.concatenate([numpy.asarray(b[name]) for b in self.blocks], 1)

    def tensors(self, device: Any = "cpu") -> dict[str, Any]:
        """All columns but meta, copied, as torch tensors on a device; terminated, truncated, valid, active and action_mask are bool. The
        blocks may be released as soon as it returns."""
        import torch
        names = [name for name in self.blocks[0].arrays if name not in ("meta", "policy_version", "plugin_version")]
        if self._upload and torch.device(device).type == "cuda":
            made = self._upload.columns(self.blocks, names, device)
        else:
            made = {name: torch.from_numpy(self[name]).to(device) for name in names}
        flags = {"terminated", "truncated", "valid", "active", "action_mask"}
        return {name: t != 0 if name.split("/")[0] in flags else t for name, t in made.items()}


class Learner(Component):
    """Improves one policy. A subclass implements begin_learning, learn and parameters; observed if it normalises
    observations; learner_state and set_learner_state for the other state of a resumed run. It may be replaced, or
    replace another, during a run.

    The base class counts env steps, policy versions and lag. It publishes the parameters, and the result of learn as
    the run's metrics of that dataset."""

    kind = "learner"
    signals = [Signal("weights", "weights", "a new policy version", schema=0xA1E49295469A2B3E),
               Signal("stats", "learner_stats", "what one dataset's update reports", schema=0x5EF2215C82C018C3)]
    slots = [Slot("on_dataset", "dataset", "enough rows for one learner round", schema=0x666593617CF3A993)]

    joint = False  # a subclass that learns policy.actions as they are sets it; others are given one choice that counts from 0
    inputs = False  # a subclass that reads policy.inputs as they are sets it; others are given one observation of f32
    boxes = False  # a subclass that learns Box actions sets it; others are given discrete ones alone
    agents = False  # a subclass that leaves out rows in which an agent does not act (active is 0) sets it; others' agents always act
    cores = False  # a subclass that learns a core, by chunks of rows, sets it; others are given none
    accumulates = False  # a subclass whose optimiser steps are of config.accumulate minibatches sets it; others' are of one
    warms = False  # a subclass that leaves the first config.burn_in_rows rows of a chunk to warming its state up sets it; others have none
    networks = False  # a subclass that learns any network of the host sets it, and gets a Network; others get a PolicyLayout
    policy: Any  # from begin_learning on
    env_steps = 0  # learned from so far
    optimizer_steps = 0  # learn adds to it
    version = 0  # of the newest published policy
    datasets = 0  # learned from so far

    # For a subclass to override.

    def begin_learning(self, policy: Any) -> None:
        """Makes the network."""
        raise NotImplementedError

    def learn(self, dataset: Dataset) -> Mapping[str, float]:
        """Learns from a dataset and returns numbers by name, such as losses/policy_loss; the names stay the same."""
        raise NotImplementedError

    def parameters(self) -> Mapping[str, Any]:
        """The parameters by the names of PolicyLayout.tensors: arrays or tensors, or views of them, on any device. A
        restored state is written into them."""
        raise NotImplementedError

    def observed(self) -> tuple[float, Any, Any] | None:
        """If the policy normalises observations: their count, mean, and sum of squared distances from it, for each
        of policy.running. The network gets (obs - mean) / sqrt(variance + 1e-8), within -10 to 10."""
        return None

    def returned(self) -> tuple[float, float, float] | None:
        """If values are learned in units of returns: their count, mean, and sum of squared distances from it. A value v is
        mean + deviation * x where the network gives x; what is published gives v, which is 0 before the first return."""
        return None

    def learner_state(self) -> State:
        """The state besides parameters and counters, such as the optimiser's moments, for set_learner_state."""
        return State()

    def set_learner_state(self, state: State) -> None:
        """Continues from a state whose parameters have been restored."""

    # Implemented for a subclass.

    Config = LearnerConfig  # a subclass may have one of its own, with more keys
    config: LearnerConfig  # from configure on

    def configure(self, config: dict[str, Any]) -> None:
        """Reads the table."""
        self.config = decode(config, self.Config)
        self.config.check()
        errors, who = [], type(self).__name__
        if self.config.accumulate != 1 and not self.accumulates:
            errors.append(ConfigError("accumulate", f"is {self.config.accumulate}, and {who} makes an optimiser step of each minibatch",
                                      "raise minibatch, or write a learner that adds gradients up and sets accumulates"))
        if self.config.burn_in_rows and not self.warms:
            errors.append(ConfigError("burn_in_rows", f"is {self.config.burn_in_rows}, and {who} begins chunks with the stored states",
                                      "take it out, or write a learner that warms them up and sets warms"))
        for key, alone in (("learners", 1), ("hosts", 0)):
            if getattr(self.config, key) != alone:
                errors.append(ConfigError(key, f"is {getattr(self.config, key)}, and {who} learns alone", "take it out"))
        if errors:
            raise ConfigErrors(errors)

    def start(self, host: Host) -> None:
        """Makes the arena of the weights, and the network."""
        self.policy = Network.of(host, self.config.policy) if self.networks else PolicyLayout.of(host, self.config.policy)
        if self.policy.env.tensor(ACTIVE) and not self.agents:
            raise ValueError(f"policy {self.config.policy!r}: its agents do not always act, which this learner does not learn: want such as do")
        if isinstance(self.policy, PolicyLayout):
            self._check_inputs()
            self._check_core()
        self._check_burn_in()
        self._check_actions()
        self._shapes = self.policy.tensors()
        self._floats = sum(_elems(shape) for shape in self._shapes.values())
        self._normalised = len(self.policy.running)
        # The publisher keeps one version and writes another, besides those of its readers.
        self._weights = host.add_arena("weights", 2 + host.readers.get("weights", 1),
                                       _WEIGHTS_HEAD + 4 * (self._floats + 2 * self._normalised))
        self._stats: Any = None
        self._upload = Upload(host.log)
        self._published = 0
        self._steps_at: dict[int, int] = {}
        self.begin_learning(self.policy)

    def _check_inputs(self) -> None:
        """Raises ValueError for observations that cannot be learned from."""
        inputs = self.policy.inputs
        if not self.inputs and (len(inputs) > 1 or not inputs[0].plain):
            what = f"{len(inputs)} observations" if len(inputs) > 1 else f"an observation of {inputs[0].dtype}"
            raise ValueError(f"policy {self.config.policy!r}: the environment has {what}, which this learner does not learn from: want one of f32")

    def _check_actions(self) -> None:
        """Raises ValueError for actions that cannot be learned."""
        actions, what = self.policy.actions, ""
        if not self.boxes and any(isinstance(a, Box) for a in actions):
            what = "the action is a Box"
        elif not self.joint and len(actions) > 1:
            what = f"the environment has {len(actions)} actions"
        elif not self.joint and isinstance(actions[0], Discrete) and not actions[0].plain:
            what = f"the action has {len(actions[0].counts)} elements with values from {actions[0].start} on"
        if what:
            raise ValueError(f"policy {self.config.policy!r}: {what}, which this learner does not learn: want one choice that counts from 0")

    def _check_core(self) -> None:
        """Raises ValueError for a core that cannot be learned."""
        core = self.policy.core
        if core and not self.cores:
            raise ValueError(f"policy {self.config.policy!r}: it has a core {core.kind!r}, which this learner does not learn: want "
                             "net without core")
        if core and core.chunk > self.config.minibatch:
            raise ValueError(f"minibatch = {self.config.minibatch} rows is less than one of the chunks that policy {self.config.policy!r} "
                             f"is learned in: want {core.chunk} or more, or a smaller net.chunk")

    def _check_burn_in(self) -> None:
        """Raises ValueError for burn-in that leaves nothing of a chunk."""
        if isinstance(self.policy, PolicyLayout):
            chunk = self.policy.core.chunk if self.policy.core else 0
        else:
            chunk = self.policy.chunk
        rows = self.config.burn_in_rows
        if rows and rows >= chunk:
            why = f"is learned in chunks of {chunk} rows, of which none would be left" if chunk else "keeps no state that rows could warm up"
            raise ValueError(f"burn_in_rows = {rows}, and policy {self.config.policy!r} {why}: want fewer, or a larger net.chunk")

    def begin(self) -> None:
        """Publishes the initial policy, or that of a restored state: as the newest published version if it is that, else under one that no
        learner of it has published before."""
        if self.version < self.host.published:
            self.version = self.host.published + 1
        self._publish()

    def on_dataset(self, m: _native.Message) -> None:
        """Learns from a dataset, publishes, reports, and announces the boundary."""
        import numpy
        began = time.perf_counter()
        with contextlib.ExitStack() as leases:
            block = leases.enter_context(self.host.lease(m.handle)).array
            blocks = []
            for handle, part in _members(block):
                whole = leases.enter_context(self.host.lease(handle)).rows_of(self.config.policy)
                blocks.append(whole.part(*part) if part else whole)
            acted = numpy.concatenate([numpy.asarray(b["policy_version"])[:-1].ravel().astype(numpy.int64) for b in blocks])
            weight = numpy.repeat([b.envs for b in blocks], [len(b["policy_version"]) - 1 for b in blocks])
            rows = sum(int(numpy.count_nonzero(b["valid"])) for b in blocks)
            lag = self.version - numpy.minimum(acted, self.version)
            steps = self.optimizer_steps - numpy.array([self._steps_at.get(v, 0) for v in acted.tolist()])
            told = dict(self.learn(Dataset(blocks, self.datasets, leases.close, self._upload)))
        self.env_steps += rows
        self.host.stats.count("learner/env_steps", rows)
        if self.host.run.policy not in ("", self.config.policy):  # those of the leading policy are the rest
            self.host.stats.count(f"{self.config.policy}/learner/env_steps", rows)
        self.version += 1
        self.datasets += 1
        self._publish()
        self._report({"global_step": self.env_steps, "policy_version": self.version, "lag/mean": numpy.average(lag, weights=weight),
                      "lag/max": lag.max(), "lag/optimizer_steps_mean": numpy.average(steps, weights=weight), "learner/optimizer_steps": self.optimizer_steps,
                      "losses/valid_rows": rows, "perf/update_seconds": time.perf_counter() - began, **told})
        self.host.boundary()

    def snapshot(self) -> State:
        """The state of a learner in the form of the built-in one: evaluation reads the network from it."""
        own, p, observed = self.learner_state(), self.policy, self.observed()
        meta = {"policy_version": self.version, "env_steps": self.env_steps, "optimizer_steps": self.optimizer_steps,
                "datasets": self.datasets, "network": p.network()}
        if self._normalised:
            count, mean, m2 = observed or (0.0, [0.0] * self._normalised, [0.0] * self._normalised)
            meta["normalizer"] = {"count": count, "mean": _array(mean).tolist(), "m2": _array(m2).tolist()}
        if (returned := self.returned()) is not None:
            meta["returns"] = dict(zip(("count", "mean", "m2"), returned))
        given = self.parameters()
        return State({**(own.meta or {}), **meta}, {**{name: _array(given[name]) for name in self._shapes}, **own.tensors}, own.blobs)

    def restore(self, state: State) -> None:
        """Continues from a snapshot of a learner with the same network."""
        self.policy.check(state.meta["network"])
        values = {}
        for name, shape in self._shapes.items():
            saved = state.tensors.get(name)
            if saved is None or saved.size != _elems(shape):
                raise ValueError(f"the saved policy has no {name} of shape {list(shape)}")
            values[name] = saved.reshape(shape)
        self._take(values)
        self.set_learner_state(state)
        self.version, self.env_steps = state.meta["policy_version"], state.meta["env_steps"]
        self.optimizer_steps, self.datasets = state.meta["optimizer_steps"], state.meta["datasets"]

    def _take(self, values: Mapping[str, numpy.ndarray]) -> None:
        """Writes a restored state into the parameters."""
        given = self.parameters()
        for name, value in values.items():
            _assign(given[name], value)

    def stop(self) -> None:
        """Releases the newest weights."""
        if getattr(self, "_published", 0):
            self._weights.release(self._published)
            self._published = 0

    def _publish(self) -> None:
        """Writes the parameters into a block and emits it as the newest version; releases the previous one."""
        with self._weights.loan() as loan:
            _WEIGHTS.pack_into(loan.array, 0, self.version, self._floats, self._normalised)  # type: ignore[arg-type,unused-ignore]
            floats = self._floats + 2 * self._normalised
            self._write(loan.array[_WEIGHTS_HEAD:_WEIGHTS_HEAD + 4 * floats].view("<f4"))
            handle = loan.commit()
        if self._published:
            self._weights.release(self._published)
        self._published = handle
        self._steps_at[self.version] = self.optimizer_steps
        self._steps_at.pop(self.version - _VERSIONS, None)
        self.host.emit("weights", handle, policy_version=self.version)

    def _write(self, into: numpy.ndarray) -> None:
        given, at = self.parameters(), 0
        deviation, mean = unit(self.returned())
        for name, shape in self._shapes.items():
            value = _array(given[name])
            if name == "critic.head.weight":
                value = value * deviation
            elif name == "critic.head.bias":
                value = value * deviation + mean
            if value.shape != shape:
                raise ValueError(f"parameter {name} has shape {list(value.shape)}, want {list(shape)}")
            into[at:at + value.size] = value.ravel()
            at += value.size
        if self._normalised:
            count, mean, m2 = self.observed() or (0.0, 0.0, 0.0)
            into[at:at + self._normalised] = _array(mean)
            into[at + self._normalised:] = 1 / (_array(m2) / count + 1e-8) ** 0.5 if count else 1.0

    def _report(self, values: Mapping[str, float]) -> None:
        """Emits the report of one update. Learning does not wait for its log: without a free block the report is
        skipped and counted."""
        if self._stats is None:
            self._names = list(values)
            self._stats = self.host.add_arena("stats", _REPORTS, 8 * len(values), names=self._names)
        try:
            loan = self._stats.loan()
        except Exhausted:
            self.host.stats.count("learner/stats_skipped")
            return
        loan.array[:8 * len(self._names)].view("<f8")[:] = [float(values[name]) for name in self._names]
        handle = loan.commit()
        self.host.emit("stats", handle, policy_version=self.version)
        self._stats.release(handle)


def unit(returned: tuple[float, float, float] | None) -> tuple[float, float]:
    """Deviation and mean of what Learner.returned returns; 1 and 0 for None."""
    if returned is None:
        return 1.0, 0.0
    count, mean, m2 = returned
    return ((m2 / count) ** 0.5 if count else 0.0), mean


def _members(block: numpy.ndarray) -> list[tuple[int, tuple[int, int] | None]]:
    """The handles of a dataset's trajectories, each with the first environment and the number of them where only a part belongs to it."""
    import numpy
    _, count, parts = _DATASET.unpack_from(block)  # type: ignore[arg-type,unused-ignore]
    if 8 * count + _PART.size * parts > len(block) - _DATASET.size:
        raise ValueError(f"a dataset of {count} trajectories and {parts} parts in {len(block)} bytes")
    handles: list[int] = numpy.frombuffer(block, "<u8", count, _DATASET.size).tolist()
    spans: dict[int, tuple[int, int]] = {}
    for i in range(parts):
        at, first, envs, _ = _PART.unpack_from(block, _DATASET.size + 8 * count + _PART.size * i)  # type: ignore[arg-type,unused-ignore]
        if at >= count:
            raise ValueError(f"a part of trajectory {at} of {count}")
        spans[at] = first, envs
    return [(handle, spans.get(i)) for i, handle in enumerate(handles)]


def _elems(shape: tuple[int, ...]) -> int:
    n = 1
    for size in shape:
        n *= size
    return n


def _assign(into: Any, value: numpy.ndarray) -> None:
    """Writes an array into an array or a tensor."""
    if hasattr(into, "detach"):
        import torch
        into.detach().copy_(torch.from_numpy(value))
    else:
        into[...] = value


def _array(value: Any) -> numpy.ndarray:
    """An array of an array or a tensor, on any device."""
    import numpy
    if hasattr(value, "detach"):
        value = value.detach().cpu().numpy()
    made: numpy.ndarray = numpy.asarray(value)
    return made
