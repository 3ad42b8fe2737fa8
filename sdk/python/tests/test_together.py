"""Several components in one process."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import textwrap
import unittest

import rlhost

GAME = """
    import os
    import signal
    import rlhost

    class Ping(rlhost.Component):
        signals = [rlhost.Signal("ping", "number"), rlhost.Signal("done", "value")]
        slots = [rlhost.Slot("on_pong", "number"), rlhost.Slot("on_again", "number")]

        def configure(self, config):
            self.most, self.dies = config.pop("most", 1000), config.pop("dies", False)
            super().configure(config)

        def begin(self):
            self.busy = 0
            self.host.emit("ping")

        def on_pong(self, m):
            self.busy += 1
            assert self.busy == 1
            self.host.emit("ping", inline=(m.inline[0], 0))
            if m.inline[0] == self.most:
                if self.dies and not os.path.exists("died"):
                    open("died", "w").close()
                    os.kill(os.getpid(), signal.SIGKILL)
                self.host.emit("done", {"rallies": self.most, "pids": [os.getpid(), self.host.shared]})
            self.busy -= 1

        def on_again(self, m):
            pass

        @rlhost.request
        def score(self, of: str, times: int = 1) -> int:
            '''Rallies at most.'''
            if of != "ping":
                raise KeyError(of)
            return self.most * times

    class Pong(rlhost.Component):
        signals = [rlhost.Signal("pong", "number")]
        slots = [rlhost.Slot("on_ping", "number")]

        def start(self, host):
            host._host.shared = os.getpid()

        def on_ping(self, m):
            self.host.emit("pong", inline=(m.inline[0] + 1, 0))

    class Talk(rlhost.Component):
        signals = [rlhost.Signal("said", "value"), rlhost.Signal("page", "page")]
        slots = [rlhost.Slot("on_said", "value"), rlhost.Slot("on_page", "page")]
        asks = [rlhost.Ask("verdict", "whether that is enough", pages=int)]

        def start(self, host):
            self.pages, self.read = host.add_arena("pages", 2, 64), 0

        def turn(self):
            with self.pages.loan() as loan:  # two blocks last for ever, as each claim on them ends
                loan.array[0] = self.read
                handle = loan.commit()
            self.host.emit("page", handle)
            self.host.release(handle)

        def on_page(self, m):
            with self.host.lease(m.handle) as page:
                assert page.array[0] == self.read
            self.read += 1
            if self.read < 100:
                self.turn()
            else:
                self.host.log.info("read %d pages", self.read)
                self.host.request("verdict", 20.0, pages=self.read).add_done_callback(self.judged)

        def judged(self, asked):
            self.host.log.info("verdict %s", asked.result())
            self.host.request("verdict", 20.0, pages=0)  # that is all

        def begin(self):
            self.turn()
            self.word = object()  # no codec takes it: it never leaves the process
            self.host.emit("said", self.word)

        def on_said(self, value):
            assert value is self.word
            self.host.stats.count("talk/same")

    class Judge(rlhost.Component):
        slots = [rlhost.Slot("on_done", "value")]
        asks = [rlhost.Ask("score", of=str, times=int)]

        def start(self, host):
            self.left = {"verdict", "score"}

        def on_done(self, value):
            self.host.log.info("done %s", value)
            self.host.request("score", 20.0, of="ping", times=2).add_done_callback(self.scored)

        def scored(self, asked):
            self.host.log.info("score %s", asked.result())
            self.over("score")

        @rlhost.request
        def verdict(self, pages: int):
            if pages == 0:
                self.over("verdict")
            return pages >= 100

        def over(self, what):
            self.left.discard(what)
            if not self.left:
                self.host.stop("component")

    class Game(rlhost.Together):
        parts = {"ping": Ping, "pong": Pong, "talk": Talk}
        wires = [("ping.ping", "pong.on_ping"), ("pong.pong", "ping.on_pong"), ("talk.said", "talk.on_said"),
                 ("talk.page", "talk.on_page")]

    if __name__ == "__main__":
        rlhost.serve(Ping, Pong, Judge, Game)
