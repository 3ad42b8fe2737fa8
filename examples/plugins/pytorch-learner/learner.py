#!/usr/bin/env python3
"""A learner in PyTorch for rlhost's APPO batches, in the place of the built-in one: the same ports, the same weights.

    [plugin.torch]
    path = "examples/plugins/pytorch-learner/learner.py"
    interpreter = ["python3"]

    [component.learner]
    kind = "learner"
    plugin = "torch"
    policy = "main"

What it computes stands in ppo.py."""

import contextlib
import dataclasses
import struct
import time

import numpy
import torch

import ppo
import rlhost

HEAD = 64  # bytes of a weights block before the parameters
DATASET = struct.Struct("<QII")  # index, count; then count handles
STATS_BLOCKS = 128  # reports that may wait for the runner
STAT_NAMES = ["global_step", "policy_version", "charts/learning_rate", "charts/clip", "lag/mean", "lag/max",
              "lag/optimizer_steps_mean", "lag/dropped_rows", "learner/optimizer_steps", "perf/update_seconds",
              *("losses/" + f.name for f in dataclasses.fields(ppo.Report))]


@dataclasses.dataclass
class Config:
    """The component's table: the keys of the built-in learner that PPO needs."""

    policy: str
    learning_rate: float = 2.5e-4
    anneal_env_steps: int = 0  # learning rate falls to 0 over these; 0 = constant
    anneal_clip: bool = False
    gamma: float = 0.99
    gae_lambda: float = 0.95
    clip: float = 0.2
    epochs: int = 4
    minibatch: int = 128
    entropy: float = 0.01
    value_coef: float = 0.5  # of 1/2 MSE
    value_clip: float = 0.0
    max_grad_norm: float = 0.5
    normalize_advantage: bool = True
    target_kl: float = 0.0
    adam_eps: float = 1e-5
    threads: int = 1  # of PyTorch

    def rates(self, env_steps):
        left = max(0.0, 1 - env_steps / self.anneal_env_steps) if self.anneal_env_steps else 1.0
        return ppo.Rates(self.learning_rate * left, self.clip * (left if self.anneal_clip else 1.0), self.entropy)


