"""Runs the conformance set of hostabi/conformance on the host of this folder.

    python run.py [--words] [CASE ...]

With --words the messages must have the words of the set too, which another host may say otherwise.
"""
import json
import pathlib
import re
import sys

import numpy as np

from description import Refused
from env import Env
from guest import Fault
from page import ENV as abi

SET = pathlib.Path(__file__).parent.parent.parent / "hostabi" / "conformance"
WORDS = "--words" in sys.argv
MODES = {name.lower(): n for name, n in abi.named("AUTORESET_").items()}
FEATURES = [name.lower() for name in abi.named("FEATURE_")]


def want(holds, text):
    if not holds:
        raise AssertionError(text)


def said_as(words, text):
    """Whether a message has the words of the set, but for codes of errors; always, unless they are asked for."""
    return not WORDS or all(w in text for w in words if not re.fullmatch(r"E\d+", w))


def chosen(tensor, actions):
    """The values of an action tensor, [environment][agent][element], for the 0 and 1 of a trace."""
    at = np.array(actions)[:, None, None]
    if tensor.counts is not None:
        return np.broadcast_to(tensor.d.start + at * (tensor.counts - 1), (len(actions), tensor.agents, tensor.elems))
    low, high = np.where(np.isinf(tensor.low), -8, tensor.low), np.where(np.isinf(tensor.high), 8, tensor.high)
    return np.where(at == 1, high, low)


