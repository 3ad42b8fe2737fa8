"""rlhost.sweep: a search for the keys with which training goes best."""

from __future__ import annotations

import json
import os
import pathlib
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from . import pipelines
from .results import Interrupted, TrainedRun, TrainedRuns
from .training import _kept, _pipeline, _Training


class Study:
    """A search that has ended, and its folder.

    ``trials`` has a dict for each trial: its number, its state (ended, stopped at a rung, failed), its ``value``, the mean over its
    ``values``, one of each seed, and the keys that it was trained with, ``set``. ``best`` is the one with the best value, which flatters
    it; ``confirmed`` are the best ones trained again on seeds that the search has not seen, the best first, each with its ``mean``: a
    value and an interval. ``keys`` tells what each key alone explains of the trials' order, the one first that explains most: its ``share``,
    0 to 1, and its ``trend``, the rank correlation of its value with the trials' scores. ``id`` is the search's name for rlhost's commands, ``end`` all that it told at its end."""

    def __init__(self, folder: pathlib.Path, end: dict[str, Any]):
        self.folder, self.end = folder, end
        self.id: str = end.get("set", "")
        self.trials: list[dict[str, Any]] = end.get("trials", [])
        self.best: dict[str, Any] | None = end.get("best")
        self.confirmed: list[dict[str, Any]] = end.get("confirmed") or []
        self.keys: list[dict[str, Any]] = end.get("keys") or []
        self.env_steps: int = end.get("env_steps", 0)
        self.seconds: float = end.get("wall_seconds", 0.0)

    def __repr__(self) -> str:
        best = "" if self.best is None else f", best {self.best['value']:g}"
        return f"<rlhost search {self.id}: {len(self.trials)} trials{best}>"

    def table(self) -> Any:
        """A row for each trial, with a column for each key: a data frame where pandas is installed, else a list of dicts."""
        rows = []
        for t in self.trials:
            rows.append({name: t.get(name) for name in ("trial", "state", "value", "env_steps")} | t["set"] | {"error": t.get("error")})
        try:
            import pandas
        except ImportError:
            return rows
        return pandas.DataFrame(rows)

    def run(self, trial: int, seed: int) -> TrainedRun:
        """The run of a trial with a seed."""
        made = sorted((self.folder / "trials" / f"{trial:04d}" / f"seed-{seed}").glob("*/*/run.json"))
        if not made:
            raise KeyError(f"{self.id} has no trial {trial} with the seed {seed}")
        info = json.loads(made[-1].read_text(encoding="utf-8"))
        end = dict(info.get("outcome") or {}, run=f"{info['name']}/{info['number']:04d}", reason=info.get("reason", ""))
        return TrainedRun(made[-1].parent, end)


