"""The plugin: python -m rlhost.pettingzoo."""

from rlhost.gymnasium import Worker
from rlhost.pettingzoo import Batch, Source
from rlhost.serving import serve

if __name__ == "__main__":
    serve(envs=Worker(Source, Batch))
