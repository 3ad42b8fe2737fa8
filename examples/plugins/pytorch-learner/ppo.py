"""PPO in PyTorch: the targets, one loss, the update. The file to edit for a loss of one's own.

Shapes: T steps, E environments of all blocks together, or all of their agents, N = T*E rows in the order t*E + e."""

import dataclasses
import math

import numpy
import torch
from network import Memory, Network, enter
from torch import nn

OBS_CLIP = 10.0


@dataclasses.dataclass
class Dataset:
    """The columns of all blocks side by side: [T, E], value [T+1, E], obs [N, obs], action [N, elems] and mask [N, choices] of
    all actions. A Box's action is what was drawn."""

    obs: torch.Tensor
    action: torch.Tensor
    log_prob: torch.Tensor
    reward: torch.Tensor
    terminated: torch.Tensor
    truncated: torch.Tensor
    value: torch.Tensor
    bootstrap: torch.Tensor
    valid: torch.Tensor  # what is learned from: rows of an episode, in which an agent acts, and this policy for it
    active: torch.Tensor  # where an agent acts
    mask: torch.Tensor
    discount: torch.Tensor | None  # the environment's, in the place of gamma or times it
    chunk: int = 0  # rows of each chunk that a network with a core is learned in
    state: torch.Tensor | None = None  # [T/chunk, E, numbers] before the first row of every chunk
    begins: torch.Tensor | None = None  # [T, E], where an episode does, with a state of zeros
    burn_in: int = 0  # first rows of each chunk that only warm its state up
    warm: torch.Tensor | None = None  # [T/chunk, E, numbers] after the burn-in of every chunk

    @classmethod
    def of(cls, dataset, network, device="cpu"):
        """Copies what learning needs out of an rlhost.Dataset: a guest can rewrite its columns meanwhile. Numbers that
        nothing can be learned from are a ValueError."""
        columns, blocks, chunk = dataset.tensors(device), dataset.blocks, network.chunk

        def column(name):
            rows = columns[name]
            return rows.flatten(2) if rows.ndim > 2 else rows

        obs = torch.cat([enter(column(i.column)[:-1], i) for i in network.inputs], 2)
        action, mask = network.dist.read(column, column("valid"))
        d = cls(obs.flatten(0, 1), action.flatten(0, 1), column("log_prob"),
                column("shaped_reward" if "shaped_reward" in blocks[0] else "reward"),
                column("terminated"), column("truncated"), column("value"), column("bootstrap_value"),
                column("valid"), column("active")[:-1] if "active" in columns else torch.ones_like(column("valid")), mask.flatten(0, 1), column("discount") if "discount" in blocks[0] else None)
        d._check()
        if chunk:
            stored = [blocks[0].state_row(t) for t in range(0, len(d.reward), chunk)]
            d.chunk, d.begins = chunk, column("age")[:-1] == 0
            state = column("core_state")[stored].reshape(*d.begins[::chunk].shape, -1)
            d.state = state[:, :, :network.state]  # other policies of the same blocks may keep more
        return d

    def _check(self):
        valid = self.valid
        for name in ("reward", "log_prob"):
            if not torch.isfinite(getattr(self, name)[valid]).all():
                raise ValueError(f"{name}: not a finite number")
        if not (torch.isfinite(self.value[:-1][valid]).all() and torch.isfinite(self.obs[valid.flatten()]).all()):
            raise ValueError("value or obs: not a finite number")
        if self.discount is not None and not ((self.discount >= 0) & (self.discount <= 1))[valid].all():
            raise ValueError("discount: want 0 to 1")

    def learned(self):
        """The valid rows that have a loss [T, E]: they are no burn-in."""
        if not self.burn_in:
            return self.valid
        steps = torch.arange(len(self.valid), device=self.valid.device)[:, None]
        return self.valid & (steps % self.chunk >= self.burn_in)

    def units(self):
        """What is shuffled, by number: the rows that have a loss, or the chunks that have such rows."""
        learned = self.learned()
        if self.chunk:
            learned = learned.view(-1, self.chunk, learned.shape[1]).any(1)
        return numpy.flatnonzero(learned.flatten().cpu().numpy()).astype(numpy.uint32)

    def rows(self, units):
        """The rows of units that have a loss, and their Memory where the units are chunks."""
        if not self.chunk:
            return units, None
        return self.part(self.burn_in, self.chunk, self.warm if self.burn_in else self.state, units)

    def part(self, lo, hi, state, chunks=None):
        """The valid rows lo to hi of chunks, of all where none are named, and their Memory with the state before row lo."""
        if chunks is None:
            chunks = torch.arange(self.state[:, :, 0].numel(), device=self.valid.device)
        envs = self.valid.shape[1]
        first, env = chunks // envs, chunks % envs
        rows = (first * self.chunk + torch.arange(lo, hi, device=first.device)[:, None]) * envs + env
        at = self.valid.flatten()[rows.flatten()].nonzero().squeeze(1)
        return rows.flatten()[at], Memory(at, state[first, env], self.begins.flatten()[rows])


