"""A private store: a host that lives as long as a program needs it."""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
from typing import Iterator

from .errors import HostLost
from .store import Store


@contextlib.contextmanager
def serve(path: str | None = None, *, memory_mib: int | None = None, program: str = "rlhost") -> Iterator[Store]:
    """Starts ``rlhost store`` as a child, yields a Store connected to it, and stops it at the end, with all objects.

        with objects.serve() as store:
            multiprocessing.Process(target=work, args=(store,)).start()

    ``path`` is where others can connect, by default a private place known only to receivers of the store. The child
    also ends when this process does, for any reason. Raises HostLost if it could not be started."""
    with contextlib.ExitStack() as stack:
        if path is None:
            path = os.path.join(stack.enter_context(tempfile.TemporaryDirectory(prefix="rlhost-objects-")), "objects.sock")
        command = [program, "store", "--attached", "--socket", path]
        if memory_mib is not None:
            command += ["--memory", str(memory_mib)]
        try:
            child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        except OSError as e:
            raise HostLost("%s: %s: install rlhost where PATH finds it, or say program=" % (program, e.strerror)) from None
        stack.enter_context(child)  # closes its input, at which it ends, and waits for it
        assert child.stdout is not None
        if not child.stdout.readline():
            raise HostLost("%s ended with status %d: its words are on standard error"
                           % (" ".join(command[:2]), child.wait()))
        with Store(path) as store:
            yield store
