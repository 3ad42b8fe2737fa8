"""Clients of what answers requests: the components of a run, and servers of one's own."""

from __future__ import annotations

import contextlib
import dataclasses
import fnmatch
import hashlib
import json
import pathlib
import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from .names import Names, NamesError
from .program import ask
from .sockets import Connection, Connections, service_path

RUNS, SERVERS = "rlhost/runs", "rlhost/servers"  # where names are registered


class RequestError(Exception):
    """A request that has no answer; ``code`` has a page in ``rlhost explain``."""

    def __init__(self, worker: str, error: Mapping[str, Any]):
        self.worker, self.code, self.reason = worker, str(error["code"]), str(error["reason"])
        self.help, self.type, self.place = str(error.get("help", "")), str(error.get("type", "")), str(error.get("place", ""))
        text = f"{self.type}: {self.reason}" if self.type else self.reason
        super().__init__(f"{worker + ': ' if worker else ''}{self.code}: {text}" + (f" ({self.place})" if self.place else "")
                         + (f"; {self.help}" if self.help else ""))


class UnknownRequest(RequestError, LookupError):
    """There is no such worker, or it does not answer this request."""


class BadArguments(RequestError, TypeError):
    """The arguments do not fit the request."""


class HandlerError(RequestError):
    """The handler has failed: ``type``, ``reason`` and ``place`` are of its exception."""


class RequestTimeout(RequestError, TimeoutError):
    """There was no answer in time. The handler may still run."""


class WorkerLost(RequestError, ConnectionError):
    """The worker is not there, or ended before it answered."""


_ERRORS: dict[str, type[RequestError]] = {
    "E070": WorkerLost, "E080": WorkerLost, "E125": WorkerLost, "E071": UnknownRequest, "E120": UnknownRequest, "E121": BadArguments,
    "E122": HandlerError, "E123": RequestTimeout, "E124": HandlerError}


def _error(worker: str, error: Mapping[str, Any]) -> RequestError:
    return _ERRORS.get(error["code"], RequestError)(worker, error)


@dataclasses.dataclass(frozen=True)
class Response:
    """The answer of one worker to a request of several."""

    worker_name: str
    result: Any = None
    timed_out: bool = False
    error: RequestError | None = None


class Endpoint:
    """A socket behind which there are workers: all components of a run, or a server."""

    def __init__(self, path: str, prefix: str = "", server: str = ""):
        self.path, self.prefix, self.server = path, prefix, server
        self.connections = Connections(self._connect)

    def _connect(self) -> Connection:
        what = f"the server {self.server}" if self.server else "the run"
        return Connection(self.path, lambda e: _error(self.server, e), f"{what} is not there: nobody listens at {self.path}", f"{what} has ended")

    def name(self, component: str) -> str:
        return self.server or self.prefix + component

    def component(self, worker: str) -> str | None:
        """What a worker is called there; None where it is not there."""
        if self.server:
            return worker if worker == self.server else None
        return worker[len(self.prefix):] if worker.startswith(self.prefix) else None

    def ask(self, request: dict[str, Any], timeout: float) -> Any:
        if not timeout > 0:
            raise ValueError(f"a timeout of {timeout} s, want more than 0")
        # Errors that the other end answers leave the connection as it is, but for its end.
        usable: Callable[[Exception], bool] = lambda e: isinstance(e, RequestError) and not isinstance(e, WorkerLost)
        try:
            return self.connections.ask("request", {**request, "deadline_seconds": timeout}, usable, timeout + _GRACE)
        except TimeoutError:
            raise _error(self.server, {"code": "E123", "reason": f"no answer in {timeout:g} s"}) from None
        except OSError as e:
            if isinstance(e, RequestError):
                raise
            raise _error(self.server, {"code": "E080", "reason": str(e)}) from None

    def states(self) -> dict[str, str]:
        """The status of each worker there."""
        reply = self.connections.ask("status", {}, timeout=30.0)
        return {self.name(c["name"]): _STATES.get(c["state"], c["state"].upper()) for c in reply["components"]}


_GRACE = 5.0  # seconds that an answer may take beyond the time of its request
_STATES = {"stalled": "RUNNING", "replacing": "RUNNING"}


