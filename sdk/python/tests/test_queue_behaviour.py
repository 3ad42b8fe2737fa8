"""What users of the standard library's queues and of faster-fifo expect of a queue between processes."""

import collections
import multiprocessing
import os
import queue
import random
import threading
import time
import unittest

import numpy

import rlhost
from test_queue import raw, until_it_sleeps

MANY = [b"1", b"2", b"3", b"4"]


def take_until_shut(q, out):
    got = []
    try:
        while True:
            got += q.get_many(timeout=30)
    except rlhost.Closed:
        out.send((got, q.is_closed()))


def double(q, out):
    n, name, more = q.get(timeout=30)
    out.put((2 * n, name * 2, {key: value * 2 for key, value in more.items()}))


def get_as(user, q, out):
    os.setuid(user)
    try:
        out.send(q.get(timeout=30))
    except PermissionError as e:
        out.send(str(e))


def dump_pickle(message):
    import pickle
    return pickle.dumps(message)


def load_pickle(data):
    import pickle
    return pickle.loads(data)


class Arguments(unittest.TestCase):
    def setUp(self):
        self.q = raw(4, 8)
        self.addCleanup(self.q.detach)

    def test_what_does_not_wait(self):
        for get in (self.q.get_nowait, lambda: self.q.get(False), lambda: self.q.get(block=False), lambda: self.q.get(timeout=0),
                    self.q.get_many_nowait, lambda: self.q.get_many(block=False), lambda: self.q.get_many(False, None, 10)):
            with self.assertRaises(queue.Empty):
                get()
        self.assertEqual(self.q.put_many_nowait(MANY + [b"5"], whole=False), 4)
        for put in (lambda: self.q.put_nowait(b"5"), lambda: self.q.put(b"5", False), lambda: self.q.put(b"5", block=False),
                    lambda: self.q.put(b"5", timeout=0), lambda: self.q.put_many_nowait([b"5"])):
            with self.assertRaises(queue.Full):
                put()
        self.assertEqual(self.q.get_many_nowait(), MANY)

    def test_what_waits_for_a_while(self):
        for wait in (lambda: self.q.get(True, 0.02), lambda: self.q.get(timeout=0.02), lambda: self.q.get(block=True, timeout=0.02),
                     lambda: self.q.get_many(timeout=0.02), lambda: self.q.get_many(True, 0.02, 100),
                     lambda: self.q.get_many(timeout=0.02, max_messages_to_get=100)):
            began = time.monotonic()
            with self.assertRaises(queue.Empty):
                wait()
            self.assertGreaterEqual(time.monotonic() - began, 0.02)
        self.assertEqual(self.q.put_many(MANY, timeout=0.02), 4)
        for wait in (lambda: self.q.put(b"5", True, 0.02), lambda: self.q.put(b"5", timeout=0.02),
                     lambda: self.q.put_many(MANY, timeout=0.02)):
            with self.assertRaises(queue.Full):
                wait()
        self.assertEqual(self.q.put_many(MANY, True, 0.02, False), 0)

    def test_arguments_of_the_wrong_kind(self):
        self.q.put(b"1")
        for wrong, text in ((lambda: self.q.get(30), "timeout=30"), (lambda: self.q.put(b"1", 1.5), "timeout=1.5"),
                            (lambda: self.q.get_many(64), "not 64 first: numbers go by their names"), (lambda: self.q.get(wait=1), r"want get\("),
                            (lambda: self.q.get(True, block=True), r"want get\("), (self.q.put, r"want put\("),
                            (lambda: self.q.get(True, 1, 2), r"want get\("), (lambda: self.q.put_many(b"1"), "list or a tuple"),
                            (lambda: self.q.get_many(max_messages_to_get="3"), "integer"), (lambda: self.q.get(timeout="soon"), "real number"),
                            (lambda: rlhost.Queue("8"), "integer"), (lambda: rlhost.Queue(dumps=bytes), "belong together"),
                            (lambda: rlhost.Queue(8, maxsize=8, message_bytes=8), "in place of max_size_bytes"),
                            (lambda: rlhost.Queue(codec="plain", dumps=bytes, loads=bytes), "of its own")):
            with self.assertRaisesRegex(TypeError, text):
                wrong()
        for wrong, text in ((lambda: self.q.get_many(max_messages_to_get=-1), "is -1, want 1 or more"), (lambda: self.q.get_many(max_messages_to_get=0), "is 0"),
                            (lambda: self.q.get(timeout=-1), "from 0"), (lambda: self.q.put(b"1", True, -0.5), "from 0"),
                            (lambda: rlhost.Queue(-1), "max_size_bytes is -1"), (lambda: rlhost.Queue(0), "max_size_bytes is 0"),
                            (lambda: raw(8, -3), "message_bytes is -3"), (lambda: rlhost.Queue(1 << 40), "max_size_bytes is"),
                            (lambda: raw(0, 8), "maxsize is 0"), (lambda: rlhost.Queue(maxsize=-1), "maxsize is -1"),
                            (lambda: rlhost.Queue(codec="json"), "codec is 'json', want 'plain', 'pickle', 'bytes'")):
            with self.assertRaisesRegex(ValueError, text):
                wrong()
        self.assertEqual(self.q.get(), b"1")

    def test_all_or_nothing(self):
        self.assertEqual(self.q.put_many(MANY[:3]), 3)
        with self.assertRaises(queue.Full):
            self.q.put_many(MANY[:2], timeout=0.01)
        self.assertEqual(self.q.qsize(), 3)
        thread = threading.Thread(target=self.q.put_many, args=(MANY,))
        thread.start()
        got = [self.q.get() for _ in range(7)]
        thread.join()
        self.assertEqual(got, MANY[:3] + MANY)

    def test_nothing_is_put_where_one_message_cannot_be(self):
        with raw(1024, 8) as q:
            for wrong in ([b"1"] * 600 + [b"123456789"], [b"1"] * 600 + ["text"]):
                with self.assertRaises((ValueError, TypeError)):
                    q.put_many(wrong)
                self.assertTrue(q.empty())


