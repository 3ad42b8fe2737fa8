"""rlhost.load: a trained policy that acts in Python."""

from __future__ import annotations

import base64
import json
import math
import os
import pathlib
import tempfile
from typing import Any

import numpy

from . import program
from .answers import ask
from .policy import Policy, PolicySpec, is_module, make, shapes
from .results import TrainedRun
from .spec import EnvSpec


def load(what: TrainedRun | str | os.PathLike[str] = "latest", *, checkpoint: str = "latest", policy: str | None = None,
         dir: str | os.PathLike[str] | None = None, network: type[Policy] | None = None) -> LoadedPolicy:
    """Loads a trained policy: of a run, as train returns it or by its name (``cartpole/3``, ``cartpole`` for its newest run, ``latest``) or
    folder, or a file that ``rlhost export`` wrote (.npz).

    ``checkpoint`` is latest, best or a policy version; ``policy`` the name of one of several; ``dir`` where runs are looked for. ``"best"``
    alone is the best checkpoint of the newest run. The policy is computed with NumPy, and what it computes was compared with the host before.
    A policy of your own is computed by its class, ``network``: files name none, because loading one runs nothing that it says.

    Raises FileNotFoundError or ValueError with the reason and the remedy."""
    if what == "best":
        what, checkpoint = "latest", "best"
    if isinstance(what, TrainedRun):
        what = what.folder
    name = os.fspath(what)
    if name.endswith(".npz"):
        return LoadedPolicy(name, network)
    with tempfile.TemporaryDirectory(prefix="rlhost-policy-") as folder:
        file = os.path.join(folder, "policy.npz")
        words = ["export", name, "--checkpoint", checkpoint, "-o", file]
        if policy is not None:
            words += ["--policy", policy]
        if dir is not None:
            words += ["--runs", os.fspath(dir)]
        program.ask(ValueError, *words)
        loaded = LoadedPolicy(file, network)
    loaded.folder = pathlib.Path(name) if os.path.isdir(name) else None
    return loaded


class LoadedPolicy:
    """A policy that acts. ``about`` has its environment, run and version as texts."""

    def __init__(self, file: str | os.PathLike[str], network: type[Policy] | None = None):
        """Reads a file that rlhost export wrote. Nothing in it is run. network is the class of a policy of your own."""
        from . import rlhost_policy
        self._policy: Any = rlhost_policy.load(os.fspath(file))  # type: ignore[no-untyped-call]
        self.about: dict[str, str] = self._policy.about
        external = next((n["external"] for n in self._policy.network["nodes"] if "external" in n), None)
        if external is not None and network is None:
            raise ValueError(f"the policy {self.about.get('policy', '')} of {self.about.get('run', '')} is one of your own, computed by plugin "
                             f"{external['program']!r}: name its class, rlhost.load(..., network=MyPolicy)")
        if external is None and network is not None:
            raise ValueError(f"network = {network.__name__}, and the policy has a network of the host: leave it out")
        if network is not None:
            self._policy = _Own(self._policy, network)
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


class _Own:
    """A policy of your own, with what is asked of rlhost_policy.Policy."""

    def __init__(self, read: Any, network: type[Policy]):
        about = read.about
        self._read, self.about = read, about
        self._spec = PolicySpec(EnvSpec.unpack(base64.b64decode(about["describe"])))
        self._made = make(network, self._spec, json.loads(about.get("args", "null")) or {})
        want, have = shapes(self._made), {name.partition(".")[2]: a for name, a in read.arrays.items()}
        for name, shape in want.items():
            if name not in have or have[name].size != math.prod(shape):
                raise ValueError(f"{network.__name__} has a parameter {name} of shape {list(shape)}, and the saved policy "
                                 f"{'none of that name' if name not in have else list(have[name].shape)}")
        if extra := [name for name in have if name not in want]:
            raise ValueError(f"the saved policy has a parameter {extra[0]}, and {network.__name__} none of that name")
        if is_module(self._made):
            self._made.eval()  # type: ignore[attr-defined]
        self._made.load_parameters({name: have[name] for name in want})
        self.state_size = self._made.state_size

    def step(self, obs: Any, state: Any, mask: Any, rng: Any) -> tuple[Any, Any]:
        """As rlhost_policy.Policy.step. What is drawn is the policy's, whatever rng is."""
        given, single = self._read.rows_of(obs, self._read.inputs)
        rows = len(next(iter(given.values())))
        entered = {path: given[path].reshape(rows, *t.shape) for path, t in self._spec.obs.items()}
        before = numpy.zeros((rows, self.state_size), numpy.float32) if state is None else numpy.atleast_2d(numpy.asarray(state, numpy.float32))
        masks = mask if isinstance(mask, tuple) else (mask,) + (None,) * (len(self._spec.actions) - 1)
        a = ask(self._made, self._spec, entered, before, [None if m is None else numpy.atleast_2d(m) != 0 for m in masks], rng is None)
        actions: tuple[Any, ...] = tuple(self._placed(i, x) for i, x in enumerate(a.actions))
        if single:
            actions = tuple(int(x[0]) if x.ndim == 1 else x[0] for x in actions)
        return actions if len(actions) > 1 else actions[0], a.state[0] if single else a.state

    def _placed(self, i: int, x: numpy.ndarray) -> numpy.ndarray:
        """An action as the environment reads it."""
        of = self._read.actions[i]
        if not of.box:
            x = x + of.start
            return x[:, 0] if of.discrete else x
        low, high = numpy.array(of.bounds["low"], numpy.float32), numpy.array(of.bounds["high"], numpy.float32)
        if of.bounds.get("rescale"):
            x = low + (x + 1) * numpy.float32(0.5) * (high - low)
        placed: numpy.ndarray = numpy.clip(x, low, high)
        return placed
