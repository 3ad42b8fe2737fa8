"""Computes a policy that rlhost has exported. It needs NumPy alone, and lies in the file that it reads:

    import sys
    sys.path.insert(0, "policy.npz")
    import rlhost_policy

    policy = rlhost_policy.load("policy.npz")
    action = policy.act(obs)                        # the most probable action of one observation, or of a batch of them
    action = policy.act(obs, mask, rng=np.random.default_rng(1))    # drawn, of the legal choices

Where the environment has several actions, act returns a tuple and takes a tuple of masks, None where an action has none. Where
the network has several inputs, obs is a dict or a tuple, nested as the environment has it or with paths as keys, of which act and step need
the parts alone that actions depend on;
one of stacked frames has an axis of them before those of
a frame, the current one last.

A policy that keeps a state is asked step by step:

    state = None                                    # at an episode's first step
    action, state = policy.step(obs, state)
"""
import json
import math

import numpy as np

OBS_CLIP = 10
LAYERNORM_EPS = 1e-5
LOG_STD = {"min": -5, "max": 2}  # of a Box whose description says nothing else
ERF = np.vectorize(math.erf, otypes=[float])
ACTIVATIONS = {
    "tanh": np.tanh,
    "relu": lambda x: np.maximum(x, 0),
    "elu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "gelu": lambda x: (x * (1 + ERF(x / 2**0.5)) / 2).astype(x.dtype),
    "silu": lambda x: x / (1 + np.exp(-np.clip(x, -80, None))),
}


def load(path):
    """Returns the Policy in a file."""
    with np.load(path, allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files if not name.endswith(".py")}
    return Policy(json.loads(arrays.pop("network.json").tobytes()), json.loads(arrays.pop("about.json").tobytes()), arrays)


class Policy:
    """A network with its weights. `about` says where they come from."""

    def __init__(self, network, about, arrays):
        self.network, self.about, self.arrays = network, about, arrays
        self.inputs, seen = [], 0
        for given in network["inputs"]:
            self.inputs.append(Input(given, arrays, seen))
            seen += self.inputs[-1].normalised
        self.actions = [Action(d) for d in network["policy"]]
        self.state_size = sum(state_of(node) for node in network["nodes"])
        self.acting = acting(network)

    def forward(self, obs, state=None):
        """Returns what each action is drawn from, [rows, parameters], and values [rows] of observations [rows, ...] and, where
        the network keeps one, a state [rows, state_size]."""
        return self.run(self.rows_of(obs, self.inputs)[0], state)[:2]

    def run(self, given, state):
        """Returns what forward does of arrays by path, and the state behind the rows. Without some of the inputs that actions do not
        depend on there are no values."""
        out = {i.path: i.enter(given[i.path]) for i in self.inputs if i.path in given}
        rows = len(next(iter(out.values())))
        if state is None:
            state = np.zeros((rows, self.state_size), np.float32)
        kept, at = [state[:, :0]], 0
        for node in self.network["nodes"]:
            if any(name not in out for name in node["in"]):
                continue
            weights = {name[len(node["name"]) + 1:]: array for name, array in self.arrays.items()
                       if name.rpartition(".")[0] == node["name"]}
            inputs, size = [out[name] for name in node["in"]], state_of(node)
            if size:
                out[node["name"]], behind = remember(node, flat(inputs[0]), weights, state[:, at:at + size])
                kept, at = kept + [behind], at + size
            else:
                out[node["name"]] = compute(node, inputs, weights)
        params = [flat(out[d["from"]]) for d in self.network["policy"]]
        value = out.get(self.network["values"][0]["from"])
        return params, None if value is None else flat(value)[:, 0], np.concatenate(kept, axis=1)

    def rows_of(self, obs, inputs):
        """Returns rows of observations by the paths of inputs, and whether they are of one environment."""
        found = dict(parts(obs, ""))
        if not isinstance(obs, dict) and not any(i.path in found for i in inputs):
            found = {i.path: obs for i in inputs}  # an array, or a tuple that stands for one
        if missing := [i.path for i in inputs if i.path not in found]:
            raise KeyError(f"the observation has no {', '.join(missing)}: it has {', '.join(found)}")
        given = {i.path: array(found[i.path], i.frame) for i in inputs}
        singles = {i.single(given[i.path]) for i in inputs} - {None}
        if len(singles) > 1:
            raise ValueError("some parts of the observation are of one environment, and others of several")
        return {i.path: given[i.path].reshape(-1, *i.shape) for i in inputs}, not singles or singles.pop()

    def logits(self, obs, mask=None, action=0, state=None):
        """Returns logits [rows, choices] of a discrete action, -inf where the mask [rows, choices] is 0."""
        return self.actions[action].logits(self.forward(obs, state)[0][action], mask)

    def value(self, obs, state=None):
        """Returns the values [rows] of observations [rows, ...]."""
        return self.forward(obs, state)[1]

    def act(self, obs, mask=None, rng=None):
        """Returns the most probable action of one observation, or those of a batch as an array: numbers of one Discrete, rows
        of elements for others. With a numpy.random.Generator, actions are drawn."""
        if self.state_size:
            raise TypeError("this policy keeps a state from step to step: use step")
        return self.step(obs, None, mask, rng)[0]

    def step(self, obs, state=None, mask=None, rng=None):
        """Returns what act does, and the state that the next step begins from: [state_size], or [rows, state_size] of a batch.
        None is the state of an episode's first step."""
        inputs = [i for i in self.inputs if i.path in self.acting]
        given, single = self.rows_of(obs, inputs)
        masks = mask if isinstance(mask, tuple) else (mask,) + (None,) * (len(self.actions) - 1)
        masks = [None if m is None else np.atleast_2d(m) for m in masks]
        if state is not None:
            state = np.atleast_2d(np.asarray(state, np.float32))
        params, _, state = self.run(given, state)
        actions = tuple(a.take(p, m, rng) for a, p, m in zip(self.actions, params, masks))
        if single:
            actions = tuple(int(a[0]) if a.ndim == 1 else a[0] for a in actions)
        return actions if len(actions) > 1 else actions[0], state[0] if single else state