class Workers:
    """Workers that answer requests, by their names. Any thread. It may be used as a context."""

    def __init__(self, endpoints: Sequence[Endpoint], folder: pathlib.Path | None = None):
        self._endpoints = list(endpoints)
        self._folder = folder  # of the one run that they are of
        self._known: dict[str, str] = {}  # the newest states
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the connections, once requests under way have ended."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool:
            pool.shutdown()
        for e in self._endpoints:
            e.connections.close()

    def requests(self, timeout: float = 30.0) -> dict[str, list[dict[str, Any]]]:
        """By worker, the requests that it answers: name, doc and args."""
        found = {}
        for e in self._endpoints:
            for offer in e.ask({}, timeout).get("offers") or []:
                found[e.name(offer["name"])] = offer["requests"] or []
        return found

    def names(self) -> list[str]:
        """The names of all workers."""
        return list(self.requests())

    def request(self, worker: str, command: str, /, timeout: float = 30.0, **args: Any) -> Any:
        """Asks one worker and returns its answer. Raises a RequestError.

        A component that has several instances is several workers: rollout[0], rollout[1]."""
        endpoint, component = self._find(worker)
        reply = endpoint.ask({"patterns": [component], "name": command, "args": args}, timeout)
        answers = reply["answers"]
        if len(answers) != 1:
            raise _error(worker, {"code": "E079", "reason": f"names {len(answers)} workers: " + ", ".join(endpoint.name(a["name"]) for a in answers)})
        return _result(endpoint.name(answers[0]["name"]), answers[0])

    def async_request(self, worker: str, command: str, /, timeout: float = 30.0, **args: Any) -> Future[Any]:
        """Asks one worker on another thread; the future has its answer. Requests that are under way at the same time may overtake each other."""
        return self._threads().submit(self.request, worker, command, timeout, **args)

    def group_request(self, command: str, /, worker_names: Iterable[str] | None = None, worker_regex: str | None = None,
                      timeout: float = 30.0, worker_kwargs: Mapping[str, Mapping[str, Any]] | Sequence[Mapping[str, Any]] | None = None,
                      wait_response: bool = True, raises: bool = True, **args: Any) -> list[Response]:
        """Asks several workers at the same time, with one deadline: those named, or those whose whole name matches a regular expression, or
        all that answer the request. worker_kwargs has arguments for single workers, by name or in the order of worker_names.

        The first failure is raised; with raises=False it is the error of its Response. A worker that is late is none: timed_out says so.
        Without wait_response nothing is waited for, and the list is empty."""
        if not wait_response:
            self._threads().submit(self.group_request, command, worker_names, worker_regex, timeout, worker_kwargs, True, False, **args)
            return []
        names = self._chosen(worker_names, worker_regex, timeout)
        each = _each(names, worker_kwargs)
        asked = [(e, q) for e in self._endpoints if (q := _question(e, command, names, each, args)) is not None]
        if len(asked) == 1:
            replies = [asked[0][0].ask(asked[0][1], timeout)]
        else:
            replies = list(self._threads().map(lambda x: _perhaps(x[0], x[1], timeout), asked))
        found = [_response(e, a) for (e, _), reply in zip(asked, replies) for a in reply["answers"]]
        if names is not None:
            at = {r.worker_name: r for r in found}
            if gone := [n for n in names if n not in at]:
                raise _error("", {"code": "E071", "reason": f"no worker is called {', '.join(gone)}"})
            found = [at[n] for n in names]
        failed = next((r.error for r in found if r.error and not r.timed_out), None)
        if raises and failed:
            raise failed
        return found

    def connect(self, signal: str, slot: str, *, mode: str = "", depth: int = 0, on_full: str = "", write: Sequence[str] = ()) -> list[str]:
        """Puts a wire into the running pipeline, from WORKER.SIGNAL to WORKER.SLOT; * is each worker that has the port. mode, depth, on_full
        and write are those of a wire in a file, and so are the checks. Returns what has changed, a line each; the next ``rlhost reload`` takes
        it back unless the file has it. Raises a RequestError."""
        options = {"mode": mode, "depth": depth, "on_full": on_full, "write": list(write)}
        return self._rewire("connect", signal, slot, {k: v for k, v in options.items() if v})

    def disconnect(self, signal: str, slot: str) -> list[str]:
        """Takes the wire between two ports out of the running pipeline. Messages that wait in it are counted as dropped."""
        return self._rewire("disconnect", signal, slot, {})

    def _rewire(self, verb: str, signal: str, slot: str, options: dict[str, Any]) -> list[str]:
        endpoint, wire = self._endpoints[0], {}
        for key, port in (("signal", signal), ("slot", slot)):
            worker, _, name = port.rpartition(".")
            found = next((e for e in self._endpoints if worker != "*" and e.component(worker) is not None), endpoint)
            if found is not endpoint and "signal" in wire:
                raise _error(worker, {"code": "E079", "reason": f"{signal} and {slot} are of two runs"})
            endpoint = found
            wire[key] = f"{endpoint.component(worker) or worker}.{name}"
        if endpoint.server:
            raise _error(endpoint.server, {"code": "E071", "reason": "is a server, which has no signals and slots"})
        reply = endpoint.connections.ask("rewire", {verb: [{**wire, **options}]})
        return [f"{c['name']}: {c['text']}" for c in reply.get("changes") or []]

    def status(self, pattern: str = "*") -> dict[str, str]:
        """READY, RUNNING, PAUSED, COMPLETED, ERROR, LOST or INTERRUPTED of each worker whose name matches: * is any number of characters, ? one.

        After a run has ended it is how that ended, for all components that were seen before."""
        states: dict[str, str] = {}
        for e in self._endpoints:
            try:
                states |= e.states()
            except (RequestError, OSError):
                ended = _ended(self._folder)
                states |= {n: ended for n in self._known if e.component(n) is not None} or {e.name("*"): ended}
        with self._lock:
            self._known |= states
        return {n: s for n, s in states.items() if fnmatch.fnmatchcase(n, pattern.replace("[", "[[]"))}

    def _find(self, worker: str) -> tuple[Endpoint, str]:
        for e in self._endpoints:
            component = e.component(worker)
            if component is not None:
                return e, component
        raise _error(worker, {"code": "E071", "reason": "there is no such worker", "help": "there are " + ", ".join(self.names())})

    def _chosen(self, names: Iterable[str] | None, regex: str | None, timeout: float) -> list[str] | None:
        if names is None and regex is None:
            return None
        chosen = list(names) if names is not None else [n for n, offers in self.requests(timeout).items()]
        if regex is not None:
            chosen = [n for n in chosen if re.fullmatch(regex, n)]
            if not chosen:
                raise _error("", {"code": "E071", "reason": f"no worker's name matches {regex}", "help": "there are " + ", ".join(self.names())})
        return chosen

    def _threads(self) -> ThreadPoolExecutor:
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(32, "rlhost requests")
            return self._pool


