"""Wrappers for games as those of Atari, for any environment of Gymnasium: gym_wrap = ["rlhost.gymnasium.atari:NoopReset", …].

The usual order, the innermost first: NoopReset, LifeLoss, FrameSkip, FireReset."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy

_Env = gymnasium.Env[Any, Any]
_Wrapper = gymnasium.Wrapper[Any, Any, Any, Any]


class FrameSkip(_Wrapper):
    """Takes each action ``skip`` times, adds up the rewards, and observes the maximum of the last two frames: sprites that flicker are in
    one of them."""

    def __init__(self, env: _Env, skip: int = 4):
        super().__init__(env)
        if skip < 1:
            raise ValueError(f"skip is {skip}, want 1 or more")
        self._skip = skip

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        total = 0.0
        frame: Any = None
        before: Any = None
        for _ in range(self._skip):
            before = frame
            frame, reward, terminated, truncated, info = self.env.step(action)
            total += float(reward)
            if terminated or truncated:
                break
        return frame if before is None else numpy.maximum(before, frame), total, terminated, truncated, info


class NoopReset(_Wrapper):
    """Begins episodes with 1 to ``most`` steps of action 0, so that they differ."""

    def __init__(self, env: _Env, most: int = 30):
        super().__init__(env)
        if most < 1:
            raise ValueError(f"most is {most}, want 1 or more")
        self._most = most
        meanings = _meanings(env)
        if meanings and meanings[0] != "NOOP":
            raise ValueError(f"action 0 of {env} is {meanings[0]}: NoopReset wants NOOP")

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        obs, info = self.env.reset(seed=seed, options=options)
        for _ in range(self.env.unwrapped.np_random.integers(1, self._most + 1)):
            obs, _, terminated, truncated, later = self.env.step(0)
            info.update(later)
            if terminated or truncated:
                obs, info = self.env.reset(options=options)
        return obs, info


class FireReset(_Wrapper):
    """Begins episodes, and lives where LifeLoss is inside, with the action FIRE, without which some games do not begin."""

    def __init__(self, env: _Env):
        super().__init__(env)
        meanings = _meanings(env)
        if "FIRE" not in meanings:
            raise ValueError(f"{env} has no action FIRE: it has {', '.join(meanings) or 'no get_action_meanings'}")
        self._fire = meanings.index("FIRE")

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        self.env.reset(seed=seed, options=options)
        obs, _, terminated, truncated, info = self.env.step(self._fire)
        return self.env.reset(options=options) if terminated or truncated else (obs, info)


class LifeLoss(_Wrapper):
    """Ends the episode with each life, for learning: the game goes on with the next one, and only its end resets it. The info at that end
    has the game_return and the game_length, which are metrics. Lives are those of info["lives"]."""

    def __init__(self, env: _Env):
        super().__init__(env)
        self._lives, self._over, self._return, self._length = 0, True, 0.0, 0

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        obs, reward, terminated, truncated, info = self.env.step(action)
        lives = _lives(info)
        self._over = terminated or truncated
        self._return, self._length = self._return + float(reward), self._length + 1
        if self._over:
            info = {**info, "game_return": self._return, "game_length": self._length}
        lost, self._lives = 0 < lives < self._lives, lives
        return obs, reward, terminated or lost, truncated, info

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        if not self._over and seed is None:  # the next life
            obs, _, terminated, truncated, info = self.env.step(0)
            if not terminated and not truncated:
                self._lives, self._length = _lives(info), self._length + 1
                return obs, info
        obs, info = self.env.reset(seed=seed, options=options)
        self._lives, self._over, self._return, self._length = _lives(info), False, 0.0, 0
        return obs, info


def _lives(info: dict[str, Any]) -> int:
    if "lives" not in info:
        raise ValueError(f'the info has no "lives": it has {", ".join(info) or "nothing"}')
    return int(info["lives"])


def _meanings(env: _Env) -> list[str]:
    """What the actions mean, where the environment says so."""
    named = getattr(env.unwrapped, "get_action_meanings", None)
    return list(named()) if named else []
