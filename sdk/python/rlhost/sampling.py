"""rlhost.sample: the trajectories of a graph, with or without a learner."""

from __future__ import annotations

import itertools
import json
import os
import pathlib
import queue
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any

from . import _native, pipelines, relay
from .arena import Lease, Trajectory
from .component import Component, Slot
from .control import Server
from .program import ask, environment, feed, program
from .results import TrainedRun
from .serving import PROTOCOL, Plugin
from .training import told

RANDOM = "random"


class SamplingError(RuntimeError):
    """The graph could not be run, or has failed; the text says why."""


def sample(policy: TrainedRun | str | os.PathLike[str], env: pipelines.Env | None = None, *, rows: int = 64, envs: int = 64, seed: int = 1,
           workers: int | None = None, args: Mapping[str, Any] | None = None, wrap: Sequence[Mapping[str, Any]] | None = None,
           keys: Mapping[str, Any] | None = None, port: str = "rollout.trajectories") -> Sampler:
    """Steps environments with a policy in a process of the host, and returns the trajectories one after the other.

        with rlhost.sample("cartpole/3", rows=64) as batches:
            for batch in batches:
                learn(batch.obs, batch.action, batch.log_prob, batch.value, batch.reward, batch.terminated)

    ``policy`` is a run whose newest weights act, as train returns it or by its name or folder; "random" for random actions; or a pipeline file
    (.toml), whose trajectories of ``port`` are returned. Where that has a learner it trains meanwhile. ``env`` is what train takes, by default
    the run's own; ``workers``, ``args`` and ``wrap`` are its keys, and ``keys`` are any other keys by their dotted names.

    A batch is a Trajectory, with arrays [rows, environments, ...]. They are views of shared memory and end with the next batch: copy what is
    kept. While this process works on one the next ones are made, until all blocks are full.

    Iterating raises SamplingError. The end of the with block, or close, ends the process."""
    keys = dict(keys or {})
    own = policy.folder if isinstance(policy, TrainedRun) else policy
    if os.fspath(own).endswith(".toml"):
        if env is not None:
            raise TypeError(f"{policy} has its own environments: change them by keys=")
        return Sampler(f"rlhost = 1\nextends = {pipelines.toml(os.path.abspath(own))}\n", keys, port)
    used = None if env is None else pipelines.table("env.env", {"use": pipelines.use(env), "workers": workers, "args": args, "wrap": wrap})
    folder = None
    if own == RANDOM:
        if used is None:
            raise TypeError('say which environment acts at random: rlhost.sample("random", "CartPole-v1")')
        source = used + '[component.act]\nkind = "random"\nloop = "rollout"\n'
    else:
        source, folder = _trained(os.fspath(own), used)
    apart = '"gymnasium:' in source or '"pettingzoo:' in source  # in processes, which step one half while the policy acts for the other
    source += pipelines.table("component.rollout", {"kind": "rollout", "env": "env", "envs": envs, "horizon": rows, "splits": 2 if apart else 1,
                                                    "blocks": 4, "loop": "rollout"})
    source += _wire("rollout.obs_ready", "act.act") + _wire("act.actions", "rollout.on_actions")
    return Sampler(f"rlhost = 1\n\n[run]\nseed = {int(seed)}\n\n" + source, keys, port, folder)


def _trained(run: str, env: str | None) -> tuple[str, str]:
    """The environment, policy and inference of a run, and its folder, to which its paths are relative."""
    found = re.search(r"^folder +(.+)$", ask(ValueError, "show", run), re.MULTILINE)
    if found is None:
        raise ValueError(f"{run} is no run")
    folder = os.path.abspath(found[1])
    text = pathlib.Path(folder, "pipeline.toml").read_text(encoding="utf-8")
    leads = json.loads(pathlib.Path(folder, "run.json").read_text(encoding="utf-8")).get("policy") or "main"
    policy = _section(text, f"policy.{leads}")
    its = re.search(r'^env = "(.*)"$', policy, re.MULTILINE)
    assert its
    env = env or "[env.env]\n" + _section(text, f"env.{its[1]}")
    policy = policy.replace(its[0], f'env = "env"\nfrom = {pipelines.toml(folder)}')
    return (env + "[policy.main]\n" + policy + '[component.act]\nkind = "inference"\npolicy = "main"\nloop = "rollout"\n\n'
            '[component.weights]\nkind = "frozen"\npolicy = "main"\nloop = "rollout"\n' + _wire("weights.weights", "act.on_weights")), folder


