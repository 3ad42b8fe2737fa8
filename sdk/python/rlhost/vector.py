"""rlhost.make_vec: environments stepped by the host as one gymnasium.vector.VectorEnv."""

from __future__ import annotations

import array
import base64
import fcntl
import json
import math
import mmap
import os
import socket
import subprocess
import tempfile
import weakref
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any

import gymnasium
import numpy
from gymnasium import spaces
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from . import _native, pipelines, plain, spec
from .arena import read_columns, view
from .gymnasium import asking
from .gymnasium.tensors import common_start
from .program import environment, feed, program
from .spec import numbered

_CELLS = 64
_SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
_DOCUMENT = 1 << 20
_LOOK = 1.0  # seconds after which the host is looked at while an answer is awaited
_MODES = {"same_step": AutoresetMode.SAME_STEP, "next_step": AutoresetMode.NEXT_STEP}


class VecError(RuntimeError):
    """An environment could not be made, or failed; the text says which one and why. With a batch_size ``env_id`` has the environments that
    need a reset."""

    env_id: numpy.ndarray = numpy.zeros(0, numpy.int64)


def make_vec(env: pipelines.Env, num_envs: int = 1, *, workers: int = 1, threads: int = 1, autoreset: str = "same_step", seed: int | None = None,
             args: Mapping[str, Any] | None = None, wrap: Sequence[Mapping[str, Any]] | None = None, copy: bool = True,
             batch_size: int | None = None) -> VectorEnv:
    """Makes environments that are stepped together: an id of Gymnasium, what makes one, ``name@version`` of one that is built in, or the
    path of a module.

        venv = rlhost.make_vec("Acrobot-v1", num_envs=64, workers=2)
        obs, info = venv.reset(seed=1)
        obs, reward, terminated, truncated, info = venv.step(venv.action_space.sample())

    ``workers`` processes step environments of Python, each in so many ``threads``, which is for environments that wait in their steps; ``args`` and ``wrap`` are those of a pipeline. ``autoreset`` is same_step or next_step.
    Environment i is reset with seed + i. With ``copy=False`` arrays are views of the memory that the environments write: they stay as they are
    for about thirty steps and must not be written.

    With ``batch_size`` no environment waits for another, as in EnvPool: see AloneVectorEnv.

    Raises VecError with place, reason and remedy."""
    if batch_size is not None:
        from .alone import AloneVectorEnv
        return AloneVectorEnv(env, num_envs, batch_size, workers=workers, threads=threads, autoreset=autoreset, seed=seed, args=args, wrap=wrap, copy=copy)
    return VectorEnv(env, num_envs, workers=workers, threads=threads, autoreset=autoreset, seed=seed, args=args, wrap=wrap, copy=copy)


