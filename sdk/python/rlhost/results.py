"""What a training leaves behind."""

from __future__ import annotations

import json
import pathlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .policies import LoadedPolicy


class TrainingError(RuntimeError):
    """A training that could not begin, or that failed. Its text has the place in the pipeline, the reason and the remedy; code is the
    first error's, such as E005 (rlhost explain E005), and run is what was saved, or None."""

    def __init__(self, text: str, code: str | None = None, run: TrainedRun | None = None):
        super().__init__(text)
        self.code, self.run = code, run


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during a training. run is what was saved, or None: rlhost.train(resume=run) goes on with it."""

    def __init__(self, run: TrainedRun | None, otherwise: str = "nothing had been learned"):
        super().__init__(f"saved in {run.folder}; rlhost.train(resume={run.id!r}) goes on" if run else otherwise)
        self.run = run


class TrainedRun:
    """A training that has ended, and its folder.

    ``id`` is its name for rlhost's commands, such as ``cartpole/0003``; ``reason`` is why it ended: return, env_steps, wall_time, interrupted
    or failed. ``eval_return`` and ``eval_std`` are of the final evaluation and ``returns`` the return of each of its episodes; without an
    evaluation they are None and []. ``end`` has everything else that the training told at its end."""

    def __init__(self, folder: pathlib.Path, end: dict[str, Any]):
        self.folder, self.end = folder, end
        self.id: str = end.get("run", "")
        self.reason: str = end.get("reason", "")
        self.env_steps: int = end.get("env_steps", 0)
        self.seconds: float = end.get("wall_seconds", 0.0)
        self.eval_return: float | None = end.get("eval_return", end.get("return"))
        self.eval_std: float | None = end.get("eval_std")
        self.returns: list[float] = end.get("episode_returns", [])

    def __repr__(self) -> str:
        judged = "" if self.eval_return is None else f", return {self.eval_return:g}"
        return f"<rlhost run {self.id}: {self.reason} after {self.env_steps:,} env steps{judged}>"

    def metrics(self) -> list[dict[str, float | None]]:
        """The metrics of each dataset that was learned from, in order. A number that is not finite is None."""
        try:
            with open(self.folder / "metrics.jsonl", encoding="utf-8") as file:
                return [json.loads(line) for line in file if line.endswith("\n")]
        except FileNotFoundError:
            return []

    def frame(self) -> Any:
        """The metrics as a data frame of pandas, or of polars where that is what is installed."""
        rows = self.metrics()
        try:
            import pandas  # type: ignore[import-not-found,import-untyped,unused-ignore]
            return pandas.DataFrame(rows)
        except ImportError:
            pass
        try:
            import polars  # type: ignore[import-not-found,unused-ignore]
        except ImportError:
            raise ImportError("frame() makes a data frame of pandas or of polars, and neither is installed; metrics() is a list of dicts") from None
        return polars.DataFrame(rows, infer_schema_length=None)

    def load(self, checkpoint: str = "latest", policy: str | None = None) -> LoadedPolicy:
        """The trained policy: rlhost.load of this run."""
        from .policies import load
        return load(self, checkpoint=checkpoint, policy=policy)


class TrainedRuns(list[TrainedRun]):
    """The runs of several seeds. ``summary`` has their mean, median and interquartile mean with intervals, ``folder`` is the set's, and ``id``
    its name for rlhost's commands."""

    def __init__(self, runs: list[TrainedRun], folder: pathlib.Path, end: dict[str, Any]):
        super().__init__(runs)
        self.folder, self.id, self.summary = folder, end.get("set", ""), end.get("summary")

    @property
    def returns(self) -> list[float]:
        """The return of each seed's final evaluation."""
        return [r.eval_return for r in self if r.eval_return is not None]
