"""The network in PyTorch: layers, cores, and how actions are drawn. The parameters are the host's, by the same names."""

import dataclasses
import math

import torch
from rlhost.layout import Box
from torch import nn
from torch.nn import functional as F

HALF_LOG_2PI = math.log(2 * math.pi) / 2
ACTIVATIONS = {"tanh": nn.Tanh, "relu": nn.ReLU, "elu": nn.ELU, "gelu": nn.GELU, "silu": nn.SiLU}


def enter(observed, of):
    """What an observation [T, E, elems] enters the network as [T, E, width], but for running statistics."""
    x = observed.reshape(*observed.shape[:2], of.elems)
    if of.norm == "onehot":
        values = [torch.arange(of.start, of.start + n, device=x.device) for n in of.counts]
        return torch.cat([x[:, :, k:k + 1] == value for k, value in enumerate(values)], 2).float()
    return x.float() * of.scale if of.norm == "scale" else x.float()


class Discrete(nn.Module):
    """A choice for each element of a Discrete, MultiDiscrete or MultiBinary action, by logits; a binary one has those of 1
    alone, that of 0 is 0."""

    def __init__(self, action, inputs):
        super().__init__()
        self.counts, self.start, self.binary, self.column, self.mask = action.counts, action.start, action.binary, action.column, action.mask
        self.elems, self.choices, self.params = len(action.counts), sum(action.counts), action.outputs
        self.head = linear(inputs, action.outputs, 0.01)

    def forward(self, x):
        return self.head(x)

    def read(self, column):
        """The actions [T, E, elems] of a dataset, counted from 0, masks [T, E, choices], and which actions are wrong."""
        action = column(self.column).long() - self.start
        action = action.view(*action.shape[:2], self.elems)
        counts = action.new_tensor(self.counts)
        wrong = (action < 0) | (action >= counts)
        legal = action.new_ones(*action.shape[:2], self.choices, dtype=torch.bool)
        if self.mask:
            legal = column(self.mask)[:-1].view(legal.shape)
            wrong |= ~legal.gather(2, action.masked_fill(wrong, 0) + counts.cumsum(0) - counts)
        return action, legal, wrong

    def log_prob(self, logits, mask, action):
        """The log-probability of every row's action, and the entropy: sums over the elements."""
        if self.binary:
            logits = torch.stack([torch.zeros_like(logits), logits], 2).flatten(1)
        log_prob = entropy = 0.0
        for part, legal, taken in zip(logits.split(self.counts, 1), mask.split(self.counts, 1), action.long().split(1, 1)):
            every = log_softmax(part, legal)
            log_prob = log_prob + every.gather(1, taken).squeeze(1)
            entropy = entropy - (every.exp() * every).sum(1)
        return log_prob, entropy

    def drift(self, params, action):
        """0: its entropy has a gradient of its own."""
        return 0.0

    def beyond(self, params):
        """0: its actions have no bounds."""
        return 0.0


class Gaussian(nn.Module):
    """A normal distribution of each element of a Box: means, then logarithms of standard deviations. An action is what was
    drawn, before it is squashed or cut off."""

    mask, choices = "", 0

    def __init__(self, box, inputs):
        super().__init__()
        self.elems, self.squash, self.column, self.params = box.elems, box.squash, box.column, 2 * box.elems
        self.register_buffer("edges", torch.tensor(box.edges).t(), persistent=False)
        self.least, self.most = box.log_std_min, box.log_std_max
        self.head = linear(inputs, box.outputs, 0.01)
        self.log_std = nn.Identity() if box.log_std == "network" else Append(box.elems, box.log_std_init, box.log_std == "parameter")

    def forward(self, x):
        return self.log_std(self.head(x))

    def split(self, params):
        """Means, and logarithms of deviations within their bounds, beyond which they have no gradient."""
        mean, log_std = params.split(self.elems, 1)
        return mean, log_std.clamp(self.least, self.most)

    def read(self, column):
        action = column(self.column).float()
        action = action.view(*action.shape[:2], self.elems)
        return action, action.new_ones(*action.shape[:2], 0, dtype=torch.bool), ~torch.isfinite(action)

    def log_prob(self, params, mask, action):
        """As above. A squashed one's entropy has no closed form: -log_prob stands for it, and drift has its gradient."""
        mean, log_std = self.split(params)
        z = (action - mean) * (-log_std).exp()
        log_prob = -(z**2 / 2 + log_std + HALF_LOG_2PI).sum(1)
        if not self.squash:
            return log_prob, (log_std + HALF_LOG_2PI + 0.5).sum(1)
        log_prob = log_prob - (2 * (math.log(2) - action - F.softplus(-2 * action))).sum(1)
        return log_prob, -log_prob.detach()

    def drift(self, params, action):
        """0 in every row, with the gradient of the entropy that actions estimate: they move as if the same numbers drew them again."""
        if not self.squash:
            return 0.0
        mean, log_std = self.split(params)
        drawn = mean + log_std.exp() * ((action - mean) * (-log_std).exp()).detach()
        moves = (log_std + 2 * (math.log(2) - drawn - F.softplus(-2 * drawn))).sum(1)
        return moves - moves.detach()


    def beyond(self, params):
        """The squared distances of means from their edges in half ranges, summed over the elements."""
        mean, (low, high, scale) = params[:, :self.elems], self.edges
        return (((mean - mean.clamp(low, high)) * scale) ** 2).sum(1)


