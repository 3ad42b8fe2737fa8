"""rlhost.make_vec with a batch_size: environments that do not wait for each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy
from gymnasium.vector.utils import batch_space

from . import _native
from .vector import VecError, VectorEnv, in_space, leaves

_RECEIVE, _ANNOUNCE = 3, 0x100  # of the host's package vector
_HERE, _IN_STEP, _FAILED = 0, 1, 2


class AloneVectorEnv(VectorEnv):
    """Environments that are stepped one by one, as in EnvPool: each makes its step as soon as it has an action, and ``recv`` returns the first
    ``batch_size`` whose steps are over, in that order. ``info["env_id"]`` names them.

        venv = rlhost.make_vec("Acrobot-v1", num_envs=64, batch_size=16, workers=2)
        venv.async_reset(seed=1)
        while True:
            obs, reward, terminated, truncated, info = venv.recv()
            venv.send(policy(obs), info["env_id"])

    The episodes of an environment are those that it has without a batch_size. After a VecError the environments in its attribute ``env_id`` need
    a reset; the others continue. With ``copy=False`` arrays are views where the environments of a batch are neighbours in ascending order, as those
    of modules are: they stay as they are until the next ``send`` to one of them."""

    _alone = True

    def __init__(self, env: Any, num_envs: int, batch_size: int, **keys: Any):
        if not 1 <= batch_size <= num_envs:
            raise ValueError(f"batch_size is {batch_size}: want 1 to num_envs, which is {num_envs}")
        self.batch_size = int(batch_size)
        super().__init__(env, num_envs, **keys)
        at, lists = self._lists_at(), 4 * self.num_envs
        self._to_step = numpy.frombuffer(self._resets, "<u4", self.num_envs, at)
        self._stepped = numpy.frombuffer(self._resets, "<u4", self.num_envs, at + lists)
        self._place = 0  # in the list of environments to be stepped
        self._states = numpy.zeros(self.num_envs, numpy.uint8)
        self._last = numpy.arange(self.num_envs)  # that recv or reset has returned
        self._batch_space = batch_space(self.single_observation_space, self.batch_size)

    def _lists_at(self) -> int:
        return (9 * self.num_envs + 3) & ~3

    def _area_bytes(self) -> int:
        return self._lists_at() + 8 * self.num_envs

    def reset(self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begins episodes everywhere, or where options["reset_mask"] is true, once all steps are over. It returns the observations of all
        environments. What steps of environments that are reset have brought is lost."""
        self._restart(seed, options)
        mask = (options or {}).get("reset_mask")
        self._last = numpy.arange(self.num_envs) if mask is None else numpy.flatnonzero(mask)
        self._states[self._last] = _HERE
        observed = super()._observed(self._obs[1])
        return observed, self._masked({"env_id": self._last})

    def async_reset(self, *, seed: int | Sequence[int | None] | None = None) -> None:
        """Begins episodes everywhere; recv returns the environments with a reward of 0."""
        self._restart(seed, None, _ANNOUNCE)
        for results in self._results[0]:
            results[...] = 0
        for _, values in self._infos[0]:
            values[...] = 0
        self._states[:] = _IN_STEP

    def send(self, actions: Any, env_id: Any = None) -> None:
        """Begins a step of each of these environments, in their order: by default of all that the last recv or reset has returned."""
        ids = self._last if env_id is None else numpy.atleast_1d(numpy.asarray(env_id))
        self._check(ids)
        for column, start, given in zip(self._actions[0], self._starts, leaves(actions), strict=True):
            column[ids] = numpy.reshape(given if start is None else given - start, (len(ids), *column.shape[1:]))
        self._to_step[(self._place + numpy.arange(len(ids))) % self.num_envs] = ids
        self._requests.put(bytes(_native.Message(slot=_native.LINK_ENV_STEP, t=self._place, split=len(ids))))
        self._place = (self._place + len(ids)) % self.num_envs
        self._states[ids] = _IN_STEP

    def _check(self, ids: numpy.ndarray) -> None:
        """Raises where the environments cannot be stepped now."""
        if not self._begun:
            raise gymnasium.error.ResetNeeded("call reset or async_reset before send")
        if ids.ndim != 1 or not numpy.issubdtype(ids.dtype, numpy.integer):
            raise TypeError(f"env_id is {ids!r:.80}: want a list of whole numbers, as info[\"env_id\"] is")
        wrong = ids[(ids < 0) | (ids >= self.num_envs)]
        if wrong.size:
            raise ValueError(f"env_id has {wrong[0]}: want 0 to {self.num_envs - 1}")
        if len(set(ids.tolist())) != len(ids):
            raise ValueError(f"env_id has an environment twice: {ids.tolist()}")
        states = self._states[ids]
        if (states == _IN_STEP).any():
            raise gymnasium.error.AlreadyPendingCallError(
                f"environment {ids[states == _IN_STEP][0]} is in a step: send to it after a recv has returned it", "send")
        if (states == _FAILED).any():
            raise gymnasium.error.ResetNeeded(f"environment {ids[states == _FAILED][0]} has failed: reset it first, "
                                              'alone by reset(options={"reset_mask": mask})')

    def recv(self) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Waits for the first batch_size environments whose steps are over and which no recv has returned."""
        in_step = int(numpy.count_nonzero(self._states == _IN_STEP))
        if in_step < self.batch_size:
            raise gymnasium.error.NoAsyncCallError(
                f"recv returns {self.batch_size} environments and {in_step} are in steps: send actions to more of them first", "recv")
        self._put(bytes(_native.Message(slot=_RECEIVE, split=self.batch_size)))
        ended = self._answer().inline[0]
        ids = self._last = self._stepped[:self.batch_size].astype(numpy.int64)
        self._states[ids] = _HERE
        neighbours = int(ids[-1] - ids[0]) == len(ids) - 1 and bool((numpy.diff(ids) == 1).all())
        some: Any = slice(int(ids[0]), int(ids[-1]) + 1) if neighbours else ids
        copy = self._copy and neighbours  # others are copies by now

        def of(x: numpy.ndarray) -> Any:
            return x[some].copy() if copy else x[some]

        def observed(columns: list[numpy.ndarray]) -> Any:
            return in_space(self._batch_space, [x[some] for x in columns], copy)

        reward, terminated, truncated = map(of, self._results[0])
        info: dict[str, Any] = {"env_id": ids, **{name: of(x) for name, x in self._infos[0]}}
        if ended and self._same_step:
            info["final_obs"], info["_final_obs"] = observed(self._final), terminated | truncated
        masks = [of(x) for x in self._masks[1]]
        if masks:
            info["action_mask"] = masks[0] if len(masks) == 1 else tuple(masks)
        return observed(self._obs[1]), reward, terminated, truncated, info

    def step(self, actions: Any, env_id: Any = None) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """send, then recv: the environments that it returns may be others."""
        self.send(actions, env_id)
        return self.recv()

    def _failed(self, told: dict[str, Any]) -> VecError:
        error = super()._failed(told)
        error.env_id = numpy.array(told.get("envs", []), numpy.int64)
        self._states[error.env_id] = _FAILED
        return error
