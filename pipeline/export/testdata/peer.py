"""Computes the samples of standard input with policy.npz and policy.onnx of a folder, and compares them with the host's."""
import json
import sys

import numpy as np
import onnxruntime

FAR = 1e-5  # of a number x: times max(1, |x|)


def apart(ours, theirs):
    """Returns how far two arrays are apart."""
    return (np.abs(ours - theirs) / np.maximum(1, np.abs(ours))).max()


def choices(name, host, logits, action):
    """Checks a discrete action, and returns its log-probabilities."""
    given = np.array(host["given"]).reshape(len(logits), -1)
    chosen = np.array(host["chosen"], int).reshape(given.shape)
    action, total = action.reshape(given.shape), 0
    for i, part in enumerate(np.split(logits.astype(np.float64), np.cumsum(host["counts"])[:-1], axis=1)):
        top = np.sort(part, axis=1)
        clear = np.full(len(part), True) if part.shape[1] == 1 else (top[:, -1] - top[:, -2]) > 1e-4
        assert (action[:, i] == given[:, i])[clear].all(), f"{name}: another action"
        total = total + part[np.arange(len(part)), chosen[:, i]] - (top[:, -1] + np.log(np.exp(part - top[:, -1:]).sum(axis=1)))
    return total


def box(name, host, mean, log_std, action):
    """Checks a Box, and returns its log-probabilities."""
    given, chosen = (np.array(host[key]).reshape(action.shape) for key in ("given", "chosen"))
    assert apart(given, action) < 1e-4, f"{name}: another action"
    log_prob = -((chosen - mean) * np.exp(-log_std)) ** 2 / 2 - log_std - np.log(2 * np.pi) / 2
    if host["squash"]:
        log_prob = log_prob - 2 * (np.log(2) - chosen - np.logaddexp(0, -2 * chosen))
    return log_prob.sum(axis=1)


def check(name, host, log_prob, value):
    largest = max(apart(np.array(host["log_prob"]), log_prob), apart(np.array(host["value"]), value))
    print(f"{name}: largest difference {largest:.1e}")
    assert largest <= FAR, f"{name}: {largest}"


def states(host):
    """Returns the states before and behind all rows, None for a network without one."""
    return [np.array(host[key], np.float32).reshape(len(host["value"]), -1) if host[key] else None for key in ("state", "next_state")]


def numpy(folder, host, obs, masks):
    sys.path.insert(0, f"{folder}/policy.npz")
    import rlhost_policy
    policy = rlhost_policy.load(f"{folder}/policy.npz")
    assert policy.about == {"run": "cartpole/0007"}, policy.about

    def every(answer):
        return answer if isinstance(answer, tuple) else (answer,)

    before, behind = states(host)
    actions, state = policy.step(obs, before, masks)
    actions, (params, value), log_prob = every(actions), policy.forward(obs, before), 0
    needed = {path: x for path, x in obs.items() if path in policy.acting}
    for a, b in zip(every(policy.step(needed, before, masks)[0]), actions):
        assert (a == b).all(), "another action without what the value alone reads"
    for k, h in enumerate(host["actions"]):
        if h["counts"] is None:
            log_prob = log_prob + box("numpy", h, *policy.actions[k].gaussian(params[k].astype(np.float64)), actions[k])
        else:
            log_prob = log_prob + choices("numpy", h, policy.logits(obs, masks[k], k, before), actions[k])
    check("numpy", host, log_prob, value)
    one = tuple(None if m is None else m[0] for m in masks)
    if before is not None:
        assert apart(behind, state) < FAR, "another state"
        kept(policy, obs, before, actions)
        return
    for a, b in zip(every(policy.act({path: x[0] for path, x in obs.items()}, one)), actions):
        assert apart(b[0], a) < FAR, (a, b[0])
    if len(obs) == 1:
        for a, b in zip(every(policy.act(*obs.values(), masks)), actions):
            assert (a == b).all()
    drawn(policy, obs, masks, host)


def kept(policy, obs, before, actions):
    """Checks single steps of a policy that keeps a state: the first of an episode, and one that goes on."""
    first = {path: x[0] for path, x in obs.items()}
    action, state = policy.step(first, before[0])
    assert action == actions[0][0] and state.shape == before[0].shape
    assert (policy.step(first)[1] == policy.step(first, np.zeros_like(state))[1]).all()
    try:
        policy.act(first)
    except TypeError as e:
        assert "step" in str(e)
    else:
        raise AssertionError("act forgets the state without a word")


