"""Channels between processes, over the server that the rlhost in PATH is; the Go tests of this folder put it there."""

import asyncio
import gc
import multiprocessing
import os
import pickle
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import warnings

import numpy as np

import rlhost
from rlhost.channel import Canceled, Closed, Empty, Full, Invalid, Lost, NoChannel, TooLarge, codec, deal

RECORD = np.dtype([("id", "<i8"), ("name", "S4"), ("at", "<f4", (3,))])

VALUES = [
    None, True, -5, 1 << 80, 2.5, "text", b"bytes", [1, [2, {"a": (3, None)}]], {}, [], (), {1, "a"}, frozenset(), "x" * 200_000, b"y" * 300_000,
    np.arange(5, dtype=np.int16), np.float32(1.5), np.zeros((0, 3)), np.arange(40_000, dtype=np.float32).reshape(4, 100, 100),
    {"obs": np.arange(100_000, dtype=np.uint8), "rest": [np.ones((300, 300)), "s", {"deep": np.arange(1000, dtype="<c16")}]},
    np.array(["2026-01-01", "2027-01-01"], "datetime64[D]"), np.array(["ab", "cde"]), np.zeros(50, RECORD), np.arange(5000)[::2],
    np.asfortranarray(np.arange(10_000).reshape(100, 100)), np.array(7.5), np.array("s"), [np.zeros(1000, np.bool_)] * 3,
]


def same(a, b):
    if isinstance(a, np.ndarray):
        return isinstance(b, np.ndarray) and a.dtype == b.dtype and a.shape == b.shape and bool(np.array_equal(a, b))
    if isinstance(a, dict):
        return type(b) is dict and list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and a == b


def produce(channel, n):
    for i in range(n):
        channel.put({"n": i, "data": np.full(i * 100, i)}, weight=i % 5, key="k")


def consume(channel, n, results):
    got = []
    while len(got) < n:
        got += [(i["n"], int(i["data"].sum())) for i in channel.get_batch(8, "k", timeout=5)]
    results.put(got)


HELD = """
import sys, time, rlhost
c = rlhost.Channel.connect(sys.argv[1])
mine = [c.get(), c.get()]          # of the second it has not said that it has used it
waiting = c.get_batch(100, async_op=True)
print("holds", flush=True)
time.sleep(100)
"""

BATCH = """
import os, sys, rlhost
c = rlhost.Channel.connect(sys.argv[1])
before = [c.get(), c.get(), c.get()]
batch = c.get_batch(4)             # its regions are mapped before it is here
del before                         # two regions of three are given back; the next request would give back the other
os._exit(0)
"""


