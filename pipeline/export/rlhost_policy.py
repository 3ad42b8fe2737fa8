"""Computes a policy that rlhost has exported. It needs NumPy alone, and lies in the file that it reads:

    import sys
    sys.path.insert(0, "policy.npz")
    import rlhost_policy

    policy = rlhost_policy.load("policy.npz")
    action = policy.act(obs)                        # the most probable action of one observation, or of a batch of them
    action = policy.act(obs, mask, rng=np.random.default_rng(1))    # drawn from the legal ones
"""
import json

import numpy as np

OBS_CLIP = 10
ACTIVATIONS = {
    "tanh": np.tanh,
    "relu": lambda x: np.maximum(x, 0),
    "elu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
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
        self.shape = tuple(network["inputs"][0]["shape"])

    def forward(self, obs):
        """Returns logits [rows, actions] and values [rows] of observations [rows, ...]."""
        given = self.network["inputs"][0]
        x = np.asarray(obs, np.float32).reshape(len(obs), -1)
        if given.get("norm") == "running":
            x = np.clip((x - self.arrays["obs_mean"]) * self.arrays["obs_scale"], -OBS_CLIP, OBS_CLIP)
        out = {given["path"]: x}
        for node in self.network["nodes"]:
            x = out[node["in"][0]]
            if "dense" in node:
                x = x @ self.arrays[node["name"] + ".weight"] + self.arrays[node["name"] + ".bias"]
            elif "activation" in node:
                x = ACTIVATIONS[node["activation"]["func"]](x)
            else:
                raise ValueError(f"node {node['name']} has an operation that this reader does not know")
            out[node["name"]] = x
        return out[self.network["policy"][0]["from"]], out[self.network["values"][0]["from"]][:, 0]

    def logits(self, obs, mask=None):
        """Returns logits [rows, actions], -inf where the mask [rows, actions] is 0."""
        logits = self.forward(obs)[0]
        return logits if mask is None else np.where(np.asarray(mask, bool), logits, -np.inf)

    def value(self, obs):
        """Returns the values [rows] of observations [rows, ...]."""
        return self.forward(obs)[1]

    def act(self, obs, mask=None, rng=None):
        """Returns the most probable action of one observation as an int, or those of a batch as an array. With a
        numpy.random.Generator, actions are drawn."""
        obs = np.asarray(obs, np.float32)
        single = obs.shape == self.shape
        if single:
            obs, mask = obs[None], None if mask is None else np.asarray(mask)[None]
        logits = self.logits(obs, mask)
        if rng is not None:
            logits = logits + rng.gumbel(size=logits.shape)
        actions = np.argmax(logits, axis=1)
        return int(actions[0]) if single else actions