def acting(network):
    """Returns the names of the inputs and nodes that actions depend on, or all where a state belongs to what values need."""
    names = {d["from"] for d in network["policy"]}
    for node in reversed(network["nodes"]):
        if node["name"] in names:
            names.update(node["in"])
    if any(state_of(node) and node["name"] not in names for node in network["nodes"]):
        names.update(i["path"] for i in network["inputs"])
    return names


def parts(obs, path):
    """Yields the parts of an observation with their paths: those of a dict by name, those of a tuple by number."""
    if not isinstance(obs, (dict, tuple)):
        yield path, obs
        return
    for name, part in obs.items() if isinstance(obs, dict) else enumerate(obs):
        yield from parts(part, f"{path}/{name}" if path else str(name))


def array(observed, shape):
    """Returns what is observed as numbers: of texts the bytes of their UTF-8, with zeros behind them."""
    x = np.asarray(observed)
    if x.dtype.kind != "U":
        return x
    texts = [np.frombuffer(text.encode()[:shape[0]].ljust(shape[0], b"\0"), np.uint8) for text in x.ravel()]
    return np.reshape(texts, (*x.shape, *shape))


class Input:
    """What happens to an observation before it enters the network."""

    def __init__(self, description, arrays, seen):
        self.path, self.frame, self.norm = description["path"], tuple(description["shape"]), description.get("norm")
        self.frames, self.chw = description.get("stack") or 1, description.get("chw")
        self.shape = (self.frames, *self.frame) if self.frames > 1 else self.frame
        self.scale = np.float32(description.get("scale", 1))
        self.choices, self.start = description.get("choices"), description.get("start", 0)
        self.normalised = int(np.prod(self.frame)) if self.norm == "running" else 0
        if self.normalised:
            self.mean, self.deviation = (arrays[name][seen:seen + self.normalised].reshape(self.frame) for name in ("obs_mean", "obs_scale"))

    def single(self, x):
        """Returns whether an array is what one environment observes, and not a batch of that. A single number has no axis, or one, and a picture of
        one channel two axes, or three; None is for one number of a Discrete space with an axis, which may be either."""
        shape = self.shape
        if self.choices and shape == (1,) == x.shape:
            return None
        if len(shape) in (1, 3) and shape[-1] == 1 and x.ndim <= len(shape) and x.shape[-len(shape):] != shape:
            shape = shape[:-1]
        axes = x.ndim - len(shape)
        if axes not in (0, 1) or x.shape[axes:] != shape:
            raise ValueError(f"{self.path} has the shape {x.shape}: want {shape}, or an axis of environments before it")
        return axes == 0

    def enter(self, x):
        """Returns rows of numbers, those of pictures as [rows, height, width, channels of all frames]."""
        x = x.astype(np.float32).reshape(len(x), self.frames, *self.frame)
        if self.norm == "onehot":
            x = x.reshape(len(x), self.frames, -1)
            counts = self.choices * x.shape[2] if len(self.choices) == 1 else self.choices
            return flat(np.concatenate([x[:, :, i, None] == self.start + np.arange(n) for i, n in enumerate(counts)], axis=2).astype(np.float32))
        if self.norm == "running":
            x = np.clip((x - self.mean) * self.deviation, -OBS_CLIP, OBS_CLIP)
        elif self.norm == "scale":
            x = x * self.scale
        if len(self.frame) == 3:
            x = x.transpose(0, 3, 4, 1, 2) if self.chw else x.transpose(0, 2, 3, 1, 4)
            return x.reshape(*x.shape[:3], -1)
        return x.reshape(len(x), *self.frame) if self.frames == 1 else flat(x)


