"""Ten seeds of the default pipeline, in both modes: when the return reaches 475, whether the frozen policy agrees,
and whether it still does after 500,000 env steps."""

import statistics
import sys

import ours

SEEDS, QUICK_SEEDS = range(1, 11), range(1, 3)
ENV_STEPS, RETURN, LONG = 150_000, 475, 500_000


def measure(rows, _, quick):
    for mode in ("async", "sync"):
        seeds = QUICK_SEEDS if quick else SEEDS
        to_goal = [one(mode, seed) for seed in seeds]
        to_end = [one(mode, seed, f"run.stop={{ env_steps = {LONG} }}") for seed in seeds]
        add(rows, mode, to_goal, to_end)


def one(mode, seed, *sets):
    r = ours.train("pipeline.toml", f"run.seed={seed}", f"train.mode={mode}", *sets)
    print(f"  {mode} seed {seed}: {r['env_steps']:,} env steps, {r['wall_seconds']:.2f} s, mean {r['mean_return']:.1f}, "
          f"evaluation {r['eval_return']:.1f}, {r['env_steps_per_s']:,.0f} env steps/s", file=sys.stderr)
    return r


def add(rows, mode, to_goal, to_end):
    n = len(to_goal)
    within = sum(r["reached"] and r["env_steps"] <= ENV_STEPS for r in to_goal)
    good = sum(r["eval_return"] >= RETURN for r in to_goal)
    still = sum(r["eval_return"] >= RETURN for r in to_end)
    learns = sum(r["mean_return"] >= RETURN for r in to_end)
    every = lambda v: v == n
    rows.fact(f"{mode}: seeds at {RETURN} within {ENV_STEPS:,} env steps", within, f"of {n}", f"{n}", every)
    rows.fact(f"{mode}: frozen evaluation at {RETURN} then", good, f"of {n}", f"{n}", every)
    rows.fact(f"{mode}: most env steps that a seed took", max(r["env_steps"] for r in to_goal), "env steps", None, None)
    rows.fact(f"{mode}: process start to {RETURN}, median", statistics.median(r["wall_seconds"] for r in to_goal), "s", None, None)
    rows.fact(f"{mode}: the same, slowest seed", max(r["wall_seconds"] for r in to_goal), "s", None, None)
    rows.fact(f"{mode}: frozen evaluation at {RETURN} after {LONG:,} env steps", still, f"of {n}", f"{n}", every)
    rows.fact(f"{mode}: mean return of training at {RETURN} then", learns, f"of {n}", None, None)
    rows.fact(f"{mode}: env steps/s over {LONG:,}", statistics.median(r["env_steps_per_s"] for r in to_end), "env steps/s", None, None)
