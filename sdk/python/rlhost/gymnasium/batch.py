"""Stepping environments of Gymnasium into blocks of shared memory."""

from __future__ import annotations

import dataclasses
import inspect
import os
import re
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, SupportsFloat

import gymnasium
import numpy

from .. import spec
from ..arena import Column, view
from . import infos
from .crew import Crew
from .source import Source
from .watch import STEPS, Watch

Array = numpy.ndarray


class EnvFault(Exception):
    """An exception of one environment: its index and message. call is the method of the environment that was called."""

    def __init__(self, env: int, error: BaseException, of: Any = None, call: str = ""):
        super().__init__(told(error, of, call))
        self.env = env


_UNPACKING = re.compile(r"(not enough|too many) values to unpack \(expected (\d)(?:, got (\d+))?\)")
_UNSEEDED = re.compile(r"reset\(\) got an unexpected keyword argument '(seed|options)'")
_RETURNS = {"step": ("5", "observation, reward, terminated, truncated, info"), "reset": ("2", "observation, info")}


def told(error: BaseException, of: Any = None, call: str = "") -> str:
    """The last line of a traceback, with a place in the environment's own source: the innermost frame that is neither ours nor of an
    installed package, else the method of the environment that was called."""
    text = "".join(traceback.format_exception_only(type(error), error)).strip()
    frames = [(frame.filename, frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    own = [frame for frame in frames if not _installed(frame[0])]
    if not own and of is not None:
        unpacking = _UNPACKING.search(text)
        count, names = _RETURNS.get(call, ("", ""))
        if unpacking and unpacking[2] == count:
            got = f", and returns {unpacking[3]}" if unpacking[3] else ""
            text = f"{call} must return {count} values (Gymnasium 0.26){got}: {names}"
        own = _defined(of, call)
    if call == "reset" and _UNSEEDED.search(text):
        text += ": reset takes seed and options since Gymnasium 0.26: def reset(self, seed=None, options=None)"
    at = own or frames
    return f"{text} ({os.path.basename(at[-1][0])}:{at[-1][1]})" if at else text


def _installed(file: str) -> bool:
    """Whether a source is rlhost's own, or of an installed package."""
    return file.startswith((_HERE, "<")) or "site-packages" in file or "dist-packages" in file


def _defined(of: Any, call: str) -> list[tuple[str, int | None]]:
    """Where an environment defines a method, if that is in a source of its author's."""
    code = getattr(inspect.unwrap(getattr(type(getattr(of, "unwrapped", of)), call, None) or told), "__code__", None)
    return [] if code is None or _installed(code.co_filename) else [(code.co_filename, code.co_firstlineno)]


_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def blame(rewards: Sequence[Any], terminations: Sequence[Any], truncations: Sequence[Any],
          error: BaseException) -> tuple[int, BaseException]:
    """The environment whose reward or flag is not a number, after writing them all at once failed."""
    for i, row in enumerate(zip(rewards, terminations, truncations)):
        for name, value in zip(("reward", "terminated", "truncated"), row):
            try:
                numpy.zeros(1)[0] = value
            except (TypeError, ValueError):
                return i, TypeError(f"{name} is {value!r:.80}, want one number")
    return len(rewards) - 1, error


@dataclasses.dataclass
class Bound:
    """This worker's part of the columns of one block: [rows, envs, ...], or agents of all environments."""

    action: list[Array]  # of each part of the action
    obs: list[Array]  # of each part of the observation
    reward: Array
    terminated: Array
    truncated: Array
    final_obs: list[Array]
    mask: list[Array]  # of each discrete part of the action, if the environment has masks
    active: Array | None = None  # where agents do not always act
    infos: list[Array] = dataclasses.field(default_factory=list)  # at reset
    params: Array | None = None  # [1, envs, ...], if the environment has reset parameters

    @classmethod
    def of(cls, memory: Array, offset: int, columns: dict[str, Column], first: int, envs: int) -> Bound:
        """Makes the views of the block that begins at offset."""
        def column(name: str) -> Array:
            return view(memory, offset, columns[name], (first, envs))

        def all_of(kind: str) -> list[Array]:
            return [column(name) for name in columns if name.partition("/")[0] == kind]

        return cls(all_of("action"), all_of("obs"), column("reward"), column("terminated"), column("truncated"),
                   all_of("final_obs"), all_of("action_mask"), column("active") if "active" in columns else None, all_of("reset_info"),
                   column("reset_param") if "reset_param" in columns else None)


class Batch:
    """A fixed number of environments, stepped into the bound block: one after the other, or by several threads, each of which takes the next
    one that no other has begun."""

    agents = 1  # of each

    def __init__(self, source: Source, envs: int, autoreset: int,
                 report: Callable[[int, str, float], None] = lambda env, name, value: None, threads: int = 1):
        self.source, self.autoreset, self._report = source, autoreset, report
        self.envs: list[gymnasium.Env[Any, Any]] = []
        self.bound: Bound | None = None
        self.done: Any = [0]  # counts the environments that were reset or stepped: a worker puts it where the host sees it
        self.ended = [False] * envs  # the next step belongs to no episode: under next_step it begins one, under disabled it changes nothing
        self._last: list[Any] = [None] * envs  # under disabled: what an environment observes until it is reset
        self.options: dict[str, Any] | None = None  # of the next reset of the host
        self._count = envs
        self._crew = Crew(min(threads, envs))
        self._told: list[tuple[int, str, float]] = []  # in this step
        self._watch, self._watched = Watch(source), 0
        self.renew()

    def renew(self) -> None:
        """Makes all environments again, with no episode begun and no block bound."""
        self.close()
        self.bound = None
        self.ended = [False] * self._count
        self._alone_steps = [0] * self._count  # the first of each, which are watched
        for _ in range(self._count):
            self.envs.append(self.source.make())
        self._steps = [env.step for env in self.envs]

    def close(self) -> None:
        """Closes the environments and ignores their exceptions."""
        for env in self.envs:
            try:
                env.close()
            except Exception:
                pass
        self.envs, self._steps = [], []  # a bound step keeps its environment

    def reset(self, t: int, mask: Sequence[int] | None, seeds: Sequence[int] | None) -> None:
        """Begins episodes, in all environments or where mask is not 0, and writes obs[t]."""
        block, told = self._block(), self.source.infos
        write = self.source.observations.writer(block.obs, t)
        options, self.options = self.options, None

        def some(order: Iterator[Any], note: Callable[[int], None]) -> None:
            for i, env in order:
                if mask is None or mask[i]:
                    try:
                        obs, info = env.reset(seed=None if seeds is None else seeds[i] & self.source.seed_mask, **self._options(i, block, options))
                        self._watch.look(i, obs, info)
                        write(i, obs)
                        self._write_mask(i, t, info)
                        infos.write(block.infos, told, t, i, info)
                    except (Exception, SystemExit) as e:
                        raise EnvFault(i, e, env, "reset") from e
                    self.ended[i] = False
                note(i)

        self._crew.share(some, self.done, self.envs)

    def step(self, t: int) -> None:
        """Takes action[t] and writes reward, terminated and truncated [t] and obs[t+1]."""
        block = self._block()
        write = self.source.observations.writer(block.obs, t + 1)
        masked, ended, done, alone = self.source.masked, self.ended, self.done, self._crew.alone
        self._watched += 1
        watch = self._watch.look if self._watched <= STEPS else None
        actions = self.source.actions.rows([column[t] for column in block.action])
        rewards: list[SupportsFloat] = [0.0] * self._count
        terminations, truncations = [False] * self._count, [False] * self._count

        def some(order: Iterator[Any], note: Callable[[int], None]) -> None:
            i = 0
            try:
                for i, step, action in order:
                    if ended[i]:
                        obs, info = self._again(i, t, block)
                    else:
                        obs, rewards[i], terminated, truncated, info = step(action)
                        terminations[i], truncations[i] = terminated, truncated
                        if watch:
                            watch(i, obs, info)
                        if terminated or truncated:
                            self._tell(i, info)
                            obs, info = self._end(i, t, obs, block)
                    if masked:
                        self._write_mask(i, t + 1, info)
                    write(i, obs)
                    if alone:
                        done[0] += 1  # as note does, without a call
                    else:
                        note(i)
            except (Exception, SystemExit) as e:
                raise EnvFault(i, e, self.envs[i], "step") from e

        try:
            self._crew.share(some, self.done, self._steps, actions)
        finally:
            self._report_told()
        self._write_results(t, rewards, terminations, truncations)

    def step_alone(self, i: int, t: int) -> None:
        """Makes step t of one environment, whose action is there. Several threads may, each of another environment."""
        block, alone = self._block(), slice(i, i + 1)
        try:
            if self.ended[i]:
                reward: Any = 0.0
                terminated = truncated = False
                obs, info = self._again(i, t, block)
            else:
                action = self.source.actions.rows([column[t, alone] for column in block.action])[0]
                obs, reward, terminated, truncated, info = self._steps[i](action)
                if self._alone_steps[i] < STEPS:
                    self._alone_steps[i] += 1
                    self._watch.look(i, obs, info)
                if terminated or truncated:
                    obs, info = self._end(i, t, obs, block)
            if self.source.masked:
                self._write_mask(i, t + 1, info)
            self.source.observations.writer(block.obs, t + 1)(i, obs)
        except (Exception, SystemExit) as e:
            raise EnvFault(i, e, self.envs[i], "step") from e
        self._write_results(t, [reward], [terminated], [truncated], i)

    def _again(self, i: int, t: int, block: Bound) -> tuple[Any, Any]:
        """Makes the step after the end of an episode: under next_step another one begins, under disabled nothing changes."""
        if self.autoreset == spec.DISABLED:
            return self._last[i], None
        obs, info = self.envs[i].reset(**self._options(i, block))
        self.ended[i] = False
        infos.write(block.infos, self.source.infos, t + 1, i, info)
        return obs, info

    def _options(self, i: int, block: Bound, given: dict[str, Any] | None = None) -> dict[str, Any]:
        """The argument of a reset that has its options, where there are any: an environment without need not take them."""
        params = self.source.params
        if params and block.params is not None:
            given = {**params.options(block.params[0, i]), **(given or {})}
        return {} if given is None else {"options": given}

    def _write_results(self, t: int, rewards: Sequence[Any], terminations: Sequence[Any], truncations: Sequence[Any], first: int = 0) -> None:
        """Writes the results of neighbouring environments from one on."""
        block, some = self._block(), slice(first, first + len(rewards))
        try:
            try:
                block.reward[t, some] = rewards
            except (TypeError, ValueError):  # of arrays with one element
                block.reward[t, some] = [numpy.asarray(r).item() for r in rewards]
            block.terminated[t, some] = terminations
            block.truncated[t, some] = truncations
        except (Exception, SystemExit) as e:
            i, cause = blame(rewards, terminations, truncations, e)
            raise EnvFault(first + i, cause, self.envs[first + i], "step") from cause

    def _report_told(self) -> None:
        """Reports what the step has told, in the order of the environments."""
        if self._told:
            for told in sorted(self._told, key=lambda told: told[0]):
                self._report(*told)
            self._told.clear()

    def _tell(self, env: int, info: Mapping[Any, Any]) -> None:
        """Notes the numbers of the last info of an environment's episode."""
        for name, value in infos.flat(info):
            if infos.number(value):
                self._told.append((env, name, float(value)))

    def _end(self, i: int, t: int, obs: Any, block: Bound) -> tuple[Any, Any]:
        """Resets at the end of an episode in step t as the autoreset mode requires; returns the observation to write, and the info
        that has its mask, None where no action is taken."""
        if self.autoreset == spec.SAME_STEP:
            assert block.final_obs
            self._watch.shape(obs)
            self.source.observations.writer(block.final_obs, 0)(i, obs)  # before the reset, which may reuse the array
            first, info = self.envs[i].reset(**self._options(i, block))
            self._watch.shape(first)
            if self._watched <= STEPS:
                self._watch.look(i, first, info)
            infos.write(block.infos, self.source.infos, t + 1, i, info)
            return first, info
        self.ended[i] = True
        if self.autoreset == spec.DISABLED:
            self._last[i] = obs
        return obs, None

    def _write_mask(self, i: int, t: int, info: Any) -> None:
        """Writes which actions are legal at t: all where no action is taken."""
        if not self.source.masked:
            return
        masks = self._block().mask
        if info is None:
            for mask in masks:
                mask[t, i] = 1
            return
        env = self.envs[i]
        given = info.get("action_mask")
        if given is None:
            if not env.has_wrapper_attr("action_masks"):
                raise ValueError('info has no "action_mask", which it had before')
            given = env.get_wrapper_attr("action_masks")()
        parts = [numpy.ravel(part) for part in given] if isinstance(given, (tuple, list)) else [numpy.ravel(given)]
        flat = numpy.concatenate(parts)
        want = sum(mask.shape[2] for mask in masks)
        if flat.size != want:
            raise ValueError(f"the action mask has {flat.size} values, the actions have {want}")
        flat, at = flat != 0, 0
        for mask in masks:
            mask[t, i] = flat[at:at + mask.shape[2]]
            at += mask.shape[2]

    def _block(self) -> Bound:
        if self.bound is None:
            raise RuntimeError("no block is bound")
        return self.bound
