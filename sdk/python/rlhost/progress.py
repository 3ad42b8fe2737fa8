"""The bar of a training."""

from __future__ import annotations

import datetime
import sys
from typing import Any


class Bar:
    """Shows how far a training is: on a terminal and in a notebook, or where shown says so."""

    def __init__(self, shown: bool | None, env_steps: int | None):
        self._bar: Any = None
        self._shown, self._total = shown, env_steps
        if shown is None:
            self._shown = sys.stderr is not None and sys.stderr.isatty() or _notebook()

    def _at(self, done: int, total: int | None, unit: str) -> Any:
        if self._bar is None:
            from tqdm.auto import tqdm
            self._bar = tqdm(total=total, unit_scale=True, dynamic_ncols=True, bar_format="{l_bar}{bar}| {n_fmt}/{total_fmt}" + unit + "{postfix}")
        self._bar.n = done if total is None else min(done, total)  # the last dataset may go beyond
        return self._bar

    def show(self, progress: dict[str, Any]) -> None:
        """Shows an event of progress."""
        if not self._shown:
            return
        done = progress.get("done")
        total = self._total or (round(progress["env_steps"] / done) if done else None)
        bar = self._at(progress["env_steps"], total, " env steps")
        told = [f"{progress['env_steps_per_s_10']:,.0f}/s"]
        if progress.get("seconds_left") is not None:
            told.append(f"{datetime.timedelta(seconds=round(progress['seconds_left']))} left")
        if progress.get("train_return") is not None:
            told.append(f"return {progress['train_return']:.4g}")
        bar.set_postfix_str(", ".join(told), refresh=False)
        bar.refresh()

    def seed(self, seed: dict[str, Any]) -> None:
        """Shows that a seed has ended."""
        if seed.get("state") in ("ended", "failed"):
            self.count(" seeds")

    def count(self, unit: str) -> None:
        """Shows that one more is done."""
        if self._shown:
            self._at(self._bar.n + 1 if self._bar is not None else 1, None, unit).refresh()

    def close(self) -> None:
        """Leaves the bar as it is."""
        if self._bar is not None:
            self._bar.close()


def _notebook() -> bool:
    shell = sys.modules.get("IPython")
    return shell is not None and getattr(shell.get_ipython(), "kernel", None) is not None