class VectorEnv(gymnasium.vector.VectorEnv[Any, Any, Any]):
    """Environments in a process of the host. ``send`` and ``recv`` are the halves of ``step``: between them this process can do other work."""

    _alone = False  # environments are stepped one by one

    def __init__(self, env: pipelines.Env, num_envs: int, *, workers: int, threads: int, autoreset: str, seed: int | None, args: Mapping[str, Any] | None,
                 wrap: Sequence[Mapping[str, Any]] | None, copy: bool):
        if num_envs < 1:
            raise ValueError(f"num_envs is {num_envs}: want 1 or more")
        if workers < 1:
            raise ValueError(f"workers is {workers}: want 1 or more processes")
        if autoreset not in _MODES:
            raise ValueError(f"autoreset is {autoreset!r}: want same_step or next_step")
        self.num_envs, self._copy, self._seed, self._begun = int(num_envs), copy, seed, False
        use = pipelines.use(env)
        given = {"use": use, "workers": workers if workers != 1 else None, "threads": threads if threads != 1 else None, "args": args, "wrap": wrap}
        source = 'rlhost = 1\n[run]\nname = "vec"\nstop = { env_steps = 1 }\n' + pipelines.table("env.env", given) + '[train]\npreset = "general"\nenv = "env"\n'
        self._child, self._wire = self._start(source, autoreset)
        self._end = weakref.finalize(self, _end, self._child, self._wire, self._words)  # also of one that nobody closes
        files: list[int] = []
        try:
            ready, files = self._document()
            described = spec.EnvSpec.unpack(base64.b64decode(ready["describe"]))
            if described.agents > 1 or described.tensor(spec.ACTIVE):
                raise VecError(f"{use} has several agents, and a VectorEnv of Gymnasium has one for each environment: train steps them all (rlhost.train), "
                               "and a component of Python sees their columns (docs/how-to/several-agents.md)")
            self._block = mmap.mmap(files[0], ready["offset"] + ready["bytes"])
            self._lay_out(ready, described)
            self._make_spaces(use, args, described)
        except BaseException:
            self.close_extras()
            raise
        finally:
            for fd in files:
                os.close(fd)
        self.metadata = {"autoreset_mode": _MODES[autoreset]}
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._same_step, self._row = autoreset == "same_step", ready["row"]
        self._starts = [_start(leaf) for leaf in leaves(self.single_action_space)]
        self._plain = len(self._starts) == 1 and self._starts[0] is None and self._actions[0][0].shape == self.action_space.shape
        self._waiting = False

    def _start(self, source: str, autoreset: str) -> tuple[subprocess.Popen[bytes], socket.socket]:
        """Starts the host's process and shares rings, a connection and a segment with it."""
        wire, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        rings = [_native.ring_create(_native.RING_MESSAGES, _CELLS, 64) for _ in range(2)]
        resets = os.memfd_create("resets", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        area = self._area_bytes()
        os.ftruncate(resets, area)
        fcntl.fcntl(resets, fcntl.F_ADD_SEALS, _SEALS)
        self._requests, self._replies = _native.MessageRing(rings[0]), _native.MessageRing(rings[1])
        self._resets = mmap.mmap(resets, area)
        shared = [*rings, theirs.fileno(), resets]
        self._words = tempfile.TemporaryFile()
        command = [program(), "vector", "-", "--envs", str(self.num_envs), "--autoreset", autoreset, "--attached", str(os.getpid()),
                   "--files", ",".join(map(str, shared)), *(["--alone"] if self._alone else [])]
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=self._words, stderr=self._words, pass_fds=shared, env=environment(),
                                 start_new_session=True)
        theirs.close()
        for fd in (*rings, resets):
            os.close(fd)
        feed(child, source)
        return child, wire

    def _area_bytes(self) -> int:
        """Of the segment for resets: seeds and a mask."""
        return 9 * self.num_envs

    def _document(self) -> tuple[dict[str, Any], list[int]]:
        """The host's next document, and the files that come with it."""
        text, files, _, _ = socket.recv_fds(self._wire, _DOCUMENT, 4)
        if not text:
            raise self._ended()
        return json.loads(text), files

    def _ended(self) -> VecError:
        self._child.wait()
        self._words.seek(0)
        words = self._words.read().decode(errors="replace").strip()
        if self._child.returncode < 0 or not words:
            words = f"the host's process ended with status {self._child.returncode} {words}".strip()
        return VecError(words.removeprefix("rlhost: "))

    def _lay_out(self, ready: dict[str, Any], described: spec.EnvSpec) -> None:
        """Makes the views of all rows."""
        memory, columns = numpy.frombuffer(self._block, numpy.uint8), read_columns(ready["columns"])
        whole = {name: view(memory, ready["offset"], column) for name, column in columns.items()}

        def of(name: str, role: int) -> list[numpy.ndarray]:
            return [whole[numbered(name, i)] for i in range(len(described.of_role(role)))]

        rows = ready["columns"]["steps"]
        self._obs = [[c[t] for c in of("obs", spec.OBSERVATION)] for t in range(rows + 1)]
        self._actions = [[c[t] for c in of("action", spec.ACTION)] for t in range(rows)]
        self._masks = [[whole[numbered("action_mask", t.pair)][row] for t in described.of_role(spec.ACTION_MASK)] for row in range(rows + 1)]
        self._final = [c[0] for c in of("final_obs", spec.FINAL_OBSERVATION)]
        self._results = [(whole["reward"][t], whole["terminated"][t].view(bool), whole["truncated"][t].view(bool)) for t in range(rows)]
        self._param, self._params = described.tensor(spec.RESET_PARAM), whole.get("reset_param")
        infos = described.of_role(spec.INFO)
        self._infos = [[(t.path or numbered("info", i), whole[numbered("info", i)][row]) for i, t in enumerate(infos)] for row in range(rows)]

    def _make_spaces(self, use: str, args: Mapping[str, Any] | None, described: spec.EnvSpec) -> None:
        """The spaces of one environment: those that Gymnasium's has, or those that the description says."""
        self._use, (self._kind, _, name) = use, use.partition(":")
        if self._kind == "gymnasium":
            from .gymnasium.source import Maker
            made = Maker(name, args or {}).make()
            self.single_observation_space, self.single_action_space, self.spec = made.observation_space, made.action_space, made.spec
            made.close()
        else:
            self.single_observation_space = _space(described.of_role(spec.OBSERVATION))
            self.single_action_space = _space(described.of_role(spec.ACTION))

    def reset(self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begins episodes everywhere, or where options["reset_mask"] is true. options["reset_params"] sets reset parameters, which stay for all
        episodes to come: a dict by name, or an array with a row for each environment, or one row for all; NaN is the environment's default.
        Environments of Gymnasium get the other options, in this reset alone."""
        self._restart(seed, options)
        return self._observed(self._obs[self._row]), self._masked({})

    def _restart(self, seed: int | Sequence[int | None] | None, options: Mapping[str, Any] | None, kind: int = 0) -> None:
        """Has the host begin episodes."""
        if seed is None and not self._begun:
            seed = self._seed if self._seed is not None else int(numpy.random.default_rng().integers(1 << 31))
        if seed is not None:
            seeds = [seed + i for i in range(self.num_envs)] if isinstance(seed, (int, numpy.integer)) else list(seed)
            numbers = [int(s) for s in seeds if s is not None]
            if len(numbers) != self.num_envs:
                raise ValueError(f"seed has {len(numbers)} numbers: want one for each of {self.num_envs} environments")
            self._resets[:8 * self.num_envs] = array.array("Q", numbers).tobytes()
            kind |= _native.LINK_ENV_SEEDS
        given = dict(options or {})
        mask = given.pop("reset_mask", None)
        if "reset_params" in given:
            self._set_params(given.pop("reset_params"))
        if given:
            self._ask_all(asking.OPTIONS, "options", (), given)
        if mask is not None:
            self._resets[8 * self.num_envs:9 * self.num_envs] = numpy.asarray(mask, bool).reshape(self.num_envs).tobytes()
            kind |= _native.LINK_ENV_MASK
        self._ask(_native.LINK_ENV_RESET, kind)
        self._answer()
        self._begun = True

    def _set_params(self, given: Any) -> None:
        if self._param is None or self._params is None:
            raise ValueError(f"{self._use} has no reset parameters: an environment of Gymnasium declares them as reset_params, a module in its "
                             "description (docs/how-to/curriculum.md)")
        row, named = self._params[0].reshape(self.num_envs, -1).copy(), self._param.path.split(",")
        if isinstance(given, Mapping):
            for name, value in given.items():
                if name not in named:
                    raise ValueError(f"{self._use} has no reset parameter {name!r}: it has {', '.join(named)}")
                row[:, named.index(name)] = value
        else:
            row[...] = given
        low, high = (numpy.asarray(bounds or [one] * self._param.elems) for bounds, one in
                     ((self._param.lows, self._param.low), (self._param.highs, self._param.high)))
        for env, i in numpy.argwhere((row < low) | (row > high)):
            raise ValueError(f"the reset parameter {named[i] if i < len(named) else i} of environment {env} is {row[env, i]:g}, "
                             f"want {low[i]:g} to {high[i]:g}, or NaN for the default")
        self._params[0] = row.reshape(self._params[0].shape)

    def send(self, actions: Any) -> None:
        """Begins a step: the first half of step."""
        if not self._begun:
            raise gymnasium.error.ResetNeeded("call reset before step")
        into = self._actions[self._row]
        if self._plain and isinstance(actions, numpy.ndarray):
            into[0][...] = actions
        else:
            for column, start, given in zip(into, self._starts, leaves(actions), strict=True):
                column[...] = numpy.reshape(given if start is None else given - start, column.shape)
        self._ask(_LINK_STEP, 0)

    def recv(self) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Waits for the step: the second half of step."""
        m = self._answer()
        reward, terminated, truncated = self._results[m.split]
        if self._copy:
            reward, terminated, truncated = reward.copy(), terminated.copy(), truncated.copy()
        info: dict[str, Any] = {name: self._kept(x) for name, x in self._infos[m.split]}
        if m.inline[0] and self._same_step:
            info["final_obs"], info["_final_obs"] = self._observed(self._final), terminated | truncated
        return self._observed(self._obs[self._row]), reward, terminated, truncated, self._masked(info)

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Steps all environments."""
        self.send(actions)
        return self.recv()

    def render(self, camera: int = 0) -> tuple[numpy.ndarray, ...]:
        """What modules draw: the pixels of each environment, uint8 [height, width, 3 or 4]. Raises VecError where they draw nothing."""
        pictures = []
        for i in range(self.num_envs):
            self._put(bytes(_native.Message(slot=_RENDER, t=i, split=camera)))
            told, files = self._document()
            try:
                m = self._reply()
                if m.kind:
                    raise VecError(told["reason"])
                shape = told["Height"], told["Width"], told["Channels"]
                pictures.append(numpy.frombuffer(os.pread(files[0], math.prod(shape), 0), numpy.uint8).reshape(shape))
                self.metadata["render_fps"] = told["FPS"] or None
            finally:
                for fd in files:
                    os.close(fd)
        return tuple(pictures)

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """What a method of each environment of Gymnasium returns, or its attribute of that name; wrappers are asked first. Arguments and
        values are of None, bool, int, float, str, bytes, arrays of numbers, and tuples, lists and dicts of them. Raises VecError."""
        if name in _OWN:
            raise ValueError(f"the host steps these environments: instead of call({name!r}) call {name} of the VectorEnv")
        return self._ask_all(asking.CALL, name, args, kwargs)

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """An attribute of each environment; see call."""
        return self.call(name)

    def set_attr(self, name: str, values: Any) -> None:
        """Sets an attribute of each environment: of a list or tuple each its own, else all the same value; see call."""
        own = values if isinstance(values, (list, tuple)) else [values] * self.num_envs
        if len(own) != self.num_envs:
            raise ValueError(f"values has {len(own)}: want one for each of {self.num_envs} environments, or a value that is no list or tuple")
        self._ask_all(asking.SET, name, tuple(own), {})

    def _ask_all(self, what: str, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """Puts a question to all environments and returns the values that they answer with."""
        if self._kind != "gymnasium":
            raise VecError(f"{name}: {self._use} has no attributes, methods or options of Python, as environments of Gymnasium have: a module takes "
                           "`args` when it is made, and options={'reset_params': ...}")
        try:
            question = plain.dumps((what, name, args, kwargs))
        except TypeError as e:
            raise TypeError(f"{name}: what is sent to environments in other processes is of {asking.PLAIN}: {e}") from None
        values: list[Any] = []
        for answer in self._asked(question):
            kind, *told = plain.loads(answer)
            if kind == "failed":
                raise VecError(f"{name} of environment {told[0]} failed: {told[1]}")
            values += told[0]
        return tuple(values)

    def _asked(self, question: bytes) -> list[bytes]:
        """The answers of all processes."""
        file = os.memfd_create("question", os.MFD_CLOEXEC)
        try:
            with open(file, "wb", closefd=False) as f:
                f.write(question)
            if self._waiting:
                raise gymnasium.error.AlreadyPendingCallError("an answer is awaited: call recv first", "call")
            socket.send_fds(self._wire, [json.dumps({"bytes": len(question)}).encode()], [file])
        finally:
            os.close(file)
        self._put(bytes(_native.Message(slot=_ASK)))
        failed = self._reply().kind
        told, files = self._document()
        if failed:
            raise self._failed(told)
        try:
            whole, at, answers = os.pread(files[0], sum(told["bytes"]), 0), 0, []
        finally:
            for fd in files:
                os.close(fd)
        for size in told["bytes"]:
            answers.append(whole[at:at + size])
            at += size
        return answers

    def _masked(self, info: dict[str, Any]) -> dict[str, Any]:
        masks = self._masks[self._row]
        if masks:
            info["action_mask"] = self._kept(masks[0]) if len(masks) == 1 else tuple(map(self._kept, masks))
        return info

    def _kept(self, x: numpy.ndarray) -> numpy.ndarray:
        return x.copy() if self._copy else x

    def _observed(self, columns: list[numpy.ndarray]) -> Any:
        return in_space(self.observation_space, columns, self._copy)

    def _ask(self, slot: int, kind: int) -> None:
        self._put(_STEP if slot == _LINK_STEP else bytes(_native.Message(slot=slot, kind=kind)))

    def _put(self, message: bytes) -> None:
        if self._waiting:
            raise gymnasium.error.AlreadyPendingCallError("an answer is awaited: call recv first", "step")
        self._requests.put(message)
        self._waiting = True

    def _answer(self) -> _native.Message:
        m = self._reply()
        if m.kind:
            raise self._failed(self._document()[0])
        self._row = m.t
        return m

    def _failed(self, told: dict[str, Any]) -> VecError:
        return VecError(told["reason"])

    def _reply(self) -> _native.Message:
        if not self._waiting:
            raise gymnasium.error.NoAsyncCallError("no answer is awaited: call send first", "step")
        while True:
            try:
                m = self._replies.get(_LOOK)
                break
            except _native.TimedOut:
                if self._child.poll() is not None:
                    raise self._ended() from None
        self._waiting = False
        return m

    def close_extras(self, **kwargs: Any) -> None:
        """Ends the host's process."""
        self._end()


_RENDER, _ASK = 1, 2  # of the host's package vector
_OWN = ("reset", "step", "close")
_LINK_STEP = _native.LINK_ENV_STEP
_STEP = bytes(_native.Message(slot=_LINK_STEP))


def _end(child: subprocess.Popen[bytes], wire: socket.socket, words: IO[bytes]) -> None:
    """Ends the host's process, and closes what was shared with it."""
    child.terminate()
    child.wait()
    wire.close()
    words.close()


def _start(space: spaces.Space[Any]) -> Any:
    """What the elements of an action are counted from, where that differs: the host counts such elements from 0."""
    return space.start if isinstance(space, spaces.MultiDiscrete) and common_start(space) is None else None


def leaves(actions: Any) -> Iterator[Any]:
    """The parts of a batch of actions, or of a space, in the order of the space."""
    if isinstance(actions, spaces.Tuple):
        actions = actions.spaces
    if isinstance(actions, Mapping):
        for part in actions.values():
            yield from leaves(part)
    elif isinstance(actions, tuple):
        for part in actions:
            yield from leaves(part)
    else:
        yield actions


def in_space(space: spaces.Space[Any], columns: list[numpy.ndarray], copy: bool) -> Any:
    """Columns as a batch of a space has them."""
    first = columns[0]
    if first.dtype == space.dtype and first.shape == space.shape:  # the common case, a Box of f32
        return first.copy() if copy else first
    return _gathered(space, iter(columns), copy)


def _gathered(space: spaces.Space[Any], columns: Iterator[numpy.ndarray], copy: bool) -> Any:
    """Columns as a batch of a space has them."""
    if isinstance(space, spaces.Dict):
        return {name: _gathered(part, columns, copy) for name, part in space.spaces.items()}
    if isinstance(space, spaces.Tuple) and isinstance(space.spaces[0], spaces.Text):  # a batch of texts
        return tuple(bytes(row).rstrip(b"\0").decode(errors="replace") for row in next(columns))
    if isinstance(space, spaces.Tuple):
        return tuple(_gathered(part, columns, copy) for part in space.spaces)
    x = next(columns).reshape(space.shape)
    if x.dtype != space.dtype:
        return x.astype(space.dtype)
    return x.copy() if copy else x


def _space(tensors: Sequence[spec.Tensor]) -> spaces.Space[Any]:
    """The space of an environment that is not Gymnasium's; parts with paths are a Dict of Dicts."""
    if len(tensors) == 1 and not tensors[0].path:
        return _part(tensors[0])
    nested: dict[str, Any] = {}
    for i, t in enumerate(tensors):
        *path, last = (t.path or str(i)).split("/")
        into = nested
        for key in path:
            into = into.setdefault(key, {})
        into[last] = _part(t)
    return _dict(nested)


def _dict(nested: dict[str, Any]) -> spaces.Dict:
    return spaces.Dict({key: _dict(part) if isinstance(part, dict) else part for key, part in nested.items()})


def _part(t: spec.Tensor) -> spaces.Space[Any]:
    if t.flags & spec.BINARY:
        return spaces.MultiBinary(t.shape)
    if t.counts or t.n:
        if t.shape in ((), (1,)) and not t.counts:
            return spaces.Discrete(t.n, start=t.start)
        counts = numpy.reshape(t.counts or [t.n] * t.elems, t.shape)
        return spaces.MultiDiscrete(counts, start=numpy.full(t.shape, t.start))
    dtype = {"f16": "f2", "bf16": "f4"}.get(t.dtype, t.dtype.replace("u8", "u1").replace("i8", "i1").replace("i16", "i2").replace("i32", "i4")
                                            .replace("i64", "i8").replace("f32", "f4").replace("f64", "f8").replace("bool", "?"))
    low = numpy.reshape(t.lows, t.shape) if t.lows else -numpy.inf if t.flags & spec.NO_LOW else t.low
    high = numpy.reshape(t.highs, t.shape) if t.highs else numpy.inf if t.flags & spec.NO_HIGH else t.high
    return spaces.Box(low, high, t.shape, numpy.dtype(dtype).type)