class Append(nn.Module):
    """Rows with a vector behind them, the same in every row."""

    def __init__(self, size, init, learned):
        super().__init__()
        self.value = nn.Parameter(torch.full((size,), init), requires_grad=learned)

    def forward(self, x):
        return torch.cat([x, self.value.expand(len(x), -1)], 1)


class Joint(nn.Module):
    """The distribution of all actions of an environment together, which are drawn independently. Their parameters, masks
    and elements lie side by side."""

    def __init__(self, actions, inputs):
        super().__init__()
        self.parts = nn.ModuleList((Gaussian if isinstance(a, Box) else Discrete)(a, inputs) for a in actions)

    def forward(self, x):
        """The parameters [rows, ...] for what the heads read."""
        return torch.cat([part(x) for part in self.parts], 1)

    def read(self, column, valid):
        """The actions [T, E, elems] and masks [T, E, choices] of a dataset. One that is wrong in a valid row is a ValueError."""
        actions, masks = [], []
        for part in self.parts:
            action, legal, wrong = part.read(column)
            if wrong[valid].any():
                raise ValueError(f"{part.column}: outside of its space, or forbidden by its mask")
            actions.append(action.float())
            masks.append(legal)
        return torch.cat(actions, 2), torch.cat(masks, 2)

    def log_prob(self, params, mask, action):
        """The log-probability of every row's actions, and the entropy: sums over the actions."""
        each = [part.log_prob(*of) for part, *of in zip(self.parts, self._cut(params, "params"), self._cut(mask, "choices"), self._cut(action, "elems"))]
        return sum(log_prob for log_prob, _ in each), sum(entropy for _, entropy in each)

    def drift(self, params, action):
        """The sum of the parts' drifts, 0.0 where no entropy is estimated."""
        return sum(part.drift(*of) for part, *of in zip(self.parts, self._cut(params, "params"), self._cut(action, "elems")))

    def beyond(self, params):
        """The sum of what the parts' means lie beyond their bounds."""
        return sum(part.beyond(of) for part, of in zip(self.parts, self._cut(params, "params")))

    def _cut(self, x, size):
        return x.split([getattr(part, size) for part in self.parts], 1)


class Core(nn.Module):
    """A layer that keeps a state: a GRU, or an LSTM, whose state is h and behind it c."""

    def __init__(self, core, inputs):
        super().__init__()
        self.size, self.state, self.lstm = core.size, core.state, core.kind == "lstm"
        self.cell = (nn.LSTMCell if self.lstm else nn.GRUCell)(inputs, core.size)
        for weight in (self.cell.weight_ih, self.cell.weight_hh):
            nn.init.orthogonal_(weight)
        for bias in (self.cell.bias_ih, self.cell.bias_hh):
            nn.init.zeros_(bias)

    def forward(self, x, state, begins, there):
        """Outputs [K, B, size] for K rows of each of B chunks, and the states [B, state] after them, given those before. Gradients
        go back to there. Where an episode begins [K, B] the state is zero, and where no row is there [K, B] it stays."""
        outputs = []
        for row, begin, exists in zip(x, begins, there):
            state = state.masked_fill(begin[:, None], 0)
            after = torch.cat(self.cell(row, state.split(self.size, 1)), 1) if self.lstm else self.cell(row, state)
            state = torch.where(exists[:, None], after, state)
            outputs.append(state[:, :self.size])
        return torch.stack(outputs), state


@dataclasses.dataclass
class Memory:
    """How rows lie in B chunks of K rows, for a network with a core."""

    at: torch.Tensor  # the place of each row, k*B + b
    state: torch.Tensor  # [B, numbers] before the first row of every chunk
    begins: torch.Tensor  # [K, B], where an episode does

    def run(self, core, x, state):
        """The outputs of a core for rows x, from its part of the state, and that part after the rows of each chunk."""
        grid = x.new_zeros(self.begins.numel(), x.shape[1]).index_copy(0, self.at, x)
        there = torch.zeros_like(self.begins).flatten().index_fill(0, self.at, True).view_as(self.begins)
        outputs, state = core(grid.view(*self.begins.shape, -1), state, self.begins, there)
        return outputs.flatten(0, 1)[self.at], state