def targets(d, c, new_log_prob=None):
    """Advantages and returns [N]: generalised advantage estimates (Schulman et al. 2016), or V-trace (Espeholt et al.
    2018) where the log-probabilities [N] of the actions under the policy that learns are given.

    An end of an episode cuts the recursion: terminated takes 0 for the value of what follows, truncated
    bootstrap_value. A row that belongs to no episode has neither and cuts it too. Rows in which an agent does not act are not
    there: what follows is its next one. V-trace's advantage is without the paper's factor rho: the loss's own ratio is that
    weight already."""
    reward, value, bootstrap = d.reward.double(), d.value.double(), d.bootstrap.double()
    ended = d.terminated | d.truncated
    ratio = torch.ones_like(reward)
    if new_log_prob is not None:
        ratio = (new_log_prob.view(reward.shape).double() - d.log_prob.double()).exp()
    gamma = torch.full_like(reward, c.gamma) if d.discount is None else d.discount.double() * (c.gamma if c.discount == "multiply" else 1)
    rho, trace = ratio.clamp(max=c.rho_bar), gamma * c.gae_lambda * ratio.clamp(max=c.c_bar)
    advantage, excess = torch.zeros_like(reward), torch.zeros_like(reward)
    carry, next_value = torch.zeros_like(reward[0]), value[-1]
    for t in reversed(range(len(reward))):
        after = torch.where(ended[t], 0.0, carry)
        follows = torch.where(d.terminated[t], 0.0, torch.where(d.truncated[t], bootstrap[t], next_value))
        delta = reward[t] + gamma[t] * follows - value[t]
        if new_log_prob is None:
            advantage[t] = excess[t] = delta + gamma[t] * c.gae_lambda * after
        else:
            advantage[t], excess[t] = delta + gamma[t] * after, rho[t] * delta + trace[t] * after
        carry = torch.where(d.active[t], torch.where(d.valid[t], excess[t], 0.0), carry)
        next_value = torch.where(d.active[t], value[t], next_value)
    returns = torch.where(d.valid, excess + value[:-1], 0.0)
    return torch.where(d.valid, advantage, 0.0).float().flatten(), returns.float().flatten()


@dataclasses.dataclass
class Rates:
    """What schedules change from dataset to dataset."""

    learning_rate: float
    clip: float
    entropy: float


class Following:
    """A learning rate that follows the divergence (Rudin et al. 2022): divided by 1.5 where a minibatch's is more than twice
    adaptive_kl, multiplied by 1.5 where it is less than half."""

    STEP = numpy.float32(1.5)

    def __init__(self, c):
        self.c, self.rate = c, numpy.float32(0)  # 0 before the first update

    def begin(self, rate):
        """Takes a rate as the first one."""
        self.rate = self.rate or self._bounded(numpy.float32(rate))

    def next(self, kl):
        """The rate of the optimiser step of a minibatch."""
        if kl > 2 * self.c.adaptive_kl:
            self.rate = self._bounded(self.rate / self.STEP)
        elif 0 < kl < self.c.adaptive_kl / 2:
            self.rate = self._bounded(self.rate * self.STEP)
        return float(self.rate)

    def _bounded(self, rate):
        return max(numpy.float32(self.c.learning_rate_min), min(numpy.float32(self.c.learning_rate_max), rate))


