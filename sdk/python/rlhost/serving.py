"""Serving: a program becomes a plugin of the host that started it."""

from __future__ import annotations

import faulthandler
import json
import logging
import os
import queue
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import Future
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from . import _native, log, state
from .component import Component, ConfigError, ConfigErrors, NoSnapshot, Slot, check_kind, check_ports, doc_of, kind_of
from .control import Refusal, Server
from .faults import told
from .host import Host
from .requests import Handler, fault, handlers_of
from .values import PAYLOAD as VALUE
from .values import taking
from .version import __version__

if TYPE_CHECKING:
    from .policy import Policy

PROTOCOL, ABI, SDK = 2, "1.0", f"python {__version__}"
COOKIE_KEY, COOKIE = "RLHOST_PLUGIN", "5f1d2c86-7a0e-4d39-9f5e-rlhost-plugin"


class EnvServer(Protocol):
    """A worker of environments, such as rlhost.gymnasium's."""

    capabilities: list[str]

    def open(self, link: _native.Host) -> None:
        """Called first; frames and replies go to link."""

    def frame(self, document: dict[str, Any], files: tuple[int, ...]) -> None:
        """Receives a frame of the wire, on another thread. The files are the callee's."""

    def call(self, method: str, document: Any) -> Any:
        """Answers EnvLoad, EnvMake or EnvState."""

    def message(self, m: _native.Message) -> None:
        """Handles and answers a message of the link."""

    def close(self) -> None:
        """Closes the environments."""


def serve(*kinds: type[Component], envs: EnvServer | None = None, policy: type[Policy] | None = None) -> None:
    """Runs this process as a plugin: an instance of one of the kinds, a worker of environments, or an actor of a policy of your own, which is
    that of the first PolicyLearner where it is not given. Call it on the main thread. It returns when the host asks the process to end.

    Standard output belongs to the host: it becomes standard error, which is the host's log. Ctrl-C is ignored, because
    the host hears it too and ends its plugins in order."""
    for kind in kinds:
        check_kind(kind)
    policy = policy or _learned(kinds)
    begun_by_host()
    out = os.dup(1)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    log.begin()
    faulthandler.enable()  # the host sends SIGABRT to a plugin that has stalled
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if policy is not None:
        from .acting import Actor
        envs = Actor(policy)
    plugin = Plugin(kinds, envs)
    signal.signal(signal.SIGTERM, plugin.terminated)
    server = Server(plugin.call, plugin.end)
    os.write(out, f"1|{PROTOCOL}|unix|{server.path}|grpc|\n".encode())
    os.close(out)
    try:
        plugin.run()
    finally:
        server.stop()


def begun_by_host() -> None:
    """Ends the process with an explanation unless a host with this library's protocol started it."""
    if os.environ.get(COOKIE_KEY) != COOKIE:
        path = sys.argv[0] if "/" in sys.argv[0] else "./" + sys.argv[0]  # the shell would search PATH for a bare name
        refuse_to_run("This is a plugin of rlhost, not a program to run by hand. Name it in a pipeline's file:\n\n"
                 f'    [plugin.mine]\n    path = "{path}"\n    interpreter = ["{sys.executable}"]\n')
    versions = os.environ.get("PLUGIN_PROTOCOL_VERSIONS", str(PROTOCOL)).split(",")
    if str(PROTOCOL) not in versions:
        refuse_to_run(f"this plugin's library (rlhost for Python, {SDK}) speaks protocol {PROTOCOL}, the host {', '.join(versions)}")
    transport = os.environ.get("RLHOST_TRANSPORT", "rings")
    if transport != "rings":
        refuse_to_run(f"the host uses the transport {transport}, which this library does not have")
    if os.environ.get("PLUGIN_CLIENT_CERT"):
        refuse_to_run("the host wants an encrypted control connection (AutoMTLS), which this library does not have")


def refuse_to_run(why: str) -> NoReturn:
    """Ends the process with the status for a program not started as a plugin."""
    print(why, file=sys.stderr)
    sys.exit(2)


