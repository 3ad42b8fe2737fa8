"""A private store: a host that lives as long as a program needs it."""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
from typing import Any, Iterator

from .. import program as programs
from .errors import HostLost, ObjectError
from .session import ConnectionDescriptor
from .store import Store


class Server:
    """``rlhost store`` as a child of this process, which ends with it, for any reason.

        server = objects.Server(objects.ConnectionDescriptor(port=12345))
        server.start()
        ...                                # Store(ConnectionDescriptor(port=12345)) in any program of this user
        server.stop()                      # and all objects with it

    ``connection`` is where programs connect: a path or a ConnectionDescriptor, by default a private place, which ``path``
    tells. ``with`` starts and stops it."""

    def __init__(self, connection: str | ConnectionDescriptor | None = None, *, memory_mib: int | None = None,
                 program: str | None = None):
        self._private = connection is None
        self.path = connection.path if isinstance(connection, ConnectionDescriptor) else connection or ""
        self._memory = memory_mib
        self._program = program
        self._running: contextlib.ExitStack | None = None

    def start(self) -> None:
        """Starts the server, and returns once it serves. HostLost says why it does not."""
        if self._running is not None:
            raise ObjectError("this server has been started already")
        with contextlib.ExitStack() as stack:
            if self._private:
                folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="rlhost-objects-"))
                self.path = os.path.join(folder, "objects.sock")
            self._begin(stack)
            self._running = stack.pop_all()

    def _begin(self, stack: contextlib.ExitStack) -> None:
        try:
            program = self._program or programs.program()
        except programs.ProgramError as e:
            raise HostLost(str(e)) from None
        command = [program, "store", "--attached", "--socket", self.path]
        if self._memory is not None:
            command += ["--memory", str(self._memory)]
        try:
            child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        except OSError as e:
            raise HostLost("%s: %s: it is named by program=, and without that found where rlhost is installed"
                           % (program, e.strerror)) from None
        stack.enter_context(child)  # closes its input, at which it ends, and waits for it
        assert child.stdout is not None
        if not child.stdout.readline():
            raise HostLost("%s store ended with status %d: its words are on standard error" % (program, child.wait()))

    def stop(self) -> None:
        """Stops the server, with all objects. It may be started again."""
        running, self._running = self._running, None
        if running is not None:
            running.close()

    def __enter__(self) -> Server:
        self.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self.stop()


@contextlib.contextmanager
def serve(path: str | ConnectionDescriptor | None = None, *, memory_mib: int | None = None, program: str | None = None,
          pickle: bool = False) -> Iterator[Store]:
    """Starts a Server, yields a Store connected to it, and stops it at the end, with all objects.

        with objects.serve() as store:
            multiprocessing.Process(target=work, args=(store,)).start()

    ``path`` is where others can connect, by default a private place known only to receivers of the store. ``program`` is
    another rlhost than the one that came with this package, or is on PATH. Raises HostLost if it could not be started."""
    with Server(path, memory_mib=memory_mib, program=program) as server:
        with Store(server.path, pickle=pickle) as store:
            yield store