def log_probs(network, d, obs):
    """The log-probability of every row's action under the network, 0 in rows that belong to no episode."""
    rows, memory = d.part(0, d.chunk, d.state) if d.chunk else (d.valid.flatten().nonzero().squeeze(1), None)
    every = torch.zeros(len(obs), device=obs.device)
    with torch.no_grad():
        every[rows] = network.dist.log_prob(network(obs[rows], memory)[0], d.mask[rows], d.action[rows])[0]
    return every


def warm(network, d, obs, rows):
    """Has the network run the first rows of each chunk, from the stored states."""
    d.burn_in = rows
    at, memory = d.part(0, rows, d.state)
    with torch.no_grad():
        d.warm = network.after(obs[at], memory).view_as(d.state)


def loss(network, c, rates, obs, memory, mask, action, log_prob, value, advantage, target):
    """The mean loss over the rows of a minibatch (Schulman et al. 2017), and what is reported of it."""
    params, v = network(obs, memory)
    new_log_prob, entropy = network.dist.log_prob(params, mask, action)
    log_ratio = new_log_prob - log_prob
    ratio = log_ratio.exp()
    policy = -torch.min(ratio * advantage, ratio.clamp(1 - rates.clip, 1 + rates.clip) * advantage).mean()
    error = (v - target) ** 2
    if c.value_clip > 0:
        error = torch.max(error, (value + (v - value).clamp(-c.value_clip, c.value_clip) - target) ** 2)
    squared = 0.5 * error.mean()
    entropy = (entropy + ratio.detach().clamp(max=1 + rates.clip) * network.dist.drift(params, action)).mean()
    divergence = (ratio - 1 - log_ratio).mean()
    with torch.no_grad():
        told = torch.stack([policy, squared, entropy, divergence, -log_ratio.mean(),
                            ((ratio - 1).abs() > rates.clip).float().mean(), (ratio - 1).abs().max()])
    total = policy + c.value_coef * squared - rates.entropy * entropy + c.kl_coef * divergence
    if c.bounds_loss_coef > 0:
        total = total + c.bounds_loss_coef * torch.as_tensor(network.dist.beyond(params)).mean()
    return total, told


def step_of(network, d, c, rates, obs, units, size, columns):
    """Leaves the gradient of an optimiser step: of the mean loss of all rows of its units, with advantages normalised over all of
    them, in the memory of size units at a time. Returns what is reported of them together."""
    parts = [d.rows(part) for part in minibatches(units, size)]
    count, log_prob, value, advantage, returns = sum(len(rows) for rows, _ in parts), *columns
    gain = advantage[torch.cat([rows for rows, _ in parts])]
    if c.normalize_advantage and count > 1:
        gain = (gain - gain.mean()) / (gain.std() + 1e-8)
    told = torch.zeros(7, device=obs.device)
    for (rows, memory), a in zip(parts, gain.split([len(rows) for rows, _ in parts])):
        total, part = loss(network, c, rates, obs[rows], memory, d.mask[rows], d.action[rows], log_prob[rows], value[rows], a, returns[rows])
        share = len(rows) / count
        (total * share).backward()
        told[:6] += part[:6] * share
        told[6] = torch.maximum(told[6], part[6])
    return told


def clip(network, c):
    """Clips the gradient, all of it by its norm or actor and critic each by its own. Returns the three norms before."""
    actor, critic = network.parts()
    norms = [nn.utils.get_total_norm([p.grad for p in part], error_if_nonfinite=True) for part in (actor + critic, actor, critic)]
    if not (actor and critic):
        norms = norms[:1] * 3
    if c.max_grad_norm:
        for part, norm in zip((actor, critic), norms[1:] if c.separate_grad_norms else norms[:1] * 2):
            nn.utils.clip_grads_with_norm_(part, c.max_grad_norm, norm)
    return torch.stack(norms)


