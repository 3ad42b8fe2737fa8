"""Computes the samples of standard input with policy.npz and policy.onnx of a folder, and compares them with the host's."""
import json
import sys

import numpy as np
import onnxruntime


def check(name, host, mask, action, logits, value):
    legal = np.where(mask, logits, -np.inf) if mask is not None else logits
    logits = legal.astype(np.float64)
    top = np.sort(logits, axis=1)
    clear = (top[:, -1] - top[:, -2]) > 1e-4
    assert (action == host["action"])[clear].all(), f"{name}: another action"
    log_prob = logits[np.arange(len(action)), host["action"]] - (
        top[:, -1] + np.log(np.exp(logits - top[:, -1:]).sum(axis=1)))
    largest = 0
    for ours, theirs in ((host["log_prob"], log_prob), (host["value"], value)):
        largest = max(largest, (np.abs(ours - theirs) / np.maximum(1, np.abs(ours))).max())
    print(f"{name}: largest difference {largest:.1e}")
    assert largest <= 1e-5, f"{name}: {largest}"


def main(folder):
    host = {name: np.array(v) for name, v in json.load(sys.stdin).items()}
    rows = len(host["action"])
    obs = host["obs"].astype(np.float32).reshape(rows, -1)
    mask = host["mask"].reshape(rows, -1).astype(bool) if host["mask"].size else None

    sys.path.insert(0, f"{folder}/policy.npz")
    import rlhost_policy
    policy = rlhost_policy.load(f"{folder}/policy.npz")
    assert policy.about == {"run": "cartpole/0007"}, policy.about
    check("numpy", host, mask, policy.act(obs, mask), policy.logits(obs, mask), policy.value(obs))
    assert policy.act(obs[0], None if mask is None else mask[0]) == policy.act(obs, mask)[0]
    drawn = policy.act(np.repeat(obs[:1], 50_000, axis=0), None if mask is None else np.repeat(mask[:1], 50_000, axis=0),
                       rng=np.random.default_rng(1))
    logits = policy.logits(obs[:1], None if mask is None else mask[:1])[0].astype(np.float64)
    expected = np.exp(logits - logits.max()) / np.exp(logits - logits.max()).sum()
    assert np.abs(np.bincount(drawn, minlength=len(expected)) / len(drawn) - expected).max() < 0.015

    session = onnxruntime.InferenceSession(f"{folder}/policy.onnx")
    given = {"obs": obs} if mask is None else {"obs": obs, "mask": mask}
    action, logits, value = session.run(["action", "logits", "value"], given)
    assert action.shape == (rows,) and value.shape == (rows,)
    check("onnx", host, mask, action, logits, value)
    assert session.get_modelmeta().custom_metadata_map == {"run": "cartpole/0007"}


main(sys.argv[1])
