"""The network of a policy as its learner has to know it: what it reads, its layers, and how it draws each action."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .spec import ACTION, ACTION_MASK, BINARY, IMAGE_CHW, IMAGE_HWC, NO_HIGH, NO_LOW, OBSERVATION, EnvSpec, Tensor, numbered

if TYPE_CHECKING:
    from .host import Host

_UNBOUNDED = 3.4028234663852886e38  # the largest float32: the bound of a side without one
LOG_STD_MIN, LOG_STD_MAX = -5.0, 2.0  # bounds of the logarithms of a Box's deviations, of a table that has none
_MOST_ONE_HOT, _LEAST_ENCODED = 64, 36  # values of an observation that enters one-hot, and the side of a picture that has convolutions


@dataclasses.dataclass(frozen=True)
class Input:
    """An observation, and how its elements enter the network, one behind the other: as floats or, by norm, times scale (scale),
    with the running statistics of the policy (running), or as a number for each value (onehot), 1 for the element's and 0 for
    the others."""

    elems: int
    norm: str = ""
    path: str = "obs"  # of the part of a Dict or Tuple
    column: str = "obs"
    dtype: str = "f32"  # of the column
    scale: float = 0.0
    counts: tuple[int, ...] = ()  # values of each element, of onehot
    start: int = 0  # the first of the values

    @classmethod
    def of(cls, t: Tensor, index: int, normalize: bool) -> Input:
        """That of a tensor, by its place among the observations."""
        column = numbered("obs", index)
        entry = cls(t.elems, "running" if normalize else "", t.path or column, column, t.dtype)
        if t.choices:
            counts = tuple(t.counts) or (t.n,) * t.elems
            return dataclasses.replace(entry, norm="onehot", counts=counts, start=t.start)
        bytes_ = t.dtype == "u8"
        if bytes_ and (t.flags & (IMAGE_HWC | IMAGE_CHW) or t.scale or t.high == 255 and len(t.shape) > 1):
            most = 255.0 if t.low == t.high or t.flags & NO_HIGH else t.high
            return dataclasses.replace(entry, norm="scale", scale=t.scale or (1 / most if most > 1 else 1.0))
        return entry

    @property
    def width(self) -> int:
        """Numbers that enter."""
        return sum(self.counts) or self.elems

    @property
    def plain(self) -> bool:
        """Whether it enters as it is, but for statistics."""
        return self.dtype == "f32" and self.norm in ("", "running")

    def _network(self) -> dict[str, Any]:
        """As states have it."""
        counts = self.counts[:1] if len(set(self.counts)) == 1 else self.counts
        return _given(path=self.path, shape=[self.elems], norm=self.norm, dtype="" if self.dtype == "f32" else self.dtype,
                      choices=list(counts), start=self.start, scale=self.scale)


@dataclasses.dataclass(frozen=True)
class Discrete:
    """How a Discrete, MultiDiscrete or MultiBinary action is drawn: each element by logits of its own, which lie one behind the
    other. An element has a logit for each of its values or, of a binary action, one for the value 1, where that of 0 is 0.
    Values that the mask forbids have probability 0."""

    counts: tuple[int, ...]  # values of each element
    start: int = 0  # what the environment, and the column, call the first of them
    binary: bool = False
    column: str = "action"
    mask: str = ""  # the column that has a byte for each value of each element, if there is one

    @classmethod
    def of(cls, action: Tensor, column: str, mask: str) -> Discrete:
        """That of a tensor. One element has a logit for each value, whatever it is."""
        counts = tuple(action.counts) or (action.n,) * action.elems
        binary = action.flags & BINARY and action.n == 2 and action.elems > 1
        return cls(counts, action.start, bool(binary), column, mask)

    @property
    def plain(self) -> bool:
        """Whether it is one choice that counts from 0."""
        return len(self.counts) == 1 and not self.start

    @property
    def outputs(self) -> int:
        """Logits, all of which the network computes."""
        return len(self.counts) if self.binary else sum(self.counts)

    def _network(self, name: str, head: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """The distribution over the outputs of a node, and the nodes that it takes besides."""
        kind: dict[str, Any] = {"multi_categorical": {"counts": list(self.counts)}}
        if len(self.counts) == 1:
            kind = {"categorical": {"n": self.counts[0]}}
        elif self.binary:
            kind = {"bernoulli": {"n": len(self.counts)}}
        return {"action": name, "from": head, **_given(start=self.start), **kind}, []


@dataclasses.dataclass(frozen=True)
class Box:
    """How a Box action is drawn: each element from a normal distribution of its own. The column has what was drawn, of which
    log_prob is; what the environment read stands in the action's."""

    elems: int
    low: tuple[float, ...]  # bounds of each element, infinite where there is none
    high: tuple[float, ...]
    log_std: str = "parameter"  # parameter: parameters; network: outputs of the network, after the means; fixed: log_std_init
    log_std_init: float = 0.0
    squash: bool = False  # log_prob is of the tanh of what was drawn
    rescale: bool = False
    log_std_min: float = LOG_STD_MIN  # logarithms beyond these count as the nearer one, and have no gradient
    log_std_max: float = LOG_STD_MAX
    column: str = "raw_action"

    @classmethod
    def of(cls, action: Tensor, column: str, table: Mapping[str, Any]) -> Box:
        """That of a tensor, drawn as the policy's table `action` says."""
        low = tuple(-math.inf if action.flags & NO_LOW else x for x in action.lows or [action.low] * action.elems)
        high = tuple(math.inf if action.flags & NO_HIGH else x for x in action.highs or [action.high] * action.elems)
        return cls(action.elems, low, high, table.get("log_std", "parameter"), float(table.get("log_std_init", 0)),
                   table.get("squash", "none") == "tanh", bool(table.get("rescale")), float(table.get("log_std_min", LOG_STD_MIN)),
                   float(table.get("log_std_max", LOG_STD_MAX)), "raw_" + column)

    @property
    def edges(self) -> list[tuple[float, float, float]]:
        """What the mean of each element is to lie between, in the units that it is drawn in, and how many half ranges a unit is."""
        if self.squash:
            return [(-3.0, 3.0, 1.0)] * self.elems  # where tanh is within 0.5 % of its bound
        if self.rescale:
            return [(-1.0, 1.0, 1.0)] * self.elems
        return [(low, high, 2 / (high - low) if math.isfinite(high - low) and high > low else 1.0) for low, high in zip(self.low, self.high)]

    @property
    def outputs(self) -> int:
        """Parameters of the distribution that the network computes from the observation."""
        return self.elems * (2 if self.log_std == "network" else 1)

    def _network(self, name: str, head: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """As above."""
        nodes: list[dict[str, Any]] = []
        if self.log_std != "network":
            append = _given(n=self.elems, init=self.log_std_init, fixed=self.log_std == "fixed")
            nodes.append({"name": head.replace("head", "log_std"), "in": [head], "append": append})
            head = nodes[0]["name"]
        bounds = _given(low=[max(x, -_UNBOUNDED) for x in self.low], high=[min(x, _UNBOUNDED) for x in self.high],
                        rescale=self.rescale)
        limits = (self.log_std_min, self.log_std_max)
        given = {} if limits == (LOG_STD_MIN, LOG_STD_MAX) else {"min": limits[0], "max": limits[1]}
        gaussian = _given(n=self.elems, squash="tanh" if self.squash else "", log_std=given)
        return {"action": name, "from": head, "bounds": bounds, "gaussian": gaussian}, nodes


@dataclasses.dataclass(frozen=True)
class Core:
    """A layer that keeps a state from row to row, as PyTorch computes it; its output is its state, of an lstm the first half."""

    kind: str  # gru or lstm
    size: int  # of its output
    chunk: int  # rows that are learned from together: the column core_state has the state before the first of them

    @classmethod
    def of(cls, net: Mapping[str, Any]) -> Core | None:
        """That of a table `net`, if it has one."""
        core = net.get("core")
        return Core(core["kind"], core.get("size", 128), net.get("chunk", 16)) if core else None

    @property
    def gates(self) -> int:
        """The parts of the columns of the weights: r, z and n of a gru, i, f, g and o of an lstm."""
        return 4 if self.kind == "lstm" else 3

    @property
    def state(self) -> int:
        """Numbers of the state: h, and of an lstm behind it c."""
        return self.size * (2 if self.kind == "lstm" else 1)


@dataclasses.dataclass(frozen=True)
class PolicyLayout:
    """The network of a [policy.NAME] table; the actors have the same one. The policy's log_prob and entropy are the sums of
    those of its actions."""

    env: EnvSpec  # for the agents that the policy plays
    inputs: tuple[Input, ...]  # the observations, which enter side by side
    actions: tuple[Discrete | Box, ...]  # of the environment, one for each part of a Dict or Tuple
    hidden: tuple[int, ...]
    activation: str  # tanh, relu, elu, gelu or silu
    share_trunk: bool
    normalize_obs: bool
    core: Core | None = None  # behind the hidden layers of each encoder; core_state has the actor's before the critic's
    init_gain: float = 2**0.5  # of the hidden layers, in their orthogonal initialisation

    @classmethod
    def of(cls, host: Host, policy: str) -> PolicyLayout:
        """Reads the layout of a policy by its name."""
        known = host.policies[policy]
        env, table = host.env(known.env).of_group(known.group), known.table
        net = table.get("net") or {}
        if net.get("kind", "mlp") != "mlp" or "nodes" in net:
            raise ValueError(f"policy {policy!r}: net is of a kind that PolicyLayout does not have: want kind = \"mlp\"")
        for key in ("inputs", "critic_inputs", "encoder", "frame_stack"):
            if table.get(key, 1) not in (1, [], {}):
                raise ValueError(f"policy {policy!r}: PolicyLayout has observations as they are, one frame and nothing besides: want no {key}")
        core, normalize = Core.of(net), bool(table.get("normalize_obs"))
        return cls(env, _inputs(policy, env, normalize), _actions(env, table.get("action") or {}), tuple(net.get("hidden", (64, 64))),
                   net.get("activation", "tanh"), bool(table.get("share_trunk", core is not None)), normalize, core, float(net.get("init_gain", 2**0.5)))

    @property
    def obs(self) -> int:
        """Numbers that enter."""
        return sum(i.width for i in self.inputs)

    @property
    def running(self) -> list[int]:
        """Which of them enter by the running statistics."""
        places: list[int] = []
        at = 0
        for i in self.inputs:
            places += range(at, at + i.width) if i.norm == "running" else ()
            at += i.width
        return places

    def tensors(self) -> dict[str, tuple[int, ...]]:
        """The parameters' shapes by name, in their order: NAME.weight is [inputs, outputs], NAME.bias [outputs]; an
        encoder's layers are actor.0, actor.1 and so on (critic, or trunk for both), the heads actor.head, of further
        actions actor.head.1 and so on, and critic.head. A core actor.core has weight_ih [inputs, gates * size],
        weight_hh, bias_ih and bias_hh. Of a Box, actor.log_std.value, or actor.log_std.1.value and so on, has the
        logarithms of the standard deviations."""
        made: dict[str, tuple[int, ...]] = {}

        def layer(name: str, inputs: int, outputs: int) -> None:
            made[name + ".weight"], made[name + ".bias"] = (inputs, outputs), (outputs,)

        def encoder(name: str) -> None:
            for i, (inputs, outputs) in enumerate(zip((self.obs, *self.hidden), self.hidden)):
                layer(f"{name}.{i}", inputs, outputs)
            if self.core:
                for part, inputs in (("ih", hidden), ("hh", self.core.size)):
                    made[f"{name}.core.weight_{part}"] = (inputs, self.core.gates * self.core.size)
                for part in ("ih", "hh"):
                    made[f"{name}.core.bias_{part}"] = (self.core.gates * self.core.size,)

        hidden = (self.obs, *self.hidden)[-1]
        last = self.core.size if self.core else hidden
        if self.share_trunk:
            encoder("trunk")
        else:
            encoder("actor")
        for i, action in enumerate(self.actions):
            layer(numbered("actor.head", i, "."), last, action.outputs)
            if isinstance(action, Box) and action.log_std == "parameter":
                made[numbered("actor.log_std", i, ".") + ".value"] = (action.elems,)
        if not self.share_trunk:
            encoder("critic")
        layer("critic.head", last, 1)
        return made

    def network(self) -> dict[str, Any]:
        """The network as states have it."""
        nodes: list[dict[str, Any]] = []

        def dense(name: str, of: str, out: int, gain: float) -> str:
            nodes.append({"name": name, "in": [of], "dense": {"out": out, "gain": gain}})
            return name

        def encoder(name: str) -> str:
            paths = [i.path for i in self.inputs]
            last = paths[0]
            if len(paths) > 1:
                last = name + ".join"
                nodes.append({"name": last, "in": paths, "concat": {}})
            for i, width in enumerate(self.hidden):
                layer = dense(f"{name}.{i}", last, width, self.init_gain)
                last = layer + ".activation"
                nodes.append({"name": last, "in": [layer], "activation": {"func": self.activation}})
            if self.core:
                nodes.append({"name": name + ".core", "in": [last], self.core.kind: {"size": self.core.size}})
                last = name + ".core"
            return last

        trunk = encoder("trunk") if self.share_trunk else ""
        last, policy = trunk or encoder("actor"), []
        for i, action in enumerate(self.actions):
            head = dense(numbered("actor.head", i, "."), last, action.outputs, 0.01)
            drawn, more = action._network(numbered("action", i), head)
            policy.append(drawn)
            nodes += more
        dense("critic.head", trunk or encoder("critic"), 1, 1)
        inputs = [i._network() for i in self.inputs]
        values = [{"name": "value", "from": "critic.head"}]
        chunk = _given(chunk=self.core.chunk if self.core else 0)
        return {"format": 1, "inputs": inputs, "nodes": nodes, "policy": policy, "values": values, **chunk}

    def check(self, network: Mapping[str, Any]) -> None:
        """Raises ValueError unless a network that a state has is this one, but for initial values and chunks."""
        was, now = _keys(network), _keys(self.network())
        for key, value in now.items():
            if was[key] != value:
                raise ValueError(f"the saved policy has {key} {was[key]}, the pipeline {value}")


def _given(**keys: Any) -> dict[str, Any]:
    """The keys that are not empty: those that a description has."""
    return {key: value for key, value in keys.items() if value}


def _keys(network: Mapping[str, Any]) -> dict[str, Any]:
    """A network as states have it by the keys of a table: of format 0, which is of keys, or read from the nodes of format 1."""
    if not network.get("format"):
        inputs = [_given(path="obs", shape=[network["obs"]], norm="running" if network["normalize_obs"] else "")]
        keys = ("hidden", "activation", "share_trunk")
        return {**{key: network[key] for key in keys}, "inputs": inputs, "actions": [{"categorical": {"n": network["actions"]}}], "core": None}
    of = {n["name"]: n for n in network["nodes"]}
    encoder = [n for name, n in of.items() if name.startswith(("actor.", "trunk.")) and not name.startswith(("actor.head", "actor.log_std"))]
    actions = []
    for dist in network["policy"]:
        drawn = {key: value for key, value in dist.items() if key not in ("action", "from", "bounds")}
        if "gaussian" in dist:
            append = of[dist["from"]].get("append")
            drawn["log_std"] = "network" if append is None else "fixed" if append.get("fixed") else "parameter"
            drawn["rescale"] = dist["bounds"].get("rescale", False)
        actions.append(drawn)
    return {"inputs": [{key: value for key, value in i.items() if key != "scale"} for i in network["inputs"]], "actions": actions,
            "hidden": [n["dense"]["out"] for n in encoder if "dense" in n],
            "core": next(({"kind": kind, **n[kind]} for n in encoder for kind in ("gru", "lstm") if kind in n), None),
            "activation": next((n["activation"]["func"] for n in encoder if "activation" in n), "tanh"),
            "share_trunk": any(n["name"].startswith("trunk.") for n in encoder)}


def _actions(env: EnvSpec, table: Mapping[str, Any]) -> tuple[Discrete | Box, ...]:
    """How each action of an environment is drawn."""
    masks = {t.pair: numbered("action_mask", i) for i, t in enumerate(env.of_role(ACTION_MASK))}
    made: list[Discrete | Box] = []
    for i, t in enumerate(env.of_role(ACTION)):
        column = numbered("action", i)
        made.append(Discrete.of(t, column, masks.get(t.index, "")) if t.choices else Box.of(t, column, table))
    return tuple(made)


def _inputs(policy: str, env: EnvSpec, normalize: bool) -> tuple[Input, ...]:
    """How each observation of an environment enters. One that the host gives an encoder is a ValueError."""
    made = []
    for i, t in enumerate(env.of_role(OBSERVATION)):
        sides = t.shape[:2] if t.flags & IMAGE_HWC else t.shape[1:] if t.flags & IMAGE_CHW else (0,)
        entry = Input.of(t, i, normalize)
        if t.choices > _MOST_ONE_HOT:
            what = f"{t.choices} values, which are embedded"
        elif min(sides) >= _LEAST_ENCODED:
            what = f"a picture of {t.shape}, which has convolutions"
        else:
            made.append(entry)
            continue
        raise ValueError(f"policy {policy!r}: PolicyLayout has no encoders, observation {entry.path!r} is of {what}")
    return tuple(made)
