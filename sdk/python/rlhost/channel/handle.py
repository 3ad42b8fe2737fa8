"""What ``async_op=True`` returns."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Generator
from typing import Any, Generic, TypeVar

from .connection import Call, Connection
from .errors import Canceled, ChannelError
from .wire import BATCH, CANCEL, GET

T = TypeVar("T")


class Handle(Generic[T]):
    """A call under way. ``wait`` and ``await`` return what the call would have returned, or raise its error. Where nobody takes the result, its items
    are put back: by ``cancel``, by the end of the task that awaits it, or with the handle itself."""

    def __init__(self, connection: Connection, call: Call, result: Callable[[Call], T]):
        self._connection = connection
        self._call = call
        self._make: Callable[[Call], T] | None = result
        self._result: T | None = None
        self._error: BaseException | None = None
        self._lock = threading.Lock()

    @property
    def done(self) -> bool:
        """Whether the call has ended."""
        if not self._call.done and self._connection.lost is None:
            self._connection.drain()
        return self._call.done

    def wait(self, timeout: float | None = None) -> T:
        """Waits for the end of the call. A TimeoutError says that it is still under way then; the handle can be waited for again."""
        if not self._connection.wait(self._call, timeout):
            raise TimeoutError(f"the call was still under way after {timeout} s")
        return self._take()

    def _take(self) -> T:
        with self._lock:
            if self._make is not None:
                make, self._make = self._make, None
                try:
                    if self._call.failed is not None:
                        raise self._call.failed
                    self._result = make(self._call)
                except Exception as e:
                    self._error = e
            if self._error is not None:
                raise self._error
            return self._result  # type: ignore[return-value]

    def cancel(self) -> bool:
        """Ends the call. False: it had ended before, and its result can be had."""
        if self._call.done:
            return isinstance(self._call.failed, Canceled)
        self._connection.cancel(self._call)
        self._connection.wait(self._call)
        return isinstance(self._call.failed, Canceled)

    async def async_wait(self) -> T:
        """Waits without holding the event loop. Where the task is canceled, so is the call."""
        if self._call.done:
            return self._take()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()

        def wake() -> None:
            if not future.done():
                future.set_result(None)

        def tell() -> None:
            try:
                loop.call_soon_threadsafe(wake)
            except RuntimeError:
                pass  # the loop has been closed, and nobody waits

        _watch(loop, self._connection)
        try:
            self._connection.when_done(self._call, tell)
            await future
        except asyncio.CancelledError:
            with self._lock:
                taken, self._make = self._make is None, None
                self._error = Canceled("the call was canceled")
            if not taken:
                self._connection.abandon(self._call)
            raise
        finally:
            _unwatch(loop, self._connection)
        return self._take()

    def __await__(self) -> Generator[Any, None, T]:
        return self.async_wait().__await__()

    def __del__(self) -> None:
        if getattr(self, "_make", None) is not None:
            self._make = None
            _forget(self._connection, self._call)


def _forget(connection: Connection, call: Call) -> None:
    """Leaves a call whose handle is gone to the next request, since a finalizer must not lock; if it still waits, it ends now."""
    if call.op in (GET, BATCH) and connection.lost is None:
        connection.forgotten.append(call)
        if not call.done:
            connection.post(CANCEL, call.seq)


def _watch(loop: asyncio.AbstractEventLoop, connection: Connection) -> None:
    """Lets an event loop read while it waits for a call."""
    watching = connection.loops.get(loop, 0)
    connection.loops[loop] = watching + 1
    if not watching:
        loop.add_reader(connection.socket.fileno(), _pump, connection)


def _pump(connection: Connection) -> None:
    try:
        connection.drain()
    except ChannelError:
        pass  # it has ended all calls, which tell


def _unwatch(loop: asyncio.AbstractEventLoop, connection: Connection) -> None:
    connection.loops[loop] -= 1
    if not connection.loops[loop]:
        del connection.loops[loop]
        if connection.socket.fileno() >= 0:
            loop.remove_reader(connection.socket.fileno())
