"""A store that a program starts itself, with the rlhost that is in PATH; the Go tests of this folder put it there."""

import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import numpy as np

from rlhost import objects, program

SPAWN = multiprocessing.get_context("spawn")


def double(store, out):
    with store.pop("numbers", timeout=60) as a:
        out.send((a * 2, os.getpid()))
    store.push("answers", {"sum": 6.0})
    store.close()


@unittest.skipUnless(shutil.which("rlhost"), "rlhost is not in PATH")
class ChildTest(unittest.TestCase):
    def test_a_store_is_started_sent_to_another_process_and_stopped(self):
        with objects.serve(memory_mib=64) as store:
            path = store.path
            self.assertTrue(os.path.exists(path))
            store.put("numbers", np.arange(4.0))
            store.create("answers", 4, bytes=256)
            here, there = SPAWN.Pipe(duplex=False)
            p = SPAWN.Process(target=double, args=(store, there))
            p.start()
            got, pid = here.recv()
            np.testing.assert_array_equal(got, [0, 2, 4, 6])
            self.assertEqual(store.pop("answers", timeout=60).array, {"sum": 6.0})
            p.join()
            self.assertEqual((pid, p.exitcode), (p.pid, 0))
        self.assertFalse(os.path.exists(os.path.dirname(path)))
        with self.assertRaises(objects.HostLost):
            objects.Store(path)

    def test_an_exception_stops_it_too(self):
        with self.assertRaises(ZeroDivisionError), objects.serve() as store:
            path = store.path
            1 // 0
        self.assertFalse(os.path.exists(path))

    def test_it_ends_with_a_program_that_is_killed(self):
        code = ("import os, signal\nfrom rlhost import objects\n"
                "with objects.serve() as store:\n    print(store.path, flush=True)\n    os.kill(os.getpid(), signal.SIGKILL)")
        p = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        self.assertEqual(p.returncode, -signal.SIGKILL)
        path = p.stdout.strip()
        with self.assertRaises(objects.HostLost), objects.Store(path) as store:
            store.wait_for("nothing")  # ends with the host, if that has not ended yet
        shutil.rmtree(os.path.dirname(path), ignore_errors=True)

    def test_what_keeps_it_from_starting_is_said(self):
        with self.assertRaisesRegex(objects.HostLost, "/nowhere/rlhost: No such file or directory: it is named by program="):
            with objects.serve(program="/nowhere/rlhost"):
                self.fail("it has started")
        with mock.patch.dict(os.environ, PATH="/nowhere", RLHOST_PROGRAM=""):
            program._found.cache_clear()
            with self.assertRaisesRegex(objects.HostLost, "the program rlhost is not there: looked at .* and PATH. pip install rlhost brings it"):
                objects.Server().start()
        program._found.cache_clear()
        with objects.serve() as store, self.assertRaisesRegex(objects.HostLost, "rlhost store ended with status 1"):
            with objects.serve(store.path):
                self.fail("two serve at one path")

    def test_a_server_is_started_and_stopped(self):
        with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, XDG_RUNTIME_DIR=folder):
            where = objects.ConnectionDescriptor(ip="localhost", port=12345, authkey=b"some_key")
            server = objects.Server(where)
            for _ in range(2):
                server.start()
                with self.assertRaisesRegex(objects.ObjectError, "started already"):
                    server.start()
                with objects.Store(where) as store:
                    store.put("x", 1)
                    self.assertEqual(store.names(), ["x"])  # nothing is left of the one before
                server.stop()
                server.stop()
                with self.assertRaisesRegex(objects.HostLost, "store-port-12345.sock"):
                    objects.Store(where)
        with objects.Server() as server, objects.Store(server.path) as store:
            store.put("x", 1)
        self.assertFalse(os.path.exists(os.path.dirname(server.path)))

    def test_a_name_that_is_not_there(self):
        with objects.serve() as store:
            for write in (lambda: store.push("frames", np.zeros(4)), lambda: store.new("frames", 4, "u1")):
                with self.assertRaisesRegex(objects.NotFound, "'frames': nobody has made it: create does, and put"):
                    write()
            store.put("frames", np.zeros(4))
            store.push("frames", np.ones(4))
            self.assertEqual(store.count("frames"), 2)


if __name__ == "__main__":
    unittest.main()
