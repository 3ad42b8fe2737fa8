#!/usr/bin/env python3
"""An algorithm that is not PPO alone: a bonus for observations that are new (random network distillation, Burda et al. 2018)."""

import torch
from torch import nn
import rlhost
from ppo import PPO


class Distilled(nn.Module):
    """A random network, another one that learns its outputs, and how large its errors were. The error is small where it has often been."""

    def __init__(self, inputs, hidden=128, outputs=32):
        super().__init__()
        self.target, self.learned = (nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, outputs)) for _ in range(2))
        self.target.requires_grad_(False)
        self.register_buffer("scale", torch.ones(()))  # mean of the errors, over the newest datasets

    def error(self, obs):
        return (self.learned(obs) - self.target(obs)).square().mean(1)


class RND(PPO):
    """PPO of the environment's reward and the bonus. What it has among its attributes is saved and resumed."""

    bonus = 0.01  # of an error of average size

    def begin_learning(self, policy):
        super().begin_learning(policy)
        self.distilled = Distilled(policy.env.tensor(rlhost.spec.OBSERVATION).elems)
        self.distilling = torch.optim.Adam(self.distilled.learned.parameters(), lr=1e-3)

    def reward(self, d):
        seen = d["obs"][1:].flatten(2).float()  # what the actions led to; of an action that ends an episode, the next one's first
        with torch.no_grad():
            error = self.distilled.error(seen.flatten(0, 1)).view(d["reward"].shape)
            self.distilled.scale.lerp_(error.mean(), 0.1)
        self.distill(seen[d["valid"]])
        return d["reward"] + self.bonus * error / self.distilled.scale * ~(d["terminated"] | d["truncated"])

    def distill(self, rows):
        for at in torch.randperm(len(rows)).tensor_split(4):
            self.distilling.zero_grad()
            self.distilled.error(rows[at]).mean().backward()
            self.distilling.step()


if __name__ == "__main__":
    rlhost.serve(RND)
