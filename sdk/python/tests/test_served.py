"""Stores and channels under names, over the rlhost that is in PATH; the Go tests of this folder put it there."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
from unittest import mock

import rlhost
from rlhost import objects
from rlhost.names import Names

TTL = 10  # seconds that core/registry/remote gives them


@unittest.skipUnless(shutil.which("rlhost"), "rlhost is not in PATH")
class ServedTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        environment = mock.patch.dict(os.environ, XDG_RUNTIME_DIR=os.path.join(self.folder, "here"))
        environment.start()
        self.addCleanup(environment.stop)
        os.environ.pop("RLHOST_OBJECTS", None)
        os.mkdir(os.environ["XDG_RUNTIME_DIR"], 0o700)
        self.start("names", "serve")

    def start(self, *words, **environment):
        child = subprocess.Popen(["rlhost", *words], stdout=subprocess.PIPE, env={**os.environ, **environment})
        self.addCleanup(child.communicate)
        self.addCleanup(child.kill)
        self.assertTrue(child.stdout.readline())
        return child

    def test_names_of_killed_servers_are_gone_within_their_ttl(self):
        servers = [self.start("store", "--name", "replay"), self.start("channel", "serve", "jobs"), self.start("store")]
        names = ["rlhost/stores/replay", "rlhost/channels/jobs", "rlhost/stores/default"]
        with Names() as registry:
            for name in names:
                self.assertTrue(os.path.exists(registry.wait(name, timeout=60)), name)
            watch = registry.watch("rlhost")
            there = set()
            while (event := next(watch)).kind != "listed":
                there.add(event.name)
            self.assertEqual(there, set(names))
            for server in servers:
                server.send_signal(signal.SIGKILL)
            killed = time.monotonic()
            while there:
                event = next(watch)
                if event.kind == "deleted":
                    there.remove(event.name)
            self.assertLess(time.monotonic() - killed, TTL + 1)
            watch.close()

    def test_a_server_that_ends_takes_its_name_with_it(self):
        server = self.start("store", "--name", "replay")
        with Names() as registry:
            registry.wait("rlhost/stores/replay", timeout=60)
            server.terminate()
            server.wait()
            self.assertEqual(registry.find_subtree("rlhost"), [])

    def test_what_is_served_elsewhere_is_found_through_its_name(self):
        far = os.path.join(self.folder, "far")
        os.mkdir(far, 0o700)
        socket = os.path.join(far, "s.sock")
        self.start("store", "--name", "replay", "--socket", socket)
        self.start("channel", "serve", "jobs", XDG_RUNTIME_DIR=far)
        with Names() as registry:
            registry.wait("rlhost/stores/replay", timeout=60)
            registry.add("rlhost/channels/jobs", os.path.join(far, "rlhost", "channel-jobs.sock"))
            with rlhost.Channel.connect("jobs") as jobs:
                jobs.put(1)
                self.assertEqual(jobs.get(timeout=60), 1)
            with objects.Store(name="replay") as store:
                self.assertEqual((store.path, store.put("a", 1).index), (socket, 0))
            with self.assertRaisesRegex(rlhost.channel.NoChannel, "E110: there is no channel 'nobody'"):
                rlhost.Channel.connect("nobody")
            with self.assertRaisesRegex(objects.HostLost, "no host serves objects at .*store-nobody.sock"):
                objects.Store(name="nobody")
            with self.assertRaisesRegex(objects.LimitExceeded, "a store called 'a/b'"):
                objects.Store(name="a/b")


if __name__ == "__main__":
    unittest.main()
