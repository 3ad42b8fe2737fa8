"""The metrics of a run for Weights & Biases and MLflow: log = ["wandb"] or ["mlflow"] of [component.runner].

The host starts ``python -m rlhost.tracking NAME FOLDER`` and writes a line of JSON for each dataset. A run is continued under the same id
where the training is resumed. What these packages read from their environment variables is up to their user, such as WANDB_MODE=offline,
WANDB_PROJECT, MLFLOW_TRACKING_URI and MLFLOW_EXPERIMENT_NAME."""

from __future__ import annotations

import json
import os
import pathlib
import secrets
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Protocol

_MOST_PARAMS = 100  # that MLflow takes at a time


class Tracker(Protocol):
    """What takes a run's metrics."""

    def log(self, row: dict[str, float]) -> None:
        """Takes the numbers of one dataset; global_step is how many env steps were learned from."""

    def end(self) -> None:
        """Finishes the run."""


class _Wandb:
    def __init__(self, folder: pathlib.Path, keys: Mapping[str, Any]):
        import wandb
        name = _name(folder)
        self._run: Any = wandb.init(id=_id(folder), resume="allow", name=name, config=dict(keys), dir=str(folder),
                                    project=os.environ.get("WANDB_PROJECT", "rlhost"), group=folder.parent.name)
        self._run.define_metric("global_step")
        self._run.define_metric("*", step_metric="global_step")

    def log(self, row: dict[str, float]) -> None:
        self._run.log(row)

    def end(self) -> None:
        self._run.finish()


class _MLflow:
    def __init__(self, folder: pathlib.Path, keys: Mapping[str, Any]):
        import mlflow
        self._mlflow: Any = mlflow
        if "MLFLOW_EXPERIMENT_NAME" not in os.environ and "MLFLOW_EXPERIMENT_ID" not in os.environ:
            mlflow.set_experiment("rlhost")
        known = folder / "mlflow.id"
        self._run = mlflow.start_run(run_id=known.read_text().strip() if known.exists() else None, run_name=_name(folder))
        if not known.exists():
            known.write_text(self._run.info.run_id)
            params = [(k, str(v)[:500]) for k, v in keys.items()]
            for at in range(0, len(params), _MOST_PARAMS):
                mlflow.log_params(dict(params[at:at + _MOST_PARAMS]))

    def log(self, row: dict[str, float]) -> None:
        self._mlflow.log_metrics({k: v for k, v in row.items() if k != "global_step"}, step=int(row.get("global_step", 0)))

    def end(self) -> None:
        self._mlflow.end_run()


TRACKERS: dict[str, Callable[[pathlib.Path, Mapping[str, Any]], Tracker]] = {"wandb": _Wandb, "mlflow": _MLflow}


def _name(folder: pathlib.Path) -> str:
    return f"{folder.parent.name}/{folder.name}"


def _id(folder: pathlib.Path) -> str:
    """The id of W&B's run there, made once."""
    known = folder / "wandb.id"
    if not known.exists():
        known.write_text(secrets.token_hex(4))
    return known.read_text().strip()


def keys_of(folder: pathlib.Path) -> dict[str, Any]:
    """The keys of the pipeline that a run's folder has, with dots; none where this Python reads no TOML."""
    try:
        import tomllib
    except ImportError:  # before 3.11
        return {}
    try:
        with open(folder / "pipeline.toml", "rb") as file:
            return dict(_flat(tomllib.load(file), ""))
    except (OSError, tomllib.TOMLDecodeError):
        return {}


def _flat(table: Mapping[str, Any], before: str) -> Iterator[tuple[str, Any]]:
    for name, value in table.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{name}.")
        else:
            yield before + name, value


def track(tracker: Tracker, lines: Iterable[str]) -> None:
    """Gives a tracker the numbers of each line, but for those that are not finite, which are null."""
    try:
        for line in lines:
            tracker.log({name: value for name, value in json.loads(line).items() if value is not None})
    finally:
        tracker.end()


def main(words: list[str]) -> None:
    """Runs a tracker until the host closes standard input."""
    import signal
    if len(words) != 2 or words[0] not in TRACKERS:
        sys.exit(f"usage: python -m rlhost.tracking {'|'.join(TRACKERS)} FOLDER")
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the training, and that ends this
    name, folder = words[0], pathlib.Path(words[1]).absolute()
    try:
        tracker = TRACKERS[name](folder, keys_of(folder))
    except ModuleNotFoundError as e:
        sys.exit(f"{name} is not installed for {sys.executable}: {e}; {sys.executable} -m pip install {name}")
    track(tracker, sys.stdin)


if __name__ == "__main__":
    main(sys.argv[1:])
