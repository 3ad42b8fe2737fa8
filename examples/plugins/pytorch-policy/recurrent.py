#!/usr/bin/env python3
"""A network of one's own with two convolutions, a GRU and two heads, for one Discrete action: PPO by chunks of rows."""

import torch
from torch import nn
from torch.nn import functional as F
import rlhost


class Net(rlhost.Policy, nn.Module):
    """Convolutions for a picture [height, width, channels], a dense layer for other numbers, then a GRU."""

    def __init__(self, spec, size=64):
        super().__init__()
        self.state_size, self.parts = size, nn.ModuleDict()
        for i, t in enumerate(spec.obs.values()):
            self.parts[str(i)] = self.encoder(t.shape, size)
        self.core, self.actor, self.critic = nn.GRUCell(size, size), nn.Linear(size, spec.choices), nn.Linear(size, 1)
        nn.init.orthogonal_(self.actor.weight, 0.01)

    def encoder(self, shape, size):
        if len(shape) < 2:
            return nn.Sequential(nn.Flatten(), nn.Linear(torch.Size(shape).numel(), size), nn.ReLU())
        channels = shape[2] if len(shape) > 2 else 1
        inner = nn.Sequential(nn.Conv2d(channels, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 16, 3, padding=1), nn.ReLU(), nn.Flatten())
        return nn.Sequential(inner, nn.Linear(16 * shape[0] * shape[1], size), nn.ReLU())

    def forward(self, obs, state, mask):
        x = 0
        for part, o in zip(self.parts.values(), obs.values() if isinstance(obs, dict) else [obs]):
            o = o.float() if o.is_floating_point() else o.float() / 255
            if isinstance(part[0], nn.Sequential):
                o = o.permute(0, 3, 1, 2) if o.ndim > 3 else o[:, None]
            elif o.ndim < 2:
                o = o[:, None]
            x = x + part(o)
        state = self.core(x, state)
        logits = self.actor(state)
        if mask is not None:
            logits = logits.masked_fill(~mask, -1e30)
        return F.log_softmax(logits, 1), self.critic(state).squeeze(1), state

    def act(self, obs, state, mask, greedy):
        log_prob, value, state = self(obs, state, mask)
        action = log_prob.argmax(1) if greedy else log_prob.exp().multinomial(1).squeeze(1)
        return action, log_prob.gather(1, action[:, None]).squeeze(1), value, state


class PPO(rlhost.PolicyLearner):
    """Improves Net by PPO; gradients go back to the beginning of a chunk, where core_state has the state."""

    network = Net

    def begin_learning(self, policy):
        torch.set_num_threads(self.config.threads)
        super().begin_learning(policy)
        self.chunk, self.paths = policy.chunk, [i["path"] for i in policy.description["inputs"]]
        self.adam = torch.optim.Adam(self.net.parameters(), eps=self.config.adam_eps)

    def learn(self, dataset):
        c, d, k = self.config, dataset.tensors(), self.chunk
        stored = [dataset.blocks[0].state_row(t) for t in range(0, dataset.blocks[0].steps, k)]
        dataset.release()  # all of it has been copied
        self.adam.param_groups[0]["lr"], clip = c.rates(self.env_steps)
        steps, envs = d["reward"].shape

        def chunks(x):  # [k, chunks, ...] of [steps, envs, ...]
            return x[:steps].unflatten(0, (-1, k)).transpose(0, 1).flatten(1, 2)

        advantage = gae(d, c.gamma, c.gae_lambda)
        obs = {path: chunks(d["obs" if i == 0 else f"obs/{i}"]) for i, path in enumerate(self.paths)}
        action, old, valid, begins = chunks(d["action"].long()), chunks(d["log_prob"]), chunks(d["valid"]), chunks(d["age"] == 0)
        mask = chunks(d["action_mask"]) if "action_mask" in d else None
        gain, wanted, first = chunks(advantage), chunks(advantage + d["value"][:-1]), d["core_state"][stored].flatten(0, 1).flatten(1)
        for _ in range(c.epochs):
            for at in torch.randperm(action.shape[1]).tensor_split(max(1, steps * envs // c.minibatch)):
                state, every, values = first[at], [], []
                for t in range(k):
                    state = state.masked_fill(begins[t, at, None], 0)
                    seen = {path: o[t, at] for path, o in obs.items()}
                    log_prob, value, state = self.net(seen if len(seen) > 1 else seen[self.paths[0]], state, None if mask is None else mask[t, at])
                    every.append(log_prob)
                    values.append(value)
                there, log_prob, value = valid[:, at], torch.stack(every), torch.stack(values)
                entropy = -(log_prob.exp() * log_prob).sum(2)[there].mean()
                ratio = (log_prob.gather(2, action[:, at].reshape(*there.shape, 1)).squeeze(2) - old[:, at]).exp()[there]
                a = gain[:, at][there]
                a = (a - a.mean()) / (a.std() + 1e-8)
                policy_loss = -torch.min(ratio * a, ratio.clamp(1 - clip, 1 + clip) * a).mean()
                value_loss = 0.5 * F.mse_loss(value[there], wanted[:, at][there])
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