def _learned(kinds: tuple[type[Component], ...]) -> type[Policy] | None:
    """The class of the policy that the first PolicyLearner of the kinds improves."""
    from .own import PolicyLearner
    for kind in kinds:
        if issubclass(kind, PolicyLearner):
            if not hasattr(kind, "network"):
                raise TypeError(f"{kind.__name__} does not say what it learns: network = MyPolicy, a subclass of rlhost.Policy")
            return kind.network
    return None


class Plugin:
    """The process as the host sees it. The component runs on the main thread, in run; control calls arrive on another
    and wait for it."""

    def __init__(self, kinds: tuple[type[Component], ...], envs: EnvServer | None, link: tuple[int, int, int] | None = None):
        self._kinds = {kind_of(k): k for k in kinds}
        self._envs = envs
        self._component: Component | None = None
        self._host: Host | None = None
        self._slots: list[tuple[str, Callable[[Any], Any]]] = []
        self._started = self._in_slot = False
        self._kept = 0  # blocks, when the slot began
        self._closed = False  # the component is to stop: it gets and sends no more messages
        self._ended = False  # the process is to end
        self._posted: queue.SimpleQueue[tuple[Any, Any, Future[Any]] | None] = queue.SimpleQueue()
        self._finished = threading.Event()
        self._handlers: dict[str, Handler] = {}
        self._asked: queue.SimpleQueue[tuple[float, dict[str, Any]]] = queue.SimpleQueue()  # when it is too late, and what
        files = link or (_native.FD_WIRE, _native.FD_WIRE + 1, _native.FD_WIRE + 2)
        self._link = _native.Host(*files, self._frame, self.end, self._serve_in_slot, link is None)
        if envs:
            envs.open(self._link)

    # On other threads.

    def call(self, method: str, document: Any) -> Any:
        """Runs a control call on the main thread."""
        run = getattr(self, "_do_" + method.lower(), None)
        if run is None:
            raise Refusal("UNIMPLEMENTED", f"this plugin has no {method}")
        if method == "Stop":
            self._close()  # a component that waits for the host in an emit must not delay its own stop
        answer: Future[Any] = Future()
        self._posted.put((run, document, answer))
        self._link.wake()
        if self._finished.is_set():
            raise Refusal("UNAVAILABLE", "the plugin is ending")
        return answer.result()

    def end(self) -> None:
        """Ends the process after the current slot."""
        self._ended = True
        self._close()
        self._posted.put(None)

    def _close(self) -> None:
        self._closed = True
        self._link.end()

    def terminated(self, number: int, frame: FrameType | None) -> None:
        """Handles SIGTERM."""
        self.end()

    def _frame(self, text: bytes, files: tuple[int, ...]) -> None:
        document = json.loads(text)
        if self._envs:
            self._envs.frame(document, files)
            return
        for fd in files:
            os.close(fd)
        if asked := document.get("request"):
            self._asked.put((time.monotonic() + asked["within_ns"] / 1e9, asked))
            self._link.wake()
        elif "told" in document:
            self._asked.put((float("inf"), document))
            self._link.wake()

    # On the main thread.

    def run(self) -> None:
        """Serves until the host asks the process to end."""
        try:
            while not self._started and not self._ended:
                self._answer(self._posted.get())
            self._loop()
            while not self._ended:
                self._answer(self._posted.get())
        finally:
            self._finished.set()
            self._stop()
            self._serve_posted()

    def _loop(self) -> None:
        try:
            if self._envs and not self._component:
                self._work(self._envs)
            else:
                self._run_component()
        except _native.Closed:
            if not self._closed:
                raise

    def _work(self, envs: EnvServer) -> None:
        receive, work = self._link.receive, envs.message
        while not self._closed:
            m = receive(None)
            if m is not None:
                work(m)
            else:
                self._serve_posted()

    def _run_component(self) -> None:
        receive, begun = self._link.receive, False
        wait = 0.0
        while not self._closed and not self._component_failed():  # what it does not take is its successor's
            m = receive(wait)
            if not begun and self._link.begun():
                begun = True
                self._guarded("begin", self._begin)
            if m is not None:
                self._deliver(m)
            if not self._posted.empty():
                self._serve_posted()
            if begun and not self._asked.empty():
                self._answer_request(*self._asked.get())
            wait = self._tick() if self._host else 1e9
            if not self._asked.empty():
                wait = 0.0

    def _answer_request(self, until: float, asked: dict[str, Any]) -> None:
        """Answers a request between two messages; an exception is its answer."""
        if time.monotonic() > until:
            return  # nobody waits for it
        host = self._host
        assert host
        if told := asked.get("told"):
            host._questions.told(told)
            return
        call = asked["call"]
        try:
            reply = self._handlers[asked["name"]].answer(asked["args"])
        except (Exception, SystemExit) as e:
            if self._closed and isinstance(e, _native.Closed):
                raise
            host.log.error("request %s: %s", asked["name"], "".join(traceback.format_exception(e)).rstrip())
            host._send({"answer": {"call": call, "error": fault(e)}})
            return
        self._link.wire_send(b'{"answer":{"call":%d,"reply":%b}}' % (call, reply))

    def _component_failed(self) -> bool:
        return self._host is not None and self._host._failed

    def _begin(self) -> None:
        if self._component:
            self._component.begin()

    def _guarded(self, where: str, run: Callable[[], object]) -> Any:
        """Calls a method of the component; an exception ends it."""
        try:
            return run()
        except _native.Closed:
            if self._closed:
                raise
            self._failed(where, sys.exc_info()[1])
        except (Exception, SystemExit) as e:
            self._failed(where, e)
        return None

    def _tick(self) -> float:
        assert self._host
        wait = self._guarded("timer", self._host._tick)
        return 1.0 if wait is None else wait

    def _deliver(self, m: _native.Message) -> None:
        host = self._host
        if not host or host._failed or m.slot >= len(self._slots):
            return
        name, run = self._slots[m.slot]
        self._kept = self._link.kept()
        self._in_slot, host._slot = True, name
        try:
            run(m)
        except (Exception, SystemExit) as e:
            if self._closed and isinstance(e, _native.Closed):
                raise
            self._failed(name, e)
        finally:
            self._in_slot, host._slot = False, ""

    def _failed(self, where: str, error: BaseException | None) -> None:
        assert self._host and error
        self._host.log.error("%s: %s", where, "".join(traceback.format_exception(error)).rstrip())
        self._host.fail(f"{where}: {told(error)}")

    def _serve_in_slot(self) -> None:
        if not self._closed:  # within a slot the component cannot be stopped
            self._serve_posted()

    def _serve_posted(self) -> None:
        while True:
            try:
                self._answer(self._posted.get_nowait())
            except queue.Empty:
                return

    def _answer(self, posted: tuple[Any, Any, Future[Any]] | None) -> None:
        if posted is None:
            return
        run, document, answer = posted
        try:
            answer.set_result(run(document))
        except Refusal as e:
            answer.set_exception(e)
        except NoSnapshot as e:
            answer.set_exception(Refusal("UNIMPLEMENTED", str(e)))
        except (Exception, SystemExit) as e:
            logging.getLogger("rlhost").error("%s", traceback.format_exc().rstrip())
            answer.set_exception(Refusal("UNKNOWN", told(e)))

    # Control calls.

    def _do_describe(self, document: Any) -> Any:
        capabilities = [*(self._envs.capabilities if self._envs else [])]
        if any(k.snapshot is not Component.snapshot for k in self._kinds.values()):
            capabilities.append("snapshot")
        return {"abi": ABI, "sdk": SDK, "capabilities": capabilities, "kinds": [
            {"name": name, "doc": doc_of(k), "signals": ports(k.signals), "slots": ports(k.slots), "requests": requests(handlers_of(k)),
             "asks": [a.document() for a in k.asks]}
            for name, k in self._kinds.items()]}

    def _do_configure(self, document: Any) -> Any:
        kind = self._kinds.get(document["kind"])
        if kind is None:
            raise Refusal("INVALID_ARGUMENT", f"this plugin has no kind {document['kind']!r}: it has {', '.join(self._kinds) or 'none'}")
        if self._component and not document.get("check_only"):
            raise Refusal("FAILED_PRECONDITION", "a component is configured already")
        log.set_level(document.get("log_level") or "info")
        component = kind()
        try:
            component.configure(dict(document.get("config") or {}))
        except ConfigError as e:
            return {"errors": [told_config(e)]}
        except ConfigErrors as e:
            return {"errors": [told_config(x) for x in e.errors]}
        check_ports(component, kind.__name__)
        if not document.get("check_only"):
            self._component, self._handlers = component, handlers_of(component)
            self._host = Host(self._link, document, component)
            self._link.bind(document["holder"], document["id"], [s.on_loan for s in component.signals], len(component.slots))
        flow = component.flow()
        return {"errors": [], "flow": vars(flow) if flow else None,
                "signals": ports(component.signals), "slots": ports(component.slots), "requests": requests(handlers_of(component)),
                "asks": [a.document() for a in component.asks]}

    def _do_start(self, document: Any) -> Any:
        component, host = self._component, self._host
        if component is None or host is None or self._started:
            raise Refusal("FAILED_PRECONDITION", "Start comes once, after Configure")
        component.host = host
        host._make_values()
        self._slots = [(s.name, _slot(host, s, getattr(component, s.name))) for s in component.slots]
        component.start(host)
        self._started = True
        return {}

    def _do_snapshot(self, document: Any) -> Any:
        if self._component is None or not self._started:
            raise Refusal("FAILED_PRECONDITION", "nothing runs")
        if kept := self._kept if self._in_slot else self._link.kept():
            raise NoSnapshot(f"it keeps blocks ({kept}), which are no part of a state")
        data = state.pack(self._component.snapshot())
        if not self._in_slot:
            self._link.settle()  # the state includes the last message
        call = next(state.calls)
        self._link.state_send(call, data)
        return {"call": call, "bytes": len(data)}

    def _do_restore(self, document: Any) -> Any:
        if self._component is None or not self._started:
            raise Refusal("FAILED_PRECONDITION", "nothing runs")
        self._component.restore(state.unpack(self._link.state_take(document["call"], 10.0)))
        return {}

    def _do_stop(self, document: Any) -> Any:
        self._stop()
        return {}

    def _do_envload(self, document: Any) -> Any:
        return self._env_call("EnvLoad", document)

    def _do_envmake(self, document: Any) -> Any:
        made = self._env_call("EnvMake", document)
        self._started = True
        return made

    def _do_envstate(self, document: Any) -> Any:
        return self._env_call("EnvState", document)

    def _do_policy(self, document: Any) -> Any:
        return self._policy_call("Policy", document)

    def _do_policyrun(self, document: Any) -> Any:
        self._policy_call("PolicyRun", document)
        self._started = True
        return {}

    def _policy_call(self, method: str, document: Any) -> Any:
        if not self._envs or "policy" not in self._envs.capabilities:
            raise Refusal("UNIMPLEMENTED", "this plugin computes no policy")
        return self._envs.call(method, document)

    def _env_call(self, method: str, document: Any) -> Any:
        if not self._envs or "env" not in self._envs.capabilities:
            raise Refusal("UNIMPLEMENTED", "this plugin works no environments")
        return self._envs.call(method, document)

    def _stop(self) -> None:
        component, self._component = self._component, None
        if component is not None:
            component.stop()
        if self._host is not None:
            self._host._report_stats()
            self._host = None
        if self._envs:
            self._envs.close()


def _slot(host: Host, slot: Slot, run: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return taking(host, run) if slot.payload == VALUE else run


def ports(of: Any) -> list[dict[str, Any]]:
    return [{"name": p.name, "payload": p.payload, "doc": p.doc, "on_loan": p.on_loan, "schema": str(p.schema)} for p in of]


def requests(of: dict[str, Handler]) -> list[dict[str, Any]]:
    return [h.document() for h in of.values()]


def told_config(e: ConfigError) -> dict[str, str]:
    return {"key": e.key, "reason": e.reason, "help": e.help, "code": e.code}
