"""rlhost.train: a training in a process of its own, as a function of Python."""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import queue
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from . import pipelines
from .progress import Bar
from .program import environment, feed, program
from .results import Interrupted, TrainedRun, TrainedRuns, TrainingError

Callback = Callable[[dict[str, Any]], "bool | None"]


class RlhostWarning(UserWarning):
    """A warning of the host about a pipeline or an environment; its text begins with the code, such as W104."""


def train(
    env: pipelines.Env = "pipeline.toml", env_steps: int | None = None, *,
    preset: str | None = None, seed: int | None = None, seeds: Iterable[int] | None = None, jobs: int | None = None,
    envs: int | None = None, workers: int | None = None, net: Mapping[str, Any] | None = None,
    learner: Mapping[str, Any] | None = None, wrap: Sequence[Mapping[str, Any]] | None = None,
    args: Mapping[str, Any] | None = None, stop: Mapping[str, Any] | None = None, keys: Mapping[str, Any] | None = None,
    name: str | None = None, dir: str | os.PathLike[str] | None = None, resume: TrainedRun | str | None = None,
    on: Callback | None = None, progress: bool | None = None,
) -> Any:
    """Trains a policy and returns its TrainedRun; with ``seeds``, their TrainedRuns.

        run = rlhost.train("CartPole-v1", 100_000, seed=1, envs=32, net={"hidden": [64, 64]}, learner={"epochs": 4})
        run = rlhost.train("pipeline.toml", keys={"component.learner.epochs": 8})
        runs = rlhost.train("cartpole@1", 100_000, seeds=range(10))

    ``env`` is an id of Gymnasium, a class or function at the top of a module that makes an environment, ``name@version`` of one that is
    built in, the path of a module (.wasm), or a pipeline file (.toml), whose keys the other arguments override.

    ``env_steps`` and ``stop`` ({"return": 475, "wall_time": "10m"}) say when it ends; ``preset`` is general, or what `rlhost train --help`
    names. ``envs`` are the environments of a rollout, ``workers`` the processes that step those of Python, ``args`` what an environment is made
    with, ``wrap`` the host's wrappers. ``net`` is the table [policy.main.net], ``learner`` is [component.learner], and ``keys`` are any other
    keys by their dotted names. ``seeds`` trains once with each, ``jobs`` of them at a time. ``name`` and ``dir`` say where the
    run's folder is. ``resume`` goes on with a run, with its own pipeline.

    ``on`` is called on this thread with the metrics of each dataset that was learned from; where it returns False the training ends, and is
    saved. ``progress`` shows a bar: by default on a terminal and in a notebook.

    Environments of Gymnasium run in processes of this Python. A script that trains on its own class calls train under
    ``if __name__ == "__main__":``, since those processes import it.

    Raises TrainingError for what cannot be trained or fails, Interrupted (a KeyboardInterrupt) after Ctrl-C, with the saved run in both, and
    what ``on`` raises. No process is left behind. Warnings of the host are issued as RlhostWarning."""
    if "RLHOST_PLUGIN" in os.environ:
        raise RuntimeError("rlhost.train was called while a process of environments imported this file: put the call under "
                           'if __name__ == "__main__":')
    given: dict[str, Any] = {"run.seed": seed, "run.name": name, "run.dir": None if dir is None else os.fspath(dir),
                             "run.stop.env_steps": env_steps, "train.preset": preset, "component.rollout.envs": envs}
    for path, table in (("run.stop", stop), ("policy.main.net", net), ("component.learner", learner)):
        given.update({f"{path}.{key}": value for key, value in (table or {}).items()})
    of_env = {"workers": workers, "args": args, "wrap": wrap}
    sets = {key: value for key, value in given.items() if value is not None}
    sets.update(keys or {})
    command = ["train"]
    source = None
    if resume is not None:
        command += ["--resume", str(resume.folder if isinstance(resume, TrainedRun) else resume)]
    elif isinstance(env, (str, pathlib.PurePath)) and os.fspath(env).endswith(".toml"):
        if wrong := [key for key, value in of_env.items() if value is not None]:
            raise TypeError(f"{env} has its environments' tables: say {wrong[0]} there, or as keys={{'env.NAME.{wrong[0]}': …}}")
        command.append(os.fspath(env))
    else:
        source, sets = _pipeline(env, of_env, sets)
        command.append("-")
    for key, value in sets.items():
        command += ["--set", f"{key}={pipelines.toml(value)}"]
    if seeds is None:
        return _Training(command, source, on, progress, env_steps).run()
    if on is not None or resume is not None:
        raise TypeError("seeds= trains several runs: on= and resume= are for one")
    if source is not None:
        command[1] = _kept(source, dir)
    command += ["--seeds", ",".join(str(int(s)) for s in seeds)]
    if jobs is not None:
        command += ["--jobs", str(jobs)]
    return _Seeds(command, None, None, progress, None).run()


