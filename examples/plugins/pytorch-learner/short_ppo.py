"""PPO in sixty lines, on the device that its table names: where to begin with a learner of one's own."""

import torch
from torch import nn
from torch.nn import functional as F
import rlhost


class ShortPPO(rlhost.Learner):
    """Improves one policy by PPO (Schulman et al. 2017)."""

    def begin_learning(self, policy):
        torch.set_num_threads(self.config.threads)
        torch.manual_seed(self.host.seed)
        self.net = {name: torch.zeros(shape, device=self.config.device) for name, shape in policy.tensors().items()}
        for name, p in self.net.items():
            if name.endswith("weight"):
                nn.init.orthogonal_(p, {"actor.head": 0.01, "critic.head": 1.0}.get(name[:-7], 2**0.5))
            p.requires_grad_()
        self.adam = torch.optim.Adam(self.net.values(), eps=self.config.adam_eps)

    def parameters(self):
        return self.net

    def run(self, part, x):
        for i in range(len(self.policy.hidden)):
            x = torch.tanh(x @ self.net[f"{part}.{i}.weight"] + self.net[f"{part}.{i}.bias"])
        return x @ self.net[part + ".head.weight"] + self.net[part + ".head.bias"]

    def learn(self, dataset):
        c, d = self.config, dataset.tensors(self.config.device)
        dataset.release()  # all of it has been copied
        self.adam.param_groups[0]["lr"], clip = c.rates(self.env_steps)
        follows = torch.where(d["truncated"], d["bootstrap_value"], d["value"][1:]) * ~d["terminated"]
        delta, ended = d["reward"] + c.gamma * follows - d["value"][:-1], d["terminated"] | d["truncated"]
        advantage, last = torch.zeros_like(delta), 0.0
        for t in reversed(range(len(delta))):
            advantage[t] = last = delta[t] + c.gamma * c.gae_lambda * last * ~ended[t]
        rows = d["valid"].flatten().nonzero().squeeze(1)
        obs, action = d["obs"][:-1].flatten(0, 1).flatten(1), d["action"].long().flatten()
        legal = d["action_mask"][:-1].flatten(0, 1) if "action_mask" in d else torch.ones_like(action[:, None], dtype=torch.bool)
        old, gain, wanted = d["log_prob"].flatten(), advantage.flatten(), (advantage + d["value"][:-1]).flatten()
        for _ in range(c.epochs):
            for at in rows[torch.randperm(len(rows), device=rows.device)].tensor_split(-(-len(rows) // c.minibatch)):
                log_prob = F.log_softmax(self.run("actor", obs[at]).masked_fill(~legal[at], -1e30), 1)
                ratio = (log_prob.gather(1, action[at, None]).squeeze(1) - old[at]).exp()
                a = (gain[at] - gain[at].mean()) / (gain[at].std() + 1e-8)
                entropy = -(log_prob.exp() * log_prob).sum(1).mean()
                policy = -torch.min(ratio * a, ratio.clamp(1 - clip, 1 + clip) * a).mean()
                value = 0.5 * F.mse_loss(self.run("critic", obs[at]).squeeze(1), wanted[at])
                self.adam.zero_grad()
                (policy + c.value_coef * value - c.entropy_coef * entropy).backward()
                nn.utils.clip_grad_norm_(self.net.values(), c.max_grad_norm)
                self.adam.step()
                self.optimizer_steps += 1
        return {"losses/policy_loss": policy.item(), "losses/value_loss": value.item(), "losses/entropy": entropy.item()}


rlhost.serve(ShortPPO)