class State(unittest.TestCase):
    def test_sizes(self):
        with raw(4, 8) as q:
            self.assertEqual((q.qsize(), len(q), q.data_size(), q.empty(), q.full()), (0, 0, 0, True, False))
            q.put_many([b"123", b"12345678"])
            self.assertEqual((q.qsize(), len(q), q.data_size(), q.empty(), q.full()), (2, 2, 11, False, False))
            q.put_many([b"", b"1"])
            self.assertEqual((q.qsize(), q.data_size(), q.full()), (4, 12, True))
            q.get_many(max_messages_to_get=3)
            self.assertEqual((q.qsize(), q.data_size(), q.full()), (1, 1, False))

    def test_shutting_is_seen_by_all_and_what_waits_is_still_got(self):
        context = multiprocessing.get_context("fork")
        with raw(8, 8) as q:
            here, there = context.Pipe(duplex=False)
            self.assertFalse(q.is_closed())
            p = context.Process(target=take_until_shut, args=(q, there))
            p.start()
            q.put_many(MANY)
            q.shut()
            self.assertEqual(here.recv(), (MANY, True))
            p.join()
            self.assertTrue(q.is_closed())
            with self.assertRaises(rlhost.Closed):
                q.put_nowait(b"1")
        self.assertTrue(q.is_closed())

    def test_a_waiting_thread_is_woken(self):
        with raw(4, 8) as q:
            got = []
            thread = threading.Thread(target=lambda: got.append(q.get()))
            thread.start()
            until_it_sleeps(thread)
            q.put(b"woken")
            thread.join()
            self.assertEqual(got, [b"woken"])


