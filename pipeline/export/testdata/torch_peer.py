"""Computes the samples of standard input with the network of policy.npz of a folder in rlhost.torch, and compares them with the host's."""
import json
import sys

import numpy as np
import torch
from rlhost.network import Network
from rlhost.torch import Network as Module

FAR = 1e-5  # of a number x: times max(1, |x|)


def apart(ours, theirs):
    """Returns how far two arrays are apart."""
    ours, theirs = np.asarray(ours, float).ravel(), np.asarray(theirs, float).ravel()
    assert ours.shape == theirs.shape, (ours.shape, theirs.shape)
    return (np.abs(ours - theirs) / np.maximum(1, np.abs(ours))).max()


def main(folder):
    torch.set_num_threads(1)
    host = json.load(sys.stdin)
    with np.load(f"{folder}/policy.npz") as file:
        arrays = {name: file[name] for name in file.files if not name.endswith((".py", ".json"))}
        description = json.loads(file["network.json"].tobytes())
    stats = {name: torch.from_numpy(arrays.pop(name)) for name in ("obs_mean", "obs_scale") if name in arrays}
    net = Module(Network(None, (), description, {name: arrays[name].shape for name in host["names"]}))
    assert set(net.tensors()) == set(arrays), set(net.tensors()) ^ set(arrays)
    with torch.no_grad():
        for name, p in net.tensors().items():
            p.copy_(torch.from_numpy(arrays[name]))
    for name, value in stats.items():
        assert getattr(net, name).shape == value.shape, name
        setattr(net, name, value)
    rows, obs, at = len(host["value"]), {}, 0
    numbers = np.array(host["obs"], np.float32).reshape(rows, -1)
    for i in host["inputs"]:
        shape = ([i["stack"]] if i.get("stack", 0) > 1 else []) + i["shape"]
        n = int(np.prod(shape))
        obs[i["path"]] = torch.from_numpy(numbers[:, at:at + n].reshape(rows, *shape).copy())
        at += n
    state = torch.tensor(host["state"]).reshape(rows, -1) if host["state"] else None
    masks = [torch.tensor(a["mask"]).reshape(rows, -1) != 0 if a["mask"] else None for a in host["actions"]]
    params, value, behind = net(obs, state)
    chosen = [torch.tensor(a["chosen"]).reshape(rows, -1) for a in host["actions"]]
    log_prob, _ = net.log_prob(params, chosen, masks)
    largest = max(apart(host["value"], value.detach()), apart(host["log_prob"], log_prob.detach()))
    if host["state"]:
        largest = max(largest, apart(host["next_state"], behind.detach()))
    for a, mine, p in zip(host["actions"], net.greedy(params, masks), params):
        if a["counts"] is None:
            continue  # a Box's action is its mean within its bounds, and the mean is in log_prob
        given = np.array(a["given"]).reshape(rows, -1)
        differs = (mine.numpy() + a["start"] != given).any(1)
        assert differs.mean() < 1e-3, f"{differs.sum()} of {rows} greedy actions differ"
    print(f"torch: largest difference {largest:.1e}")
    assert largest <= FAR, largest
    (value.sum() + log_prob.sum()).backward()
    missing = [name for name, p in net.tensors().items() if p.grad is None]
    assert not missing, f"no gradient of {missing}"


main(sys.argv[1])
