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

What it computes stands in network.py and ppo.py."""

import dataclasses

import rlhost


class Learner(rlhost.Learner):
    """Improves one policy by PPO in PyTorch."""

    inputs = joint = boxes = agents = cores = accumulates = warms = True

    def begin_learning(self, policy):
        import ppo  # and with it PyTorch, which takes seconds: not needed to check a pipeline

        self.trainer = ppo.Trainer(self.config, self.host.seed, policy)

    def learn(self, dataset):
        data = self.trainer.read(dataset)
        dataset.release()  # all of it has been copied
        learning_rate, clip = self.config.rates(self.env_steps)
        report = self.trainer.learn(data, learning_rate, clip, dataset.index)
        if self.trainer.following:
            learning_rate = float(self.trainer.following.rate)
        self.optimizer_steps += int(report.optimizer_steps)
        losses = {"losses/" + name: value for name, value in dataclasses.asdict(report).items()}
        return {"charts/learning_rate": learning_rate, "charts/clip": clip, "lag/dropped_rows": 0, **losses}

    def parameters(self):
        return {name: p.t() if turned else p for name, p, turned in self.trainer.network.tensors()}

    def observed(self):
        z = self.trainer.normalizer
        return z and (z.count, z.mean, z.m2)

    def returned(self):
        seen = self.trainer.returns
        return seen and (seen.count, seen.mean, seen.m2)

    # States are those of the built-in learner: either goes on from the other's.

    def learner_state(self):
        meta, tensors = self.trainer.state()
        return rlhost.State({**meta, "anneal_env_steps": self.config.lr_anneal_env_steps}, tensors)

    def set_learner_state(self, state):
        self.trainer.set_state(state.meta, state.tensors)


if __name__ == "__main__":
    rlhost.serve(Learner)