class Messages(unittest.TestCase):
    def test_buffers_are_copied_as_they_lie(self):
        array = numpy.arange(6, dtype="<i2")
        with raw(8, 16) as q:
            q.put(bytearray(b"abc"))
            q.put_many((memoryview(b"defg")[::2], array, array.reshape(2, 3).T, b"end"))
            self.assertEqual(q.get_many(), [b"abc", b"df", array.tobytes(), array.reshape(2, 3).T.tobytes(), b"end"])
            for wrong in ("text", 5, None, numpy.array([object()]), ["list"]):
                with self.assertRaisesRegex(TypeError, "a message is bytes or another buffer, not .*dumps"):
                    q.put(wrong)

    def test_tuples_by_a_codec(self):
        message = (7, "reset", {"reward": 1.5})
        for method in ("fork", "spawn", "forkserver"):
            context = multiprocessing.get_context(method)
            with self.subTest(method), rlhost.Queue() as q, rlhost.Queue(dumps=rlhost.plain.dumps, loads=rlhost.plain.loads) as out:
                p = context.Process(target=double, args=(q, out))
                p.start()
                q.put(message)
                self.assertEqual(out.get(timeout=60), (14, "resetreset", {"reward": 3.0}))
                p.join()
                q.put_many([message, (1,), None])
                self.assertEqual(q.get_many(), [message, (1,), None])
                with self.assertRaisesRegex(TypeError, "rlhost.plain takes no object"):
                    q.put_many([(1,), object()])
                self.assertTrue(q.empty())

    @unittest.skipUnless(os.geteuid() == 0, "needs two users")
    def test_a_pickle_of_another_user_is_not_unpacked(self):
        context = multiprocessing.get_context("fork")
        refused = "the queue belongs to user 0 and its codec is not rlhost.plain"
        for codec, want in (({"dumps": dump_pickle, "loads": load_pickle}, refused), ({"codec": "pickle"}, refused),
                            ({"dumps": rlhost.plain.dumps, "loads": rlhost.plain.loads}, (1, 2)), ({}, (1, 2))):
            with rlhost.Queue(**codec) as q:
                here, there = context.Pipe(duplex=False)
                q.put((1, 2))
                p = context.Process(target=get_as, args=(65534, q, there))
                p.start()
                got = here.recv()
                p.join()
                self.assertEqual(got[:len(want)], want)

    def test_what_a_codec_raises_comes_out(self):
        def refuse(data):
            raise KeyError(data)

        with rlhost.Queue(dumps=bytes, loads=refuse) as q:
            q.put_many([b"1", b"2"])
            with self.assertRaises(KeyError):
                q.get()
            with self.assertRaises(KeyError):
                q.get_many()
            self.assertTrue(q.empty())
            with self.assertRaises(TypeError):
                q.put(None)


class Of(rlhost.Queue):
    """A class of one's own: its codec, and what it keeps."""

    def __init__(self, name):
        super().__init__(1000)
        self.name = name

    def dumps(self, message):
        return message.to_bytes(4, "big")

    def loads(self, data):
        return int.from_bytes(data, "big")


class Doubled(rlhost.Queue):
    """A class of one's own that adds to the codec that it inherits."""

    def loads(self, data):
        return 2 * super().loads(data)


def answer(q, out):
    out.put((q.name, q.get(timeout=30)))


