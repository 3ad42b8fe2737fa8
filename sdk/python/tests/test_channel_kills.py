"""Producers and consumers of a channel that are killed at random: RLHOST_KILLS of them, a few by default."""

import collections
import os
import random
import shutil
import signal
import struct
import tempfile
import time
import unittest

import numpy as np

import rlhost
from rlhost.channel import Closed, Empty

KEYS, PRODUCERS, CONSUMERS = 1000, 8, 8
NOTE = struct.Struct("<cQ")


def produce(channel, number, stop, seed, note):
    """Puts items of all sizes until it is told to stop; it notes each before and after."""
    r = random.Random(seed)
    n = number << 32
    while not os.path.exists(stop):
        n += 1
        key = str(r.randrange(KEYS)) if r.random() < 0.7 else "hot"
        large = r.random() < 0.05
        item = {"id": n, "data": np.full(20_000 if large else 5, n)}
        note(b"b", n)
        if r.random() < 0.2:
            channel.put(item, r.randrange(4), key, async_op=True).wait()
        else:
            channel.put(item, r.randrange(4), key)
        note(b"a", n)


def consume(channel, seed, note):
    """Takes items until the channel is closed and empty, and notes each."""
    r = random.Random(seed)
    while True:
        key = str(r.randrange(KEYS)) if r.random() < 0.5 else "hot"
        try:
            if r.random() < 0.5:
                items = channel.get_batch(r.randrange(8), key, 1 if key == "hot" else 0.01)  # all at once would wait for a key that nobody fills
            elif r.random() < 0.3:
                handle = channel.get(key, timeout=0.02, async_op=True)
                if r.random() < 0.3:
                    del handle  # what it gets goes back
                    continue
                items = [handle.wait()]
            else:
                items = [channel.get(key, timeout=0.01)]
        except Empty:
            continue
        except Closed:
            now = channel.stat()
            if now["items"] == 0 and now["closed"]:
                return
            for k in now["keys_with_items"] or []:
                try:
                    for item in channel.get_batch(1e6, k["key"], 0):
                        note(b"g", item["id"])
                except (Closed, Empty):
                    continue
            continue
        for item in items:
            if int(item["data"][-1]) != item["id"]:
                note(b"x", item["id"])
            note(b"g", item["id"])


@unittest.skipUnless(shutil.which("rlhost"), "rlhost is not in PATH")
class KillTest(unittest.TestCase):
    def test_nothing_is_lost_uncounted_and_nothing_comes_twice(self):
        kills, seed = int(os.environ.get("RLHOST_KILLS", "30")), random.SystemRandom().randrange(1 << 30)
        self.r = random.Random(seed)
        runtime = os.environ.get("XDG_RUNTIME_DIR")
        with tempfile.TemporaryDirectory() as self.folder, self.subTest(seed=seed):
            os.environ["XDG_RUNTIME_DIR"] = self.folder
            try:
                with rlhost.Channel.create("kills", 2000, max_bytes=20_000_000) as self.channel:
                    self.play(kills)
            finally:
                os.environ.pop("XDG_RUNTIME_DIR")
                if runtime is not None:
                    os.environ["XDG_RUNTIME_DIR"] = runtime

    def start(self, role):
        """Forks a worker."""
        self.started += 1
        number, seed = self.started, self.r.randrange(1 << 30)
        pid = os.fork()
        if pid:
            self.workers[pid] = role
            return
        status = 1
        try:
            log = os.open(os.path.join(self.folder, f"notes-{number}"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)

            def note(kind, n):
                os.write(log, NOTE.pack(kind, n))

            if role == "put":
                produce(self.channel, number, os.path.join(self.folder, "stop"), seed, note)
            else:
                consume(self.channel, seed, note)
            self.channel.leave()
            status = 0
        finally:
            os._exit(status)

    def moves(self):
        """Fails where nothing has moved for long: a channel that stalls."""
        now = self.channel.stat()
        if (now["puts"], now["gets"]) != self.last[0]:
            self.last = (now["puts"], now["gets"]), time.monotonic()
        self.assertLess(time.monotonic() - self.last[1], 20, now)

    def play(self, kills):
        self.workers, self.started, self.last = {}, 0, ((0, 0), time.monotonic())
        for role, n in (("put", PRODUCERS), ("get", CONSUMERS)):
            for _ in range(n):
                self.start(role)
        for _ in range(kills):
            time.sleep(self.r.random() * 0.1)
            pid = self.r.choice(list(self.workers))
            os.kill(pid, signal.SIGKILL)
            _, status = os.waitpid(pid, 0)
            self.assertEqual(status, signal.SIGKILL, "a worker has failed before")
            self.start(self.workers.pop(pid))
            self.moves()
        open(os.path.join(self.folder, "stop"), "w").close()
        for role in ("put", "get"):
            for pid in [p for p, r in self.workers.items() if r == role]:
                while (ended := os.waitpid(pid, os.WNOHANG)) == (0, 0):
                    self.moves() if role == "put" else None
                    time.sleep(0.01)
                self.assertEqual(ended[1], 0)
            if role == "put":
                self.channel.close()
        self.count()

    def count(self):
        notes = collections.defaultdict(list)
        for name in os.listdir(self.folder):
            if name.startswith("notes-"):
                with open(os.path.join(self.folder, name), "rb") as f:
                    data = f.read()
                for kind, n in NOTE.iter_unpack(data[:len(data) // NOTE.size * NOTE.size]):
                    notes[kind].append(n)
        got, now = set(notes[b"g"]), self.channel.stat()
        self.assertEqual(notes[b"x"], [], "items whose data is another's")
        self.assertEqual(len(got), len(notes[b"g"]), "items came twice")
        self.assertLessEqual(got, set(notes[b"b"]))
        missing = set(notes[b"a"]) - got
        self.assertLessEqual(len(missing), now["lost"])
        self.assertEqual((now["items"], now["bytes"], now["waiting_gets"], now["waiting_puts"], now["keys"]), (0, 0, 0, 0, 0))
        self.assertEqual(now["puts"] + now["returned"], now["gets"])
        self.assertGreater(len(got), 100)
        if "RLHOST_KILLS" in os.environ:
            print(f"{self.started - PRODUCERS - CONSUMERS} kills, {len(notes[b'a'])} items put, {len(got)} got, {len(missing)} of them missing, "
                  f"{now['lost']} counted as lost, {now['returned']} put back")


if __name__ == "__main__":
    unittest.main()
