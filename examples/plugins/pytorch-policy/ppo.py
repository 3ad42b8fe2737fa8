#!/usr/bin/env python3
"""PPO of a network of one's own: the policy, its loss, and nothing else."""

import torch
from torch import nn
from torch.nn import functional as F
import rlhost
import rlhost.torch


class Net(rlhost.Policy, nn.Module):
    """An actor and a critic of their own layers, for one Discrete action."""

    def __init__(self, spec, hidden=64):
        super().__init__()
        self.actor, self.critic = (self.layers(spec, hidden, *head) for head in ((spec.choices, 0.01), (1, 1.0)))

    @staticmethod
    def layers(spec, hidden, outputs, gain):
        net = nn.Sequential(nn.Flatten(), nn.Linear(torch.Size(spec.shape).numel(), hidden), nn.Tanh(),
                            nn.Linear(hidden, hidden), nn.Tanh(), nn.Linear(hidden, outputs))
        for layer, scale in ((net[1], 2**0.5), (net[3], 2**0.5), (net[5], gain)):
            nn.init.orthogonal_(layer.weight, scale)
            nn.init.zeros_(layer.bias)
        return net

    def forward(self, obs, mask):
        logits = self.actor(obs.float())
        if mask is not None:
            logits = logits.masked_fill(~mask, -1e30)
        return F.log_softmax(logits, 1), self.critic(obs.float()).squeeze(1)

    def act(self, obs, state, mask, greedy):
        log_prob, value = self(obs, mask)
        action = log_prob.argmax(1) if greedy else log_prob.exp().multinomial(1).squeeze(1)
        return action, log_prob.gather(1, action[:, None]).squeeze(1), value, state

    def describe(self, spec):
        """The same for the host, which acts by it where the policy's table has acts = "host"."""
        net = rlhost.torch.Description(self, spec)
        net.action(net.through(self.actor, net.input()))
        net.value(net.through(self.critic, net.input()))
        return net


class PPO(rlhost.PolicyLearner):
    """Improves Net by PPO (Schulman et al. 2017)."""

    network = Net

    def begin_learning(self, policy):
        torch.set_num_threads(self.config.threads)
        super().begin_learning(policy)
        self.adam = torch.optim.Adam(self.net.parameters(), eps=self.config.adam_eps)

    def reward(self, d):
        """What is learned of a dataset: the environment's reward."""
        return d["reward"]

    def learn(self, dataset):
        c, d = self.config, dataset.tensors()
        dataset.release()  # all of it has been copied
        self.adam.param_groups[0]["lr"], clip = c.rates(self.env_steps)
        d["reward"] = self.reward(d)
        advantage = gae(d, c.gamma, c.gae_lambda)
        rows = d["valid"].flatten().nonzero().squeeze(1)
        obs, action, old = d["obs"][:-1].flatten(0, 1), d["action"].long().flatten(), d["log_prob"].flatten()
        mask = d["action_mask"][:-1].flatten(0, 1) if "action_mask" in d else None
        gain, wanted = advantage.flatten(), (advantage + d["value"][:-1]).flatten()
        for _ in range(c.epochs):
            for at in rows[torch.randperm(len(rows))].tensor_split(-(-len(rows) // c.minibatch)):
                log_prob, value = self.net(obs[at], None if mask is None else mask[at])
                entropy = -(log_prob.exp() * log_prob).sum(1).mean()
                ratio = (log_prob.gather(1, action[at, None]).squeeze(1) - old[at]).exp()
                a = (gain[at] - gain[at].mean()) / (gain[at].std() + 1e-8)
                policy_loss = -torch.min(ratio * a, ratio.clamp(1 - clip, 1 + clip) * a).mean()
                value_loss = 0.5 * F.mse_loss(value, wanted[at])
                self.adam.zero_grad()
                (policy_loss + c.value_coef * value_loss - c.entropy_coef * entropy).backward()
                nn.utils.clip_grad_norm_(self.net.parameters(), c.max_grad_norm)
                self.adam.step()
                self.optimizer_steps += 1
        return {"losses/policy_loss": policy_loss.item(), "losses/value_loss": value_loss.item(), "losses/entropy": entropy.item()}


def gae(d, gamma, lam):
    """Generalised advantage estimates (Schulman et al. 2016)."""
    follows = torch.where(d["truncated"], d["bootstrap_value"], d["value"][1:]) * ~d["terminated"]
    delta, ended = d["reward"] + gamma * follows - d["value"][:-1], d["terminated"] | d["truncated"]
    advantage, last = torch.zeros_like(delta), 0.0
    for t in reversed(range(len(delta))):
        advantage[t] = last = delta[t] + gamma * lam * last * ~ended[t]
    return advantage


if __name__ == "__main__":
    rlhost.serve(PPO)
