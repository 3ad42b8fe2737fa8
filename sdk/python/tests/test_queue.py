"""The queue between Python processes."""

import multiprocessing
import os
import queue
import random
import signal
import struct
import threading
import time
import unittest
import zlib

import rlhost

SPAWN = multiprocessing.get_context("spawn")
FORK = multiprocessing.get_context("fork")


def raw(maxsize, message_bytes):
    """A queue of bytes with a cell for each message."""
    return rlhost.Queue(maxsize=maxsize, message_bytes=message_bytes, codec="bytes")


def produce(q, producer, count, batch):
    for first in range(0, count, batch):
        numbers = range(first, min(first + batch, count))
        messages = [struct.pack("<II", producer, n) for n in numbers]
        if batch == 1:
            q.put(messages[0], timeout=30)
        elif q.put_many(messages, timeout=30) != len(messages):
            raise RuntimeError("put_many gave up")


def consume(q, out):
    """Takes messages until the queue is shut, and sends back what came."""
    got = []
    try:
        while True:
            got += q.get_many(timeout=30, max_messages_to_get=7) if len(got) % 2 else [q.get(timeout=30)]
    except rlhost.Closed:
        out.send(got)


def churn(q, seed):
    """Puts and gets until it is killed. What it puts says so in its first word."""
    rng = random.Random(seed)
    n = 0
    while True:
        try:
            if rng.random() < 0.5:
                batch = rng.randint(1, 8)
                q.put_many([struct.pack("<II", 0xFFFFFFFF, n + i) for i in range(batch)], False, whole=False)
                n += batch
            else:
                q.get_many_nowait(rng.randint(1, 8))
        except (queue.Empty, queue.Full):
            pass


def churn_any(q, seed):
    """As churn does, with messages of many sizes, each with a sum."""
    rng = random.Random(seed)
    while True:
        try:
            if rng.random() < 0.5:
                q.put_many_nowait([summed(rng.randbytes(rng.choice((0, 20, 60, 500, 3000)))) for _ in range(rng.randint(1, 4))], whole=False)
            else:
                for data in q.get_many_nowait(rng.randint(1, 8)):
                    check(data)
        except (queue.Empty, queue.Full):
            pass


def summed(data):
    return struct.pack("<I", zlib.crc32(data)) + data


def check(data):
    if struct.unpack("<I", data[:4])[0] != zlib.crc32(data[4:]):
        raise AssertionError(f"{len(data)} bytes are not what was put")


def put_one(q, data):
    q.put(data, timeout=10)


def error_of(call, q):
    try:
        call(q)
    except (rlhost.Closed, queue.Empty, queue.Full) as e:
        return e


def until_it_sleeps(thread):
    """Returns when a thread of this process waits in the kernel, five looks in a row."""
    asleep = 0
    while asleep < 5:
        with open(f"/proc/self/task/{thread.native_id}/stat") as f:
            asleep = asleep + 1 if f.read().rpartition(") ")[2][0] == "S" else 0
        time.sleep(0.001)


