"""Messages that carry values."""

import os
import pathlib
import subprocess
import sys
import tempfile
import textwrap
import unittest

import numpy

import rlhost

SHARED = pathlib.Path(__file__).parents[2] / "component" / "value" / "testdata" / "values.txt"

TALK = """
    import numpy
    import rlhost

    class Ask(rlhost.Component):
        signals = [rlhost.Signal("question", "value", value_bytes=1 << 20)]
        slots = [rlhost.Slot("on_answer", "value")]

        def configure(self, config):
            self.most = config["most"]

        def begin(self):
            self.sent = {"n": 0, "x": numpy.zeros((100, 200), "f4"), "name": "é", "none": None, "pair": (1, [2.5, b"x"])}
            self.host.emit("question", self.sent)

        def on_answer(self, value):
            numpy.testing.assert_equal(value, self.sent)
            if value["n"] == 300:
                self.host.emit("question", "x" * self.most)
                self.host.stop("component")
                return
            self.sent = {**value, "n": value["n"] + 1, "x": value["x"] + 1}
            self.host.emit("question", self.sent)

    class Answer(rlhost.Component):
        signals = [rlhost.Signal("answer", "value", value_bytes=1 << 20)]
        slots = [rlhost.Slot("on_question", "value")]

        def on_question(self, value):
            if not isinstance(value, str):
                self.host.emit("answer", value)

    if __name__ == "__main__":
        rlhost.serve(Ask, Answer)
"""

PIPELINE = """
rlhost = 1
[run]
name = "talk"
stop = { wall_time = "2m" }
[plugin.talk]
path = "./talk.py"
interpreter = ["PYTHON"]
[component.ask]
plugin = "talk"
kind = "ask"
most = MOST
[component.answer]
plugin = "talk"
kind = "answer"
[[wire]]
signal = "ask.question"
slot = "answer.on_question"
[[wire]]
signal = "answer.answer"
slot = "ask.on_answer"
depth = 1
on_full = "fail"
"""


class ValuesTest(unittest.TestCase):
    def run_with(self, most):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        at = pathlib.Path(folder.name)
        (at / "talk.py").write_text(textwrap.dedent(TALK))
        (at / "talk.toml").write_text(PIPELINE.replace("PYTHON", sys.executable).replace("MOST", str(most)))
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        return subprocess.run(["rlhost", "run", "talk.toml"], cwd=at, env=env, capture_output=True, text=True, timeout=120)

    def test_come_as_they_were_sent(self):
        ran = self.run_with(1000)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn("ended (component)", ran.stdout)

    def test_that_are_too_long_are_an_error_that_says_how_to_make_room(self):
        ran = self.run_with((1 << 20) + 1)
        self.assertNotEqual(ran.returncode, 0)
        self.assertIn("E096 signal ask.question: a value of 1048582 bytes, at most 1048576; "
                      'rlhost.Signal("question", "value", value_bytes=N) sets how many', ran.stderr)

    def test_are_the_same_bytes_as_in_go(self):
        for line in SHARED.read_text().splitlines():
            written, code = line.split("\t")
            with self.subTest(written):
                value = eval(written, {"numpy": numpy})
                self.assertEqual(rlhost.plain.dumps(value).hex(), code)
                numpy.testing.assert_equal(rlhost.plain.loads(bytes.fromhex(code)), value)


if __name__ == "__main__":
    unittest.main()
