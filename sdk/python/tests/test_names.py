"""Names over the socket of the rlhost that is in PATH; the Go tests of this folder put it there."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import unittest

from rlhost.names import Event, NameEntryExists, NameEntryNotFound, Names, NamesError

HOLDER = """
import sys
from rlhost.names import Names
names = Names(sys.argv[1])
names.add("holder", "there", ttl=0.3)
print("added", flush=True)
sys.stdin.read()
"""


@unittest.skipUnless(shutil.which("rlhost"), "rlhost is not in PATH")
class NamesTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.folder.name, "s")
        self.server = subprocess.Popen(["rlhost", "names", "serve", "--socket", self.path], stdout=subprocess.PIPE)
        self.server.stdout.readline()
        self.names = Names(self.path)

    def tearDown(self):
        self.names.close()
        self.server.terminate()
        self.server.communicate()
        self.folder.cleanup()

    def test_the_calls_of_name_resolve(self):
        n = self.names
        n.add("ana/pole/w/0", "zero")
        n.add("ana/pole/w/1", 1)
        n.add("ana/pole/w", "all")
        self.assertEqual(n.get("ana/pole/w/1"), "1")
        self.assertEqual(n.find_subtree("ana/pole/w"), ["ana/pole/w", "ana/pole/w/0", "ana/pole/w/1"])
        self.assertEqual(n.get_subtree("ana/pole"), ["all", "zero", "1"])
        self.assertEqual(n.find_subtree("ana/p"), [])
        with self.assertRaisesRegex(NameEntryExists, "E102: the name exists: ana/pole/w"):
            n.add("ana/pole/w", "again")
        n.add("ana/pole/w", "again", replace=True)
        self.assertEqual(n.get("ana/pole/w"), "again")
        n.delete("ana/pole/w")
        for missing in (n.get, n.delete):
            with self.assertRaises(NameEntryNotFound):
                missing("ana/pole/w")
        child = n.add_subentry("ana/pole/w", "x")
        self.assertEqual((child[:11], n.get(child)), ("ana/pole/w/", "x"))
        self.assertEqual(n.clear_subtree("ana/pole"), 3)
        self.assertEqual(n.find_subtree(), [])

    def test_close_deletes_what_is_its_own(self):
        with Names(self.path) as other:
            other.add("mine", 1)
            other.add("kept", 2, delete_on_exit=False)
            other.add("lost", 3, ttl=0.1)
            self.names.add("lost", 4, replace=True)
            while other.has("lost"):
                threading.Event().wait(0.01)
        self.assertEqual(self.names.find_subtree(), ["kept", "lost"])

    def test_a_name_is_gone_with_its_process(self):
        p = subprocess.Popen([sys.executable, "-c", HOLDER, self.path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.assertEqual(self.names.wait("holder", timeout=60), "there")
        gone = threading.Event()
        self.names.watch_names(["holder", "nobody"], gone.set)
        p.stdout.readline()
        self.assertFalse(gone.wait(1), "a name that is renewed has ended")
        p.send_signal(signal.SIGKILL)
        self.assertTrue(gone.wait(60))
        p.communicate()

    def test_wait_and_watch(self):
        events = self.names.watch("w")
        self.assertEqual(next(events), Event("listed", "", ""))
        waits = threading.Thread(target=lambda: self.assertEqual(self.names.wait("w/0"), "x"))
        waits.start()
        self.names.add("w/0", "x")
        waits.join(60)
        self.names.delete("w/0")
        kinds = [next(events).kind]
        while kinds[-1] != "deleted":
            kinds.append(next(events).kind)
        self.assertIn(kinds, (["set", "deleted"], ["deleted"]))
        for timeout in (0, 0.05):
            with self.assertRaisesRegex(TimeoutError, f"none has no value after {timeout} s"):
                self.names.wait("none", timeout=timeout)
        self.names.add("there", "y")
        self.assertEqual(self.names.wait("there", timeout=0), "y")

    def test_bad_calls(self):
        for name in ("", "a//b", "/a", "a b", "x" * 513):
            with self.assertRaisesRegex(NamesError, "E105"):
                self.names.add(name, "")
        for ttl in (0, -1, float("nan"), float("inf")):
            with self.assertRaises(ValueError):
                self.names.add("a", "", ttl=ttl)
        with self.assertRaisesRegex(NamesError, "nobody serves names at .*rlhost names serve"):
            Names(self.path + "2").get("a")
        self.server.terminate()
        self.server.wait()
        with self.assertRaisesRegex(NamesError, "E0[78]0"):
            self.names.get("a")
        self.names.close()


if __name__ == "__main__":
    unittest.main()
