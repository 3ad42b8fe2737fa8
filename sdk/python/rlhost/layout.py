"""The network of a policy as its learner has to know it: what it reads, its layers, and how it draws each action."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .spec import ACTION, ACTIVE, NO_HIGH, NO_LOW, OBSERVATION, EnvSpec, Tensor

if TYPE_CHECKING:
    from .host import Host

_UNBOUNDED = 3.4028234663852886e38  # the largest float32: the bound of a side without one


@dataclasses.dataclass(frozen=True)
class Box:
    """How a Box action is drawn: each element from a normal distribution of its own. The column raw_action has what was drawn,
    of which log_prob is, and action what the environment read."""

    elems: int
    low: tuple[float, ...]  # bounds of each element, infinite where there is none
    high: tuple[float, ...]
    log_std: str = "free"  # free: parameters; state: outputs of the network, behind the means; fixed: log_std_init
    log_std_init: float = 0.0
    squash: bool = False  # log_prob is of the tanh of what was drawn
    rescale: bool = False

    @classmethod
    def of(cls, action: Tensor, table: Mapping[str, Any]) -> Box:
        """That of a tensor, drawn as the policy's table `action` says."""
        low = tuple(-math.inf if action.flags & NO_LOW else x for x in action.lows or [action.low] * action.elems)
        high = tuple(math.inf if action.flags & NO_HIGH else x for x in action.highs or [action.high] * action.elems)
        return cls(action.elems, low, high, table.get("log_std", "free"), float(table.get("log_std_init", 0)),
                   table.get("squash", "none") == "tanh", bool(table.get("rescale")))

    @property
    def outputs(self) -> int:
        """Parameters of the distribution that the network computes from the observation."""
        return self.elems * (2 if self.log_std == "state" else 1)

    def _network(self, head: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """The distribution over the outputs of a node, and the nodes that it takes besides."""
        nodes = []
        if self.log_std != "state":
            append = _given(n=self.elems, init=self.log_std_init, fixed=self.log_std == "fixed")
            nodes.append({"name": "actor.log_std", "in": [head], "append": append})
            head = "actor.log_std"
        bounds = _given(low=[max(x, -_UNBOUNDED) for x in self.low], high=[min(x, _UNBOUNDED) for x in self.high],
                        rescale=self.rescale)
        gaussian = _given(n=self.elems, squash="tanh" if self.squash else "")
        return {"action": "action", "from": head, "bounds": bounds, "gaussian": gaussian}, nodes


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
    """The network of a [policy.NAME] table; the actors have the same one."""

    env: EnvSpec
    obs: int  # elements of an observation
    actions: int  # values of the Discrete action, 0 for a Box
    hidden: tuple[int, ...]
    activation: str  # tanh, relu or elu
    share_trunk: bool
    normalize_obs: bool
    box: Box | None = None  # how a Box action is drawn
    core: Core | None = None  # behind the hidden layers of each encoder; core_state has the actor's before the critic's

    @classmethod
    def of(cls, host: Host, policy: str) -> PolicyLayout:
        """Reads the layout of a policy by its name."""
        known = host.policies[policy]
        env, table = host.env(known.env), known.table
        net = table.get("net") or {}
        if net.get("kind", "mlp") != "mlp" or "nodes" in net:
            raise ValueError(f"policy {policy!r}: net is of a kind that PolicyLayout does not have: want kind = \"mlp\"")
        if table.get("inputs") or table.get("encoder"):
            raise ValueError(f"policy {policy!r}: PolicyLayout has no other inputs and encoders: want neither inputs nor encoder")
        if env.agents > 1 or env.tensor(ACTIVE):
            raise ValueError(f"policy {policy!r}: PolicyLayout has one agent that always acts, the environment other ones")
        action = _only(policy, env, ACTION)
        _only(policy, env, OBSERVATION)
        box, core = None if action.choices else Box.of(action, table.get("action") or {}), Core.of(net)
        return cls(env, env.obs_elems, action.n, tuple(net.get("hidden", (64, 64))), net.get("activation", "tanh"),
                   bool(table.get("share_trunk", core is not None)), bool(table.get("normalize_obs")), box, core)

    @property
    def outputs(self) -> int:
        """Outputs of the actor's head: logits, or the means of a Box."""
        return self.box.outputs if self.box else self.actions

    def tensors(self) -> dict[str, tuple[int, ...]]:
        """The parameters' shapes by name, in their order: NAME.weight is [inputs, outputs], NAME.bias [outputs]; an
        encoder's layers are actor.0, actor.1 and so on (critic, or trunk for both), the heads actor.head and
        critic.head. A core actor.core has weight_ih [inputs, gates * size], weight_hh, bias_ih and bias_hh. Of a Box,
        actor.log_std.value has the free logarithms of the standard deviations."""
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
        for name, outputs in (("actor", self.outputs), ("critic", 1)):
            if not self.share_trunk:
                encoder(name)
            layer(name + ".head", last, outputs)
            if name == "actor" and self.box and self.box.log_std == "free":
                made["actor.log_std.value"] = (self.box.elems,)
        return made

    def network(self) -> dict[str, Any]:
        """The network as states have it: of keys, or where there is a Box or a core of nodes."""
        if not self.box and not self.core:
            return {"obs": self.obs, "actions": self.actions, "hidden": list(self.hidden), "activation": self.activation,
                    "share_trunk": self.share_trunk, "normalize_obs": self.normalize_obs, "hidden_gain": 2**0.5,
                    "policy_gain": 0.01, "value_gain": 1}
        nodes: list[dict[str, Any]] = []

        def dense(name: str, of: str, out: int, gain: float) -> str:
            nodes.append({"name": name, "in": [of], "dense": {"out": out, "gain": gain}})
            return name

        def encoder(name: str) -> str:
            last = "obs"
            for i, width in enumerate(self.hidden):
                layer = dense(f"{name}.{i}", last, width, 2**0.5)
                last = layer + ".activation"
                nodes.append({"name": last, "in": [layer], "activation": {"func": self.activation}})
            if self.core:
                nodes.append({"name": name + ".core", "in": [last], self.core.kind: {"size": self.core.size}})
                last = name + ".core"
            return last

        trunk = encoder("trunk") if self.share_trunk else ""
        head = dense("actor.head", trunk or encoder("actor"), self.outputs, 0.01)
        policy: dict[str, Any] = {"action": "action", "from": head, "categorical": {"n": self.actions}}
        if self.box:
            policy, more = self.box._network(head)
            nodes += more
        dense("critic.head", trunk or encoder("critic"), 1, 1)
        inputs = [_given(path="obs", shape=[self.obs], norm="running" if self.normalize_obs else "")]
        values = [{"name": "value", "from": "critic.head"}]
        chunk = _given(chunk=self.core.chunk if self.core else 0)
        return {"format": 1, "inputs": inputs, "nodes": nodes, "policy": [policy], "values": values, **chunk}


def _given(**keys: Any) -> dict[str, Any]:
    """The keys that are not empty: those that a description has."""
    return {key: value for key, value in keys.items() if value}


def _only(policy: str, env: EnvSpec, role: int) -> Tensor:
    """The one action or observation of an environment, if it is of a kind that PolicyLayout has."""
    tensors = [t for t in env.tensors if t.role == role]
    what = "action" if role == ACTION else "observation"
    if len(tensors) != 1:
        raise ValueError(f"policy {policy!r}: the environment has {len(tensors)} {what}s, PolicyLayout one")
    t, want = tensors[0], "f32"
    if role == ACTION and t.choices:
        want = "i32"
    if t.dtype != want or t.choices and (role == OBSERVATION or t.counts or t.elems > 1 or t.start):
        raise ValueError(f"policy {policy!r}: PolicyLayout has no such {what}: want a Box of f32"
                         f"{', or one choice from 0 on' if role == ACTION else ''}")
    return t
