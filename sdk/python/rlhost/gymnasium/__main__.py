"""The plugin: python -m rlhost.gymnasium."""

from rlhost.gymnasium import Worker
from rlhost.serving import serve

if __name__ == "__main__":
    serve(envs=Worker())