@dataclasses.dataclass
class Report:
    """Means over the optimiser steps of one update, under CleanRL's names, in the order in which the host wants them."""

    policy_loss: float = 0.0
    value_loss: float = 0.0
    entropy: float = 0.0
    approx_kl: float = 0.0
    old_approx_kl: float = 0.0
    clipfrac: float = 0.0
    first_clipfrac: float = 0.0
    first_ratio_error: float = 0.0
    explained_variance: float = 0.0
    grad_norm: float = 0.0  # of all parameters; of the actor's and the critic's alone where they share none
    actor_grad_norm: float = 0.0
    critic_grad_norm: float = 0.0
    optimizer_steps: float = 0.0
    epochs: float = 0.0
    valid_rows: float = 0.0


def update(network, optimizer, d, c, rates, seed, index, normalise=None, returns_seen=None, following=None):
    """Makes the optimiser steps of one dataset and returns the Report. normalise is (mean, scale) of observations.
    returns_seen are the Returns whose unit values are learned in; the dataset's are added to them at the end. following is
    the learning rate in place of that of rates."""
    obs, running = d.obs, network.running
    if normalise is not None:
        obs = obs.index_copy(1, running, ((obs[:, running] - normalise[0]) * normalise[1]).clamp(-OBS_CLIP, OBS_CLIP))
    log_prob, value = d.log_prob.flatten(), d.value[:-1].flatten()
    if c.burn_in_rows:
        warm(network, d, obs, c.burn_in_rows)
    units, size = d.units(), c.minibatch // (d.chunk - d.burn_in) if d.chunk else c.minibatch
    learned = d.learned().flatten()
    r = Report(valid_rows=int(learned.sum()))
    for group in optimizer.param_groups:
        group["lr"] = rates.learning_rate
    if following:
        following.begin(rates.learning_rate)
    sums, norms, unit = torch.zeros(7, device=obs.device), torch.zeros(3, device=obs.device), returns_seen or Raw
    value = unit.normal(value)
    for epoch in range(c.epochs):
        r.epochs += 1
        if epoch == 0 or c.vtrace and c.vtrace_recompute == "epoch":
            advantage, returns = targets(d, c, log_probs(network, d, obs) if c.vtrace else None)
            raw, returns = returns, unit.normal(returns)
        if epoch == 0:
            first = raw
            r.explained_variance = explained_variance(returns[learned], value[learned])
        order = torch.from_numpy((shuffled(seed, index, epoch, units) if c.shuffle else units).astype(numpy.int64)).to(obs.device)
        for step in minibatches(order, size * c.accumulate):
            optimizer.zero_grad(set_to_none=True)
            told = step_of(network, d, c, rates, obs, step, size, (log_prob, value, advantage, returns))
            norms += clip(network, c)
            if following:
                optimizer.param_groups[0]["lr"] = following.next(float(told[3]))
            optimizer.step()
            if r.optimizer_steps == 0:
                r.first_clipfrac, r.first_ratio_error = float(told[5]), float(told[6])
            r.optimizer_steps += 1
            sums += told
            if 0 < c.target_kl < float(told[3]):
                break
        else:
            continue
        break
    if returns_seen:
        returns_seen.add(first[learned], network)
    steps = max(1.0, r.optimizer_steps)
    r.policy_loss, r.value_loss, r.entropy, r.approx_kl, r.old_approx_kl, r.clipfrac = (sums[:6] / steps).tolist()
    r.grad_norm, r.actor_grad_norm, r.critic_grad_norm = (norms / steps).tolist()
    return r


