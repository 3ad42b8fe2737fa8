"""An environment that forks."""

import multiprocessing
import os
import subprocess
import sys

import gymnasium
import numpy

FORKS = 20  # of each constructor: a handler of forks that crashes does so in some


def echo(connection, parent):
    while os.getppid() == parent:  # a host kills what its processes leave behind; the tests' own host does not
        if connection.poll(1):
            connection.send(connection.recv())


def fork():
    """Forks a child, and a program; both have to live to their ends."""
    child = os.fork()
    if child == 0:
        os._exit(7)
    status = os.waitpid(child, 0)[1]
    if os.waitstatus_to_exitcode(status) != 7:
        raise RuntimeError(f"a forked child ended with status {status}")


class Forking(gymnasium.Env):
    """Observes what a forked process says, which is made with it, and forks others in its constructor and its steps."""

    observation_space = gymnasium.spaces.Box(-1e6, 1e6, (), numpy.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self):
        for _ in range(FORKS):
            fork()
        subprocess.run([sys.executable, "-S", "-c", ""], check=True)
        forking = multiprocessing.get_context("fork")
        self.echo, theirs = forking.Pipe()
        self.child = forking.Process(target=echo, args=(theirs, os.getpid()), daemon=True)
        self.child.start()

    def observe(self):
        self.echo.send(self.count)
        if not self.echo.poll(60):
            raise RuntimeError(f"the child says nothing; its exit code is {self.child.exitcode}")
        return numpy.float32(self.echo.recv())

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.count = 0
        return self.observe(), {}

    def step(self, action):
        self.count += 1
        fork()
        return self.observe(), 1.0, False, False, {}

    def close(self):
        self.child.kill()
        self.child.join()