def drawn(policy, obs, masks, host, rows=50_000):
    """Checks the frequencies of single choices, and the moments of Boxes."""
    many = tuple(None if m is None else np.repeat(m[:1], rows, axis=0) for m in masks)
    obs = {path: x[:1] for path, x in obs.items()}
    repeated = {path: np.repeat(x, rows, axis=0) for path, x in obs.items()}
    actions = policy.act(repeated, many, rng=np.random.default_rng(1))
    actions, params = actions if isinstance(actions, tuple) else (actions,), policy.forward(obs)[0]
    for k, h in enumerate(host["actions"]):
        if h["counts"] is None:
            policy.actions[k].box, policy.actions[k].bounds = {**policy.actions[k].box, "squash": ""}, {"low": -1e9, "high": 1e9}
            mean, log_std = (x[0] for x in policy.actions[k].gaussian(params[k]))
            std = np.exp(log_std)
            x = policy.act(repeated, many, rng=np.random.default_rng(2))
            x = x[k] if isinstance(x, tuple) else x
            assert (np.abs(x.mean(axis=0) - mean) < 0.03 * std).all() and (np.abs(x.std(axis=0) / std - 1) < 0.03).all()
            continue
        logits, at = policy.logits(obs, None if masks[k] is None else masks[k][:1], k)[0].astype(np.float64), 0
        for i, n in enumerate(h["counts"]):
            part = logits[at:at + n]
            expected = np.exp(part - part.max()) / np.exp(part - part.max()).sum()
            taken = actions[k].reshape(rows, -1)[:, i] - int(h["given"][0] - h["chosen"][0])
            assert np.abs(np.bincount(taken, minlength=n) / rows - expected).max() < 0.015
            at += n


def onnx(folder, host, obs, masks):
    session = onnxruntime.InferenceSession(f"{folder}/policy.onnx")

    def named(name, k):
        return name if k == 0 else f"{name}/{k}"

    given = obs | {named("mask", k): m for k, m in enumerate(masks) if m is not None}
    before, behind = states(host)
    if before is not None:
        given["core_state"] = before
    asked = {i.name for i in session.get_inputs()}
    assert "value" not in [o.name for o in session.get_outputs()] or asked == set(given), "inputs that it does not ask for"
    given = {name: x for name, x in given.items() if name in asked}
    outputs = dict(zip([o.name for o in session.get_outputs()], session.run(None, given)))
    log_prob = 0
    for k, h in enumerate(host["actions"]):
        action = outputs[named("action", k)]
        if h["counts"] is None:
            mean, log_std = (outputs[named(name, k)].astype(np.float64) for name in ("mean", "log_std"))
            log_prob = log_prob + box("onnx", h, mean, log_std, action)
        else:
            log_prob = log_prob + choices("onnx", h, outputs[named("logits", k)], action)
    value = outputs.get("value", np.array(host["value"], np.float32))
    assert value.shape == (len(host["value"]),)
    assert before is None or apart(behind, outputs["next_core_state"]) < FAR, "another state"
    check("onnx", host, log_prob, value)
    assert session.get_modelmeta().custom_metadata_map == {"run": "cartpole/0007"}


def main(folder):
    host = json.load(sys.stdin)
    rows = len(host["value"])
    obs, at, all_numbers = {}, 0, np.array(host["obs"], np.float32).reshape(rows, -1)
    for i in host["inputs"]:
        shape = ([i["stack"]] if i.get("stack", 0) > 1 else []) + i["shape"]
        n = int(np.prod(shape))
        obs[i["path"]] = all_numbers[:, at:at + n].reshape(rows, *shape).astype({"u8": np.uint8, "i32": np.int32}.get(i.get("dtype"), np.float32))
        at += n
    masks = tuple(np.array(a["mask"]).reshape(rows, -1).astype(bool) if a["mask"] else None for a in host["actions"])
    onnx(folder, host, obs, masks)
    numpy(folder, host, obs, masks)


main(sys.argv[1])