def _pipeline(env: pipelines.Env, of_env: dict[str, Any], sets: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The text of a pipeline for an environment, and the keys that are not in it."""
    sets = dict(sets)
    use = pipelines.use(env)
    name = sets.pop("run.name", None) or pipelines.name_of(use)
    tables: dict[str, dict[str, Any]] = {"run": {"name": name, "stop": None}, "env.env": {"use": use, **of_env},
                                         "train": {"preset": sets.pop("train.preset", "general"), "env": "env"}}
    for path in ("run.stop", "component.rollout", "component.learner", "policy.main.net", "run"):
        own = {key[len(path) + 1:]: sets.pop(key) for key in list(sets) if key.rpartition(".")[0] == path}
        if path == "run.stop":
            tables["run"]["stop"] = own or None
        else:
            tables.setdefault(path, {}).update(own)
    return "rlhost = 1\n\n" + "".join(pipelines.table(*t) for t in tables.items()), sets


def _kept(source: str, dir: str | os.PathLike[str] | None) -> str:
    """The file of a pipeline that several runs read."""
    folder = pathlib.Path(dir or "runs")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"pipeline-{hashlib.sha256(source.encode()).hexdigest()[:12]}.toml"
    path.write_text(source, encoding="utf-8")
    return str(path)


class _Training:
    """A training in a child."""

    def __init__(self, command: list[str], source: str | None, on: Callback | None, progress: bool | None, env_steps: int | None):
        self.on, self.source, self.folder = on, source, pathlib.Path(".")
        self.bar = Bar(progress, env_steps)
        self.command = [program(), "--log", "json", *command, "--json", "--attached", str(os.getpid())]
        if on is not None:
            self.command.append("--metrics")
        self.end: dict[str, Any] = {}
        self.records: list[dict[str, Any]] = []

    def run(self) -> TrainedRun | TrainedRuns:
        """Trains, and returns what came of it."""
        # A session of its own: Ctrl-C on the terminal is for this process, which passes it on once.
        child = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(),
                                 start_new_session=True)
        assert child.stdout and child.stderr
        lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        readers = [threading.Thread(target=self._read, args=(child.stdout, lines.put), daemon=True),
                   threading.Thread(target=self._read, args=(child.stderr, self._record), daemon=True)]
        for r in readers:
            r.start()
        raised: BaseException | None = None
        try:
            feed(child, self.source or "")
            raised = self._follow(child, lines)
        except BaseException:
            child.kill()
            raise
        finally:
            child.wait()
            for r in readers:
                r.join()
            for stream in (child.stdout, child.stderr):
                stream.close()
            self.bar.close()
        return self._result(child.returncode, raised)

    @staticmethod
    def _read(stream: Any, put: Callable[[bytes | None], None]) -> None:
        for line in stream:
            put(line)
        put(None)

    def _record(self, line: bytes | None) -> None:
        if line is None:
            return
        try:
            self.records.append(json.loads(line))
        except ValueError:
            self.records.append({"level": "ERROR", "msg": line.decode(errors="replace").rstrip()})

    def _follow(self, child: subprocess.Popen[bytes], lines: queue.SimpleQueue[bytes | None]) -> BaseException | None:
        """Handles what the training prints until it ends, and returns what the callback raised, or that Ctrl-C came."""
        raised: BaseException | None = None
        while True:
            try:
                line = lines.get()
                if line is None:
                    return raised
                event = json.loads(line)
                if event.get("event") != "metrics":
                    self._event(event)
                elif raised is None and self.on is not None:
                    del event["event"]
                    if self.on(event) is False:
                        self.on = None
                        child.send_signal(signal.SIGTERM)
            except KeyboardInterrupt as e:
                child.send_signal(signal.SIGINT)  # the second one ends it at once
                raised = e
            except Exception as e:
                if raised is None:
                    child.send_signal(signal.SIGTERM)
                    raised = e

    def _event(self, event: dict[str, Any]) -> None:
        if event["event"] == "end":
            self.end = event
        elif event["event"] == "progress":
            self.bar.show(event)

    def _result(self, code: int, raised: BaseException | None) -> TrainedRun | TrainedRuns:
        for r in self.records:
            if r["level"] == "WARN" and r.get("code"):
                warnings.warn(told(r), RlhostWarning, stacklevel=4)
        run = self._made()
        if isinstance(raised, KeyboardInterrupt):
            raise self._interrupted(run) from None
        if raised is not None:
            raise raised
        if code != 0:
            errors = [r for r in self.records if r["level"] == "ERROR"]
            text = "\n".join(told(r) for r in errors) or self.end.get("error") or f"the training ended with status {code}"
            raise TrainingError(text, next((c for c in map(code_of, errors) if c), None), run if isinstance(run, TrainedRun) else None)
        assert run is not None
        return run

    def _interrupted(self, run: Any) -> Interrupted:
        return Interrupted(run if isinstance(run, TrainedRun) else None)

    def _made(self) -> TrainedRun | TrainedRuns | None:
        """What the training has made, if it came so far."""
        if not self.end.get("run"):
            return None
        return TrainedRun(pathlib.Path(self.end["folder"]).absolute(), self.end)


class _Seeds(_Training):
    """A training for each of several seeds."""

    def _event(self, event: dict[str, Any]) -> None:
        if event["event"] == "end":
            self.end = event
        elif event["event"] == "seed":
            self.bar.seed(event)

    def _made(self) -> TrainedRun | TrainedRuns | None:
        if not self.end.get("set"):
            return None
        folder = pathlib.Path(self.end["folder"]).absolute()
        return TrainedRuns([TrainedRun(folder / s["run"], s) for s in self.end["seeds"] if s.get("run")], folder, self.end)


def code_of(record: dict[str, Any]) -> str | None:
    if code := record.get("code"):
        return str(code)
    _, found, rest = record["msg"].partition("error[")
    return rest.partition("]")[0] if found else None


def told(record: dict[str, Any]) -> str:
    """A record as the program tells it: place, code, what is wrong, and the remedy."""
    text = str(record["msg"])
    if error := record.get("error"):
        text += f": {error}"
    if code := record.get("code"):
        text = f"{'warning' if record['level'] == 'WARN' else 'error'}[{code}]: {text}"
    if record.get("line"):
        text = f"{record['file']}:{record['line']}:{record['column']}: {text}"
    if help := record.get("help"):
        text += f"\n  help: {help}"
    return text