def _section(text: str, name: str) -> str:
    """The keys of a table of a run's pipeline, which has an empty line behind each."""
    return text.partition(f"\n[{name}]\n")[2].partition("\n\n")[0] + "\n\n"


def _wire(signal: str, slot: str) -> str:
    return f'\n[[wire]]\nsignal = "{signal}"\nslot = "{slot}"\n\n'


class Sampler(Iterator[Trajectory]):
    """Trajectories, made by sample."""

    def __init__(self, source: str, keys: Mapping[str, Any], port: str, folder: str | None = None):
        self._ready: queue.SimpleQueue[Lease | None] = queue.SimpleQueue()
        self._lease: Lease | None = None
        self._plugins: list[Plugin] = []
        self._closing = False
        self._folder = tempfile.TemporaryDirectory(prefix="rlhost-sample-")
        path = os.path.join(self._folder.name, "relay")
        source += pipelines.table("plugin.sampler", {"path": relay.__file__, "interpreter": [sys.executable, "-S"], "args": [path], "stall": "0s"})
        source += '[component.sampler]\nplugin = "sampler"\n' + _wire(port, "sampler.on_trajectories")
        keys = {"run.name": "sample", "run.dir": self._folder.name, **keys}
        command = [program(), *(["-C", folder] if folder else []), "--log", "json", "run", "-", "--json", "--attached", str(os.getpid())]
        for key, value in keys.items():
            command += ["--set", f"{key}={pipelines.toml(value)}"]
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(path)
        self._listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()
        self._words = tempfile.TemporaryFile()
        self._child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=self._words, env=environment(),
                                       start_new_session=True)
        feed(self._child, source)
        threading.Thread(target=self._await, daemon=True).start()

    def __next__(self) -> Trajectory:
        self._release()
        if self._closing:
            raise StopIteration
        lease = self._ready.get()
        if lease is None:
            self._end()
            raise StopIteration
        self._lease = lease
        return lease.trajectory

    def __enter__(self) -> Sampler:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Ends the process. The last batch must not be used any more."""
        self._release()
        if self._closing:
            return
        self._closing = True
        self._child.send_signal(signal.SIGTERM)
        self._finish()

    def _release(self) -> None:
        lease, self._lease = self._lease, None
        if lease is not None:
            lease.release()

    def _end(self) -> None:
        """Raises what ended the process, if it was no rule."""
        self._closing = True
        self._finish()
        self._words.seek(0)
        records = [json.loads(line) for line in self._words if line.startswith(b"{")]
        if self._child.returncode != 0:
            errors = "\n".join(told(r) for r in records if r["level"] == "ERROR")
            raise SamplingError(errors or f"the host's process ended with status {self._child.returncode}")

    def _finish(self) -> None:
        for plugin in list(self._plugins):
            plugin.end()
        self._child.wait()
        self._listener.close()
        self._folder.cleanup()

    # On other threads.

    def _await(self) -> None:
        self._child.wait()
        self._ready.put(None)

    def _accept(self) -> None:
        """Serves a plugin for each process that the host starts: one that is asked what it has, and one that runs."""
        for number in itertools.count():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return  # closed
            threading.Thread(target=self._serve, args=(connection, number), daemon=True).start()

    def _serve(self, connection: socket.socket, number: int) -> None:
        with connection:
            folder, files, _, _ = socket.recv_fds(connection, 4096, len(relay.FILES))
            out, *link = files
            ready = self._ready

            class Taker(Component):
                """Gives trajectories to who iterates."""

                kind = "sampler"
                slots = [Slot("on_trajectories", "trajectory", "a full block")]

                def on_trajectories(self, m: _native.Message) -> None:
                    ready.put(self.host.lease(m.handle))

            plugin = Plugin((Taker,), None, (link[0], link[1], link[2]))
            self._plugins.append(plugin)
            server = Server(plugin.call, plugin.end, os.path.join(os.fsdecode(folder), f"sampler{os.getpid()}-{number}"))
            os.write(out, f"1|{PROTOCOL}|unix|{server.path}|grpc|\n".encode())
            os.close(out)
            try:
                plugin.run()
            finally:
                server.stop()
                self._plugins.remove(plugin)
