"""A policy of your own in the host's terms, so that the host acts by it: rlhost.torch.Description."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy
import torch
from torch import nn

from .acting import _TYPES
from .layout import Box, Discrete
from .network import Network
from .policy import Policy, PolicySpec
from .spec import IMAGE_CHW, Tensor, numbered

_ACTIVATIONS = {nn.Tanh: "tanh", nn.ReLU: "relu", nn.ELU: "elu", nn.GELU: "gelu", nn.SiLU: "silu"}
_SAME = (nn.Identity, nn.Dropout)  # what they return in an evaluation is what they get
_GATES = {nn.GRUCell: "gru", nn.LSTMCell: "lstm"}
_EPS = 1e-5  # of the host's layernorm


@dataclasses.dataclass(frozen=True)
class Rows:
    """Rows of numbers between layers, by the name of the node that computes them."""

    name: str
    shape: tuple[int, ...]  # of one row; [height, width, channels] of a picture
    planes: tuple[int, ...] = ()  # a flattened picture's shape: PyTorch has its channels one behind the other, the host those of each pixel


@dataclasses.dataclass(frozen=True)
class _Place:
    """Where the host's tensor stands in one of the policy: split into axes, which are put into another order."""

    of: torch.Tensor
    split: tuple[int, ...]
    order: tuple[int, ...]
    shape: tuple[int, ...]  # of the host's

    def read(self) -> torch.Tensor:
        """The host's tensor."""
        return self.of.detach().reshape(self.split).permute(self.order).reshape(self.shape)

    def write(self, value: numpy.ndarray) -> None:
        """Takes the host's tensor."""
        turned = torch.from_numpy(numpy.ascontiguousarray(value)).reshape([self.split[axis] for axis in self.order])
        back = [self.order.index(axis) for axis in range(len(self.order))]
        self.of.detach().copy_(turned.permute(back).reshape(self.of.shape))