class Action:
    """An action's distribution."""

    def __init__(self, description):
        self.start, self.bounds = description.get("start", 0), description.get("bounds")
        self.box, self.bernoulli = description.get("gaussian"), "bernoulli" in description
        self.discrete = "categorical" in description
        if self.bernoulli:
            self.counts = [2] * description["bernoulli"]["n"]
        elif self.discrete:
            self.counts = [description["categorical"]["n"]]
        elif not self.box:
            self.counts = description["multi_categorical"]["counts"]

    def logits(self, params, mask):
        """Returns a logit for each choice of each element."""
        if self.bernoulli:
            params = np.stack([np.zeros_like(params), params], axis=2).reshape(len(params), -1)
        return params if mask is None else np.where(np.asarray(mask, bool), params, -np.inf)

    def take(self, params, mask, rng):
        """Returns actions as the environment reads them."""
        if self.box:
            return self.within(params, rng)
        logits = self.logits(params, mask)
        if rng is not None:
            logits = logits + rng.gumbel(size=logits.shape)
        parts = np.split(logits, np.cumsum(self.counts)[:-1], axis=1)
        elements = np.stack([np.argmax(part, axis=1) for part in parts], axis=1) + self.start
        return elements[:, 0] if self.discrete else elements

    def gaussian(self, params):
        """Returns the means of a Box's elements, and the logarithms of their deviations within their bounds."""
        mean, log_std = np.split(params, 2, axis=1)
        bounds = self.box.get("log_std", LOG_STD)
        return mean, np.clip(log_std, params.dtype.type(bounds["min"]), params.dtype.type(bounds["max"]))

    def within(self, params, rng):
        """Returns elements of a Box within its bounds."""
        x, log_std = self.gaussian(params)
        if rng is not None:
            x = x + np.exp(log_std) * rng.standard_normal(x.shape, np.float32)
        low, high = np.array(self.bounds["low"], np.float32), np.array(self.bounds["high"], np.float32)
        squash = self.box.get("squash", "")
        if squash not in ("", "tanh"):
            raise ValueError(f"squash {squash!r}: this file knows tanh")
        tanh = squash == "tanh"
        if tanh:
            x = np.tanh(x)
        if tanh or self.bounds.get("rescale"):
            x = low + (x + 1) * np.float32(0.5) * (high - low)
        return np.clip(x, low, high)


def state_of(node):
    """Returns how many elements of state a node keeps."""
    if "external" in node:
        return node["external"].get("keeps", 0)
    return node["gru"]["size"] if "gru" in node else 2 * node["lstm"]["size"] if "lstm" in node else 0


def remember(node, x, weights, state):
    """Returns what a node with a state makes of rows x, and its state behind them."""
    h = state[:, :weights["weight_hh"].shape[0]]
    of_input = x @ weights["weight_ih"] + weights["bias_ih"]
    of_state = h @ weights["weight_hh"] + weights["bias_hh"]
    if "gru" in node:
        (xr, xz, xn), (hr, hz, hn) = np.split(of_input, 3, axis=1), np.split(of_state, 3, axis=1)
        n, z = np.tanh(xn + sigmoid(xr + hr) * hn), sigmoid(xz + hz)
        h = n + z * (h - n)
        return h, h
    i, f, g, o = np.split(of_input + of_state, 4, axis=1)
    c = sigmoid(f) * state[:, h.shape[1]:] + sigmoid(i) * np.tanh(g)
    h = sigmoid(o) * np.tanh(c)
    return h, np.concatenate([h, c], axis=1)


def sigmoid(x):
    return np.float32(0.5) * (1 + np.tanh(np.float32(0.5) * x))


def compute(node, inputs, weights):
    """Returns what a node makes of its inputs, which have rows first and the channels of images last."""
    x = inputs[0]
    if "dense" in node:
        return flat(x) @ weights["weight"] + weights["bias"]
    if "activation" in node:
        return ACTIVATIONS[node["activation"]["func"]](x)
    if "conv2d" in node:
        return np.tensordot(windows(x, node["conv2d"], 0), weights["weight"], axes=((4, 5, 3), (0, 1, 2))) + weights["bias"]
    if "maxpool" in node:
        return windows(x, node["maxpool"], -np.inf).max(axis=(4, 5))
    if "add" in node:
        return sum(inputs)
    if "concat" in node:
        return np.concatenate(inputs, axis=-1)
    if "flatten" in node:
        return flat(x)
    if "layernorm" in node:
        x = x - x.mean(axis=-1, keepdims=True)
        return x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + np.float32(LAYERNORM_EPS)) * weights["weight"] + weights["bias"]
    if "append" in node:
        more = weights.get("value", np.full(node["append"]["n"], node["append"].get("init", 0), np.float32))
        return np.concatenate([flat(x), np.broadcast_to(more, (len(x), len(more)))], axis=1)
    if "external" in node:
        raise ValueError(f"plugin {node['external']['program']} computes this network, not NumPy: rlhost.load(..., network=MyPolicy), with the plugin's class")
    raise ValueError(f"node {node['name']} has an operation that this reader does not know")


def flat(x):
    """Returns rows of vectors."""
    return x.reshape(len(x), -1)


def windows(x, of, outside):
    """Returns what lies under each place of a window: [rows, height, width, channels, kernel, kernel]."""
    pad, stride = of.get("pad", 0), of["stride"]
    x = np.pad(x, ((0, 0), (pad, pad), (pad, pad), (0, 0)), constant_values=outside)
    return np.lib.stride_tricks.sliding_window_view(x, (of["kernel"], of["kernel"]), axis=(1, 2))[:, ::stride, ::stride]
