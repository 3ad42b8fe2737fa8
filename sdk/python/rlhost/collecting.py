"""rlhost.collect: the steps of a policy in a file, for learning from data."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy

from . import pipelines
from .evaluation import Evaluation, Game, episode, maker
from .policies import LoadedPolicy, load
from .results import TrainedRun


def collect(policy: LoadedPolicy | TrainedRun | str, env: pipelines.Env, file: str | os.PathLike[str], episodes: int = 100, *,
            deterministic: bool = False, seed: int = 1, max_steps: int = 10_000, args: Mapping[str, Any] | None = None,
            wrap: Sequence[Mapping[str, Any]] | None = None) -> Evaluation:
    """Plays episodes with a policy, by drawn actions unless deterministic, and writes their steps into a file that numpy.load reads (.npz).
    Returns how they went.

    The file has a row for each step: obs, action, reward, terminated, truncated, next_obs, and episode, its number. Parts of an observation
    are named by their paths, such as obs/room/off, and several actions by their numbers, such as action/0. ``env`` is what evaluate takes, or a
    module as make_vec takes it, with ``wrap``. An episode that is left after ``max_steps`` has neither flag in its last row."""
    path = os.fspath(file)
    if not path.endswith(".npz"):
        raise ValueError(f"{path} does not end in .npz, which is what is written")
    if episodes < 1:
        raise ValueError(f"episodes is {episodes}: want 1 or more")
    if not isinstance(policy, LoadedPolicy):
        policy = load(policy)
    policy.seed(seed)
    if callable(env) or pipelines.use(env).startswith("gymnasium:"):
        made = maker(env, dict(args or {}))()
    else:
        from .single import Single
        made = Single(env, args, wrap)
    columns: dict[str, list[Any]] = {}
    number = 0

    def note(before: dict[str, Any], action: tuple[Any, ...], game: Game) -> None:
        row = {_named("obs", part): value for part, value in before.items()}
        row |= {"action" if len(action) == 1 else f"action/{i}": a for i, a in enumerate(action)}
        row |= {_named("next_obs", part): value for part, value in game.parts().items()}
        row |= {"reward": numpy.float32(game.reward), "terminated": bool(game.terminated), "truncated": bool(game.truncated), "episode": number}
        for name, value in row.items():
            columns.setdefault(name, []).append(numpy.array(value))  # a copy: environments may use their arrays again

    played = []
    try:
        for number in range(episodes):
            played.append(episode(policy, made, seed + number, deterministic, max_steps, lambda env: None, note))
    finally:
        made.close()
    _write(path, {name: numpy.stack(values) for name, values in columns.items()})
    return Evaluation([total for total, _ in played], [length for _, length in played])


def _named(name: str, part: str) -> str:
    return f"{name}/{part}" if part else name


def _write(path: str, arrays: dict[str, numpy.ndarray]) -> None:
    """Writes the file, which is there whole or not at all."""
    part = f"{path}.part"
    try:
        with open(part, "wb") as file:
            numpy.savez_compressed(file, **arrays)  # type: ignore[arg-type,unused-ignore]
        os.replace(part, path)
    except BaseException:
        if os.path.exists(part):
            os.unlink(part)
        raise