class LikeFasterFifo(unittest.TestCase):
    """What a program that was written for faster-fifo relies on, and its own tests do not show."""

    def test_what_it_has(self):
        q = rlhost.Queue()
        self.assertEqual((q.max_size_bytes, q.maxsize, q.last_error), (1_000_000, 0, None))
        self.assertIs(rlhost.queue.Full, queue.Full)
        self.assertIs(rlhost.queue.Empty, queue.Empty)
        self.assertIsNone(q.join_thread())
        self.assertIsNone(q.cancel_join_thread())

    def test_a_wait_has_an_end_where_no_timeout_is_given(self):
        empty, full = rlhost.Queue(), rlhost.Queue(48)
        full.put(1)
        ended = []

        def end(wait):
            began = time.monotonic()
            try:
                wait()
            except (queue.Empty, queue.Full) as e:
                ended.append((type(e), time.monotonic() - began >= 10))

        threads = [threading.Thread(target=end, args=(wait,)) for wait in (
            empty.get, empty.get_many, lambda: full.put(2), lambda: full.put_many([2]))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sorted(map(repr, ended)), sorted(map(repr, [(queue.Empty, True)] * 2 + [(queue.Full, True)] * 2)))

    def test_last_error(self):
        q = rlhost.Queue(1000)
        q.put(1)
        for wrong, text in ((lambda: q.put(object()), "rlhost.plain takes no object"), (lambda: q.put_many({1}), "a list or a tuple"),
                            (lambda: q.put(bytes(2000)), "message of 2005 bytes, the queue takes up to 1008")):
            with self.assertRaises((TypeError, ValueError)):
                wrong()
            self.assertIn(text, q.last_error)
        before = q.last_error
        q.get()
        with self.assertRaises(queue.Empty):
            q.get_nowait()
        self.assertEqual(q.last_error, before)

    def test_a_list_is_put_whole_or_not_at_all(self):
        q = rlhost.Queue(480)
        with self.assertRaises(queue.Full) as full:
            q.put(0)
            q.put_many([1] * 10, timeout=0.01)
        self.assertEqual((q.qsize(), full.exception.put), (1, 0))
        with self.assertRaises(queue.Full) as full:  # of a list that the queue cannot hold, a part
            q.put_many_nowait([1] * 25)
        self.assertEqual((q.qsize(), full.exception.put), (1, 0))
        q.get()
        with self.assertRaises(queue.Full) as full:
            q.put_many_nowait([1] * 25)
        self.assertEqual((q.qsize(), full.exception.put), (10, 10))

    def test_a_closed_queue_says_so_everywhere_and_still_works(self):
        context = multiprocessing.get_context("fork")
        q = rlhost.Queue()
        p = context.Process(target=q.close)
        p.start()
        p.join()
        self.assertTrue(q.is_closed())
        q.put("late")
        self.assertEqual(q.get(), "late")
        with self.assertRaises(queue.Empty):
            q.get_nowait()

    def test_any_object_by_pickle(self):
        with rlhost.Queue(codec="pickle") as q:
            q.put_many([{1, 2}, ValueError("a"), Of])
            got = q.get_many()
            self.assertEqual((got[0], str(got[1]), got[2]), ({1, 2}, "a", Of))
            with self.assertRaisesRegex((AttributeError, TypeError), "lambda|pickle"):
                q.put(lambda: 1)
            self.assertIn("pickle", q.last_error)

    def test_a_class_has_a_codec_and_attributes_of_its_own(self):
        for method in ("fork", "spawn"):
            context = multiprocessing.get_context(method)
            with self.subTest(method), Of("numbers") as q, rlhost.Queue() as out:
                q.put(1 << 20)
                self.assertEqual(q.data_size(), 4)
                p = context.Process(target=answer, args=(q, out))
                p.start()
                self.assertEqual(out.get(timeout=60), ("numbers", 1 << 20))
                p.join()

    def test_a_class_may_add_to_the_codec(self):
        with Doubled() as q:
            q.put_many([3, "x", (1,)])
            self.assertEqual(q.get_many(), [6, "xx", (1, 1)])

    def test_messages_are_bounded_by_number_and_by_bytes(self):
        for q in (rlhost.Queue(10_000, 5), rlhost.Queue(maxsize=5, message_bytes=16), rlhost.Queue(maxsize=5)):
            for _ in range(3):
                q.put_many(MANY)
                self.assertFalse(q.full())
                q.put(b"5")
                self.assertTrue(q.full())
                with self.assertRaises(queue.Full):
                    q.put(b"6", timeout=0.01)
                thread = threading.Thread(target=q.put, args=(b"6",))
                thread.start()
                until_it_sleeps(thread)
                self.assertEqual(q.get_many(max_messages_to_get=2), MANY[:2])
                thread.join()
                self.assertEqual(q.get_many(), [*MANY[2:], b"5", b"6"])
        q = rlhost.Queue(480, 5)
        q.put(bytes(400))
        with self.assertRaises(queue.Full):
            q.put_nowait(bytes(90))
        q.put_nowait(bytes(40))

    def test_producers_in_processes_keep_to_the_number(self):
        context = multiprocessing.get_context("fork")
        q = rlhost.Queue(maxsize=7)
        producers = [context.Process(target=put_numbers, args=(q, i, 2000)) for i in range(4)]
        for p in producers:
            p.start()
        got = []
        while len(got) < 8000:
            self.assertLessEqual(q.qsize(), 7)
            got += q.get_many(timeout=30, max_messages_to_get=3)
        for p in producers:
            p.join()
        for i in range(4):
            self.assertEqual([n for j, n in got if j == i], list(range(2000)))

    def test_consumers_in_processes_do_not_widen_the_bound(self):
        context = multiprocessing.get_context("fork")
        q = rlhost.Queue(maxsize=3)
        consumers = [context.Process(target=take_numbers, args=(q,)) for _ in range(3)]
        for p in consumers:
            p.start()
        for n in range(6000):
            q.put((0, n), timeout=30)
            self.assertLessEqual(q.qsize(), 3)
        for _ in consumers:
            q.put(None, timeout=30)
        for p in consumers:
            p.join()
            self.assertEqual(p.exitcode, 0)

    def test_the_example_of_its_page(self):
        """faster-fifo's README, line by line, with another import."""
        from rlhost.queue import Empty, Full, Queue
        said = []

        q = Queue(1000 * 1000)  # specify the size of the circular buffer in the ctor

        # any pickle-able Python object can be added to the queue
        py_obj = dict(a=42, b=33, c=(1, 2, 3), d=[1, 2, 3], e='123', f=b'kkk')
        q.put(py_obj)
        assert q.qsize() == 1

        retrieved = q.get()
        assert q.empty()
        assert py_obj == retrieved

        for i in range(100):
            try:
                q.put(py_obj, timeout=0.1)
            except Full:
                said.append('Queue is full!')

        num_received = 0
        while num_received < 100:
            messages = q.get_many(max_messages_to_get=100)
            num_received += len(messages)

        try:
            q.get(timeout=0.1)
            assert False, 'This won\'t be called'
        except Empty:
            said.append('Queue is empty')
        self.assertEqual(said, ['Queue is empty'])


