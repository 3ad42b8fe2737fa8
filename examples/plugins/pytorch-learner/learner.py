#!/usr/bin/env python3
"""A learner in PyTorch for rlhost's APPO batches, in the place of the built-in one: the same ports, the same weights.

    [plugin.torch]
    path = "examples/plugins/pytorch-learner/learner.py"
    interpreter = ["python3"]
    start = "2m"  # PyTorch is large

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

import rlhost

HEAD = 64  # bytes of a weights block before the parameters
DATASET = struct.Struct("<QII")  # index, count; then count handles
STATS_BLOCKS = 128  # reports that may wait for the runner
STAT_NAMES = [
    "global_step", "policy_version", "charts/learning_rate", "charts/clip", "lag/mean", "lag/max",
    "lag/optimizer_steps_mean", "lag/dropped_rows", "learner/optimizer_steps", "perf/update_seconds",
    "losses/policy_loss", "losses/value_loss", "losses/entropy", "losses/approx_kl", "losses/old_approx_kl",
    "losses/clipfrac", "losses/first_clipfrac", "losses/first_ratio_error", "losses/explained_variance",
    "losses/grad_norm", "losses/actor_grad_norm", "losses/critic_grad_norm", "losses/optimizer_steps", "losses/epochs",
    "losses/valid_rows",
]


@dataclasses.dataclass
class Config:
    """The component's table: the keys of the built-in learner, and threads."""

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
    clip_grad_apart: bool = False  # actor and critic each by its own norm, unless they share parameters
    normalize_advantage: bool = True
    target_kl: float = 0.0
    vtrace: bool = False
    rho_bar: float = 1.0
    c_bar: float = 1.0
    recompute: str = "dataset"  # when V-trace's ratios are computed: dataset or epoch
    adam_eps: float = 1e-5
    threads: int = 1  # of PyTorch

    def rates(self, env_steps):
        """Learning rate and clip at an env step."""
        left = max(0.0, 1 - env_steps / self.anneal_env_steps) if self.anneal_env_steps else 1.0
        return self.learning_rate * left, self.clip * (left if self.anneal_clip else 1.0)


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
                                         ("value_coef", 0, 100), ("value_clip", 0, 1e6), ("max_grad_norm", 0, 1e6),
                                         ("target_kl", 0, 100), ("rho_bar", 1e-6, 1e6), ("c_bar", 1e-6, 1e6),
                                         ("adam_eps", 1e-12, 1), ("threads", 1, 256))
                  if not low <= getattr(c, key) <= high]
        if c.recompute not in ("dataset", "epoch"):
            errors.append(rlhost.ConfigError("recompute", f'is "{c.recompute}", want dataset or epoch'))
        if errors:
            raise rlhost.ConfigErrors(errors)

    def start(self, host):
        import ppo  # and with it PyTorch, which takes seconds: not needed to check a pipeline

        policy = host.policies[self.config.policy]
        spec, table = host.env(policy.env), policy.table
        net = {"hidden": [64, 64], "activation": "tanh", **(table.get("net") or {})}
        self.trainer = ppo.Trainer(self.config, host.seed, spec.obs_elems, spec.actions, net["hidden"], net["activation"],
                                   bool(table.get("share_trunk")), bool(table.get("normalize_obs")))
        self.version = self.env_steps = self.optimizer_steps = self.index = 0
        self.steps_at = {}  # optimiser steps behind the versions that were published, the newest 65,536
        self.published = 0
        # The publisher keeps one version and writes another, besides what its readers hold.
        self.weights = host.add_arena("weights", 2 + host.readers.get("weights", 1), HEAD + 4 * self.trainer.floats)
        self.stats = host.add_arena("stats", STATS_BLOCKS, 8 * len(STAT_NAMES), names=STAT_NAMES)

    def begin(self):
        self.publish()

    def on_dataset(self, m):
        began = time.perf_counter()
        with contextlib.ExitStack() as leases:
            handles = self.read_dataset(leases.enter_context(self.host.lease(m.handle)).array)
            blocks = [leases.enter_context(self.host.lease(h)).trajectory for h in handles]
            lag = self.lag(blocks)
            dataset = self.trainer.read(blocks)
        rates = self.config.rates(self.env_steps)
        report = self.trainer.learn(dataset, *rates, self.index)
        self.env_steps += int(report.valid_rows)
        self.optimizer_steps += int(report.optimizer_steps)
        self.version += 1
        self.index += 1
        self.publish()
        self.report([self.env_steps, self.version, *rates, *lag, 0, self.optimizer_steps,
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
        oldest = next(iter(self.steps_at.values()))  # for versions from before this learner: the lag is that much at least
        steps = self.optimizer_steps - numpy.array([self.steps_at.get(v, oldest) for v in acted.tolist()])
        return behind.mean(), behind.max(), steps.mean()

    def publish(self):
        """Writes the parameters into a block and emits it as the newest version; the one before is let go of."""
        with self.weights.loan() as loan:
            struct.pack_into("<QII", loan.array, 0, self.version, self.trainer.parameters, self.trainer.statistics)
            self.trainer.write(loan.array[HEAD:HEAD + 4 * self.trainer.floats].view("<f4"))
            handle = loan.commit()
        if self.published:
            self.weights.release(self.published)
        self.published = handle
        self.steps_at[self.version] = self.optimizer_steps
        self.steps_at.pop(self.version - 65_536, None)
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
        meta, tensors = self.trainer.state()
        meta |= {"policy_version": self.version, "env_steps": self.env_steps, "optimizer_steps": self.optimizer_steps,
                 "datasets": self.index, "anneal_env_steps": self.config.anneal_env_steps}
        return rlhost.State(meta, tensors)

    def restore(self, state):
        self.trainer.set_state(state.meta, state.tensors)
        self.version, self.env_steps = state.meta["policy_version"], state.meta["env_steps"]
        self.optimizer_steps, self.index = state.meta["optimizer_steps"], state.meta["datasets"]

    def stop(self):
        if getattr(self, "published", 0):
            self.weights.release(self.published)
            self.published = 0


if __name__ == "__main__":
    rlhost.serve(Learner)
