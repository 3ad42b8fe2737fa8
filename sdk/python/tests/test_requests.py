"""Requests: servers of one's own, their clients, and components that answer."""

import dataclasses
import os
import pathlib
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import unittest
import uuid

import numpy

import rlhost
from rlhost import names, requests, sockets
from rlhost.connecting import server_path
from fakehost import FakeHost, python


def until(done, seconds=20.0):
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.005)


@dataclasses.dataclass
class Point:
    x: int
    y: int = 2


class ServerTest(unittest.TestCase):
    """With names of its own, which no registry serves."""

    def server(self, name="", **handlers):
        server = rlhost.Server(name or f"test/{uuid.uuid4()}")
        self.addCleanup(server.close)
        for command, run in handlers.items():
            server.register_handler(command, run)
        thread = threading.Thread(target=server.serve)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(server.close)
        return server

    def client(self, server):
        client = rlhost.connect(server=server.name)
        self.addCleanup(client.close)
        return client

    def test_answers_with_what_handlers_return(self):
        def typed(a: int, b: float = 0.5, *, more: list = ()) -> list:
            return [a, b, *more]
        server = self.server(
            typed=typed, table=lambda: {"a": numpy.arange(3), "b": numpy.float32(1.5)}, point=lambda p: Point(p["x"]), nothing=lambda: None)
        client = self.client(server)
        self.assertEqual(client.request(server.name, "typed", a=1), [1, 0.5])
        self.assertEqual(client.request(server.name, "typed", a=1, b=2, more=["x"]), [1, 2, "x"])
        self.assertEqual(client.request(server.name, "table"), {"a": [0, 1, 2], "b": 1.5})
        self.assertEqual(client.request(server.name, "point", p={"x": 5}), {"x": 5, "y": 2})
        self.assertIsNone(client.request(server.name, "nothing"))
        self.assertEqual(client.names(), [server.name])
        self.assertEqual([r["name"] for r in client.requests()[server.name]], ["typed", "table", "point", "nothing"])
        until(lambda: client.status() == {server.name: "RUNNING"})
        server.status = "PAUSED"
        self.assertEqual(client.status("test/*"), {server.name: "PAUSED"})
        self.assertEqual(client.status("other*"), {})

    def test_many_requests_at_once_are_answered_in_order_of_one_client(self):
        seen = []
        server = self.server(note=lambda n: seen.append(n) or n)
        client = self.client(server)
        self.assertEqual([client.request(server.name, "note", n=i) for i in range(200)], list(range(200)))
        self.assertEqual(seen, list(range(200)))
        futures = [client.async_request(server.name, "note", n=i) for i in range(100)]
        self.assertEqual([f.result(20) for f in futures], list(range(100)))
        client.group_request("note", wait_response=False, n=-1)
        until(lambda: seen[-1] == -1)

    def test_failures_have_type_text_and_place(self):
        def fails(how: str, times: int = 1):
            if how == "raise":
                raise KeyError("no such key")
            if how == "nan":
                return float("nan")
            return "x" * (requests.MAX_BYTES + 1)
        server = self.server(fails=fails, wait=lambda: time.sleep(0.3))
        client = self.client(server)
        with self.assertRaises(rlhost.HandlerError) as caught:
            client.request(server.name, "fails", how="raise")
        e = caught.exception
        self.assertEqual((e.code, e.type, e.reason, e.worker), ("E122", "KeyError", "'no such key'", server.name))
        self.assertRegex(e.place, r"^test_requests.py:\d+$")
        for how in ("nan", "long"):
            with self.assertRaisesRegex(rlhost.HandlerError, "E124: the answer (is no JSON|has 122883 bytes, at most 122880)"):
                client.request(server.name, "fails", how=how)
        for args, text in [({}, "the argument how is missing"), ({"how": 1}, "the argument how is 1, want a text"),
                           ({"how": "x", "times": 3.0}, r"the argument times is 3\.0, want a whole number such as 3"),
                           ({"how": "x", "hw": 1}, "there is no argument hw: did you mean how?")]:
            with self.assertRaisesRegex(rlhost.BadArguments, "E121: " + text):
                client.request(server.name, "fails", **args)
        with self.assertRaisesRegex(rlhost.UnknownRequest, "does not answer the request 'fail'; did you mean 'fails'"):
            client.request(server.name, "fail")
        with self.assertRaisesRegex(rlhost.UnknownRequest, "no such worker; there are " + server.name):
            client.request("somebody", "fails")
        with self.assertRaises(rlhost.RequestTimeout):
            client.request(server.name, "wait", timeout=0.05)
        [late] = client.group_request("wait", timeout=0.01)
        self.assertTrue(late.timed_out and late.error.code == "E123")
        with self.assertRaisesRegex(ValueError, "timeout of 0 s"):
            client.request(server.name, "wait", timeout=0)
        self.assertIsNone(client.request(server.name, "wait"))

    def test_bad_servers_are_refused(self):
        for name in ("", "a//b", "/a", "a/", "a b", "a\n"):
            with self.assertRaisesRegex(ValueError, "want parts without blanks"):
                rlhost.Server(name)
        for ttl in (0, -1, float("nan")):
            with self.assertRaisesRegex(ValueError, "want more than 0"):
                rlhost.Server("a", ttl=ttl)
        server = self.server()
        with self.assertRaisesRegex(FileExistsError, "runs already"):
            rlhost.Server(server.name)
        server.register_handler("a", lambda: 1)
        with self.assertRaises(KeyError):
            server.register_handler("a", lambda: 2)
        for command in ("a/b", "", "A", "1"):
            with self.assertRaisesRegex(ValueError, "small letters"):
                server.register_handler(command, lambda: 1)
        for run in (lambda *a: 1, lambda **a: 1, lambda a, /: 1):
            with self.assertRaisesRegex(TypeError, "must have a name that an argument can give"):
                server.register_handler("b", run)
        with self.assertRaises(rlhost.WorkerLost):
            rlhost.connect(server=f"nobody/{uuid.uuid4()}")

    def test_requests_are_handled_when_the_loop_comes_to_them(self):
        server = rlhost.Server(f"test/{uuid.uuid4()}")
        self.addCleanup(server.close)
        thread = threading.get_ident()
        server.register_handler("where", lambda: threading.get_ident() == thread)
        client = self.client(server)
        self.assertEqual(server.handle_requests(), 0)
        futures = [client.async_request(server.name, "where") for _ in range(5)]
        done = server.handle_requests(max_count=2, timeout=20)
        while done < 5:
            done += server.handle_requests(timeout=20)
        self.assertTrue(all(f.result(20) for f in futures))

    def test_a_frame_that_is_none_ends_one_connection_alone(self):
        server = self.server(one=lambda: 1)
        for data in (b"\xff\xff\xff\xff", struct.pack("<I", 3) + b"{x}", struct.pack("<I", 2) + b"[]", b"\0\0\0\0", struct.pack("<I", 900)):
            with socket.socket(socket.AF_UNIX) as s:
                s.connect(server.path)
                sockets.receive(s)
                s.sendall(data)
                s.shutdown(socket.SHUT_WR)
                self.assertEqual(s.recv(1), b"")
        self.assertEqual(self.client(server).request(server.name, "one"), 1)

    def test_a_dead_server_is_lost_and_its_socket_is_taken_over(self):
        name = f"test/{uuid.uuid4()}"
        code = f"import rlhost, time; s = rlhost.Server({name!r}); s.register_handler('hang', lambda n: (print(flush=True), time.sleep(n))); s.serve()"
        child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE,
                                 env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        client = rlhost.connect(server=name, timeout=20)
        self.addCleanup(client.close)
        asked = client.async_request(name, "hang", n=100, timeout=60)
        child.stdout.readline()
        with self.assertRaises(rlhost.RequestTimeout):
            client.request(name, "hang", n=0, timeout=0.2)  # it is at the other one
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
        with self.assertRaises(rlhost.WorkerLost):
            asked.result(20)
        with self.assertRaises(rlhost.WorkerLost):
            client.request(name, "hang")
        self.assertEqual(client.status(), {name: "LOST"})
        self.assertTrue(os.path.exists(server_path(name)))
        again = self.server(name, one=lambda: 1)
        self.assertEqual(self.client(again).request(name, "one"), 1)


