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

from ._native import (
    Closed, Error, Exhausted, Foreign, Message, NotCommitted, OutOfRange, Refused, Stale, TimedOut,
)
from .arena import Arena, Column, Lease, Loan, Trajectory
from .component import Component, ConfigError, ConfigErrors, Flow, NoSnapshot, Signal, Slot, State, decode
from .handle import handle_arena, handle_block, handle_generation
from .host import Host, Run, Stats
from .queue import Queue
from .serving import serve
from .spec import EnvSpec, Tensor

__version__ = "1.0.0"

__all__ = [
    "Arena", "Closed", "Column", "Component", "ConfigError", "ConfigErrors", "EnvSpec", "Error", "Exhausted", "Flow",
    "Foreign", "Host", "Lease", "Loan", "Message", "NoSnapshot", "NotCommitted", "OutOfRange", "Queue", "Refused", "Run", "Signal", "Slot", "Stale", "State",
    "Stats", "Tensor", "TimedOut", "Trajectory", "decode", "handle_arena", "handle_block", "handle_generation", "serve",
]