"""

PIPELINE = """
rlhost = 1
[run]
name = "game"
stop = { wall_time = "2m" }
[plugin.game]
path = "./game.py"
interpreter = ["PYTHON"]
[component.game]
plugin = "game"
kind = "game"
asks = { talk_verdict = "judge.verdict" }
[component.game.ping]
KEYS
[component.judge]
plugin = "game"
kind = "judge"
asks = { score = "game.ping_score" }
[[wire]]
signal = "game.ping_done"
slot = "judge.on_done"
"""


class RunTest(unittest.TestCase):
    def run_with(self, keys):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        at = pathlib.Path(folder.name)
        (at / "game.py").write_text(textwrap.dedent(GAME))
        (at / "game.toml").write_text(PIPELINE.replace("PYTHON", sys.executable).replace("KEYS", keys))
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        return subprocess.run(["rlhost", "run", "game.toml"], cwd=at, env=env, capture_output=True, text=True, timeout=120)

    def test_parts_share_a_process_and_their_messages_stay_in_it(self):
        ran = self.run_with("most = 3000")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn("ended (component)", ran.stdout)
        self.assertIn("read 100 pages", ran.stderr)
        done = eval(ran.stderr.split("judge: done ")[1].splitlines()[0])
        self.assertEqual((done["rallies"], len(set(done["pids"]))), (3000, 1))
        self.assertIn("judge: score 6000", ran.stderr)
        self.assertIn("game: verdict True", ran.stderr)

    def test_they_are_killed_and_restarted_as_one(self):
        ran = self.run_with("most = 50\ndies = true")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn("ended (component)", ran.stdout)
        self.assertIn("game", ran.stderr.split("judge: done ")[0])
        self.assertIn("judge: done {'rallies': 50", ran.stderr)

    def test_a_wrong_key_of_a_part_has_its_place(self):
        ran = self.run_with("mst = 3")
        self.assertEqual(ran.returncode, 3)
        self.assertIn("game.toml:14:7: error[E005]: `ping.mst` is not a key", ran.stderr)


class One(rlhost.Component):
    signals = [rlhost.Signal("out", "number"), rlhost.Signal("other", "text")]
    slots = [rlhost.Slot("on_in", "number")]

    def on_in(self, m):
        """Takes it."""


class Sums(rlhost.Component):
    asks = [rlhost.Ask("weigh", "how heavy", item=str)]

    @rlhost.request
    def sum(self, a: int, b: float = 1.0) -> float:
        """Of two numbers."""
        return a + b


class ClassTest(unittest.TestCase):
    def test_requests_and_asks_of_parts_are_of_the_whole(self):
        class Pair(rlhost.Together):
            parts = {"x": Sums, "y": Sums}
        from rlhost.requests import handlers_of
        found = {name: h.document() for name, h in handlers_of(Pair).items()}
        self.assertEqual(found, {name: {**handlers_of(Sums)["sum"].document(), "name": name} for name in ("x_sum", "y_sum")})
        self.assertEqual(json.loads(handlers_of(Pair())["y_sum"].answer({"a": 2})), 3.0)
        self.assertEqual([a.document()["name"] for a in Pair.asks], ["x_weigh", "y_weigh"])

    def test_ports_that_no_wire_has_are_ports_of_the_whole(self):
        class Pair(rlhost.Together):
            parts = {"a": One, "b": One}
            wires = [("a.out", "b.on_in")]
        self.assertEqual([s.name for s in Pair.signals], ["a_other", "b_out", "b_other"])
        self.assertEqual([(s.name, s.payload) for s in Pair.slots], [("a_on_in", "number")])

    def test_wires_that_cannot_be_are_refused(self):
        for wire, reason in [(("a.none", "b.on_in"), "there is no signal a.none, but a.out, a.other, b.out, b.other"),
                             (("a.out", "c.on_in"), "there is no slot c.on_in, but a.on_in, b.on_in"),
                             (("a.other", "b.on_in"), "a.other sends text, b.on_in takes number")]:
            with self.subTest(wire), self.assertRaisesRegex(TypeError, reason):
                type("Pair", (rlhost.Together,), {"parts": {"a": One, "b": One}, "wires": [wire]})

    def test_ports_may_depend_on_the_table_of_their_part(self):
        class Fan(rlhost.Component):
            def configure(self, config):
                self.slots = [rlhost.Slot(name, "number") for name in config["of"]]
                for name in config["of"]:
                    setattr(self, name, lambda m: m)

        class Pair(rlhost.Together):
            parts = {"fan": Fan}
        pair = Pair()
        pair.configure({"fan": {"of": ["x", "y"]}})
        self.assertEqual([s.name for s in pair.slots], ["fan_x", "fan_y"])
        self.assertEqual(pair.fan_y(7), 7)

    def test_complains_about_the_tables_of_its_parts(self):
        class Pair(rlhost.Together):
            parts = {"a": One, "b": One}
        with self.assertRaises(rlhost.ConfigErrors) as caught:
            Pair().configure({"a": {"x": 1}, "c": {}})
        self.assertEqual([(e.key, e.reason) for e in caught.exception.errors], [("c", "is no part"), ("a.x", "is not a key")])


if __name__ == "__main__":
    unittest.main()
