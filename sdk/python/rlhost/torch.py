"""The host's networks in PyTorch: every kind that it has, with the parameters' names and layout of the host."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from .describing import Description as Description
from .network import Network as Described

_ACTIVATIONS = {"tanh": torch.tanh, "relu": torch.relu, "elu": F.elu, "gelu": F.gelu, "silu": F.silu}
_OBS_CLIP, _LAYERNORM_EPS, _LOG_STD = 10.0, 1e-5, {"min": -5.0, "max": 2.0}
_HALF_LOG_2PI = math.log(2 * math.pi) / 2


class Network(nn.Module):  # type: ignore[misc]
    """A network by its description, such as a learner's ``self.policy`` with ``networks = True``. Gradients go through all of it but the
    running statistics, obs_mean and obs_scale."""

    def __init__(self, of: Described):
        """Makes the parameters, orthogonal where the host's begin so. Raises ValueError for a network of a program's own."""
        super().__init__()
        if of.external:
            raise ValueError("the network is computed by a program of its own, which this module does not know: rlhost.PolicyLearner has it")
        self.description = of.description
        self.names = list(of.tensors())
        gains = {n["name"]: op["gain"] for n in of.description["nodes"] for op in n.values() if isinstance(op, dict) and op.get("gain")}
        first = {n["name"]: n["append"].get("init", 0.0) for n in of.description["nodes"] if "append" in n}
        for name, shape in of.tensors().items():
            node, _, kind = name.rpartition(".")
            p = torch.zeros(shape)
            if kind.startswith("weight") and len(shape) > 1:
                nn.init.orthogonal_(p.view(-1, shape[-1]), gains.get(node, 1.0))
            elif kind == "weight":  # of a layernorm
                p.fill_(1)
            elif kind == "value":
                p.fill_(first[node])
            self.register_parameter(_key(name), nn.Parameter(p))
        self.state_size = sum(_kept(n) for n in of.description["nodes"])
        stats = len(of.running)
        self.register_buffer("obs_mean", torch.zeros(stats))
        self.register_buffer("obs_scale", torch.ones(stats))

    def tensors(self) -> dict[str, nn.Parameter]:
        """The parameters by the host's names: what Learner.parameters returns."""
        return {name: getattr(self, _key(name)) for name in self.names}

    def forward(self, obs: Mapping[str, torch.Tensor] | torch.Tensor, state: torch.Tensor | None = None) -> tuple[list[torch.Tensor], torch.Tensor, torch.Tensor]:
        """Returns what each action is drawn from, [rows, parameters], values [rows], and the state behind the rows [rows, state_size], of rows of
        observations as they are stored, by path. Stacked frames have an axis before those of a frame. None is a state of zeros."""
        inputs = self.description["inputs"]
        if not isinstance(obs, Mapping):
            obs = {inputs[0]["path"]: obs}
        out, seen = {}, 0
        for i in inputs:
            if i["path"] not in obs:
                raise KeyError(f"the observations have no {i['path']}: they have {', '.join(obs)}")
            out[i["path"]], seen = self._enter(i, obs[i["path"]], seen)
        rows = len(next(iter(out.values())))
        if state is None:
            state = self.obs_mean.new_zeros(rows, self.state_size)
        kept, at = [state[:, :0]], 0
        for n in self.description["nodes"]:
            given = [out[name] for name in n["in"]]
            if size := _kept(n):
                out[n["name"]], behind = self._remember(n, given[0].flatten(1), state[:, at:at + size])
                kept.append(behind)
                at += size
            else:
                out[n["name"]] = self._compute(n, given)
        params = [out[d["from"]].flatten(1) for d in self.description["policy"]]
        return params, out[self.description["values"][0]["from"]].flatten(1)[:, 0], torch.cat(kept, 1)

    def _of(self, node: str, kind: str) -> torch.Tensor:
        made: torch.Tensor = getattr(self, _key(f"{node}.{kind}"))
        return made

    def _enter(self, i: Mapping[str, Any], x: torch.Tensor, seen: int) -> tuple[torch.Tensor, int]:
        """Rows of numbers, those of pictures as [rows, height, width, channels of all frames]."""
        frame, frames = tuple(i["shape"]), max(i.get("stack", 1), 1)
        x = x.float().reshape(len(x), frames, *frame)
        norm = i.get("norm")
        if norm == "onehot":
            x, start = x.reshape(len(x), frames, -1), i.get("start", 0)
            counts = i["choices"] * x.shape[2] if len(i["choices"]) == 1 else i["choices"]
            hot = [x[:, :, k, None] == start + torch.arange(n, device=x.device) for k, n in enumerate(counts)]
            return torch.cat(hot, 2).float().flatten(1), seen
        if norm == "running":
            n = math.prod(frame)
            mean, scale = (b[seen:seen + n].reshape(frame) for b in (self.obs_mean, self.obs_scale))
            x, seen = ((x - mean) * scale).clamp(-_OBS_CLIP, _OBS_CLIP), seen + n
        elif norm == "scale":
            x = x * i["scale"]
        if len(frame) == 3:
            x = x.permute(0, 3, 4, 1, 2) if i.get("chw") else x.permute(0, 2, 3, 1, 4)
            return x.flatten(3), seen
        return (x.reshape(len(x), *frame) if frames == 1 else x.flatten(1)), seen

    def _remember(self, n: Mapping[str, Any], x: torch.Tensor, state: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        name = n["name"]
        w_ih, w_hh, b_ih, b_hh = (self._of(name, k) for k in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))
        h = state[:, :w_hh.shape[0]]
        of_input, of_state = x @ w_ih + b_ih, h @ w_hh + b_hh
        if "gru" in n:
            (xr, xz, xn), (hr, hz, hn) = of_input.chunk(3, 1), of_state.chunk(3, 1)
            new, z = torch.tanh(xn + torch.sigmoid(xr + hr) * hn), torch.sigmoid(xz + hz)
            h = new + z * (h - new)
            return h, h
        i, f, g, o = (of_input + of_state).chunk(4, 1)
        c = torch.sigmoid(f) * state[:, h.shape[1]:] + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
        return h, torch.cat([h, c], 1)

    def _compute(self, n: Mapping[str, Any], given: Sequence[torch.Tensor]) -> torch.Tensor:
        x, name = given[0], n["name"]
        if "dense" in n:
            return x.flatten(1) @ self._of(name, "weight") + self._of(name, "bias")
        if "activation" in n:
            made: torch.Tensor = _ACTIVATIONS[n["activation"]["func"]](x)
            return made
        if "conv2d" in n:
            of = n["conv2d"]
            y = F.conv2d(x.permute(0, 3, 1, 2), self._of(name, "weight").permute(3, 2, 0, 1), self._of(name, "bias"), of["stride"], of.get("pad", 0))
            return y.permute(0, 2, 3, 1)
        if "maxpool" in n:
            of, x = n["maxpool"], x.permute(0, 3, 1, 2)
            pad = of.get("pad", 0)
            x = F.pad(x, (pad, pad, pad, pad), value=-math.inf)
            return F.max_pool2d(x, of["kernel"], of["stride"]).permute(0, 2, 3, 1)
        if "add" in n:
            return torch.stack(list(given)).sum(0)
        if "concat" in n:
            return torch.cat(list(given), -1)
        if "flatten" in n:
            return x.flatten(1)
        if "layernorm" in n:
            weight = self._of(name, "weight")
            return F.layer_norm(x, weight.shape, weight, self._of(name, "bias"), _LAYERNORM_EPS)
        if "append" in n:
            of = n["append"]
            more = x.new_full((of["n"],), of.get("init", 0.0)) if of.get("fixed") else self._of(name, "value")
            return torch.cat([x.flatten(1), more.expand(len(x), -1)], 1)
        raise ValueError(f"node {name} has an operation that this module does not know")

    def log_prob(self, params: Sequence[torch.Tensor], actions: Sequence[torch.Tensor],
                 masks: Sequence[torch.Tensor | None] | None = None) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns the log-probability of actions and the entropy, [rows] each: sums over all actions. Discrete elements count from 0, a Box is what was
        drawn; of a squashed Box the entropy is -log_prob, which estimates it."""
        total: Any = 0.0
        entropy: Any = 0.0
        for d, p, action, mask in zip(self.description["policy"], params, actions, masks or [None] * len(params)):
            one, own = self._box(d, p, action) if "gaussian" in d else self._choices(d, p, action, mask)
            total, entropy = total + one, entropy + own
        return total, entropy

    def greedy(self, params: Sequence[torch.Tensor], masks: Sequence[torch.Tensor | None] | None = None) -> list[torch.Tensor]:
        """Returns the greedy actions, [rows, elements] each, as log_prob takes them."""
        made = []
        for d, p, mask in zip(self.description["policy"], params, masks or [None] * len(params)):
            if "gaussian" in d:
                made.append(p[:, :d["gaussian"]["n"]])
            else:
                made.append(torch.stack([x.argmax(1) for x in _parts(d, p, mask)], 1))
        return made

    @staticmethod
    def _choices(d: Mapping[str, Any], p: torch.Tensor, action: torch.Tensor, mask: torch.Tensor | None) -> tuple[torch.Tensor, torch.Tensor]:
        action = action.long().reshape(len(p), -1)
        every = [F.log_softmax(x, 1) for x in _parts(d, p, mask)]
        total = torch.stack([x.gather(1, action[:, k:k + 1])[:, 0] for k, x in enumerate(every)]).sum(0)
        return total, torch.stack([-(x.exp() * x).sum(1) for x in every]).sum(0)

    @staticmethod
    def _box(d: Mapping[str, Any], p: torch.Tensor, action: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        of = d["gaussian"]
        bounds = of.get("log_std") or _LOG_STD
        mean, log_std = p[:, :of["n"]], p[:, of["n"]:].clamp(bounds["min"], bounds["max"])
        action = action.reshape(len(p), -1)
        total = -(((action - mean) * (-log_std).exp()) ** 2 / 2 + log_std + _HALF_LOG_2PI).sum(1)
        if of.get("squash") == "tanh":
            total = total - (2 * (math.log(2) - action - F.softplus(-2 * action))).sum(1)
            return total, -total.detach()
        return total, (log_std + _HALF_LOG_2PI + 0.5).sum(1)


def _parts(d: Mapping[str, Any], p: torch.Tensor, mask: torch.Tensor | None) -> Sequence[torch.Tensor]:
    """The logits of each element of a discrete action."""
    if "bernoulli" in d:
        counts = [2] * d["bernoulli"]["n"]
        p = torch.stack([torch.zeros_like(p), p], 2).flatten(1)
    else:
        counts = [d["categorical"]["n"]] if "categorical" in d else d["multi_categorical"]["counts"]
    if mask is not None:
        p = p.masked_fill(~mask.bool(), -1e30)
    parts: Sequence[torch.Tensor] = p.split(counts, 1)
    return parts


def _key(name: str) -> str:
    return name.replace(".", "/")


def _kept(node: Mapping[str, Any]) -> int:
    """How many numbers of state a node keeps."""
    return int(node["gru"]["size"] if "gru" in node else 2 * node["lstm"]["size"] if "lstm" in node else 0)