def take_numbers(q):
    while q.get(timeout=30):
        pass


def put_numbers(q, producer, count):
    for n in range(count):
        q.put((producer, n), timeout=30)


class AnySize(unittest.TestCase):
    """A queue with a budget of bytes."""

    def test_messages_of_any_size_up_to_the_budget(self):
        for budget in (1, 48, 49, 1000, 100_000, 8 << 20):
            with self.subTest(budget=budget), rlhost.Queue(budget, codec="bytes") as q:
                for size in sorted({0, 1, 47, 48, 49, 95, 96, 97, 1000, budget // 2, budget - 1, budget}):
                    if size > budget:
                        continue
                    data = os.urandom(size)
                    q.put_nowait(data)
                    self.assertEqual((q.qsize(), q.data_size(), q.empty()), (1, size, False))
                    self.assertEqual(q.get_nowait(), data)
                q.put(bytes(budget))
                self.assertTrue(q.full())
                with self.assertRaises(queue.Full):
                    q.put_nowait(b"")
                self.assertEqual(q.get(), bytes(budget))
                with self.assertRaisesRegex(ValueError, f"message of {2 * budget + 200} bytes, the queue takes up to"):
                    q.put(bytes(2 * budget + 200))
                self.assertTrue(q.empty())

    def test_the_budget_is_one_of_cells(self):
        with rlhost.Queue(max_size_bytes=480, codec="bytes") as q:
            self.assertEqual(q.put_many([b"x"] * 20, block=False, whole=False), 10)
            self.assertTrue(q.full())
            q.get_many(max_messages_to_get=3)
            with self.assertRaises(queue.Full):
                q.put_nowait(bytes(145))
            q.put_nowait(bytes(144))
            self.assertEqual((q.qsize(), q.data_size(), q.full()), (8, 151, True))
        for wrong in (0, -1, 1 << 32):
            with self.assertRaisesRegex(ValueError, f"max_size_bytes is {wrong}, want 1 to"):
                rlhost.Queue(max_size_bytes=wrong)

    def test_messages_of_many_sizes_keep_their_order_round_and_round(self):
        rng = random.Random(7)
        with rlhost.Queue(5000, codec="bytes") as q:
            waiting, made, rounds = collections.deque(), 0, 0
            while made < 3000:
                batch = [os.urandom(rng.choice((0, 5, 48, 49, rng.randrange(1500)))) for _ in range(rng.randrange(1, 9))]
                put = q.put_many_nowait(batch, whole=False)
                waiting.extend(batch[:put])
                made += put
                for _ in range(rng.randrange(3)):
                    if waiting:
                        for data in q.get_many(max_messages_to_get=rng.randrange(1, 9)):
                            self.assertEqual(data, waiting.popleft())
                self.assertEqual((q.qsize(), q.data_size()), (len(waiting), sum(map(len, waiting))))

    def test_all_or_nothing_of_messages_of_any_size(self):
        with rlhost.Queue(4800, codec="bytes") as q:
            q.put(bytes(2400))
            with self.assertRaises(queue.Full):
                q.put_many_nowait([b"1", bytes(2400)])
            self.assertEqual(q.qsize(), 1)
            self.assertEqual(q.put_many_nowait([b"1", bytes(2300)]), 2)
            self.assertEqual([len(data) for data in q.get_many()], [2400, 1, 2300])

    def test_a_long_message_waits_for_room(self):
        with rlhost.Queue(9600, codec="bytes") as q:
            q.put_many([bytes(96)] * 100)
            thread = threading.Thread(target=q.put, args=(bytes(9600),))
            thread.start()
            until_it_sleeps(thread)
            got = [len(q.get()) for _ in range(101)]
            thread.join()
            self.assertEqual(got, [96] * 100 + [9600])

    def test_processes_share_it(self):
        for method in ("fork", "spawn", "forkserver"):
            context = multiprocessing.get_context(method)
            with self.subTest(method), rlhost.Queue(1 << 16) as q, rlhost.Queue(1 << 20) as out:
                p = context.Process(target=double, args=(q, out))
                p.start()
                q.put((3, "x" * 50_000, {"a": 1}))
                self.assertEqual(out.get(timeout=60), (6, "x" * 100_000, {"a": 2}))
                p.join()


class Plain(unittest.TestCase):
    VALUES = [None, True, False, 0, -1, 1 << 62, -(1 << 63), 1 << 63, -(1 << 200), 0.0, 1.5, float("inf"), "", "käse", b"", b"\0\xff",
              (), (1, (2, ("x",))), [], [1, [2.0]], {}, {"a": (1, 2), 3: None}, set(), {1, ("x", None)}, frozenset({2.5})]

    def test_what_goes_in_comes_out(self):
        for value in self.VALUES:
            got = rlhost.plain.loads(rlhost.plain.dumps(value))
            self.assertEqual((got, type(got)), (value, type(value)))
        for array in (numpy.arange(6.0).reshape(2, 3), numpy.zeros((0, 4), "u1"), numpy.array(3, "<i2"), numpy.array([True]),
                      numpy.arange(8).reshape(2, 4).T, numpy.float32(2.5)):
            got = rlhost.plain.loads(rlhost.plain.dumps((array,)))[0]
            numpy.testing.assert_array_equal(got, array)
            self.assertEqual((type(got), got.dtype, got.shape), (type(array), array.dtype, array.shape))

    def test_what_it_does_not_take(self):
        nested = []
        for _ in range(100):
            nested = [nested]
        for value in (object(), {object()}, nested, numpy.array([object()]), numpy.array(["text"]), 1j):
            with self.assertRaisesRegex(TypeError, "rlhost.plain takes"):
                rlhost.plain.dumps(value)

    def test_any_bytes_are_a_message_or_a_value_error(self):
        good = [rlhost.plain.dumps(value) for value in (*self.VALUES, numpy.arange(6.0).reshape(2, 3))]
        cases = [b"", b"?", b"(\xff\xff\xff\xff", b"[\x02\0\0\0N", b"{\x01\0\0\0[\0\0\0\0N", b"N" * 2, b"s\x01\0\0\0\xff",
                 b"a\x02\0\0\0f8\x00", b"a\x02\0\0\0O8\x01" + bytes(8), b"a\x03\0\0\0<f8\xff", b"a\x03\0\0\0<f8\x01" + b"\xff" * 8,
                 b"(\x01\0\0\0" * 200, b"a\x03\0\0\0<f8\x02" + bytes(8) + b"\xff" * 8]
        cases += [data[:n] for data in good for n in range(len(data))]
        for data in cases:
            with self.assertRaises(ValueError):
                rlhost.plain.loads(data)
        for data in good:
            for at in range(len(data)):
                for flip in (1, 0x80, 0xff):
                    try:
                        rlhost.plain.loads(data[:at] + bytes([data[at] ^ flip]) + data[at + 1:])
                    except ValueError:
                        pass


if __name__ == "__main__":
    unittest.main()