class Network(nn.Module):
    """Policy and value function of dense layers, with a core behind them if there is one: an encoder for each, or one for
    both. The policy is one of PolicyLayout."""

    def __init__(self, policy):
        super().__init__()
        self.inputs, self.obs = policy.inputs, policy.obs
        self.register_buffer("running", torch.tensor(policy.running, dtype=torch.long))  # which numbers enter by statistics
        self.hidden, self.activation, self.share_trunk = policy.hidden, policy.activation, policy.share_trunk
        names = ["trunk"] if self.share_trunk else ["actor", "critic"]
        self.encoders = nn.ModuleDict({name: self._encoder(policy.init_gain) for name in names})
        last = self.hidden[-1] if self.hidden else self.obs
        self.cores, self.chunk, self.state = nn.ModuleDict(), 0, 0
        if policy.core:
            self.cores = nn.ModuleDict({name: Core(policy.core, last) for name in names})
            last, self.chunk, self.state = policy.core.size, policy.core.chunk, policy.core.state * len(names)
        self.dist, self.value = Joint(policy.actions, last), linear(last, 1, 1.0)

    def _encoder(self, gain):
        layers, width = [], self.obs
        for n in self.hidden:
            layers += [linear(width, n, gain), ACTIVATIONS[self.activation]()]
            width = n
        return nn.Sequential(*layers)

    def forward(self, x, memory=None):
        """The parameters of the distribution of actions [rows, ...] and values [rows]. A core needs the Memory of the rows."""
        encoded, _ = self._encode(x, memory)
        actor, critic = encoded[0], encoded[-1]
        return self.dist(actor), self.value(critic).squeeze(1)

    def after(self, x, memory):
        """The states [B, numbers] after rows x of B chunks."""
        return torch.cat(self._encode(x, memory)[1], 1)

    def _encode(self, x, memory):
        encoded, states, first = [], [], 0
        for name, encoder in self.encoders.items():
            encoded.append(encoder(x))
            if self.cores:
                core = self.cores[name]
                encoded[-1], state = memory.run(core, encoded[-1], memory.state[:, first:first + core.state])
                states.append(state)
                first += core.state
        return encoded, states

    def layers(self):
        """All layers by the host's names, in the order of its vector of parameters."""
        def encoder(name):
            dense = [m for m in self.encoders[name] if isinstance(m, nn.Linear)]
            core = [(f"{name}.core", self.cores[name].cell)] if self.cores else []
            return [*((f"{name}.{i}", layer) for i, layer in enumerate(dense)), *core]

        actor, critic = [], [("critic.head", self.value)]
        for i, part in enumerate(self.dist.parts):
            actor += [(f"actor.{name}.{i}" if i else f"actor.{name}", layer) for name, layer in part.named_children()]
        if self.share_trunk:
            return [*encoder("trunk"), *actor, *critic]
        return [*encoder("actor"), *actor, *encoder("critic"), *critic]

    def tensors(self):
        """(name, parameter, whether the host has it transposed): weights are [in][out] there."""
        for name, layer in self.layers():
            for part, p in layer.named_parameters():
                if p.requires_grad:
                    yield f"{name}.{part}", p, p.ndim == 2

    def parts(self):
        """The parameters of the actor and of the critic; all and none where they share some."""
        parts = [[p for name, p, _ in self.tensors() if name.startswith(who)] for who in ("actor.", "critic.")]
        if any(name.startswith("trunk.") for name, _, _ in self.tensors()):
            return [p for _, p, _ in self.tensors()], []
        return parts

    def vector(self):
        """The parameters as the host's vector, float32."""
        with torch.no_grad():
            return torch.cat([(p.t() if turned else p).reshape(-1) for _, p, turned in self.tensors()])

    def load_vector(self, vector):
        """The inverse of vector."""
        at = 0
        with torch.no_grad():
            for _, p, turned in self.tensors():
                part = vector[at:at + p.numel()]
                p.copy_(part.view(p.t().shape).t() if turned else part.view(p.shape))
                at += p.numel()


def log_softmax(logits, mask):
    """Log-probabilities; illegal actions have probability 0."""
    return F.log_softmax(logits.masked_fill(~mask, -1e30), dim=1)


def linear(inputs, outputs, gain):
    layer = nn.Linear(inputs, outputs)
    nn.init.orthogonal_(layer.weight, gain)
    nn.init.zeros_(layer.bias)
    return layer