class Description:
    """What a policy computes, layer by layer: what Policy.describe returns. Each method returns the rows behind the layer that it adds.

    Modules are those of the policy, called as PyTorch calls them: a picture [height, width, channels] enters a Conv2d with its channels
    first, and nn.Flatten follows that order."""

    def __init__(self, policy: Policy, spec: PolicySpec):
        """Begins a description of a policy that is a torch.nn.Module."""
        if not isinstance(policy, nn.Module):
            raise TypeError(f"{type(policy).__name__} is no torch.nn.Module: no other policy can be described")
        self._policy, self._spec = policy, spec
        self._modules = {module: name for name, module in policy.named_modules()}
        self._inputs: dict[str, dict[str, Any]] = {}
        self._nodes: list[dict[str, Any]] = []
        self._places: dict[str, _Place] = {}
        self._actions: list[str] = []
        self._value = ""

    # What enters.

    def input(self, path: str | None = None, *, scale: float | None = None, onehot: bool = False) -> Rows:
        """An observation, by its path; the only one where none is named. It enters as it is, times ``scale``, or with ``onehot`` as a number for
        each of its values, that of its value 1 and the others 0."""
        if path is None:
            if len(self._spec.obs) != 1:
                raise ValueError(f"the environment has {len(self._spec.obs)} observations, {', '.join(self._spec.obs)}: name one")
            path = next(iter(self._spec.obs))
        if path not in self._spec.obs:
            raise ValueError(f"the environment has no observation {path!r}: it has {', '.join(self._spec.obs)}")
        t = self._spec.obs[path]
        made: dict[str, Any] = {"path": path, "shape": list(t.shape) or [1]}
        shape = tuple(made["shape"])
        if onehot:
            if not t.choices:
                raise ValueError(f"observation {path!r} is not Discrete: it has no values to enter one by one")
            made["norm"], shape = "onehot", (sum(t.counts) or t.n * t.elems,)
        elif scale is not None:
            made.update(norm="scale", scale=scale)
        if self._inputs.setdefault(path, made) != made:
            raise ValueError(f"observation {path!r} enters in two ways: the host has one")
        return Rows(path, shape)

    def join(self, *rows: Rows) -> Rows:
        """torch.cat of flat rows, one behind the other."""
        for x in rows:
            self._flat(x, "join")
        return self._node("join", rows, "concat", {}, (sum(math.prod(x.shape) for x in rows),))

    def add(self, *rows: Rows) -> Rows:
        """The sum of rows of one shape."""
        if any((x.shape, x.planes) != (rows[0].shape, rows[0].planes) for x in rows):
            raise ValueError(f"rows of the shapes {', '.join(str(list(x.shape)) for x in rows)} cannot be added")
        return dataclasses.replace(self._node("add", rows, "add", {}, rows[0].shape), planes=rows[0].planes)

    # Layers.

    def through(self, module: nn.Module, x: Rows) -> Rows:
        """A module of the policy over rows: Linear, Conv2d, MaxPool2d, Flatten, LayerNorm, GRUCell, LSTMCell, an activation, or a Sequential of
        such. A cell begins with the state of the rows and its output is the new h. The state of several cells lies side by side, of an LSTMCell h
        before c."""
        name = self._modules.get(module)
        if name is None:
            raise ValueError(f"{type(module).__name__} is no module of {type(self._policy).__name__}: make it an attribute of it")
        if isinstance(module, nn.Sequential):
            for part in module:
                x = self.through(part, x)
            return x
        if isinstance(module, _SAME):
            return x
        for kind, func in _ACTIVATIONS.items():
            if isinstance(module, kind):
                if isinstance(module, nn.GELU) and module.approximate != "none" or isinstance(module, nn.ELU) and module.alpha != 1:
                    raise self._unknown(name, module)
                return dataclasses.replace(self._node(name, [x], "activation", {"func": func}, x.shape), planes=x.planes)
        if isinstance(module, nn.Linear):
            return self._dense(name, module, x)
        if isinstance(module, (nn.Conv2d, nn.MaxPool2d)):
            return self._window(name, module, x)
        if isinstance(module, nn.Flatten):
            made = self._node(name, [x], "flatten", {}, (math.prod(x.shape),))
            turned = len(x.shape) == 3 and x.name not in self._inputs and x.shape[2] > 1 and math.prod(x.shape[:2]) > 1
            return dataclasses.replace(made, planes=x.shape if turned else x.planes)
        if isinstance(module, nn.LayerNorm) and module.eps == _EPS and module.weight is not None and len(module.normalized_shape) == 1:
            self._flat(x, name)
            made = self._node(name, [x], "layernorm", {}, x.shape)
            self._vector(name, "weight", module.weight, x.shape[-1])
            self._vector(name, "bias", module.bias, x.shape[-1])
            return made
        for cell, of in _GATES.items():
            if isinstance(module, cell):
                return self._cell(name, module, of, x)
        raise self._unknown(name, module)

    def _unknown(self, name: str, module: nn.Module) -> ValueError:
        return ValueError(f"module {name} is {module}, which the host does not compute: describe its parts one by one, where it has "
                          "them, or let the policy act in its own process")

    def _dense(self, name: str, module: nn.Linear, x: Rows) -> Rows:
        made = self._node(name, [x], "dense", {"out": module.out_features, "gain": 1}, (module.out_features,))
        self._matrix(name, "weight", module.weight, x)
        self._vector(name, "bias", module.bias, module.out_features)
        return made

    def _cell(self, name: str, module: nn.RNNCellBase, of: str, x: Rows) -> Rows:
        size = module.hidden_size
        made = self._node(name, [x], of, {"size": size}, (size,))
        gates = module.weight_hh.shape[0]
        self._matrix(name, "weight_ih", module.weight_ih, x)
        self._matrix(name, "weight_hh", module.weight_hh, made)
        self._vector(name, "bias_ih", module.bias_ih, gates)
        self._vector(name, "bias_hh", module.bias_hh, gates)
        return made

    def _window(self, name: str, module: nn.Conv2d | nn.MaxPool2d, x: Rows) -> Rows:
        kernel, stride, pad, spread = (self._square(name, module, key) for key in ("kernel_size", "stride", "padding", "dilation"))
        if spread != 1 or getattr(module, "groups", 1) != 1 or getattr(module, "padding_mode", "zeros") != "zeros" or getattr(module, "ceil_mode", False):
            raise self._unknown(name, module)
        height, width, channels = self._picture(name, x)
        sides = tuple((side + 2 * pad - kernel) // stride + 1 for side in (height, width))
        of: dict[str, Any] = {"kernel": kernel, "stride": stride, **({"pad": pad} if pad else {})}
        if isinstance(module, nn.MaxPool2d):
            return self._node(name, [x], "maxpool", of, (*sides, channels))
        if module.in_channels != channels:
            raise ValueError(f"module {name} reads {module.in_channels} channels, and {x.name} has {channels}")
        out = module.out_channels
        made = self._node(name, [x], "conv2d", {**of, "out": out, "gain": 1}, (*sides, out))
        self._put(name, "weight", _Place(module.weight, (out, channels, kernel, kernel), (2, 3, 1, 0), (kernel, kernel, channels, out)))
        self._vector(name, "bias", module.bias, out)
        return made

    def _square(self, name: str, module: nn.Module, key: str) -> int:
        """A number that is the same for both axes."""
        value = getattr(module, key)
        first, second = value if isinstance(value, tuple) else (value, value)
        if not isinstance(first, int) or first != second:
            raise self._unknown(name, module)
        return first

    def _picture(self, name: str, x: Rows) -> tuple[int, int, int]:
        """The height, width and channels of a picture. An observation without channels has one."""
        shape = x.shape
        if (entry := self._inputs.get(x.name)) is not None:
            if len(shape) == 2:
                entry["shape"], shape = [*shape, 1], (*shape, 1)
            elif len(shape) == 3 and self._spec.obs[x.name].flags & IMAGE_CHW:
                entry["chw"], shape = True, (shape[1], shape[2], shape[0])
        if len(shape) != 3:
            raise ValueError(f"module {name} reads a picture, and {x.name} has the shape {list(shape)}")
        return shape[0], shape[1], shape[2]

    # Heads.

    def action(self, x: Rows, log_std: nn.Parameter | None = None) -> None:
        """The rows that the next action is drawn from: logits of a discrete one, of MultiBinary one logit for each element; of a Box the means, and
        the logarithms of its standard deviations either behind them or as a parameter ``log_std``."""
        spec, at = self._spec.actions, len(self._actions)
        if at == len(spec):
            raise ValueError(f"the environment has {at} actions, and each has its rows")
        of, have = spec[at], math.prod(x.shape)
        self._flat(x, "an action")
        want = of.elems if isinstance(of, Box) and log_std is not None else 2 * of.elems if isinstance(of, Box) else of.outputs
        if have != want:
            raise ValueError(f"{numbered('action', at)} is drawn from {want} numbers, and {x.name} has {have}")
        if log_std is not None:
            name = next((n for n, p in self._policy.named_parameters() if p is log_std), None)
            if name is None or log_std.numel() != have or not isinstance(of, Box):
                raise ValueError(f"log_std of {numbered('action', at)} is no parameter of {type(self._policy).__name__} of {have} elements for a Box")
            x = self._node(name, [x], "append", {"n": have}, (2 * have,))
            self._vector(name, "value", log_std, have)
        self._actions.append(x.name)

    def value(self, x: Rows) -> None:
        """The rows that are the value, one number each."""
        if math.prod(x.shape) != 1:
            raise ValueError(f"the value is one number, and {x.name} has {math.prod(x.shape)}")
        self._value = x.name

    # What is made of it.

    def document(self) -> dict[str, Any]:
        """The network for the host, which adds how each action is drawn. Raises ValueError while it is not whole."""
        if len(self._actions) != len(self._spec.actions) or not self._value:
            raise ValueError(f"the description of {type(self._policy).__name__} has {len(self._actions)} of {len(self._spec.actions)} actions and "
                             f"{'a' if self._value else 'no'} value: call action for each action, and value once")
        policy = [{"action": numbered("action", i), "from": name} for i, name in enumerate(self._actions)]
        return {"format": 1, "inputs": list(self._inputs.values()), "nodes": self._nodes, "policy": policy,
                "values": [{"name": "value", "from": self._value}]}

    def check(self) -> None:
        """Raises ValueError where the description is not whole, or the policy's own act differs from it on random observations."""
        self.document()
        if type(self._policy).act is Policy.act:
            return
        learning = self._policy.training
        self._policy.eval()
        try:
            _compare(self._policy, self, self._spec)
        finally:
            self._policy.train(learning)

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of the host's tensors by their names, in their order."""
        return {name: place.shape for name, place in self._places.items()}

    def tensors(self) -> dict[str, torch.Tensor]:
        """The parameters as the host has them."""
        return {name: place.read() for name, place in self._places.items()}

    def load(self, values: Mapping[str, numpy.ndarray]) -> None:
        """Takes parameters as the host has them."""
        for name, place in self._places.items():
            place.write(values[name].reshape(place.shape))

    def missing(self) -> dict[str, torch.Tensor]:
        """What of the policy's state_dict the host does not need to act, such as a head that only the loss reads."""
        known = {place.of.data_ptr() for place in self._places.values()}
        return {name: t for name, t in self._policy.state_dict().items() if t.data_ptr() not in known or not t.numel()}

    def network(self) -> Network:
        """The network as rlhost.torch.Network computes it."""
        made = self.document()
        for d, of in zip(made["policy"], self._spec.actions):
            if isinstance(of, Box):
                d["gaussian"] = {"n": of.elems}
            else:
                d.update(of._network("", "")[0] | {"action": d["action"], "from": d["from"]})
        inputs = []
        for i in made["inputs"]:
            t = self._spec.obs[i["path"]]
            more = {"choices": list(t.counts) or [t.n], "start": t.start} if i.get("norm") == "onehot" else {}
            inputs.append({**i, **more})
        return Network(self._spec.env, self._spec.actions, {**made, "inputs": inputs}, self.shapes())

    # Parts.

    def _node(self, name: str, given: Sequence[Rows], kind: str, of: Mapping[str, Any], shape: tuple[int, ...]) -> Rows:
        names = [n["name"] for n in self._nodes]
        if kind in ("concat", "add"):
            name = f"{name}.{len(names)}"
        if name in names or name in self._spec.obs:
            raise ValueError(f"{name} is there twice: a module is described once, and has another name than an observation")
        self._nodes.append({"name": name, "in": [x.name for x in given], kind: dict(of)})
        return Rows(name, shape)

    def _flat(self, x: Rows, reader: str) -> None:
        if x.planes:
            raise ValueError(f"{x.name} is a flattened picture, whose order the host does not share: let a Linear layer read it before {reader}")

    def _put(self, node: str, kind: str, place: _Place) -> None:
        self._places[f"{node}.{kind}"] = place

    def _vector(self, node: str, kind: str, of: torch.Tensor | None, size: int) -> None:
        self._put(node, kind, _Place(torch.zeros(size) if of is None else of, (size,), (0,), (size,)))

    def _matrix(self, node: str, kind: str, of: torch.Tensor, x: Rows) -> None:
        """A weight [outputs, inputs], whose inputs the host may have in another order."""
        out, given = of.shape
        if given != math.prod(x.shape):
            raise ValueError(f"module {node} reads {given} numbers, and {x.name} has {math.prod(x.shape)}")
        if not x.planes:
            self._put(node, kind, _Place(of, (out, given), (1, 0), (given, out)))
            return
        height, width, channels = x.planes
        self._put(node, kind, _Place(of, (out, channels, height, width), (2, 3, 1, 0), (given, out)))


_ROWS, _NEAR = 64, 1e-3  # rows that are compared, and the largest difference of numbers about 1


def _compare(policy: Policy, described: Description, spec: PolicySpec) -> None:
    """Raises ValueError where act differs from a description."""
    from .answers import ask
    from .torch import Network as Computed
    random, computed = numpy.random.default_rng(0), Computed(described.network())
    for name, value in described.tensors().items():
        computed.tensors()[name].data.copy_(value)
    if computed.state_size != policy.state_size:
        raise ValueError(f"{type(policy).__name__} has state_size = {policy.state_size}, and its description keeps {computed.state_size} numbers")
    obs = {path: _drawn(t, random) for path, t in spec.obs.items()}
    state = random.standard_normal((_ROWS, policy.state_size)).astype(numpy.float32)
    masks = [numpy.ones((_ROWS, sum(a.counts)), bool) if i in spec.masks and isinstance(a, Discrete) else None for i, a in enumerate(spec.actions)]
    answer = ask(policy, spec, obs, state, masks, greedy=True)
    with torch.no_grad():
        params, value, after = computed({path: torch.from_numpy(x) for path, x in obs.items()}, torch.from_numpy(state))
        _near(policy, "value", answer.value, value)
        _near(policy, "state", answer.state, after)
        best = computed.greedy(params)
        for i, (of, own, p) in enumerate(zip(spec.actions, answer.actions, params)):
            name = numbered("action", i)
            if isinstance(of, Box):
                _near(policy, name, own, p[:, :of.elems])
                continue
            taken = [torch.from_numpy(own) if k == i else other for k, other in enumerate(best)]
            worse = computed.log_prob(params, best)[0] - computed.log_prob(params, taken)[0]
            _same(policy, name, worse.numpy() > _NEAR, own, best[i].numpy())


def _drawn(t: Tensor, random: numpy.random.Generator) -> numpy.ndarray:
    """Random rows of an observation."""
    shape = (_ROWS, *t.shape)
    made: numpy.ndarray
    if t.choices:
        made = t.start + random.integers(0, min(t.counts) if t.counts else t.n, shape)
    elif t.dtype == "u8":
        made = random.integers(0, 256, shape)
    else:
        made = random.standard_normal(shape)
    return made.astype(_TYPES[t.dtype])


def _near(policy: Policy, what: str, own: numpy.ndarray, of: torch.Tensor) -> None:
    there = of.numpy()
    _same(policy, what, (abs(own - there) > _NEAR * (1 + abs(there))).reshape(_ROWS, -1).any(1), own, there)


def _same(policy: Policy, what: str, differs: numpy.ndarray, own: numpy.ndarray, there: numpy.ndarray) -> None:
    if differs.any():
        at = int(differs.argmax())
        raise ValueError(f"act of {type(policy).__name__} and its description differ in {int(differs.sum())} of {_ROWS} rows: {what} of row {at} is "
                         f"{own[at].tolist()}, and by the description {there[at].tolist()}")
