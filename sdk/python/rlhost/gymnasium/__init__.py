"""Environments of Gymnasium as environments of rlhost.

    python -m rlhost.gymnasium

is a plugin that works environments for the host: in a pipeline, `env.use = "gymnasium:CartPole-v1"`, and for
environments of one's own `env.use = "gymnasium:package.module:EnvId-v0"`, where the module is imported first. The
table's args go to gymnasium.make as keyword arguments.

Each environment is made by gymnasium.make and stepped by itself, never through the vector entry point that some have:
those draw all environments from one random stream, so that what an environment does would depend on how many there
are and on which worker has it.
"""

from .source import Source, Unusable
from .worker import Worker

__all__ = ["Source", "Unusable", "Worker"]