def play(env, case, trace):
    """The trace of a mode, compared row by row. After each step the case's own part."""
    def each(rows):
        """What a row of the trace has of each environment's agents: the same for all, or that of each."""
        return [rows[e * len(rows) // env.n:(e + 1) * len(rows) // env.n] for e in range(env.n)]

    def compare(tensors, row, rows):
        for k, t in tensors:
            for e, of in enumerate(each(rows)):
                there = [a for a, numbers in enumerate(of) if numbers]
                have, expected = env.view(k)[row][e], np.array([of[a][:t.elems] for a in there])
                have = have[there] if len(of) > 1 else have
                want(not there or not case.get("trace", True) or (have[:, :2] == expected).all(), f"{t.label} {t.path} of env {e} is {have}, want {expected}")

    env.reset(seeds=trace["seeds"])
    compare(env.of("observation"), env.t, trace["obs"][0])
    over = np.zeros(env.n, bool)
    for i, actions in enumerate(trace["actions"]):
        env.act(lambda t: chosen(t, [of[0] for of in each(actions)]))
        if case["name"].startswith("action-outside"):
            outside(env, case, over & (env.mode == MODES["next_step"]))
        groups, over = env.step()
        for reward, terminated, truncated in groups:
            for name, have in (("reward", reward), ("terminated", terminated), ("truncated", truncated)):
                want((have == np.array(each(trace[name][i]))).all(), f"step {i}: {name} is {have}, want {trace[name][i]}")
        compare(env.of("final_observation"), 0, trace["final"][i])
        if over.any() and case["name"] in ENDS:
            env = ENDS[case["name"]](env)
        if env.mode == MODES["disabled"] and over.any():
            env.reset(mask=over)
        compare(env.of("observation"), env.t, trace["obs"][i + 1])
        if case["name"] in EXTRAS:
            EXTRAS[case["name"]](env, i, over)


def fails(word, f, *args):
    try:
        f(*args)
    except Fault as e:
        return want(word in str(e), f"{e}: want {word}")
    raise AssertionError(f"no error, want {word}")


def outside(env, case, waits):
    """An action outside its space, of the last agent of environment 1, is refused, and nothing has moved; that of an environment that waits is not read."""
    k = env.of("action")[-1][0]
    legal = env.view(k)[env.t, 1, -1].copy()
    env.view(k)[env.t, 1, -1] = 7
    if not waits[1]:
        for word in case["says"]:
            fails(word, env.step)
        env.view(k)[env.t, 1, -1] = legal


def shown(env):
    return [env.view(k)[env.t].copy() for k, _ in env.of("observation")]


def waiting(env):
    """Two steps in which all environments wait for their reset: there is nothing but the same observation."""
    for action in 9, 1:
        last = shown(env)
        env.act(lambda t: action)
        groups, over = env.step()
        want(not any(x.any() for group in groups for x in group) and not over.any(), f"a step while it waits has {groups}")
        want(all((x == y).all() for x, y in zip(shown(env), last)), f"a step while it waits shows {shown(env)}, want {last}")
    return env


def elsewhere(env):
    """Another instance, with the states of this one, and its observations."""
    other = Env(module("save-waiting"), mode=env.mode)
    other.reset(seeds=[5, 6])
    for e in range(env.n):
        other.load(e, env.save(e))
    for (k, _), row in zip(other.of("observation"), shown(env)):
        other.view(k)[other.t] = row
    return waiting(other) if env.mode == MODES["disabled"] else other


def boxed(env, i, over):
    """Actions far beyond the bounds, clipped, rescaled and squashed, in steps of their own."""
    if i < 8:
        return
    for how in (np.clip, rescaled, squashed):
        for far in (-1e9, -1.5, 1.5, 1e9):
            env.act(lambda t: how(np.full((env.n, t.agents, t.elems), far), t.low, t.high))
            env.step()


def rescaled(x, low, high):
    bounded = np.isfinite(low) & np.isfinite(high)
    span, least = np.where(bounded, high, 0) - np.where(bounded, low, 0), np.where(bounded, low, 0)
    return np.where(bounded, least + (np.clip(x, -1, 1) + 1) / 2 * span, np.clip(x, low, high))


def squashed(x, low, high):
    return rescaled(np.tanh(x), low, high)


def elements(env, i, over):
    mask = env.view(env.of("action_mask")[0][0])[env.t, :, 0]
    want((mask == [1, over.any() and env.mode == MODES["next_step"], 1, 1, 1]).all(), f"the masks after step {i} are {mask}")


def unmasked(env):
    want(env.mode == MODES["same_step"] or env.view(env.of("action_mask")[0][0])[env.t].all(), "a mask behind an end is not all 1")
    return env


def render(env, i, over):
    if i == 0:
        want(env.render(1, 0) == "age 1", env.render(1, 0))
        for mode in (1, 2):
            for camera in (0, 1):
                want(env.render(1, mode, camera) == bytes([1 + camera]) * 8 * (mode + 2), f"the picture of mode {mode}, camera {camera}")
        fails("rl_render", env.render, 1, 1, 2)


def save(env, i, over):
    if i == 8:
        state = env.save(0)
        env.load(1, state)
        want(env.save(1) == state, "a loaded state is saved otherwise")
        fails("another version", env.load, 1, bytes([state[0] ^ 1]) + state[1:])
        want(env.save(1) == state, "a state that was refused changed its environment")


def ending(env, i, over):
    want(all(x[e] == 3 for x in env.infos().values() for e in np.flatnonzero(over)), f"the info is {env.infos()}")


def metric(env, i, over):
    if i == 0:
        flags = dict(zip(("last", "sum_", "mean", "max_", "min_"), (0, 0x2000, 0x4000, 0x8000, 0x10000)))
        want(env.metrics == {n.encode(): {e: (10.0 * e, f) for e in (0, 1)} for n, f in flags.items()}, env.metrics)


def named(env, i, over):
    if i == 0:
        want(len(env.metrics) == 256 and b"a" * 128 in env.metrics and b"PO" in env.metrics, f"{len(env.metrics)} names")


def figures(env, i, over):
    x = env.infos()
    want(len(x) == 256 and (x["seen/0"] == 0).all() and (x["seen/255"] == 255).all(), list(x)[:3])


def drawn(wasm, n, trace):
    """The infos of the first of n environments, step by step."""
    env, seen = Env(wasm, envs=n), []
    env.reset(seeds=trace["seeds"][:n])
    for actions in trace["actions"]:
        env.act(lambda t: chosen(t, actions[:n]))
        env.step()
        seen += [float(x[0]) for x in env.infos().values()]
    return seen


def discount(env, i, over):
    want(all((env.view(k)[env.t - 1] == 0.5).all() for k, _ in env.of("discount")), "the discount is not 0.5")


def keys(env, i, over):
    want(env.spec.keys == "left=0\nright=1", f"the keys are {env.spec.keys!r}")


EXTRAS = {"box": boxed, "box-elements": boxed, "box-half": boxed, "box-open": boxed, "mask-elements": elements, "render": render, "save": save,
          "render-short": lambda env, i, over: fails("23 bytes, want 24", env.render, 0, 1), "info-end": ending, "metric-env": metric, "info-many": figures,
          "save-other-version": lambda env, i, over: fails("version 4", env.save, 0), "save-wrong-length": lambda env, i, over: fails("11 bytes", env.save, 0),
          "save-too-long": lambda env, i, over: fails("16 bytes at most", env.save, 0), "save-headless": lambda env, i, over: fails("state", env.save, 0),
          "render-grows": lambda env, i, over: fails("then 8", env.render, 0, 0), "render-not-text": lambda env, i, over: fails("UTF-8", env.render, 0, 0),
          "metric-names": named, "discount": discount, "keys": keys}


ENDS = {"waiting": waiting, "save-waiting": elsewhere, "mask-elements": unmasked}


def module(name):
    return (SET / f"{name}.wasm").read_bytes()


def run(case):
    """Runs a case in each of its modes: what it should have done otherwise is an AssertionError."""
    traces = json.loads((SET / "traces.json").read_text())
    for mode in case.get("modes", ["same_step"]):
        outcome, said = "runs", ""
        try:
            env = Env(module(case["name"]), case.get("args"), case.get("grants", ()), mode=MODES[mode], params={"wind": [0.25, 4]} if case["name"] == "reset-param" else None)
            play(env, case, traces.get(case["name"]) or traces[mode])
            if case["name"] == "random":
                both, alone, again = (drawn(module("random"), n, traces[mode]) for n in (2, 1, 1))
                want(both == alone == again and len(set(alone)) > 1, f"the first environment draws {both}, alone {alone} and then {again}")
        except Refused as e:
            outcome, said = "refused", str(e)
        except Fault as e:
            outcome, said = "fault", str(e)
        expected = case["outcome"] if case.get("feature") in (None, *FEATURES) else "refused"
        want(outcome == expected, f"{mode}: {outcome} ({said}), want {expected}")
        want(outcome == "runs" or said_as(case.get("says", []), said), f"{mode}: {outcome} with {said!r}, want {case.get('says')}")


def play_set(file, run):
    """Runs the cases of a file that the command line names, or all; 1 if one is not as the set says."""
    names = [name for name in sys.argv[1:] if name != "--words"]
    cases = [c for c in json.loads((SET / file).read_text()) if not names or c["name"] in names]
    failed = 0
    for case in cases:
        try:
            run(case)
        except Exception as e:
            failed += 1
            print(f"{case['name']}: {type(e).__name__} {e}")
    print(f"{len(cases) - failed} of {len(cases)} cases as the set says")
    return failed > 0 or not cases


if __name__ == "__main__":
    sys.exit(play_set("cases.json", run))
