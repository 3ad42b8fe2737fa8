"""Threads that share the environments of a batch."""

from __future__ import annotations

import itertools
import queue
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

Jobs: TypeAlias = "queue.SimpleQueue[Callable[[], Any] | None]"  # None ends the thread
Work: TypeAlias = Callable[[Iterator[Any], Callable[[int], None]], None]


class Crew:
    """Threads that do work for environments side by side, the caller's among them. Each takes the next environment that no other has begun, so
    a slow one holds up nothing but itself."""

    def __init__(self, threads: int):
        self._jobs: list[Jobs] = [queue.SimpleQueue() for _ in range(threads - 1)]
        self._over: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.alone = threads == 1  # the caller's is the only one
        for jobs in self._jobs:
            threading.Thread(target=_serve, args=(jobs, self._over), daemon=True).start()
            weakref.finalize(self, jobs.put, None)

    def share(self, work: Work, done: Any, *of_each: Sequence[Any]) -> None:
        """Calls work, in each thread, with an iterator of environments that has the number of each and what of_each has for it, and with what
        work calls after each of them. done[0] grows by 1 for each environment that is done, once all before it are. What work raises is
        raised here once all threads have ended their environment, and no other is begun: of several exceptions that of the first
        environment."""
        if self.alone:
            work(zip(itertools.count(), *of_each), _counted(done))
            return
        order = list(range(len(of_each[0])))
        shared, noted = zip(order, *of_each), _in_order(len(order), done)  # the interpreter's lock keeps a next of zip whole

        def run() -> BaseException | None:
            try:
                work(shared, noted)
            except BaseException as e:
                order.clear()
                return e
            return None

        for jobs in self._jobs:
            jobs.put(run)
        _raise_first([run(), *(self._over.get() for _ in self._jobs)])


class Line:
    """Environments that wait for their step, in order. Threads take the next one as soon as they have ended another; a single one is the
    caller's, and does its work at once."""

    def __init__(self, work: Callable[[int, int], None], threads: int):
        self._work = work
        self._waiting: queue.SimpleQueue[tuple[int, int] | None] = queue.SimpleQueue()
        self._alone = threads == 1
        for _ in range(threads if threads > 1 else 0):
            threading.Thread(target=_take, args=(self._waiting, work), daemon=True).start()
            weakref.finalize(self, self._waiting.put, None)

    def put(self, env: int, t: int) -> None:
        """Has work called for an environment and its step."""
        if self._alone:
            self._work(env, t)
        else:
            self._waiting.put((env, t))


def _take(waiting: queue.SimpleQueue[tuple[int, int] | None], work: Callable[[int, int], None]) -> None:
    while (job := waiting.get()) is not None:
        work(*job)


def _serve(jobs: Jobs, over: queue.SimpleQueue[Any]) -> None:
    while (job := jobs.get()) is not None:
        over.put(job())


def _counted(done: Any) -> Callable[[int], None]:
    def note(env: int) -> None:
        done[0] += 1

    return note


def _in_order(count: int, done: Any) -> Callable[[int], None]:
    """Counts an environment when all before it are done: the host takes the first that is not counted for the one that hangs."""
    finished, lock = [False] * count + [False], threading.Lock()
    following = 0

    def note(env: int) -> None:
        nonlocal following
        with lock:
            finished[env] = True
            while finished[following]:
                following += 1
                done[0] += 1

    return note


def _raise_first(raised: Iterable[BaseException | None]) -> None:
    """Raises the exception of the first environment, where there is one."""
    found = [e for e in raised if e is not None]
    if found:
        raise min(found, key=lambda e: getattr(e, "env", -1))
