#!/usr/bin/env python3
"""PyTorch on one thread, doing what rlhost's cpu backend does: one PPO minibatch step (forward, loss, backward,
clipping by the global norm, fused Adam), eager and with torch.compile; and acting for a batch of observations.

Actor and critic are separate tanh networks; the action is one Discrete, or a Box with a deviation of its own. The step gets its minibatch ready made: drawing it from the dataset,
which rlhost's figure includes, is left out here."""

import argparse
import copy
import math

import torch
from torch import nn
from torch.nn import functional as F

import report

STEPS = [((4, 64, 64), 2, 64), ((4, 64, 64), 2, 1024), ((64, 512, 512), 8, 1024)]  # network, actions, rows
BOXES = [((17, 64, 64), 6, 1024)]  # network, elements, rows
ACTS = [((4, 64, 64), 2, 1), ((4, 64, 64), 2, 64)]


def mlp(sizes, out, gain):
    layers = []
    for size, following in zip(sizes, sizes[1:]):
        layers += [nn.Linear(size, following), nn.Tanh()]
    layers.append(nn.Linear(sizes[-1], out))
    for layer in layers[::2]:
        nn.init.orthogonal_(layer.weight, 2**0.5 if layer is not layers[-1] else gain)
        nn.init.zeros_(layer.bias)
    return nn.Sequential(*layers)


def clipped_loss(new_log_prob, entropy, value, log_prob, advantage, target):
    """PPO's clipped loss with an entropy bonus; advantages are normalised per minibatch."""
    ratio = (new_log_prob - log_prob).exp()
    advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
    policy = -torch.min(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage).mean()
    return policy + 0.25 * F.mse_loss(value, target) - 0.01 * entropy


def chosen(logits, action):
    """Log-probabilities of actions, and the mean entropy."""
    log_probs = F.log_softmax(logits, dim=1)
    return log_probs.gather(1, action).squeeze(1), -(log_probs.exp() * log_probs).sum(1).mean()


def draw(logits):
    """Samples actions (by the Gumbel trick, the fastest way here) and returns log-probabilities too."""
    log_probs = F.log_softmax(logits, dim=1)
    action = (log_probs - torch.empty_like(log_probs).exponential_().log_()).argmax(1, keepdim=True)
    return action, log_probs.gather(1, action)


class Policy(nn.Module):
    def __init__(self, sizes, actions):
        super().__init__()
        self.actor, self.critic = mlp(sizes, actions, 0.01), mlp(sizes, 1, 1.0)

    def taken(self, obs, action):
        return chosen(self.actor(obs), action)

    def loss(self, obs, action, log_prob, advantage, target):
        return clipped_loss(*self.taken(obs, action), self.critic(obs).squeeze(1), log_prob, advantage, target)

    def act(self, obs):
        """Samples actions and returns log-probabilities and values too."""
        return *draw(self.actor(obs)), self.critic(obs)
    def actions(self, rows):
        """Any actions."""
        return torch.randint(self.actor[-1].out_features, (rows, 1))


class Box(Policy):
    """The same with an independent normal distribution of each element, whose deviations are parameters."""

    def __init__(self, sizes, elements):
        super().__init__(sizes, elements)
        self.log_std = nn.Parameter(torch.zeros(elements))

    def taken(self, obs, action):
        z = (action - self.actor(obs)) * (-self.log_std).exp()
        constant = math.log(2 * math.pi) / 2
        return -(z * z / 2 + self.log_std + constant).sum(1), (self.log_std + constant + 0.5).sum()

    def actions(self, rows):
        return torch.randn(rows, self.actor[-1].out_features)


def minibatch(policy, sizes, rows):
    obs, action = torch.randn(rows, sizes[0]), policy.actions(rows)
    with torch.no_grad():
        log_prob, _ = policy.taken(obs, action)
    return obs, action, log_prob, torch.randn(rows), torch.randn(rows)


def training_step(policy, batch, compiled):
    loss = torch.compile(policy.loss) if compiled else policy.loss
    params = list(policy.parameters())
    optimizer = torch.optim.Adam(params, lr=1e-5, eps=1e-5, fused=True)

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss(*batch).backward()
        nn.utils.clip_grad_norm_(params, 0.5)
        optimizer.step()

    return step


def update(args):
    for kind, sizes, actions, rows in [(Policy, *case) for case in STEPS] + [(Box, *case) for case in BOXES]:
        original, net = kind(sizes, actions), "-".join(map(str, sizes)) + (f"-box{actions}" if kind is Box else "")
        for compiled in (False, True):
            policy = copy.deepcopy(original)
            step = training_step(policy, minibatch(policy, sizes, rows), compiled)
            best, median = report.times(step, args.seconds, steps_per_sample=max(1, 1024 // rows))
            report.emit(peer="torch", what="step", compiled=compiled, net=net, rows=rows, best_ns=best, median_ns=median)


def act(args):
    for sizes, actions, rows in ACTS:
        policy, obs = Policy(sizes, actions), torch.randn(rows, sizes[0])
        for compiled in (False, True):
            with torch.inference_mode():
                call = torch.compile(policy.act) if compiled else policy.act
                best, median = report.times(lambda: call(obs), args.seconds, steps_per_sample=8)
            report.emit(peer="torch", what="act", compiled=compiled, net="-".join(map(str, sizes)), rows=rows,
                        best_ns=best, median_ns=median)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=["step", "act"], help="measure one of the two")
    parser.add_argument("--seconds", type=float, default=3, help="time for each figure")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    if args.only != "act":
        update(args)
    if args.only != "step":
        act(args)


if __name__ == "__main__":
    main()