def sweep(
    env: pipelines.Env = "pipeline.toml", space: Mapping[str, Any] | None = None, env_steps: int | None = None, *,
    trials: int | None = None, seeds: Iterable[int] | int | None = None, method: str | None = None, sampler: str | None = None,
    program: Sequence[str] | None = None, rungs: Mapping[str, Any] | None = None, confirm: Mapping[str, int] | None = None,
    objective: str | None = None, goal: str | None = None, episodes: int | None = None, jobs: int | None = None,
    preset: str | None = None, envs: int | None = None, workers: int | None = None, net: Mapping[str, Any] | None = None,
    learner: Mapping[str, Any] | None = None, wrap: Sequence[Mapping[str, Any]] | None = None, args: Mapping[str, Any] | None = None,
    keys: Mapping[str, Any] | None = None, name: str | None = None, dir: str | os.PathLike[str] | None = None,
    resume: Study | str | None = None, progress: bool | None = None,
) -> Study:
    """Trains with different keys, finds the best, and returns a Study: what `rlhost sweep` does, and the table [sweep] says.

        study = rlhost.sweep("CartPole-v1", {"learner.learning_rate": [1e-3, 3e-4]}, 50_000, seeds=range(3))
        study = rlhost.sweep("cartpole@1", {"learner.learning_rate": {"from": 1e-5, "to": 1e-2, "scale": "log"}}, 100_000,
                             trials=64, method="asha")
        print(study.table(), study.best, study.confirmed)

    ``space`` has the values of each key: a list to choose from, or a dict with from, to, scale, integer and grid, as in [sweep.space].
    ``learner.`` and ``net.`` at the beginning of a key stand for ``component.learner.`` and ``policy.main.net.``. ``seeds`` are those of
    each trial's runs, which follow each other, or how many. ``sampler`` and ``method`` are as in [sweep], or "optuna", which proposes or
    prunes by Optuna; ``program`` is the command of another program. ``confirm`` is {"top": 3, "seeds": 10}.

    All other arguments are as of rlhost.train, and so are the errors. ``resume`` goes on with a search."""
    command = ["sweep"]
    if resume is not None:
        command += ["--resume", str(resume.folder if isinstance(resume, Study) else resume)]
        if trials is not None:
            command += ["--trials", str(trials)]
        return _run(command, jobs, progress)
    if sampler == "optuna" or method == "optuna":
        program = [sys.executable, "-m", "rlhost.optuna"]
    words = {"optuna": "program"}
    given: dict[str, Any] = {"run.name": name, "run.dir": None if dir is None else os.fspath(dir), "train.preset": preset,
                             "component.rollout.envs": envs, "run.stop.env_steps": env_steps}
    for path, table in (("policy.main.net", net), ("component.learner", learner)):
        given.update({f"{path}.{key}": value for key, value in (table or {}).items()})
    searched: dict[str, Any] = {
        "trials": trials, "method": words.get(method or "", method), "sampler": words.get(sampler or "", sampler), "program": program,
        "objective": objective, "goal": goal, "episodes": episodes, "rungs": rungs, "confirm": confirm, "env_steps": env_steps,
        "space": None if space is None else {_key(key): _values(value) for key, value in space.items()}}
    if seeds is not None:
        given["run.seed"], searched["seeds"] = _seeds(seeds)
    given.update({f"sweep.{key}": value for key, value in searched.items()})
    sets = {key: value for key, value in given.items() if value is not None}
    sets.update(keys or {})
    of_env = {"workers": workers, "args": args, "wrap": wrap}
    if isinstance(env, (str, pathlib.PurePath)) and os.fspath(env).endswith(".toml"):
        if wrong := [key for key, value in of_env.items() if value is not None]:
            raise TypeError(f"{env} has its environments' tables: say {wrong[0]} there, or as keys={{'env.NAME.{wrong[0]}': …}}")
        command.append(os.fspath(env))
    else:
        source, sets = _pipeline(env, of_env, sets)
        command.append(_kept(source, dir))
    for key, value in sets.items():
        command += ["--set", f"{key}={pipelines.toml(value)}"]
    return _run(command, jobs, progress)


def _run(command: list[str], jobs: int | None, progress: bool | None) -> Study:
    if "RLHOST_PLUGIN" in os.environ:
        raise RuntimeError("rlhost.sweep was called while a process of environments imported this file: put the call under "
                           'if __name__ == "__main__":')
    if jobs is not None:
        command += ["--jobs", str(jobs)]
    study: Any = _Sweep(command, None, None, progress, None).run()
    return study  # type: ignore[no-any-return]


def _key(key: str) -> str:
    for short, long in (("learner.", "component.learner."), ("net.", "policy.main.net.")):
        if key.startswith(short):
            return long + key[len(short):]
    return key


def _values(value: Any) -> dict[str, Any]:
    """The values of a key, as in [sweep.space]."""
    if isinstance(value, Mapping):
        return dict(value)
    if hasattr(value, "tolist"):
        value = value.tolist()  # of NumPy
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise TypeError(f"{value!r} is no space: want a list to choose from, or a dict such as {{'from': 1e-5, 'to': 1e-2, 'scale': 'log'}}")
    return {"choices": list(value)}


def _seeds(seeds: Iterable[int] | int) -> tuple[int | None, int]:
    """The first seed, and how many there are."""
    if isinstance(seeds, int):
        return None, seeds
    listed = [int(s) for s in seeds]
    if not listed or listed != list(range(listed[0], listed[0] + len(listed))):
        raise TypeError(f"seeds={listed}: the seeds of a search follow each other, as in range(3)")
    return listed[0], len(listed)


class _Sweep(_Training):
    """A search in a child."""

    def _event(self, event: dict[str, Any]) -> None:
        if event["event"] == "end":
            self.end = event
        elif event["event"] in ("trial", "confirmed"):
            self.bar.count(" trained")

    def _made(self) -> TrainedRun | TrainedRuns | None:
        if not self.end.get("set"):
            return None
        made: Any = Study(pathlib.Path(self.end["folder"]).absolute(), self.end)
        return made  # type: ignore[no-any-return]

    def _interrupted(self, run: Any) -> Interrupted:
        return Interrupted(None, next((r["msg"] for r in self.records if "--resume" in r["msg"]), "no trial had begun"))