@unittest.skipUnless(shutil.which("rlhost"), "rlhost is not in PATH")
class ChannelTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.runtime = os.environ.get("XDG_RUNTIME_DIR")
        os.environ["XDG_RUNTIME_DIR"] = cls.folder.name

    @classmethod
    def tearDownClass(cls):
        if cls.runtime is None:
            del os.environ["XDG_RUNTIME_DIR"]
        else:
            os.environ["XDG_RUNTIME_DIR"] = cls.runtime
        cls.folder.cleanup()

    def channel(self, maxsize=0, **bounds):
        c = rlhost.Channel.create(self.id().rsplit(".", 1)[-1][:60], maxsize, **bounds)
        self.addCleanup(c.leave)
        return c

    def until(self, ok):
        end = time.monotonic() + 30
        while not ok():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.002)

    def test_items_of_all_sorts(self):
        c = self.channel()
        for value in VALUES:
            for _ in range(2):
                c.put(value)
                self.assertTrue(same(value, c.peek()), value)
                got = c.get()
                self.assertTrue(same(value, got), value)
        c.put([np.zeros(100_000), np.arange(10)])
        got = c.get()
        for array in got:
            self.assertTrue(array.flags.writeable and array.flags.aligned)
            array += 1
        c.put(got)
        self.assertEqual(float(c.get()[0].sum()), 100_000)
        for wrong in (object(), {object()}, np.array([None]), lambda: 0):
            with self.assertRaises(TypeError):
                c.put(wrong)
        self.assertEqual(c.stat()["items"], 0)

    def test_what_lies_in_shared_memory_is_not_copied(self):
        c = self.channel()
        a = np.arange(1 << 17)
        c.put(a)
        first = c.get()
        where = first.ctypes.data
        c.put(first)             # passed on
        del first
        gc.collect()
        again = c.get()
        np.testing.assert_array_equal(again, a)
        view = again[5:10]       # the memory lasts as long as a part of it is used
        del again
        gc.collect()
        for _ in range(5):
            c.put(np.zeros(1 << 17))
            c.get()
        np.testing.assert_array_equal(view, a[5:10])
        self.assertNotEqual(where, 0)

    def test_the_methods_of_queues(self):
        c = self.channel(2)
        self.assertTrue(c.empty() and not c.full())
        c.put(1)
        c.put_no_wait(2, weight=3)
        self.assertTrue(c.full() and not c.empty())
        self.assertEqual((c.qsize(), c.qsize("other"), c.peek()), (2, 0, 1))
        self.assertEqual(str(c), "Channel('test_the_methods_of_queues', 2 items; default: 2 of weight 4)")
        with self.assertRaises(queue.Full):
            c.put_nowait(3)
        with self.assertRaises(Full):
            c.put(3, timeout=0.01)
        self.assertEqual([c.get(), c.get_no_wait()], [1, 2])
        with self.assertRaises(queue.Empty):
            c.get_nowait()
        for call in (c.get, lambda timeout: c.get_batch(5, timeout=timeout)):
            with self.assertRaises(Empty):
                call(timeout=0.01)
        with self.assertRaises(Empty):
            c.peek()

    def test_batches(self):
        c = self.channel()
        for n, weight in enumerate((2, 2, 2, 9, 0, 0, 1)):
            c.put(n, weight)
        self.assertEqual(c.get_batch(5), [0, 1])       # the next would be too many
        self.assertEqual(c.get_batch(target_weight=5), [2])
        self.assertEqual(c.get_batch(5), [3])          # heavier than that
        self.assertEqual(c.get_batch(5, timeout=0.01), [4, 5, 6])
        for n in range(20):
            c.put(n, 0.1)
        self.assertEqual(c.get_batch(1), list(range(10)))
        self.assertEqual(c.get_batch(5, most=3), [10, 11, 12])
        self.assertEqual(c.get_batch(), [13])          # RLinf's default never ends
        for n in range(2000):
            c.put("x" * 100 + str(n), key="many")
        self.assertEqual(len(c.get_batch(2000, "many")), 2000)  # more than a frame

    def test_a_full_channel_does_not_stall_a_batch(self):
        c = self.channel(2)
        batch = c.get_batch(10, async_op=True)
        puts = [c.put(n, async_op=True) for n in range(5)]
        self.assertEqual(batch.wait(5), [0, 1])
        self.assertEqual([c.get(), c.get(), c.get()], [2, 3, 4])
        for p in puts:
            p.wait(5)

    def test_a_bound_is_each_keys(self):
        c = self.channel(1, max_bytes=300_000)
        c.put("a", key="a")
        c.put("b", key="b")
        with self.assertRaises(Full):
            c.put_nowait("b", key="b")
        self.assertTrue(c.full("a") and not c.full("c"))
        large = np.zeros(25_000)
        c.put(large, key="c")
        wait = c.get("d", async_op=True)
        c.put(large, key="d", timeout=5)     # there is no memory for it, but one waits for it
        self.assertEqual(wait.wait().nbytes, 200_000)

    def test_handles_end_in_any_order(self):
        c = self.channel()
        gets = [c.get(key=str(n), async_op=True) for n in range(50)]
        self.assertFalse(gets[7].done)
        with self.assertRaises(TimeoutError):
            gets[7].wait(0.01)
        for n in reversed(range(50)):
            c.put(n, key=str(n))
        self.assertEqual([g.wait(5) for g in reversed(gets)], list(reversed(range(50))))
        self.assertEqual(gets[3].wait(), 3)
        self.assertTrue(gets[0].done)
        puts = [c.put("x" * 60_000, async_op=True) for _ in range(200)]   # more than sockets hold
        self.assertEqual(sum(len(i) for i in c.get_batch(200)), 12_000_000)
        for p in puts:
            p.wait(5)

    def test_calls_under_way_are_bounded(self):
        c = self.channel()
        gets = [c.get(async_op=True) for _ in range(1 << 14)]
        with self.assertRaisesRegex(Invalid, "E112: .*16384 calls are under way"):
            c.get(async_op=True)
        late = rlhost.Channel.connect(c.name)
        late.put("first")
        self.assertEqual(gets[0].wait(5), "first")
        c.put("second")
        self.assertEqual(gets[1].wait(5), "second")
        late.leave()

    def test_what_nobody_takes_is_put_back(self):
        c = self.channel()
        h = c.get(async_op=True)
        self.assertTrue(h.cancel())
        with self.assertRaises(Canceled):
            h.wait()
        c.put(1)
        c.put(np.arange(50_000))
        self.assertFalse((late := c.get(async_op=True)).wait() and late.cancel())
        h = c.get_batch(2, async_op=True)
        c.put("third")
        h.done
        del h, late
        gc.collect()
        self.assertEqual(c.get_batch(5, timeout=0.01)[1], "third")
        h = c.get(async_op=True)
        del h
        gc.collect()
        c.put("kept")
        self.assertEqual(c.get(timeout=5), "kept")

    def test_an_interrupt_right_after_the_request_takes_no_item(self):
        class Interrupting:
            def __init__(self, socket):
                self.socket = socket

            def __getattr__(self, name):
                return getattr(self.socket, name)

            def send(self, *frame):
                connection.socket = self.socket
                self.socket.send(*frame)
                raise KeyboardInterrupt

        with self.channel() as c, rlhost.Channel.connect(c.name) as d:
            d.qsize()
            connection = d._connection
            for get in (d.get, lambda: d.get_batch(1), lambda: d.get(async_op=True)):
                connection.socket = Interrupting(connection.socket)
                with self.assertRaises(KeyboardInterrupt):
                    get()
                c.put("one")
                self.assertEqual(d.get(timeout=10), "one")

    def test_asyncio(self):
        c = self.channel()
        ticks = []

        async def tick():
            while True:
                ticks.append(0)
                await asyncio.sleep(0.001)

        async def main():
            other = asyncio.create_task(tick())
            gets = [asyncio.create_task(c.get(async_op=True).async_wait()) for _ in range(3)]
            await asyncio.sleep(0.05)
            self.assertGreater(len(ticks), 5)          # nobody holds the loop
            for n in range(3):
                await c.put(n, async_op=True)
            self.assertEqual(sorted(await asyncio.gather(*gets)), [0, 1, 2])
            with self.assertRaises(asyncio.TimeoutError):
                await asyncio.wait_for(c.get_batch(3, async_op=True), 0.02)
            await c.put("after", async_op=True)
            self.assertEqual(await asyncio.wait_for(c.get(async_op=True), 5), "after")
            blocked = threading.Thread(target=lambda: c.put(c.get(key="in"), key="out"))   # a thread waits on the same connection
            blocked.start()
            out = asyncio.create_task(c.get(key="out", async_op=True).async_wait())
            await asyncio.sleep(0.01)
            await c.put(5, key="in", async_op=True)
            self.assertEqual(await asyncio.wait_for(out, 5), 5)
            blocked.join()
            other.cancel()

        asyncio.run(main())
        self.assertEqual(c.stat()["waiting_gets"], 0)

    def test_threads_share_a_client(self):
        c = self.channel(50)
        got, lock = [], threading.Lock()

        def take():
            while (n := c.get()) >= 0:
                with lock:
                    got.append(n)

        takers = [threading.Thread(target=take) for _ in range(4)]
        givers = [threading.Thread(target=lambda t=t: [c.put(t * 1000 + n) for n in range(300)]) for t in range(4)]
        for t in takers + givers:
            t.start()
        for t in givers:
            t.join()
        for _ in takers:
            c.put(-1)
        for t in takers:
            t.join()
        self.assertEqual(sorted(got), sorted(t * 1000 + n for t in range(4) for n in range(300)))

    def test_processes(self):
        c = self.channel(20)
        for method in ("fork", "spawn"):
            context = multiprocessing.get_context(method)
            results = context.Queue()
            workers = [context.Process(target=produce, args=(c, 60)), context.Process(target=consume, args=(c, 60, results))]
            for w in workers:
                w.start()
            self.assertEqual(results.get(timeout=60), [(n, n * n * 100) for n in range(60)])
            for w in workers:
                w.join()
                self.assertEqual(w.exitcode, 0)
        self.assertEqual(pickle.loads(pickle.dumps(c)).qsize(), 0)
        self.assertEqual((c.stat()["lost"], c.stat()["keys"]), (0, 0))

    def test_a_killed_client_loses_what_it_held(self):
        c = self.channel()
        for n in range(5):
            c.put(n)
        child = subprocess.Popen([sys.executable, "-c", HELD, c.name], stdout=subprocess.PIPE)
        self.assertEqual(child.stdout.readline(), b"holds\n")
        self.until(lambda: c.stat()["waiting_gets"] == 1)
        child.send_signal(signal.SIGKILL)
        child.communicate()
        self.until(lambda: c.stat()["waiting_gets"] == 0)
        self.assertEqual(c.stat()["lost"], 0)       # its last request said that it had used both
        self.assertEqual(c.get_batch(3), [2, 3, 4])

    def test_a_dead_client_loses_all_of_its_last_batch(self):
        c = self.channel()
        for n in range(8):
            c.put(np.full(1 if n in (3, 5) else 20_000, n))
        subprocess.run([sys.executable, "-c", BATCH, c.name], check=True)
        self.until(lambda: c.stat()["lost"])
        self.assertEqual((c.stat()["lost"], c.stat()["items"]), (5, 1))

    def test_a_handle_that_is_gone_before_leave_gives_back_what_it_got(self):
        c = self.channel()
        other = rlhost.Channel.connect(c.name)
        for n in range(2):
            c.put(n)
        handle = other.get_batch(2, async_op=True)
        self.until(lambda: handle.done)
        del handle
        other.leave()
        self.assertEqual((c.get_batch(2), c.stat()["lost"]), ([0, 1], 0))

    def test_the_same_name_twice(self):
        c = self.channel(3)
        with self.assertWarnsRegex(RuntimeWarning, "its bounds stay as they are"):
            d = rlhost.Channel.create(c.name, 9)
        d.put(1)
        d.leave()
        self.assertEqual((c.get(), c.stat()["max_items"]), (1, 3))

    def test_closed(self):
        c = self.channel(1)
        gets = [c.get(key="none", async_op=True), c.get_batch(5, async_op=True)]
        c.put("left", key="other")
        self.until(lambda: c.stat()["waiting_gets"] == 2)
        put = c.put(1, key="other", async_op=True)
        c.close()
        for h in gets + [put]:
            with self.assertRaisesRegex(Closed, "E113: channel 'test_closed': the channel is closed"):
                h.wait(5)
        self.assertEqual(c.get("other"), "left")
        for call in (lambda: c.get("other"), lambda: c.put(1)):
            with self.assertRaises(Closed):
                call()

    def test_an_error_of_a_put_that_was_not_waited_for(self):
        c = self.channel()
        large = np.zeros(100_000)
        c.put(large)
        c.put(large)        # there was much room: it returns at once
        c.close()
        c.put(large, key="k")
        with self.assertRaisesRegex(Closed, "the item that was put last is lost"):
            c.put(large)
        self.assertEqual((len(c.get_batch(5)), c.stat()["lost"]), (2, 1))

    def test_what_is_wrong(self):
        c = self.channel(max_bytes=100_000)
        for weight in (-1, float("nan"), float("inf")):
            with self.assertRaisesRegex(Invalid, "E112: .*weight of"):
                c.put(1, weight)
            with self.assertRaisesRegex(Invalid, "E112: .*weight of"):
                c.get_batch(weight)
        with self.assertRaisesRegex(Invalid, "a key of 1000000 bytes: want 1 to 1024"):
            c.put(1, key="k" * 1_000_000)
        with self.assertRaisesRegex(TypeError, "a key is text, not int"):
            c.get(5)
        for size in (90_000, 200_000):
            with self.assertRaisesRegex(TooLarge, "E111: .*the channel takes 100000"):
                c.put([np.zeros(size, np.uint8), b"x" * 20_000])
        with self.assertRaisesRegex(Invalid, "a timeout of -1"):
            c.get(timeout=-1)
        with self.assertRaisesRegex(NoChannel, "E110: there is no channel 'none'"):
            rlhost.Channel.connect("none", timeout=0.02)
        with self.assertRaisesRegex(Invalid, "want up to 64 letters"):
            rlhost.Channel.connect("../x")
        with self.assertRaisesRegex(Invalid, "maxsize -1"):
            rlhost.Channel.create("x", -1)
        self.assertEqual((c.stat()["items"], c.stat()["keys"]), (0, 0))

    def test_memory_that_is_held_is_bounded(self):
        c = self.channel(max_bytes=4_000_000)
        held = []
        for n in range(30):
            c.put(np.full(1_000_000, n, np.uint8))
            held.append(c.get())
        self.assertEqual([int(a[-1]) for a in held], list(range(30)))
        shared = sum(type(a.base).__name__ == "Region" for a in held)
        self.assertTrue(1 <= shared <= 2, shared)

    def test_an_orderly_end_puts_back_what_was_on_its_way(self):
        c = self.channel()
        d = rlhost.Channel.connect(c.name)
        d.get(async_op=True)._connection      # its handle goes at once
        mine = [d.get(async_op=True) for _ in range(3)]
        for n in range(3):
            c.put(n)
        d.leave()
        with self.assertRaises(Lost):
            mine[0].wait()
        self.until(lambda: c.stat()["items"] == 3)
        self.assertEqual((c.get_batch(3), c.stat()["lost"]), ([0, 1, 2], 0))

    def test_the_server_ends_with_its_maker(self):
        c = self.channel()
        d = rlhost.Channel.connect(c.name)
        waiting = d.get(async_op=True)
        c.leave()
        with self.assertRaises((Lost, Closed)):
            waiting.wait(10)
        with self.assertRaises(NoChannel):
            rlhost.Channel.connect(c.name)
        with self.assertRaisesRegex(Lost, "E114"):
            d.put(1)

    def test_deal(self):
        lengths = [900, 100, 700, 300, 500, 500]
        self.assertEqual(deal(lengths, 3), [[0, 1], [2, 3], [4, 5]])
        self.assertEqual(deal([5, 1, 1, 1, 1], 2, "least_loaded"), [[0], [1, 2, 3, 4]])
        self.assertEqual(deal([2, 2, 4, 1, 3], 3, "by_weight"), [[0, 1], [2], [3, 4]])
        self.assertEqual(deal([0, 0, 0], 2), [[0, 2], [1]])
        for weights, parts, how in (([1], 0, "by_weight"), ([-1], 1, "by_weight"), ([1], 1, "at_random")):
            with self.assertRaises(Invalid):
                deal(weights, parts, how)

    def test_bytes_that_are_no_item(self):
        for data in (b"", b"A", b"A\0\0\0" + b"\xff" * 20, b"z", b"p\x05\0\0\0", codec.join(*codec.encode([np.zeros(1000)]))[:-1]):
            with self.assertRaises(ValueError):
                codec.decode(data)
        rng = np.random.default_rng(0)
        good = bytearray(codec.join(*codec.encode({"a": np.zeros(200), "b": [1, "two"]})))
        for _ in range(3000):
            bad = bytearray(good)
            for _ in range(1 + rng.integers(3)):
                bad[rng.integers(min(len(bad), 200))] = rng.integers(256)
            try:
                codec.decode(bytes(bad))
            except (ValueError, TypeError):
                pass


if __name__ == "__main__":
    warnings.simplefilter("error")
    unittest.main()
