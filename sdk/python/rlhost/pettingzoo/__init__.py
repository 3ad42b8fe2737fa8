"""Environments of PettingZoo as environments of rlhost, with several agents that one policy plays.

    python -m rlhost.pettingzoo

is a plugin that runs environments for the host: in a pipeline, `env.use = "pettingzoo:package.module"`, whose parallel_env or else
env makes them, or `"pettingzoo:package.module:function"`. The table's args go to that function as keyword arguments.

A step of the host is a step of a parallel environment. Of an AEC environment it is the action of one agent: it alone is active.
"""

from .source import Source
from .batch import Batch

__all__ = ["Batch", "Source"]