def _each(names: list[str] | None, given: Mapping[str, Mapping[str, Any]] | Sequence[Mapping[str, Any]] | None) -> dict[str, Any]:
    if given is None:
        return {}
    if isinstance(given, Mapping):
        return dict(given)
    if names is None or len(names) != len(given):
        raise ValueError(f"worker_kwargs has {len(given)} entries, and there are {len(names or [])} worker_names")
    return dict(zip(names, given))


def _question(e: Endpoint, command: str, names: list[str] | None, each: dict[str, Any], args: dict[str, Any]) -> dict[str, Any] | None:
    """The part of a request for the workers of an endpoint; None where none of them is meant."""
    question: dict[str, Any] = {"name": command, "args": args}
    if names is not None:
        question["patterns"] = [c for n in names if (c := e.component(n)) is not None]
        if not question["patterns"]:
            return None
    own = {c: v for n, v in each.items() if (c := e.component(n)) is not None}
    return question | ({"each": own} if own else {})


def _perhaps(e: Endpoint, question: dict[str, Any], timeout: float) -> Any:
    """The reply of one of several endpoints. One that has gone, or whose workers do not answer the request, answers with that error."""
    try:
        return e.ask(question, timeout)
    except RequestError as err:
        if err.code == "E120" and "patterns" not in question:
            return {"answers": []}
        error = {"code": err.code, "reason": err.reason, "help": err.help}
        return {"answers": [{"name": c, "error": error, "timed_out": err.code == "E123"} for c in question.get("patterns") or [e.server or "*"]]}


