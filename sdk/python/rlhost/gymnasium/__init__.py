"""Environments of Gymnasium as environments of rlhost.

    python -m rlhost.gymnasium

is a plugin that runs environments for the host: in a pipeline, `env.use = "gymnasium:CartPole-v1"`, or `env.use =
"gymnasium:package.module:EnvId-v0"`, which imports the module first, for your own environments. The table's args go to
gymnasium.make as keyword arguments.

Each environment is made by gymnasium.make and stepped by itself, never through a vector entry point: that draws all
environments from one random stream, so an environment would depend on the number of environments and on its worker.
"""

from .batch import Batch
from .source import Source, Unusable
from .worker import Worker

__all__ = ["Batch", "Source", "Unusable", "Worker"]
