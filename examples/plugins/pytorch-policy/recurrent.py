#!/usr/bin/env python3
"""A network of one's own with two convolutions, a GRU and a head for each action, all of them discrete: PPO by chunks of rows."""

import torch
from torch import nn
from torch.nn import functional as F
import rlhost
import rlhost.torch


class Net(rlhost.Policy, nn.Module):
    """Convolutions for a picture [height, width, channels], a dense layer for other numbers, then a GRU."""

    def __init__(self, spec, size=64):
        super().__init__()
        self.state_size, self.actions, self.paths = size, spec.actions, list(spec.obs)
        self.parts = nn.ModuleList(self.encoder(t.shape, size) for t in spec.obs.values())
        self.core, self.critic = nn.GRUCell(size, size), nn.Linear(size, 1)
        self.actors = nn.ModuleList(nn.Linear(size, sum(a.counts)) for a in spec.actions)
        for actor in self.actors:
            nn.init.orthogonal_(actor.weight, 0.01)

    def encoder(self, shape, size):
        if len(shape) < 2:
            return nn.Sequential(nn.Flatten(), nn.Linear(torch.Size(shape).numel(), size), nn.ReLU())
        channels = shape[2] if len(shape) > 2 else 1
        return nn.Sequential(nn.Conv2d(channels, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 16, 3, padding=1), nn.ReLU(), nn.Flatten(),
                             nn.Linear(16 * shape[0] * shape[1], size), nn.ReLU())

    def encode(self, obs):
        x = 0
        for part, o in zip(self.parts, obs.values() if isinstance(obs, dict) else [obs]):
            o = o / 255 if o.dtype == torch.uint8 else o.float()
            if isinstance(part[0], nn.Conv2d):
                o = o.permute(0, 3, 1, 2) if o.ndim > 3 else o[:, None]
            x = x + part(o if o.ndim > 1 else o[:, None])
        return x

    def heads(self, state, masks):
        """The logarithms of the probabilities of each element of each action, and the value."""
        every = []
        for a, actor, mask in zip(self.actions, self.actors, masks):
            logits = actor(state) if mask is None else actor(state).masked_fill(~mask, -1e30)
            every += [F.log_softmax(part, 1) for part in logits.split(a.counts, 1)]
        return every, self.critic(state).squeeze(1)

    def act(self, obs, state, mask, greedy):
        state = self.core(self.encode(obs), state)
        every, value = self.heads(state, mask if isinstance(mask, tuple) else (mask,))
        chosen = torch.stack([p.argmax(1) if greedy else p.exp().multinomial(1).squeeze(1) for p in every], 1)
        action = chosen.split([len(a.counts) for a in self.actions], 1)
        return action if len(action) > 1 else action[0], taken(every, chosen), value, state

    def describe(self, spec):
        """The same for the host, which acts by it where the policy's table has acts = "host"."""
        net, read = rlhost.torch.Description(self, spec), []
        for part, (path, of) in zip(self.parts, spec.obs.items()):
            read.append(net.through(part, net.input(path, scale=1 / 255 if of.dtype == "u8" else None)))
        x = net.through(self.core, net.add(*read) if len(read) > 1 else read[0])
        for actor in self.actors:
            net.action(net.through(actor, x))
        net.value(net.through(self.critic, x))
        return net


def taken(every, chosen):
    """The log-probability of what was chosen, of all elements together."""
    return sum(p.gather(1, c[:, None]).squeeze(1) for p, c in zip(every, chosen.T))


class PPO(rlhost.PolicyLearner):
    """Improves Net by PPO; gradients go back to the beginning of a chunk, where core_state has the state."""

    network = Net

    def begin_learning(self, policy):
        torch.set_num_threads(self.config.threads)
        super().begin_learning(policy)
        self.chunk = policy.chunk
        self.adam = torch.optim.Adam(self.net.parameters(), eps=self.config.adam_eps)

    def learn(self, dataset):
        c, d, k, net = self.config, dataset.tensors(), self.chunk, self.net
        stored = [dataset.blocks[0].state_row(t) for t in range(0, dataset.blocks[0].steps, k)]
        dataset.release()  # all of it has been copied
        self.adam.param_groups[0]["lr"], clip = c.rates(self.env_steps)
        steps, envs = d["reward"].shape

        def chunks(x):  # [k, chunks, ...] of [steps, envs, ...]
            return x[:steps].unflatten(0, (-1, k)).transpose(0, 1).flatten(1, 2)

        advantage = gae(d, c.gamma, c.gae_lambda)
        obs = {path: chunks(d["obs" if i == 0 else f"obs/{i}"]) for i, path in enumerate(net.paths)}
        chosen = torch.cat([chunks(d[a.column]).long().flatten(2) - a.start if d[a.column].ndim > 2 else chunks(d[a.column]).long()[:, :, None] - a.start
                            for a in net.actions], 2)
        masks = [chunks(d[a.mask]).flatten(2) if a.mask else None for a in net.actions]
        old, valid, begins = chunks(d["log_prob"]), chunks(d["valid"]), chunks(d["age"] == 0)
        gain, wanted, first = chunks(advantage), chunks(advantage + d["value"][:-1]), d["core_state"][stored].flatten(0, 1).flatten(1)
        for _ in range(c.epochs):
            for at in torch.randperm(len(first)).tensor_split(max(1, steps * envs // c.minibatch)):
                seen = [x[:, at].flatten(0, 1) for x in obs.values()]
                x, state, states = net.encode(dict(zip(obs, seen))).unflatten(0, (k, -1)), first[at], []
                for t in range(k):
                    state = net.core(x[t], state.masked_fill(begins[t, at, None], 0))
                    states.append(state)
                there = valid[:, at].flatten()
                every, value = net.heads(torch.cat(states), [None if m is None else m[:, at].flatten(0, 1) for m in masks])
                entropy = sum(-(p.exp() * p).sum(1) for p in every)[there].mean()
                ratio = (taken(every, chosen[:, at].flatten(0, 1)) - old[:, at].flatten()).exp()[there]
                a = gain[:, at].flatten()[there]
                a = (a - a.mean()) / (a.std() + 1e-8)
                policy_loss = -torch.min(ratio * a, ratio.clamp(1 - clip, 1 + clip) * a).mean()
                value_loss = 0.5 * F.mse_loss(value[there], wanted[:, at].flatten()[there])
                self.adam.zero_grad()
                (policy_loss + c.value_coef * value_loss - c.entropy_coef * entropy).backward()
                nn.utils.clip_grad_norm_(net.parameters(), c.max_grad_norm)
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