class Learner(rlhost.Component):
    """Improves one policy by PPO in PyTorch."""

    kind = "learner"
    signals = [rlhost.Signal("weights", "weights", "a new policy version"),
               rlhost.Signal("stats", "learner_stats", "what one dataset's update reports")]
    slots = [rlhost.Slot("on_dataset", "dataset", "enough rows for one learner round")]

    def configure(self, config):
        self.config = c = rlhost.decode(config, Config)
        errors = [rlhost.ConfigError(key, f"is {getattr(c, key)}, want {low} to {high}")
                  for key, low, high in (("learning_rate", 0, 1), ("gamma", 0, 1), ("gae_lambda", 0, 1), ("clip", 1e-6, 10),
                                         ("epochs", 1, 1000), ("minibatch", 1, 1 << 24), ("entropy", 0, 10),
                                         ("value_coef", 0, 100), ("max_grad_norm", 0, 1e6), ("adam_eps", 1e-12, 1),
                                         ("threads", 1, 256))
                  if not low <= getattr(c, key) <= high]
        if errors:
            raise rlhost.ConfigErrors(errors)

    def start(self, host):
        torch.set_num_threads(self.config.threads)
        torch.manual_seed(host.seed & (1 << 63) - 1)
        policy = host.policies[self.config.policy]
        spec, table = host.env(policy.env), policy.table
        net = {"hidden": [64, 64], "activation": "tanh", **(table.get("net") or {})}
        self.network = ppo.Network(spec.obs_elems, spec.actions, net["hidden"], net["activation"],
                                   bool(table.get("share_trunk")))
        self.normalizer = ppo.Normalizer(spec.obs_elems) if table.get("normalize_obs") else None
        self.optimizer = torch.optim.Adam(self.network.parameters(), eps=self.config.adam_eps)
        self.version = self.env_steps = self.optimizer_steps = self.index = 0
        self.steps_at = {}  # optimiser steps behind recent versions
        self.published = 0
        self.parameters = sum(p.numel() for p in self.network.parameters())
        self.normalised = spec.obs_elems if self.normalizer else 0
        # The publisher keeps one version and writes another, besides what its readers hold.
        self.weights = host.add_arena("weights", 2 + host.readers.get("weights", 1),
                                      HEAD + 4 * self.parameters + 8 * self.normalised)
        self.stats = host.add_arena("stats", STATS_BLOCKS, 8 * len(STAT_NAMES), names=STAT_NAMES)

    def begin(self):
        self.publish()

    def on_dataset(self, m):
        began = time.perf_counter()
        with contextlib.ExitStack() as leases:
            handles = self.read_dataset(leases.enter_context(self.host.lease(m.handle)).array)
            blocks = [leases.enter_context(self.host.lease(h)).trajectory for h in handles]
            lag = self.lag(blocks)
            dataset = ppo.Dataset.of(blocks, self.network.actions)
        rates = self.config.rates(self.env_steps)
        report = ppo.update(self.network, self.optimizer, dataset, self.config, rates, self.host.seed, self.index,
                            self.normalizer.weights() if self.normalizer else None)
        if self.normalizer:
            self.normalizer.update(dataset)
        self.env_steps += int(report.valid_rows)
        self.optimizer_steps += int(report.optimizer_steps)
        self.version += 1
        self.index += 1
        self.publish()
        self.report([self.env_steps, self.version, rates.learning_rate, rates.clip, *lag, 0, self.optimizer_steps,
                     time.perf_counter() - began, *dataclasses.astuple(report)])
        self.host.boundary()

    @staticmethod
    def read_dataset(block):
        """The handles of a dataset's trajectories."""
        _, count, _ = DATASET.unpack_from(block)
        if count > (len(block) - DATASET.size) // 8:
            raise ValueError(f"a dataset of {count} trajectories in {len(block)} bytes")
        return numpy.frombuffer(block, "<u8", count, DATASET.size).tolist()

    def lag(self, blocks):
        """How old the policies were that acted: mean and largest in versions, mean in optimiser steps."""
        acted = numpy.concatenate([b["policy_version"][:-1].ravel().astype(numpy.int64) for b in blocks])
        behind = self.version - numpy.minimum(acted, self.version)
        steps = self.optimizer_steps - numpy.array([self.steps_at.get(v, 0) for v in acted.tolist()])
        return behind.mean(), behind.max(), steps.mean()

    def publish(self):
        """Writes the parameters into a block and emits it as the newest version; the one before is let go of."""
        with self.weights.loan() as loan:
            struct.pack_into("<QII", loan.array, 0, self.version, self.parameters, self.normalised)
            parts = [self.network.vector(), *(self.normalizer.weights() if self.normalizer else ())]
            values = torch.from_dlpack(loan.array[HEAD:HEAD + 4 * self.parameters + 8 * self.normalised].view("<f4"))
            torch.cat(parts, out=values)
            handle = loan.commit()
        if self.published:
            self.weights.release(self.published)
        self.published = handle
        self.steps_at[self.version] = self.optimizer_steps
        self.steps_at.pop(self.version - 256, None)
        self.host.emit("weights", handle, policy_version=self.version)

    def report(self, values):
        """Emits what one update did. Learning does not wait for its log: a report for which no block is free is
        skipped and counted."""
        try:
            loan = self.stats.loan()
        except rlhost.Exhausted:
            self.host.stats.count("learner/stats_skipped")
            return
        loan.array[:8 * len(values)].view("<f8")[:] = values
        handle = loan.commit()
        self.host.emit("stats", handle, policy_version=self.version)
        self.stats.release(handle)

    # States are those of the built-in learner: either goes on from the other's.

    def snapshot(self):
        n = self.network
        meta = {
            "network": {"obs": n.obs, "actions": n.actions, "hidden": n.hidden, "activation": n.activation,
                        "share_trunk": n.share_trunk, "normalize_obs": self.normalizer is not None,
                        "hidden_gain": 2**0.5, "policy_gain": 0.01, "value_gain": 1},
            "policy_version": self.version, "env_steps": self.env_steps, "optimizer_steps": self.optimizer_steps,
            "datasets": self.index, "adam_steps": 0, "anneal_env_steps": self.config.anneal_env_steps,
        }
        if self.normalizer:
            z = self.normalizer
            meta["normalizer"] = {"count": z.count, "mean": z.mean.tolist(), "m2": z.m2.tolist()}
        tensors = {}
        for name, p, turned in n.tensors():
            state = self.optimizer.state.get(p) or {"exp_avg": torch.zeros_like(p), "exp_avg_sq": torch.zeros_like(p), "step": 0}
            meta["adam_steps"] = int(state["step"])
            for prefix, value in (("", p), ("adam_m.", state["exp_avg"]), ("adam_v.", state["exp_avg_sq"])):
                value = value.detach().t() if turned else value.detach()
                tensors[prefix + name] = (value[0] if turned and len(value) == 1 else value).numpy().copy()
        return rlhost.State(meta, tensors)

    def restore(self, state):
        meta, n = state.meta, self.network
        for key, now in (("obs", n.obs), ("actions", n.actions), ("hidden", n.hidden), ("activation", n.activation),
                         ("share_trunk", n.share_trunk), ("normalize_obs", self.normalizer is not None)):
            if meta["network"][key] != now:
                raise ValueError(f"the saved policy has {key} {meta['network'][key]}, the pipeline {now}")

        def saved(name, like, turned):
            data = torch.from_numpy(state.tensors[name])
            return data.reshape(like.t().shape).t() if turned else data.reshape(like.shape)

        with torch.no_grad():
            for name, p, turned in n.tensors():
                p.copy_(saved(name, p, turned))
                self.optimizer.state[p] = {
                    "step": torch.tensor(float(meta["adam_steps"])), "exp_avg": saved("adam_m." + name, p, turned).clone(),
                    "exp_avg_sq": saved("adam_v." + name, p, turned).clone()}
        if self.normalizer:
            z = meta["normalizer"]
            self.normalizer.count, self.normalizer.mean, self.normalizer.m2 = z["count"], numpy.array(z["mean"]), numpy.array(z["m2"])
        self.version, self.env_steps = meta["policy_version"], meta["env_steps"]
        self.optimizer_steps, self.index = meta["optimizer_steps"], meta["datasets"]

    def stop(self):
        if getattr(self, "published", 0):
            self.weights.release(self.published)
            self.published = 0


if __name__ == "__main__":
    rlhost.serve(Learner)
