"""faster-fifo's own tests against rlhost.Queue, with another import. They come from its repository, which is cloned into .cache;
RLHOST_FASTER_FIFO names another place of it. make test-peers runs this."""

import os
import pathlib
import subprocess
import sys
import unittest

CACHE = pathlib.Path(__file__).resolve().parents[3] / ".cache" / "peers" / "faster-fifo-tests"
REPOSITORY = "https://github.com/alex-petrenko/faster-fifo"
FILE = "72ca2ad82667ac6e82fc61009c44dc1ddc60a783:cpp_faster_fifo/tests/test_faster_fifo.py"

# What is there, what is here. NumPy 2 does not divide an array's uint8 by 50000, with any queue. The largest message that the tests
# make at random fits no queue of theirs: faster-fifo says Full for ever, and rlhost ValueError.
CHANGES = (("from faster_fifo import Queue", "from rlhost.queue import Queue"), ("msg[0] % 50000", "int(msg[0]) % 50000"),
           ("(msg_idx + 1) * 1000", "(msg_idx + 1) * 990"))


def source():
    """Their test file, or SkipTest with what stands in the way."""
    clone = CACHE / "repository"
    if not clone.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        call = ["git", "clone", "--quiet", "--bare", os.environ.get("RLHOST_FASTER_FIFO", REPOSITORY), str(clone)]
        done = subprocess.run(call, capture_output=True, text=True)
        if done.returncode:
            raise unittest.SkipTest(f"{' '.join(call)}: {done.stderr.strip()}")
    return subprocess.run(["git", "-C", str(clone), "show", FILE], check=True, capture_output=True, text=True).stdout


class TheirTests(unittest.TestCase):
    def test_theirs(self):
        text = source()
        for there, here in CHANGES:
            self.assertIn(there, text)
            text = text.replace(there, here)
        changed = CACHE / "changed.py"
        changed.write_text(text)
        done = subprocess.run([sys.executable, "-m", "unittest", "-v", changed.stem], cwd=CACHE, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr[-5000:])
        self.assertIn("Ran 18 tests", done.stderr)
        self.assertNotIn("Traceback", done.stderr)
        self.assertNotIn("skipped", done.stderr)


if __name__ == "__main__":
    unittest.main()
