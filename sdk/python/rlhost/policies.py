"""rlhost.load: a trained policy that acts in Python."""

from __future__ import annotations

import os
import pathlib
import tempfile
from typing import Any

import numpy

from .program import ask
from .results import TrainedRun


def load(what: TrainedRun | str | os.PathLike[str] = "latest", *, checkpoint: str = "latest", policy: str | None = None,
         dir: str | os.PathLike[str] | None = None) -> Policy:
    """Loads a trained policy: of a run, as train returns it or by its name (``cartpole/3``, ``cartpole`` for its newest run, ``latest``) or
    folder, or a file that ``rlhost export`` wrote (.npz).

    ``checkpoint`` is latest, best or a policy version; ``policy`` the name of one of several; ``dir`` where runs are looked for. ``"best"``
    alone is the best checkpoint of the newest run. The policy is computed with NumPy, and what it computes was compared with the host before.

    Raises FileNotFoundError or ValueError with the reason and the remedy."""
    if what == "best":
        what, checkpoint = "latest", "best"
    if isinstance(what, TrainedRun):
        what = what.folder
    name = os.fspath(what)
    if name.endswith(".npz"):
        return Policy(name)
    with tempfile.TemporaryDirectory(prefix="rlhost-policy-") as folder:
        file = os.path.join(folder, "policy.npz")
        words = ["export", name, "--checkpoint", checkpoint, "-o", file]
        if policy is not None:
            words += ["--policy", policy]
        if dir is not None:
            words += ["--runs", os.fspath(dir)]
        ask(ValueError, *words)
        loaded = Policy(file)
    loaded.folder = pathlib.Path(name) if os.path.isdir(name) else None
    return loaded


class Policy:
    """A policy that acts. ``about`` has its environment, run and version as texts."""

    def __init__(self, file: str | os.PathLike[str]):
        """Reads a file that rlhost export wrote. Nothing in it is run."""
        from . import rlhost_policy
        self._policy: Any = rlhost_policy.load(os.fspath(file))  # type: ignore[no-untyped-call]
        self.about: dict[str, str] = self._policy.about
        self.folder: pathlib.Path | None = None
        self._rng = numpy.random.default_rng()

    def __repr__(self) -> str:
        about = self.about
        return f"<rlhost policy {about.get('policy', '')} of {about.get('run', '')}, version {about.get('policy_version', '')}, for {about.get('env', '')}>"

    @property
    def recurrent(self) -> bool:
        """Whether it keeps a state from step to step."""
        return bool(self._policy.state_size)

    def seed(self, seed: int) -> None:
        """Fixes what predict draws with deterministic=False from now on."""
        self._rng = numpy.random.default_rng(seed)

    def predict(self, obs: Any, state: Any = None, episode_start: Any = None, deterministic: bool = True, mask: Any = None) -> tuple[Any, Any]:
        """Returns the action for an observation, and the state for the next call.

        ``obs`` is what an environment returns, one observation or a batch with an axis of environments first: a number, an array, a dict or a
        tuple, also nested. ``state`` is what the call before returned, None at first; ``episode_start``, a bool or one for each environment,
        begins again where it is true. With ``deterministic=False`` the action is drawn. ``mask`` has a 1 for each legal choice; for several
        actions a tuple, None where an action has none.

        An action is an int of a Discrete space, else an array; of a batch an array of them. Several actions are a tuple, in the order of the
        space's parts."""
        if state is not None and episode_start is not None:
            begins = numpy.asarray(episode_start, bool)
            state = numpy.where(begins[..., None] if begins.ndim else begins, numpy.float32(0), state)
        action, state = self._policy.step(obs, state, mask, None if deterministic else self._rng)
        return action, state if self.recurrent else None

    def act(self, obs: Any, mask: Any = None) -> Any:
        """The most probable action of a policy that keeps no state: predict(obs, mask=mask)[0]."""
        if self.recurrent:
            raise TypeError("this policy keeps a state from step to step: action, state = policy.predict(obs, state)")
        return self.predict(obs, mask=mask)[0]
