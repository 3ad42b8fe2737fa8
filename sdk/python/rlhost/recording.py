"""rlhost.record: a video of a policy that plays."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium
import numpy

from . import pipelines
from .evaluation import Evaluation, episode
from .policies import LoadedPolicy, load
from .program import environment, program
from .results import TrainedRun

_FPS = 30  # of environments that do not say how fast they are


class RecordingError(RuntimeError):
    """A video that cannot be made: the text says why, and what helps."""


def record(policy: LoadedPolicy | TrainedRun | str, env: pipelines.Env, file: str | os.PathLike[str], episodes: int = 3, *, deterministic: bool = True,
           seed: int = 1, fps: float | None = None, max_steps: int = 10_000, args: Mapping[str, Any] | None = None,
           wrap: Sequence[Mapping[str, Any]] | None = None, camera: int = 0) -> Evaluation:
    """Plays episodes with a policy and writes what is seen into a file, one episode after the other. Returns how they went.

    ``env`` is an id of Gymnasium with ``args`` for gymnasium.make, or what makes an environment: it draws in the render mode rgb_array. Or it
    is a module that draws, as make_vec takes it, with ``wrap``, seen by one of its cameras. The ending of ``file`` says what it becomes: .gif or
    .png, which move and need nothing, or .mp4, .mkv, .mov or .webm, which take ffmpeg (``pip install imageio-ffmpeg``). ``fps`` is how many
    pictures a second it shows, one for each step; unless given, as many as the environment says, else 30. Episode i is reset with seed + i, and
    is left after ``max_steps``.

    Raises RecordingError, and leaves no file then."""
    with contextlib.ExitStack() as after:
        film = _Film(os.fspath(file), fps)
        after.callback(film.abort)
        if not isinstance(policy, LoadedPolicy):
            policy = load(policy)
        policy.seed(seed)
        made = _drawing(env, args, wrap, camera)
        after.callback(made.close)
        played = [episode(policy, made, seed + i, deterministic, max_steps, film.show) for i in range(episodes)]
        film.close()
    return Evaluation([total for total, _ in played], [length for _, length in played])


def _drawing(env: pipelines.Env, args: Mapping[str, Any] | None, wrap: Sequence[Mapping[str, Any]] | None,
             camera: int) -> gymnasium.Env[Any, Any]:
    """One environment that draws."""
    name = env if isinstance(env, str) else getattr(env, "__name__", repr(env))
    use = "" if callable(env) else pipelines.use(env)
    if not callable(env) and not use.startswith("gymnasium:"):
        from .single import Single
        return Single(use, args, wrap, camera)
    if wrap:
        raise TypeError("wrap is for modules: an environment of Gymnasium is wrapped in its own program, by args={'gym_wrap': […]} or in a function "
                        "that makes it")
    given = {**(args or {}), "render_mode": "rgb_array"}
    try:
        if callable(env):
            made: gymnasium.Env[Any, Any] = env(**given)
        else:
            from .gymnasium.source import Maker
            made = Maker(use.partition(":")[2], given).make()
    except Exception as e:  # what makes it may raise anything
        raise RecordingError(f"{name} cannot be made with render_mode=\"rgb_array\": {type(e).__name__}: {e}") from e
    if made.render_mode != "rgb_array":
        made.close()
        raise RecordingError(f"{name} does not draw: its render_mode is {made.render_mode!r}, want \"rgb_array\", and render() that returns the pixels. "
                             f"It knows {made.metadata.get('render_modes') or 'no modes'}")
    return made


class _Film:
    """A file of pictures, which the program rlhost encodes."""

    def __init__(self, file: str, fps: float | None):
        self._file, self._fps = file, fps
        self._ffmpeg = _ffmpeg()
        self._shape: tuple[int, ...] = ()
        self._count = 0
        self._child: subprocess.Popen[bytes] | None = None
        self._words = tempfile.TemporaryFile()
        try:
            self._start(1, 1, "--check")
            self._ended()
        except BaseException:
            self.abort()
            raise

    def _start(self, width: int, height: int, *words: str) -> subprocess.Popen[bytes]:
        command = [program(), "video", self._file, "--width", str(width), "--height", str(height), *self._ffmpeg, *words]
        self._child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=self._words, env=environment(),
                                       start_new_session=True)
        return self._child

    def show(self, env: gymnasium.Env[Any, Any]) -> None:
        """Adds what an environment draws now."""
        drawn = env.render()  # type: ignore[func-returns-value,unused-ignore]
        picture = drawn if isinstance(drawn, numpy.ndarray) else numpy.asarray(drawn)
        if picture.ndim != 3 or picture.shape[2] not in (3, 4) or picture.dtype != numpy.uint8:
            raise RecordingError(f"render() of {env.unwrapped} returned {type(drawn).__name__} of shape {picture.shape} and type {picture.dtype}: want "
                                 "uint8 of [height, width, 3]")
        if self._child is None:
            self._shape = picture.shape
            rate = self._fps or env.metadata.get("render_fps") or _FPS
            self._start(picture.shape[1], picture.shape[0], "--fps", str(rate))
        elif picture.shape != self._shape:
            raise RecordingError(f"picture {self._count} is {picture.shape[1]} × {picture.shape[0]}, and the first one {self._shape[1]} × {self._shape[0]}: "
                                 "all have one size")
        assert self._child and self._child.stdin
        try:
            self._child.stdin.write(picture[:, :, :3].tobytes())
        except BrokenPipeError:
            self._ended()
        self._count += 1

    def close(self) -> None:
        """Completes the file."""
        if self._child is None:
            raise RecordingError("no episodes were played: there are no pictures")
        self._ended()

    def _ended(self) -> None:
        """Waits for the program, and raises what it says where it failed."""
        child, self._child = self._child, None
        assert child and child.stdin
        try:
            child.stdin.close()
        except BrokenPipeError:
            pass  # it says why
        if child.wait() != 0:
            self._words.seek(0)
            raise RecordingError(self._words.read().decode(errors="replace").strip().removeprefix("rlhost: ") or
                                 f"the program that encodes ended with status {child.returncode}")

    def abort(self) -> None:
        """Gives up a file that is not complete. Part of a picture tells the program to remove what it has written."""
        if self._child and self._child.stdin:
            try:
                self._child.stdin.write(b"0")
                self._child.stdin.close()
            except BrokenPipeError:
                pass
            self._child.wait()
            self._child = None
        self._words.close()


def _ffmpeg() -> list[str]:
    """The flag for the ffmpeg that a package of Python brings, where none is on PATH."""
    if shutil.which("ffmpeg"):
        return []
    try:
        import imageio_ffmpeg  # type: ignore[import-not-found,import-untyped,unused-ignore]
        return ["--ffmpeg", imageio_ffmpeg.get_ffmpeg_exe()]
    except (ImportError, RuntimeError):
        return []