class NamedTest(unittest.TestCase):
    """Servers that are found by names."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "s")
        served = subprocess.Popen(["rlhost", "names", "serve", "--socket", self.path], stderr=subprocess.DEVNULL)
        self.addCleanup(served.wait)
        self.addCleanup(served.kill)
        until(lambda: os.path.exists(self.path))

    def names(self):
        n = names.Names(self.path)
        self.addCleanup(n.close)
        return n

    def test_a_group_of_servers(self):
        run = uuid.uuid4().hex
        registry = self.names()
        for i in range(8):
            server = rlhost.Server(f"{run}/w{i}", names=registry)
            self.addCleanup(server.close)
            server.register_handler("square", lambda n=i, i=i: n * n if n != 13 else 1 / 0)
            thread = threading.Thread(target=server.serve)
            thread.start()
            self.addCleanup(thread.join)
            self.addCleanup(server.close)
        client = rlhost.auto_connect(f"{run}/*", self.names())
        self.addCleanup(client.close)
        self.assertEqual(client.names(), [f"{run}/w{i}" for i in range(8)])
        self.assertEqual([r.result for r in client.group_request("square")], [i * i for i in range(8)])
        found = client.group_request("square", worker_regex=f"{run}/w[4-6]", n=3)
        self.assertEqual([(r.worker_name, r.result) for r in found], [(f"{run}/w{i}", 9) for i in (4, 5, 6)])
        chosen = [f"{run}/w7", f"{run}/w1"]
        found = client.group_request("square", worker_names=chosen, worker_kwargs=[{"n": 5}, {"n": 6}])
        self.assertEqual([(r.worker_name, r.result) for r in found], [(chosen[0], 25), (chosen[1], 36)])
        found = client.group_request("square", worker_kwargs={chosen[0]: {"n": 13}}, raises=False)
        self.assertEqual([(r.result, r.error and r.error.type) for r in found][-1], (None, "ZeroDivisionError"))
        with self.assertRaises(rlhost.HandlerError):
            client.group_request("square", n=13)
        with self.assertRaisesRegex(rlhost.UnknownRequest, "no worker is called nobody"):
            client.group_request("square", worker_names=["nobody"])
        with self.assertRaisesRegex(rlhost.UnknownRequest, "no worker's name matches"):
            client.group_request("square", worker_regex="nobody")
        with self.assertRaisesRegex(ValueError, "1 entries, and there are 2"):
            client.group_request("square", worker_names=chosen, worker_kwargs=[{}])

    def test_the_name_of_a_dead_server_ends_with_its_time(self):
        name, registry = uuid.uuid4().hex, self.names()
        code = f"import rlhost; from rlhost.names import Names; rlhost.Server({name!r}, names=Names({self.path!r}), ttl=0.5).serve()"
        child = subprocess.Popen([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        self.assertEqual(registry.wait(f"rlhost/servers/{name}", 20), server_path(name))
        time.sleep(1.0)  # twice its time: it is renewed
        self.assertEqual(registry.find_subtree("rlhost/servers"), [f"rlhost/servers/{name}"])
        os.kill(child.pid, signal.SIGKILL)
        killed = time.monotonic()
        until(lambda: not registry.find_subtree("rlhost/servers"))
        self.assertLess(time.monotonic() - killed, 5.0)


PLUGIN = '''
    import rlhost

    class Oracle(rlhost.Component):
        def start(self, host):
            self.value, self.episodes = 1, 0

        @rlhost.request
        def add(self, n: int, to: dict = None) -> int:
            """Adds to the value."""
            self.value += n
            return self.value

        @rlhost.request
        def wrong(self):
            raise ValueError("not today")

        slots = [rlhost.Slot("on_episodes", "episode")]

        def on_episodes(self, m):
            self.episodes += 1

        @rlhost.request
        def seen(self) -> int:
            return self.episodes

    rlhost.serve(Oracle)
'''


class ComponentTest(unittest.TestCase):
    def test_a_component_answers_once_the_run_has_begun(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = pathlib.Path(folder.name, "oracle.py")
        path.write_text(textwrap.dedent(PLUGIN))
        host = FakeHost(python(str(path)))
        self.addCleanup(host.close)
        host.connect()
        [kind] = host.call("Describe")["kinds"]
        self.assertEqual(kind["requests"], [
            {"name": "add", "doc": "Adds to the value.", "args": [{"name": "n", "type": "integer", "optional": False},
                                                                  {"name": "to", "type": "table", "optional": True}]},
            {"name": "wrong", "doc": "", "args": []}, {"name": "seen", "doc": "", "args": []}])
        host.start("oracle")
        host.send_frame({"request": {"call": 1, "name": "add", "args": {"n": 2}, "within_ns": 10**11}})
        host.send_frame({"request": {"call": 2, "name": "add", "args": {"n": 5}, "within_ns": 0}})  # nobody waits for it
        host.send_frame({"request": {"call": 3, "name": "wrong", "args": {}, "within_ns": 10**11}})
        host.send_frame({"request": {"call": 4, "name": "gone", "args": {}, "within_ns": 10**11}})
        time.sleep(0.05)
        self.assertFalse([f for f, _ in host.frames if "answer" in f])
        host.send(rlhost.Message(slot=0xFF06))  # the run has begun
        answers = [host.frame("answer")[0] for _ in range(3)]
        self.assertEqual(answers[0], {"call": 1, "reply": 3})
        self.assertEqual(answers[1], {"call": 3, "error": {"type": "ValueError", "text": "not today", "place": "oracle.py:16"}})
        self.assertEqual((answers[2]["call"], answers[2]["error"]["type"]), (4, "KeyError"))
        self.assertEqual(host.shutdown(), 0)

    def test_classes_that_cannot_be_asked_are_refused(self):
        class Bad(rlhost.Component):
            @rlhost.request
            def ask(self, *what):
                pass
        with self.assertRaisesRegex(TypeError, "ask answers a request, so its parameter what must have a name"):
            rlhost.serve(Bad)

        class Unknown(rlhost.Component):
            @rlhost.request
            def ask(self, what: "Nothing"):  # noqa: F821
                pass
        with self.assertRaisesRegex(TypeError, "types of its parameters must be known: name 'Nothing' is not defined"):
            rlhost.serve(Unknown)


RUN = """
rlhost = 1
[run]
name = "asked"
stop = { env_steps = 4_000_000_000 }
[env.cartpole]
use = "cartpole@1"
[train]
preset = "fast"
[policy.main]
net = { hidden = [4] }
[plugin.oracle]
path = "./oracle.py"
interpreter = ["PYTHON"]
[component.oracle]
plugin = "oracle"
count = 2
"""


class RunTest(unittest.TestCase):
    """The components of a training."""

    def test_a_run_is_asked_until_it_ends(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        at = pathlib.Path(folder.name)
        (at / "oracle.py").write_text(textwrap.dedent(PLUGIN))
        (at / "p.toml").write_text(RUN.replace("PYTHON", sys.executable))
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        job = subprocess.Popen(["rlhost", "train", "p.toml"], cwd=at, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(job.wait)
        self.addCleanup(job.kill)
        run = rlhost.connect(str(at / "runs" / "asked" / "0001"), timeout=60)
        self.addCleanup(run.close)
        self.assertIn("oracle[1]", run.names())
        self.assertEqual(run.request("oracle[1]", "add", n=4), 5)
        self.assertEqual([r.result for r in run.group_request("add", n=1)], [2, 6])
        found = run.group_request("add", worker_regex=r"oracle\[\d\]", worker_kwargs={"oracle[0]": {"n": 10}}, n=0)
        self.assertEqual([(r.worker_name, r.result) for r in found], [("oracle[0]", 12), ("oracle[1]", 6)])
        with self.assertRaisesRegex(rlhost.RequestError, r"E079: names 2 workers: oracle\[0\], oracle\[1\]"):
            run.request("oracle", "add", n=0)
        with self.assertRaisesRegex(rlhost.HandlerError, r"E122: ValueError: not today \(oracle.py:16\)"):
            run.request("oracle[0]", "wrong")
        with self.assertRaisesRegex(rlhost.UnknownRequest, r"did you mean .add."):
            run.request("oracle[0]", "ad")
        with self.assertRaisesRegex(rlhost.BadArguments, "the argument n is true, want a whole number"):
            run.request("oracle[0]", "add", n=True)
        with self.assertRaisesRegex(rlhost.UnknownRequest, "no component is called"):
            run.request("nobody", "add", n=1)
        self.assertEqual(run.status("oracle*"), {"oracle[0]": "RUNNING", "oracle[1]": "RUNNING"})
        self.assertEqual(run.connect("rollout.episodes", "oracle.on_episodes", depth=64, on_full="drop_oldest", mode="all"),
                         ["rollout.episodes → oracle.on_episodes: added: all, depth 64, drop_oldest"])
        until(lambda: run.request("oracle[0]", "seen") > 0)
        with self.assertRaisesRegex(rlhost.RequestError, "E006: .* twice"):
            run.connect("rollout.episodes", "*.on_episodes")
        self.assertEqual(run.disconnect("rollout.episodes", "oracle.on_episodes"), ["rollout.episodes → oracle.on_episodes: removed"])
        with self.assertRaisesRegex(rlhost.UnknownRequest, "E071: no wire leads from"):
            run.disconnect("rollout.episodes", "oracle.on_episodes")
        self.assertEqual(run.request("oracle[0]", "seen"), run.request("oracle[0]", "seen"))
        with rlhost.connect(runs=str(at / "runs")) as same:  # the only one there
            self.assertEqual(same.request("oracle[1]", "add", n=0), 6)
        job.terminate()
        job.wait()
        with self.assertRaises(rlhost.WorkerLost):
            run.request("oracle[1]", "add", n=0)
        self.assertEqual(run.status("oracle*"), {"oracle[0]": "INTERRUPTED", "oracle[1]": "INTERRUPTED"})
        with self.assertRaises(rlhost.WorkerLost):
            rlhost.connect(str(at / "runs" / "asked" / "0001"))