def minibatches(rows, size):
    """The rows, or chunks, of an epoch in nearly equal parts of at most size: a small remainder would be a full step too."""
    return rows.tensor_split(-(-len(rows) // size)) if len(rows) else ()


def explained_variance(returns, value):
    """1 - Var(return - value)/Var(return); 0 when the returns are all equal."""
    spread = float(returns.double().var(correction=0)) if len(returns) else 0.0
    return 1 - float((returns - value).double().var(correction=0)) / spread if spread else 0.0


def shuffled(seed, dataset, epoch, rows):
    """The rows in the order of the host's own learners (Fisher and Yates over Philox numbers), so that the same run
    has the same minibatches."""
    rows, n = rows.copy(), len(rows)
    words = philox(seed ^ 0x9E3779B97F4A7C15, epoch, dataset, (n + 3) // 4)
    picks = (words[:max(0, n - 1)] * numpy.arange(n, 1, -1, dtype=numpy.uint64) >> numpy.uint64(32)).tolist()
    for i, j in zip(range(n - 1, 0, -1), picks):
        rows[i], rows[j] = rows[j], rows[i]
    return rows


def philox(seed, epoch, dataset, counters):
    """Philox4x32 with 10 rounds (Salmon et al. 2011) over counters from 0: four words of 32 bits for each."""
    low, half = numpy.uint64(0xFFFFFFFF), numpy.uint64(32)
    word = [numpy.arange(counters, dtype=numpy.uint64)]
    word += [numpy.full(counters, x, numpy.uint64) for x in (epoch, dataset & 0xFFFFFFFF, dataset >> 32)]
    key = [seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF]
    for _ in range(10):
        a, b = word[0] * numpy.uint64(0xD2511F53), word[2] * numpy.uint64(0xCD9E8D57)
        word = [b >> half ^ word[1] ^ numpy.uint64(key[0]), b & low, a >> half ^ word[3] ^ numpy.uint64(key[1]), a & low]
        key = [key[0] + 0x9E3779B9 & 0xFFFFFFFF, key[1] + 0xBB67AE85 & 0xFFFFFFFF]
    return numpy.stack(word, 1).reshape(-1)


class Raw:
    """The unit of values that are learned as they are."""

    @staticmethod
    def normal(x):
        return x


class Returns:
    """Mean and variance of the targets of the value. Values are learned in units of their deviation: a value is mean +
    deviation * x where the network's head gives x. Without a deviation the mean is all that is known of values."""

    ROWS = 1 << 16  # that they count for at most: returns grow with the policy, so older ones fade

    def __init__(self, count=0.0, mean=0.0, m2=0.0):
        self.count, self.mean, self.m2 = count, mean, m2

    @property
    def deviation(self):
        return math.sqrt(self.m2 / self.count) if self.count else 0.0

    def normal(self, x):
        return ((x.double() - self.mean) / self.deviation).float() if self.deviation else torch.zeros_like(x)

    def add(self, returns, network):
        """Takes in the returns of a dataset. The head keeps the meaning of its outputs (PopArt, van Hasselt et al. 2016)."""
        x, mean, deviation = returns.double(), self.mean, self.deviation
        if len(x):
            total, delta = self.count + len(x), float(x.mean()) - self.mean
            self.mean += delta * len(x) / total
            self.m2 += float(((x - x.mean()) ** 2).sum()) + delta**2 * self.count * len(x) / total
            self.count = total
        if self.count > self.ROWS:
            self.m2, self.count = self.m2 * self.ROWS / self.count, float(self.ROWS)
        if deviation and self.deviation:
            head = network.value
            with torch.no_grad():
                head.weight.mul_(deviation / self.deviation)
                head.bias.mul_(deviation / self.deviation).add_((mean - self.mean) / self.deviation)


class Normalizer:
    """Mean and variance of every normalised element over all valid rows of all datasets (Chan, Golub, LeVeque 1983)."""

    def __init__(self, running):
        self.running = running  # which of the elements that enter
        self.count, self.mean, self.m2 = 0.0, numpy.zeros(len(running)), numpy.zeros(len(running))

    def update(self, d):
        x = d.obs[d.valid.flatten()][:, self.running].double().cpu().numpy()
        if not len(x):
            return
        mean, total = x.mean(0), self.count + len(x)
        delta = mean - self.mean
        self.mean = self.mean + delta * len(x) / total
        self.m2 = self.m2 + ((x - mean) ** 2).sum(0) + delta**2 * self.count * len(x) / total
        self.count = total

    def weights(self):
        """What observations are normalised with: mean and 1/sqrt(variance + 1e-8), float32."""
        scale = 1 / numpy.sqrt(self.m2 / self.count + 1e-8) if self.count else numpy.ones_like(self.mean)
        return torch.from_numpy(self.mean).float(), torch.from_numpy(scale).float()


class Trainer:
    """Everything of the learner that is PyTorch: network, optimiser, normaliser."""

    def __init__(self, config, seed, policy):
        torch.set_num_threads(config.threads)
        torch.manual_seed(seed & (1 << 63) - 1)
        self.config, self.seed = config, seed
        self.device = torch.device(getattr(config, "device", "cpu"))
        self.network = Network(policy).to(self.device)
        self.normalizer = Normalizer(policy.running) if policy.running else None
        self.returns = Returns() if getattr(config, "normalize_returns", False) else None
        self.following = Following(config) if getattr(config, "adaptive_kl", 0) else None
        learned = [p for _, p, _ in self.network.tensors()]
        self.optimizer = torch.optim.Adam(learned, eps=config.adam_eps, betas=(config.adam_beta1, config.adam_beta2))

    def read(self, dataset):
        """What learning needs of an rlhost.Dataset, copied to the device."""
        return Dataset.of(dataset, self.network, self.device)

    def learn(self, dataset, learning_rate, clip, index):
        """Makes the optimiser steps of a dataset, then shows it to the normaliser."""
        statistics = [x.to(self.device) for x in self.normalizer.weights()] if self.normalizer else None
        rates = Rates(learning_rate, clip, self.config.entropy_coef)
        report = update(self.network, self.optimizer, dataset, self.config, rates, self.seed, index, statistics, self.returns,
                        self.following)
        if self.normalizer:
            self.normalizer.update(dataset)
        return report

    def state(self):
        """What set_state needs: numbers, and tensors by name."""
        n = self.network
        meta = {"adam_steps": 0}
        if self.following:
            meta["learning_rate"] = float(self.following.rate)
        if self.normalizer:
            z = self.normalizer
            meta["normalizer"] = {"count": z.count, "mean": z.mean.tolist(), "m2": z.m2.tolist()}
        if self.returns:
            meta["returns"] = {"count": self.returns.count, "mean": self.returns.mean, "m2": self.returns.m2}
        tensors = {}
        for name, p, turned in n.tensors():
            adam = self.optimizer.state.get(p) or {"exp_avg": torch.zeros_like(p), "exp_avg_sq": torch.zeros_like(p), "step": 0}
            meta["adam_steps"] = int(adam["step"])
            for prefix, value in (("", p), ("adam_m.", adam["exp_avg"]), ("adam_v.", adam["exp_avg_sq"])):
                value = value.detach()
                tensors[prefix + name] = (value.t() if turned else value).cpu().numpy().copy()
        return meta, tensors

    def set_state(self, meta, tensors):
        """Goes on from a state of the same network."""
        def saved(name, like, turned):
            data = torch.from_numpy(tensors[name]).to(self.device)
            return data.reshape(like.t().shape).t() if turned else data.reshape(like.shape)

        with torch.no_grad():
            for name, p, turned in self.network.tensors():
                p.copy_(saved(name, p, turned))
                self.optimizer.state[p] = {
                    "step": torch.tensor(float(meta["adam_steps"])), "exp_avg": saved("adam_m." + name, p, turned).clone(),
                    "exp_avg_sq": saved("adam_v." + name, p, turned).clone()}
        self._set_returns(meta)
        if self.following:
            self.following.rate = numpy.float32(meta.get("learning_rate", 0))
        if self.normalizer:
            z = meta["normalizer"]
            self.normalizer.count, self.normalizer.mean, self.normalizer.m2 = z["count"], numpy.array(z["mean"]), numpy.array(z["m2"])

    def _set_returns(self, meta):
        """Goes on with statistics of returns, or with a value that has been learned without any, or here will be."""
        saved = meta.get("returns")
        if self.returns:
            fresh = Returns() if not meta["adam_steps"] else Returns(1.0, 0.0, 1.0)
            self.returns = Returns(**saved) if saved else fresh
        elif saved and saved["count"]:
            was, head = Returns(**saved), self.network.value
            with torch.no_grad():
                head.weight.mul_(was.deviation)
                head.bias.mul_(was.deviation).add_(was.mean)