class QueueTest(unittest.TestCase):
    def test_bytes_come_out_in_order(self):
        with raw(8, 20) as q:
            for data in (b"", b"a", b"0123456789abcdef", bytes(20)):
                q.put(data)
            self.assertEqual(len(q), 4)
            self.assertEqual([q.get() for _ in range(4)], [b"", b"a", b"0123456789abcdef", bytes(20)])
            self.assertTrue(q.empty())

    def test_full_empty_and_timeouts(self):
        with raw(4, 4) as q:
            with self.assertRaises(queue.Empty):
                q.get(False)
            began = time.monotonic()
            with self.assertRaises(queue.Empty):
                q.get_many(True, 0.15, 5)
            self.assertGreaterEqual(time.monotonic() - began, 0.15)
            self.assertEqual(q.put_many([b"1", b"2", b"3", b"4", b"5"], timeout=0, whole=False), 4)
            with self.assertRaises(queue.Full):
                q.put(b"x", True, 0.01)
            self.assertEqual(q.get_many(), [b"1", b"2", b"3", b"4"])

    def test_what_it_does_not_take_is_refused(self):
        with raw(4, 4) as q:
            with self.assertRaisesRegex(ValueError, "message of 5 bytes, the queue takes up to 4"):
                q.put(b"12345")
            with self.assertRaises(TypeError):
                q.put("text")
            with self.assertRaises(TypeError):
                q.put_many(b for b in (b"1",))
            with self.assertRaises(ValueError):
                q.put_many([b"1", b"12345"])
            for timeout in (-1, float("nan"), "soon"):
                with self.assertRaises((ValueError, TypeError)):
                    q.get(timeout=timeout)
            with self.assertRaises(ValueError):
                q.get_many(max_messages_to_get=0)
            q.shut()
            with self.assertRaises(rlhost.Closed):
                q.put(b"x")
        with self.assertRaises(rlhost.Closed):
            q.get(False)

    def test_many_messages_at_once(self):
        with raw(4096, 8) as q:
            data = [struct.pack("<Q", i) for i in range(3000)]
            self.assertEqual(q.put_many(data), 3000)
            self.assertEqual(q.get_many(max_messages_to_get=5000), data)

    def test_long_messages(self):
        with raw(4, 1 << 19) as q:
            data = [os.urandom(1 << 19) for _ in range(3)]
            q.put_many(data)
            self.assertEqual(q.get_many(), data)

    def test_threads_share_it(self):
        with raw(16, 8) as q:
            putters = [threading.Thread(target=produce, args=(q, i, 500, 3)) for i in range(3)]
            got = []
            for thread in putters:
                thread.start()
            getters = [threading.Thread(target=lambda: got.extend(q.get(timeout=10) for _ in range(500))) for _ in range(3)]
            for thread in getters:
                thread.start()
            for thread in putters + getters:
                thread.join()
            self.assertEqual(len(set(got)), 1500)

    def test_forked_and_spawned_processes_share_it(self):
        for context, processes, count in ((FORK, 3, 2000), (SPAWN, 2, 2000)):
            for batch in (1, 9):
                with self.subTest(method=context.get_start_method(), batch=batch), raw(64, 8) as q:
                    consumers, ends = [], []
                    for _ in range(processes):
                        end, theirs = context.Pipe(duplex=False)
                        consumers.append(context.Process(target=consume, args=(q, theirs)))
                        ends.append(end)
                    producers = [context.Process(target=produce, args=(q, i, count, batch)) for i in range(processes)]
                    for p in consumers + producers:
                        p.start()
                    for p in producers:
                        p.join()
                    q.shut()
                    got = [message for end in ends for message in end.recv()]
                    for p in consumers:
                        p.join()
                    self.assertEqual(sorted(got), sorted(struct.pack("<II", i, n) for i in range(processes) for n in range(count)))

    def test_it_travels_over_a_pipe(self):
        here, there = FORK.Pipe()
        with raw(8, 8) as q:
            here.send(q)
            with there.recv() as copy:
                copy.put(b"hello")
                self.assertEqual(q.get(timeout=5), b"hello")
            q.put(b"still")
            self.assertEqual(q.get(False), b"still")

    def test_detaching_in_a_child_leaves_the_parent_attached(self):
        with raw(8, 8) as q:
            q.put(b"1")
            p = FORK.Process(target=q.detach)
            p.start()
            p.join()
            self.assertEqual(q.recover(), 0)
            q.put(b"2")
            self.assertEqual(q.get_many(), [b"1", b"2"])

    def test_detaching_ends_the_calls_of_other_threads_that_wait(self):
        def full():
            q = raw(2, 8)
            q.put_many([b"1", b"2"])
            return q

        for make, call in ((lambda: raw(2, 8), lambda q: q.get(timeout=None)), (lambda: raw(2, 8), lambda q: q.get_many()),
                           (full, lambda q: q.put(b"3")), (full, lambda q: q.put_many([b"3", b"4"]))):
            files = len(os.listdir("/proc/self/fd"))  # those of earlier tests may be collected meanwhile
            q, raised = make(), []
            threads = [threading.Thread(target=lambda: raised.append(error_of(call, q))) for _ in range(3)]
            for thread in threads:
                thread.start()
            for thread in threads:
                until_it_sleeps(thread)
            q.detach()
            for thread in threads:
                thread.join()
            self.assertEqual([type(e) for e in raised], [rlhost.Closed] * 3)
            self.assertRegex(str(raised[0]), "queue")
            self.assertLessEqual(len(os.listdir("/proc/self/fd")), files, "a detached queue has files open")
            q.detach()

    def test_queues_are_detached_while_threads_use_them(self):
        for round in range(300):
            q = raw(8, 8)
            threads = [threading.Thread(target=error_of, args=(use, q)) for use in (
                lambda q: [q.get() for _ in range(1000)], lambda q: [q.put(b"1") for _ in range(1000)],
                lambda q: [q.get_many(max_messages_to_get=7) for _ in range(1000)], lambda q: [q.put_many([b"1"] * 9) for _ in range(1000)],
                lambda q: [(q.recover(), len(q)) for _ in range(1000)])]
            for thread in threads:
                thread.start()
            while round % 3 and q.empty():
                pass
            q.detach()
            for thread in threads:
                thread.join()
            with self.assertRaises(rlhost.Closed):
                q.qsize()

    def test_a_signal_may_detach_the_queue_that_is_waited_for(self):
        with raw(8, 8) as q:
            before = signal.signal(signal.SIGALRM, lambda *_: q.detach())
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.05)
                with self.assertRaises(rlhost.Closed):
                    q.get()
            finally:
                signal.signal(signal.SIGALRM, before)

    def kill_two(self, work, q, rng):
        """Kills two processes in the middle of what they do with a queue, and repairs it."""
        victims = [FORK.Process(target=work, args=(q, rng.random())) for _ in range(2)]
        for p in victims:
            p.start()
        while q.empty() and all(p.is_alive() for p in victims):
            time.sleep(0.0005)
        time.sleep(rng.random() * 0.004)
        for p in victims:
            os.kill(p.pid, signal.SIGKILL)
        for p in victims:
            p.join()
            self.assertEqual(p.exitcode, -signal.SIGKILL)
        q.recover()

    def test_killed_processes_block_nobody(self):
        """Kills processes in the middle of what they do: what lives gets every message that it puts itself, once."""
        seed = random.randrange(1 << 32)
        rng = random.Random(seed)
        with self.subTest(seed=seed), raw(16, 8) as q:
            own = 0
            for _ in range(40):
                self.kill_two(churn, q, rng)
                while not q.empty():
                    q.get_many(timeout=5, max_messages_to_get=64)
                mine = [struct.pack("<II", 1, own + i) for i in range(16)]
                own += 16
                self.assertEqual(q.put_many(mine, timeout=5), 16, "the queue is stuck for who puts")
                got = []
                while len(got) < 16:
                    got += q.get_many(timeout=5, max_messages_to_get=16)
                self.assertEqual(got, mine)
            self.assertEqual(q.lost, 0)

    def test_killed_processes_spoil_no_message_of_any_size(self):
        """Kills processes in the middle of what they do: each message that comes out is one that was put, and what lives gets
        every message that it puts itself, once and in order."""
        seed = random.randrange(1 << 32)
        rng = random.Random(seed)
        with self.subTest(seed=seed), rlhost.Queue(12000, codec="bytes") as q:
            for round in range(40):
                self.kill_two(churn_any, q, rng)
                while not q.empty():
                    for data in q.get_many(timeout=5, max_messages_to_get=64):
                        check(data)
                mine = [summed(b"%d" % round + rng.randbytes(rng.choice((0, 60, 2000)))) for _ in range(5)]
                self.assertEqual(q.put_many(mine, timeout=5), 5, "the queue is stuck for who puts")
                got = []
                while len(got) < 5:
                    got += q.get_many(timeout=5, max_messages_to_get=16)
                self.assertEqual(got, mine)
                self.assertEqual((q.qsize(), q.data_size(), q.empty()), (0, 0, True))
                q.put(bytes(12000), timeout=5)  # nothing of its room is lost
                self.assertEqual(len(q.get()), 12000)
            self.assertEqual(q.lost, 0)

    def test_killed_processes_leave_the_bound_whole(self):
        """Kills processes that put into a queue of at most 5 messages: then there is room for 5 again, and for no more."""
        seed = random.randrange(1 << 32)
        rng = random.Random(seed)
        with self.subTest(seed=seed), rlhost.Queue(12000, 5, codec="bytes") as q:
            for _ in range(40):
                self.kill_two(churn, q, rng)
                while not q.empty():
                    self.assertLessEqual(len(q.get_many(timeout=5)), 5)
                self.assertEqual(q.put_many([b"1"] * 5, timeout=5), 5)
                with self.assertRaises(queue.Full):
                    q.put_nowait(b"6")
                self.assertEqual(q.get_many(timeout=5), [b"1"] * 5)

    def test_who_waits_repairs_what_a_dead_process_left(self):
        with raw(4, 8) as q:
            for _ in range(30):
                p = FORK.Process(target=churn, args=(q, 1))
                p.start()
                time.sleep(0.003)
                os.kill(p.pid, signal.SIGKILL)
                p.join()
                helper = FORK.Process(target=put_one, args=(q, b"mine"))
                helper.start()
                while q.get(timeout=10) != b"mine":
                    pass
                helper.join()
                self.assertEqual(helper.exitcode, 0)

    def test_numbers_of_owners_are_used_again(self):
        with raw(8, 8) as q:
            for _ in range(20):
                p = FORK.Process(target=put_one, args=(q, b"x"))
                p.start()
                p.join()
                self.assertEqual(q.get(timeout=5), b"x")
            self.assertLess(sum(q._peers[1:100]), 3)

    def test_ctrl_c_ends_a_wait(self):
        with raw(8, 8) as q:
            timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
            timer.start()
            with self.assertRaises(KeyboardInterrupt):
                q.get(timeout=20)


class LeakTest(unittest.TestCase):
    def test_memory_and_files_do_not_grow(self):
        def rounds(n):
            for _ in range(n):
                q = raw(64, 64)
                q.put_many([b"x" * 64] * 64)
                q.get_many(max_messages_to_get=64)
                for wrong in (lambda: q.get(False), lambda: q.put("x"), lambda: q.put(b"x" * 65), lambda: q.put_many([b"1", 2], False)):
                    try:
                        wrong()
                    except (queue.Empty, TypeError, ValueError):
                        pass
                q.detach()

        rounds(200)
        files, memory = len(os.listdir("/proc/self/fd")), resident()
        rounds(2000)
        self.assertLessEqual(len(os.listdir("/proc/self/fd")), files)
        self.assertLess(resident() - memory, 2 << 20)

    def test_messages_do_not_leak(self):
        with raw(256, 1024) as q:
            def rounds(n):
                for _ in range(n):
                    q.put_many([bytes(1024)] * 200)
                    q.get_many(max_messages_to_get=200)
                    q.put(bytes(1000))
                    q.get()
            rounds(50)
            memory = resident()
            rounds(1000)
            self.assertLess(resident() - memory, 2 << 20)


def resident():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    unittest.main()
