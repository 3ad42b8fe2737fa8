#!/usr/bin/env python3
"""Measures rlhost sweep: what a search costs, and what early ends save.

    go build -o bin/ ./cmd/rlhost
    python3 bench/sweep.py cost            # 32 trials of CartPole with 3 seeds each: wall time, processor time, and where that goes
    python3 bench/sweep.py asha            # ASHA beside random search over the same points, 10 searches of 64 trials

Searches are of synchronous trainings: all figures but times are the same on every machine with the same kernels. ASHA runs with one job,
so that its orders do not depend on which training ends first."""

import argparse
import json
import pathlib
import resource
import statistics
import subprocess
import tempfile
import time

PIPELINE = """rlhost = 1
[run]
name = "cartpole"
stop = {{ env_steps = {env_steps} }}
[env.cartpole]
use = "cartpole@1"
[train]
preset = "general"
env = "cartpole"
[sweep]
{sweep}
[sweep.space]
{space}
"""

RATE = '"component.learner.learning_rate" = { from = 1e-4, to = 1e-2, scale = "log" }'

# So wide that few points learn: a fifth of them in the first, fewer in the second.
SPACES = {"wide": """"component.learner.learning_rate" = { from = 1e-7, to = 1.0, scale = "log" }
"component.learner.gamma" = { from = 0.5, to = 0.9999, scale = "one_minus" }
"component.learner.gae_lambda" = { from = 0.3, to = 0.999, scale = "one_minus" }
"component.learner.entropy_coef" = { from = 1e-4, to = 1.0, scale = "log" }
"component.learner.clip" = { from = 0.001, to = 0.5, scale = "log" }
"component.learner.epochs" = { from = 1, to = 8, integer = true }""", "wider": """"component.learner.learning_rate" = { from = 1e-10, to = 1.0, scale = "log" }
"component.learner.gamma" = { from = 0.1, to = 0.9999, scale = "one_minus" }
"component.learner.gae_lambda" = { from = 0.1, to = 0.999, scale = "one_minus" }
"component.learner.entropy_coef" = { from = 1e-4, to = 10.0, scale = "log" }
"component.learner.clip" = { from = 1e-5, to = 0.5, scale = "log" }
"component.learner.epochs" = { from = 1, to = 8, integer = true }"""}


def spent() -> float:
    """The processor time of all processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def timed(command: list[str], folder: str) -> tuple[float, float, list[dict]]:
    """Wall time, processor time and lines of a command."""
    began, before = time.monotonic(), spent()
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    return time.monotonic() - began, spent() - before, [json.loads(line) for line in done.stdout.splitlines()]


def pipeline(folder: str, env_steps: int, sweep: str, space: str) -> str:
    path = pathlib.Path(folder, "pipeline.toml")
    path.write_text(PIPELINE.format(env_steps=env_steps, sweep=sweep, space=space))
    return str(path)


def cost(program: str, trials: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = pipeline(folder, 100_000, f'sampler = "sobol"\ntrials = {trials}\nseeds = 3\nconfirm = {{ top = 0 }}', RATE)
        wall, processor, lines = timed([program, "sweep", file, "--json"], folder)
        end = lines[-1]
        runs = 3 * len(end["trials"])
        print(f"{len(end['trials'])} trials of 3 seeds, {end['env_steps']:,} env steps: {wall:.1f} s, {processor:.1f} s of processor, "
              f"{1000 * processor / runs:.0f} ms a run; best {end['best']['value']:.1f}")
        for what, keys in (("a run of one dataset", {"run.stop.env_steps": 2048, "run.evaluation.episodes": 1}),
                           ("100,000 env steps", {"run.evaluation.episodes": 1}),
                           ("and 50 episodes of evaluation", {"run.evaluation.episodes": 50})):
            command = [program, "train", file, "--json"]
            for key, value in keys.items():
                command += ["--set", f"{key}={value}"]
            print(f"  {what}: {1000 * statistics.median(timed(command, folder)[1] for _ in range(7)):.0f} ms of processor")


def until(journal: pathlib.Path, least: float) -> int | None:
    """The env steps of a search until a trial reached a value with all of its env steps, None if none did."""
    made: dict[int, int] = {}
    for line in journal.read_text().splitlines():
        outcome = json.loads(line).get("outcome")
        if outcome and not outcome.get("confirm"):
            made[outcome["trial"]] = outcome["env_steps"]
            if outcome["value"] is not None and outcome["value"] >= least and outcome["env_steps"] >= 50_000:
                return sum(made.values())
    return None


def asha(program: str, trials: int, searches: int, space: str) -> None:
    shares, found, reached = [], {"none": 0, "asha": 0}, []
    for seed in range(1, searches + 1):
        told = [f"seed {seed:2}"]
        steps = {}
        for method in ("none", "asha"):
            with tempfile.TemporaryDirectory() as folder:
                file = pipeline(folder, 50_000, f'method = "{method}"\nsampler = "random"\nseed = {seed}\ntrials = {trials}\n'
                                'rungs = { least = 3_000, factor = 4 }\nconfirm = { top = 1, seeds = 10 }', SPACES[space])
                jobs = ["--jobs", "1"] if method == "asha" else []
                wall, _, lines = timed([program, "sweep", file, "--json", *jobs], folder)
                end = lines[-1]
                steps[method] = end["env_steps"]
                first = until(pathlib.Path(folder, end["folder"], "journal.jsonl"), 475)
                found[method] += first is not None
                if method == "none":
                    reached.append(sum(t["value"] is not None and t["value"] >= 475 for t in end["trials"]))
                mean = end["confirmed"][0]["mean"]
                told.append(f"{method}: {end['env_steps']:>9,} env steps, 475 after {first if first else '–':>9}, best {end['best']['value']:5.1f}, "
                            f"confirmed {mean['value']:5.1f} ({mean['low']:.0f} to {mean['high']:.0f}), {wall:.1f} s")
        shares.append(steps["asha"] / steps["none"])
        print("; ".join(told) + f"; share {shares[-1]:.3f}", flush=True)
    print(f"random trials that reach 475: {sum(reached)} of {trials * searches}; searches that find 475: random {found['none']}, ASHA {found['asha']} "
          f"of {searches}; env steps of ASHA over random search's, median: {statistics.median(shares):.3f}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["cost", "asha"])
    parser.add_argument("--program", default=str(pathlib.Path(__file__).parent.parent / "bin" / "rlhost"))
    parser.add_argument("--trials", type=int)
    parser.add_argument("--searches", type=int, default=10)
    parser.add_argument("--space", choices=SPACES, default="wider")
    given = parser.parse_args()
    if given.what == "cost":
        cost(given.program, given.trials or 32)
    else:
        asha(given.program, given.trials or 64, given.searches, given.space)


main()
