"""rlhost.evaluate: how well a policy plays."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy

from . import pipelines
from .policies import LoadedPolicy, load
from .program import ask
from .results import TrainedRun, TrainingError


@dataclass(frozen=True)
class Evaluation:
    """Returns and lengths of episodes, and the returns' mean and standard deviation."""

    returns: list[float]
    lengths: list[int] = field(default_factory=list)

    @property
    def mean(self) -> float:
        return float(numpy.mean(self.returns))

    @property
    def std(self) -> float:
        return float(numpy.std(self.returns))

    def __repr__(self) -> str:
        return f"<return {self.mean:g} ± {self.std:g} over {len(self.returns)} episodes>"


def evaluate(policy: LoadedPolicy | TrainedRun | str, env: pipelines.Env | None = None, episodes: int = 100, *, deterministic: bool = True, seed: int = 1,
             args: dict[str, Any] | None = None) -> Evaluation:
    """Plays episodes with a policy, by its most probable actions or, with deterministic=False, by drawn ones.

    ``policy`` is a LoadedPolicy, a run or what load takes. ``env`` is an id of Gymnasium with ``args`` for gymnasium.make, what makes an environment,
    or None: the environment of the policy's run, played by the host. Episode i is reset with seed + i. An episode that does not end, in an
    environment without a limit, is never over: wrap it in gymnasium.wrappers.TimeLimit."""
    if env is None:
        return _by_host(policy, episodes, deterministic, seed)
    if not isinstance(policy, LoadedPolicy):
        policy = load(policy)
    policy.seed(seed)
    many = [maker(env, args or {})() for _ in range(min(episodes, 16))]
    try:
        return _play(policy, many, episodes, deterministic, seed)
    finally:
        for e in many:
            e.close()


def _by_host(policy: LoadedPolicy | TrainedRun | str, episodes: int, deterministic: bool, seed: int) -> Evaluation:
    of = policy.folder if isinstance(policy, (LoadedPolicy, TrainedRun)) else policy
    if of is None:
        raise TypeError("the policy came from a file, which has no environment: say env=")
    told = ask(TrainingError, "eval", str(of), "--episodes", str(episodes), "--seed", str(seed), "--json")
    return Evaluation(json.loads(told)["greedy_returns" if deterministic else "sampled_returns"])


def maker(env: pipelines.Env, args: dict[str, Any]) -> Callable[[], Any]:
    if callable(env):
        return lambda: env(**args)
    use = pipelines.use(env)
    kind, _, name = use.partition(":")
    if kind != "gymnasium":
        raise TypeError(f"{use} is no environment of Gymnasium: leave env out, and the host plays the one of the policy's run")
    from .gymnasium.source import Maker
    return Maker(name, args).make


class Game:
    """One environment, and the episode that it plays."""

    def __init__(self, env: Any):
        self.env = env

    def begin(self, episode: int, seed: int) -> None:
        self.episode, self.total, self.length, self.starts = episode, 0.0, 0, True
        self.obs, self.info = self.env.reset(seed=seed)

    def parts(self) -> dict[str, Any]:
        from .rlhost_policy import parts
        return dict(parts(self.obs, ""))  # type: ignore[no-untyped-call,unused-ignore]

    def mask(self) -> Any:
        if (mask := self.info.get("action_mask")) is not None:
            return mask
        return self.env.get_wrapper_attr("action_masks")() if self.env.has_wrapper_attr("action_masks") else None

    def step(self, action: Any) -> bool:
        """Takes an action, and returns whether the episode goes on."""
        self.obs, reward, self.terminated, self.truncated, self.info = self.env.step(action)
        self.reward = float(reward)
        self.total, self.length, self.starts = self.total + self.reward, self.length + 1, False
        return not (self.terminated or self.truncated)


def _play(policy: LoadedPolicy, envs: list[Any], episodes: int, deterministic: bool, seed: int) -> Evaluation:
    returns, lengths = [0.0] * episodes, [0] * episodes
    games, begun, states = [Game(e) for e in envs], len(envs), None
    for k, g in enumerate(games):
        g.begin(k, seed + k)
    while games:
        actions, states = policy.predict(_stacked([g.parts() for g in games]), states, [g.starts for g in games], deterministic, _masks(games))
        stay = []
        for row, g in enumerate(games):
            of_row = tuple(a[row] for a in actions) if isinstance(actions, tuple) else (actions[row],)
            if not g.step(_action(g.env.action_space, iter(of_row))):
                returns[g.episode], lengths[g.episode] = g.total, g.length
                if begun == episodes:
                    continue
                g.begin(begun, seed + begun)
                begun += 1
            stay.append(row)
        games = [games[row] for row in stay]
        states = None if states is None else states[stay]
    return Evaluation(returns, lengths)


def episode(policy: LoadedPolicy, env: Any, seed: int, deterministic: bool, most: int, show: Callable[[Any], None],
            note: Callable[[dict[str, Any], tuple[Any, ...], Game], None] | None = None) -> tuple[float, int]:
    """Plays one episode of at most so many steps, and returns its return and length. show is called with the environment at the beginning, and
    after each step that it draws the end of. note is called with what was observed before each step, the parts of its action, and the game."""
    game, state = Game(env), None
    game.begin(0, seed)
    show(env)
    while game.length < most:
        action, state = policy.predict(_stacked([game.parts()]), state, [game.starts], deterministic, _masks([game]))
        parts, before = action if isinstance(action, tuple) else (action,), game.parts() if note else {}
        goes_on = game.step(_action(env.action_space, iter([a[0] for a in parts])))
        if note:
            note(before, tuple(a[0] for a in parts), game)
        if goes_on or not getattr(env, "begins_at_once", False):
            show(env)
        if not goes_on:
            break
    return game.total, game.length


def _stacked(rows: list[dict[str, Any]]) -> Any:
    """Rows of observations as a batch."""
    batch = {path: numpy.stack([_row(row[path]) for row in rows]) for path in rows[0]}
    return batch.get("", batch)


def _row(part: Any) -> Any:
    return part if isinstance(part, str) else numpy.atleast_1d(part)


def _masks(games: list[Game]) -> Any:
    rows = [g.mask() for g in games]
    if rows[0] is None:
        return None
    if isinstance(rows[0], tuple):
        return tuple(None if m[0] is None else numpy.stack(m) for m in zip(*rows))
    return numpy.stack(rows)


def _action(space: Any, given: Iterator[Any]) -> Any:
    """An action as its space has it, from the policy's parts of it."""
    from gymnasium import spaces
    if isinstance(space, spaces.Dict):
        return {name: _action(part, given) for name, part in space.spaces.items()}
    if isinstance(space, spaces.Tuple):
        return tuple(_action(part, given) for part in space.spaces)
    action = next(given)
    if isinstance(space, spaces.Discrete):
        return int(action)
    return numpy.asarray(action, space.dtype).reshape(space.shape)