def _result(worker: str, answer: Mapping[str, Any]) -> Any:
    if error := answer.get("error"):
        raise _error(worker, error)
    return answer.get("reply")


def _response(e: Endpoint, answer: Mapping[str, Any]) -> Response:
    worker = e.name(answer["name"])
    error = answer.get("error")
    return Response(worker, answer.get("reply"), bool(answer.get("timed_out")), _error(worker, error) if error else None)


def _ended(folder: pathlib.Path | None) -> str:
    """How a run has ended, as its folder says."""
    if folder is None:
        return "LOST"
    with contextlib.suppress(OSError, ValueError):
        info = json.loads((folder / "run.json").read_text())
        if info.get("state") == "ended":
            return {"interrupted": "INTERRUPTED", "failed": "ERROR"}.get(info.get("reason", ""), "COMPLETED")
    return "LOST"


def connect(run: str = "", *, server: str | None = None, runs: str | None = None, timeout: float = 0.0) -> Workers:
    """Connects to the components of a run: its folder, its name such as cartpole/3, or the only one that runs here; runs is the folder to
    look for runs in. On a machine that has joined a run, by its whole name, cartpole/0003. Or to a server of that name. It is waited for as
    long as timeout says, in seconds. Raises WorkerLost."""
    end = time.monotonic() + timeout
    while True:
        try:
            if server is not None:
                return _connected(Endpoint(server_path(server), server=server), None)
            try:
                folder = _folder(run, runs)
            except WorkerLost:
                joined = pathlib.Path(server_path(run))
                if not joined.exists():
                    raise
                return _connected(Endpoint(str(joined)), None)  # a run of another machine, which this one has joined
            path = json.loads((folder / "run.json").read_text()).get("control_socket")
            if not path:
                raise _error("", {"code": "E070", "reason": f"no job runs in {folder}"})
            return _connected(Endpoint(path), folder)
        except (WorkerLost, OSError):
            if time.monotonic() >= end:
                raise
            time.sleep(0.05)


def _connected(e: Endpoint, folder: pathlib.Path | None) -> Workers:
    workers = Workers([e], folder)
    workers.status()
    e.ask({}, 30.0)
    return workers


class _Unfound(Exception):
    """The program has found no such run."""


def _folder(run: str, runs: str | None) -> pathlib.Path:
    if run and (pathlib.Path(run) / "run.json").is_file():
        return pathlib.Path(run)
    words = ["status", "--json", *(["--run", run] if run else []), *(["--runs", runs] if runs else [])]
    try:
        job = json.loads(ask(_Unfound, *words))
        return pathlib.Path(f"/proc/{job['pid']}/cwd").resolve() / str(job["dir"])  # the job names it as it sees it
    except _Unfound as e:
        raise _error("", {"code": "E070", "reason": str(e).removeprefix("error[E070]: ")}) from None


def server_path(name: str) -> str:
    """Where a server of that name listens."""
    return service_path(f"server-{hashlib.sha256(name.encode()).hexdigest()[:16]}.sock")


def auto_connect(pattern: str = "*", names: Names | None = None) -> Workers:
    """Connects to all runs and servers whose names match, as ``rlhost names`` has them: runs are called NAME/NUMBER and their workers
    NAME/NUMBER/COMPONENT, servers are called as they call themselves. * is any number of characters, ? one. Raises NamesError where nobody
    serves names."""
    with contextlib.ExitStack() as stack:
        registry = names or stack.enter_context(Names())
        endpoints = []
        for root in (RUNS, SERVERS):
            for name in registry.find_subtree(root):
                short = name.removeprefix(root + "/")
                if root == RUNS and short.count("/") != 1 or not fnmatch.fnmatchcase(short, pattern):
                    continue
                with contextlib.suppress(NamesError):  # it has ended meanwhile
                    path = registry.get(name)
                    endpoints.append(Endpoint(path, server=short) if root == SERVERS else Endpoint(path, prefix=short + "/"))
    return Workers(endpoints)
