"""rlhost for Python: components, environments and queues over memory that they share with a running host.

A plugin is a program that the host starts. A whole one:

    import rlhost

    class Count(rlhost.Component):
        kind = "count_blocks"
        signals = [rlhost.Signal("trajectories", "trajectory")]
        slots = [rlhost.Slot("on_trajectories", "trajectory")]

        def on_trajectories(self, m):
            with self.host.lease(m.handle) as block:
                self.host.stats.gauge("reward", float(block.trajectory.reward.mean()))
            self.host.emit("trajectories", handle=m.handle)

    if __name__ == "__main__":
        rlhost.serve(Count)

Arrays are views of shared memory, never copies: they are valid until their lease or loan ends.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from .version import __version__ as __version__

if TYPE_CHECKING:
    from . import plain as plain
    from ._native import (
        Closed, Error, Exhausted, Foreign, Message, NotCommitted, OutOfRange, Refused, Stale, TimedOut,
    )
    from .arena import Arena, Column, Lease, Loan, Trajectory
    from .channel import Channel
    from .collecting import collect
    from .component import Component, ConfigError, ConfigErrors, Flow, NoSnapshot, Signal, Slot, State, decode
    from .connecting import (
        BadArguments, HandlerError, RequestError, RequestTimeout, Response, UnknownRequest, WorkerLost, Workers, auto_connect, connect,
    )
    from .evaluation import Evaluation, evaluate
    from .handle import handle_arena, handle_block, handle_generation
    from .host import Host, Run, Stats
    from .layout import PolicyLayout
    from .learning import Dataset, Learner, LearnerConfig
    from .network import Network
    from .own import PolicyLearner
    from .payloads import Episode
    from .policies import LoadedPolicy, load
    from .policy import Policy, PolicySpec
    from .program import ProgramError
    from .queue import Queue
    from .recording import RecordingError, record
    from .requests import Ask, Asked, request
    from .results import Interrupted, TrainedRun, TrainedRuns, TrainingError
    from .server import Server
    from .serving import serve
    from .spec import EnvSpec, Tensor
    from .sweeping import Study, sweep
    from .sampling import Sampler, SamplingError, sample
    from .together import Together
    from .training import RlhostWarning, train
    from .vector import VecError, VectorEnv, make_vec

__all__ = [
    "Arena", "Ask", "Asked", "BadArguments", "Channel", "Closed", "Column", "Component", "ConfigError", "ConfigErrors", "Dataset",
    "EnvSpec", "Episode", "Error", "Evaluation", "Exhausted", "Flow", "Foreign", "HandlerError", "Host",
    "Interrupted", "Learner", "LearnerConfig", "Lease", "LoadedPolicy", "Loan", "Message", "Network", "NoSnapshot",
    "NotCommitted", "OutOfRange", "Policy", "PolicyLayout", "PolicyLearner", "PolicySpec", "ProgramError", "Queue",
    "RecordingError", "Refused", "RequestError", "RequestTimeout", "Response", "RlhostWarning", "Run", "Sampler",
    "SamplingError", "Server", "Signal", "Slot", "Stale", "State", "Stats", "Study", "Tensor", "TimedOut", "Together",
    "TrainedRun", "TrainedRuns", "TrainingError", "Trajectory", "UnknownRequest", "VecError", "VectorEnv",
    "WorkerLost", "Workers", "auto_connect", "collect", "connect", "decode", "evaluate", "handle_arena",
    "handle_block", "handle_generation", "load", "make_vec", "record", "request", "sample", "serve", "sweep", "train",
]

# The module of each name, imported on the first use of the name: most modules need the extension module, rlhost.objects
# does not.
_HOME = {name: module for module, names in {
    "_native": "Closed Error Exhausted Foreign Message NotCommitted OutOfRange Refused Stale TimedOut",
    "arena": "Arena Column Lease Loan Trajectory",
    "channel": "Channel",
    "collecting": "collect",
    "component": "Component ConfigError ConfigErrors Flow NoSnapshot Signal Slot State decode",
    "connecting": "BadArguments HandlerError RequestError RequestTimeout Response UnknownRequest WorkerLost Workers auto_connect connect",
    "evaluation": "Evaluation evaluate",
    "handle": "handle_arena handle_block handle_generation",
    "host": "Host Run Stats",
    "layout": "PolicyLayout",
    "learning": "Dataset Learner LearnerConfig",
    "own": "PolicyLearner",
    "payloads": "Episode",
    "policies": "LoadedPolicy load",
    "policy": "Policy PolicySpec",
    "network": "Network",
    "program": "ProgramError",
    "queue": "Queue",
    "recording": "RecordingError record",
    "requests": "Ask Asked request",
    "results": "Interrupted TrainedRun TrainedRuns TrainingError",
    "sampling": "Sampler SamplingError sample",
    "server": "Server",
    "serving": "serve",
    "spec": "EnvSpec Tensor",
    "sweeping": "Study sweep",
    "together": "Together",
    "training": "RlhostWarning train",
    "vector": "VecError VectorEnv make_vec",
}.items() for name in names.split()}


def _extension() -> ModuleType:
    try:
        return import_module("._native", __name__)
    except ModuleNotFoundError as e:
        if e.name != __name__ + "._native":
            raise
    raise ImportError(
        "rlhost: its extension module is missing. It is written in C and built when the package is installed: "
        "pip install ./sdk/python says what that lacks", name=__name__ + "._native")


def __getattr__(name: str) -> Any:
    if name == "_native":
        return _extension()
    if name == "plain":
        return import_module(".plain", __name__)
    module = _HOME.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(_extension() if module == "_native" else import_module("." + module, __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
