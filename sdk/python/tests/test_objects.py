"""Tests of rlhost.objects against the host at $RLHOST_OBJECTS; the Go tests of sdk/objects start one and run them."""

import gc
import os
import signal
import socket
import sys
import tempfile
import threading
import time
import unittest
from unittest import mock

import numpy as np

from rlhost import objects

PATH = os.environ.get("RLHOST_OBJECTS", "")


def in_child(fn, *args):
    """Forks a child that runs fn, and returns its process id."""
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        fn(*args)
        status = 0
    except BaseException as e:
        sys.stderr.write("child: %r\n" % e)
    finally:
        sys.stderr.flush()
        os._exit(status)


def joined(*pids):
    return [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]


@unittest.skipUnless(PATH, "RLHOST_OBJECTS does not say where a host serves")
class ObjectsTest(unittest.TestCase):
    counter = 0

    def setUp(self):
        self.store = objects.Store()
        self.addCleanup(self.store.close)
        ObjectsTest.counter += 1
        self.name = "test-%d-%d" % (os.getpid(), ObjectsTest.counter)

    def create(self, capacity=4, **config):
        self.store.create(self.name, capacity, **(config or {"bytes": 4096}))

    def settled(self, spares=1):
        deadline = time.monotonic() + 10
        while True:
            stat = self.store.stat(self.name)
            if (stat["Claims"] == stat["Spares"] <= spares and not stat["Writing"] and not stat["Kept"]
                    and not stat["Waiting"]):
                return stat
            self.assertLess(time.monotonic(), deadline, stat)
            time.sleep(0.001)


class Arrays(ObjectsTest):
    def test_views_are_read_only_and_no_copies(self):
        self.create(shape=(3, 4), dtype="f4")
        with self.store.new(self.name, (3, 4), np.float32) as a:
            a[...] = 1
            kept = a
        with self.store.read_latest(self.name) as view:
            self.assertEqual((view.shape, view.dtype), ((3, 4), np.float32))
            self.assertFalse(view.flags.owndata)
            self.assertEqual(view.__dlpack_device__(), kept.__dlpack_device__())
            np.from_dlpack(view)  # a copy, because a consumer could write to it
            with self.assertRaises(BufferError):
                view.__dlpack__(copy=False)
            with self.assertRaises(ValueError):
                view[0, 0] = 5
            with self.assertRaises(ValueError):
                view.flags.writeable = True
            kept[0, 0] = 7  # against the rules: it has been committed
            self.assertEqual(view[0, 0], 7)

    def test_every_dtype_and_shape_survives(self):
        self.create(capacity=64)
        for dtype in "u1 i1 i2 i4 i8 f2 f4 f8 ? u2 u4 u8 c8 c16".split():
            for shape in [(), (0,), (5,), (2, 3), (1, 2, 1, 2, 1, 2, 1, 2)]:
                want = (np.arange(int(np.prod(shape))).reshape(shape) % 2).astype(dtype)
                self.store.push(self.name, want)
                with self.store.pop(self.name) as got:
                    self.assertEqual((got.dtype, got.shape), (want.dtype, want.shape))
                    np.testing.assert_array_equal(got, want)

    def test_strided_arrays_are_pushed_row_by_row(self):
        self.create()
        want = np.arange(64, dtype=np.int32).reshape(8, 8)
        for a in (want.T, want[::2, ::-3], np.asfortranarray(want)):
            self.store.push(self.name, a)
            with self.store.pop(self.name) as got:
                np.testing.assert_array_equal(got, a)
                self.assertTrue(got.flags.c_contiguous)

    def test_bytes_lists_and_numbers(self):
        self.create(capacity=8)
        self.store.push(self.name, b"hello")
        self.store.push(self.name, memoryview(bytearray(b"world")))
        self.store.push(self.name, [1.5, 2.5])
        self.store.push(self.name, 7)
        got = self.store.get_all(self.name)
        self.assertEqual(got[:2], [b"hello", b"world"])
        np.testing.assert_array_equal(got[2], [1.5, 2.5])
        self.assertEqual(got[3], 7)
        with self.store.read(self.name, 0) as view:
            self.assertTrue(view.readonly)

    def test_what_cannot_be_shared_is_named(self):
        self.create(shape=4, dtype="f4")
        for data in (np.array(["text"]), np.array([object()]), None, {1}, (1, "a"), np.zeros(2, ">f4"), np.zeros(2, [("a", "f4")]), "text", {"a": 1}):
            with self.assertRaises(objects.WrongDType) as e:
                self.store.push(self.name, data)
            self.assertIn(self.name, str(e.exception))
        with self.assertRaises(objects.WrongDType):
            self.store.push(self.name, np.zeros(2, np.float64))
        with self.assertRaisesRegex(objects.WrongDType, "has pointers"):
            self.store.put(self.name + "-any", np.array([object()]))
        with self.assertRaisesRegex(TypeError, "rlhost.plain takes no object"):
            self.store.push(self.name, {"a": object()})
        with self.assertRaises(objects.LimitExceeded):
            self.store.push(self.name, np.zeros((1,) * 9, np.float32))

    def test_text_dates_and_records_are_views_too(self):
        records = np.zeros(3, [("at", "M8[ns]"), ("pos", "f4", (2,)), ("name", "U5")])
        records["at"], records["pos"], records["name"] = np.datetime64("2024-02-29T12:00"), [1, 2], ["ä", "bc", ""]
        for want in (records, records[1:2], np.array(["text", "käse"]), np.array([b"ab", b"c"]), np.float16([1, 2]), np.zeros(2, ">f4"),
                     np.arange("2020-01", "2021-01", dtype="M8[M]").reshape(3, 4), np.array(np.timedelta64(5, "s")),
                     np.zeros((0, 2), "M8[D]"), np.longdouble([1, 2])):
            name = "%s-%s" % (self.name, want.dtype.str)
            self.store.put(name, want, capacity=2)
            with self.store.new(name, want.shape, want.dtype) as a:
                a[...] = want
            for _ in range(2):
                with self.store.pop(name) as got:
                    self.assertEqual((got.dtype, got.shape), (want.dtype, want.shape))
                    np.testing.assert_array_equal(got, want)
                    self.assertFalse(got.flags.writeable or got.flags.owndata)
            self.store.remove(name)
        self.create(shape=(3,), dtype=records.dtype)
        self.store.push(self.name, records)
        np.testing.assert_array_equal(self.store.get(self.name), records)
        with self.assertRaises(objects.TooLarge):
            self.store.push(self.name, np.concatenate([records] * 2))
        with self.assertRaises(objects.WrongDType):
            self.store.push(self.name, np.zeros(3))

    def test_text_and_dicts_are_values(self):
        self.create(capacity=8)
        values = ["text", "", {}, {"step": 7, "obs": np.arange(3.0), "who": ("a", None)}]
        for value in values:
            self.store.push(self.name, value)
        got = self.store.get_all(self.name)
        self.assertEqual(got[:3], values[:3])
        np.testing.assert_array_equal(got[3].pop("obs"), np.arange(3.0))
        self.assertEqual(got[3], {"step": 7, "who": ("a", None)})
        with self.store.pop(self.name) as value:
            self.assertEqual(value, "text")

    def test_what_says_that_it_is_an_array_and_is_none_is_an_error(self):
        from rlhost.objects import wire
        self.create(capacity=8)
        good = np.zeros(2, "M8[s]").tobytes() + wire.description(np.dtype("M8[s]"), (2,))
        self.assertEqual(wire.described(memoryview(good)), (np.dtype("M8[s]"), (2,)))
        cases = [good[:n] for n in range(len(good))] + [good[:-4] + b"\xff" * 4]
        for text in (b"('<M8[s]', (3,))", b"('|O', (2,))", b"('<M8[s]', (-2,))", b"('<M8[s]', 2)", b"(" * 5000, b"__import__('os')"):
            cases.append(bytes(16) + text + len(text).to_bytes(4, "little"))
        for case in cases:
            with self.assertRaises(ValueError):
                wire.described(memoryview(case))
        for number in (wire.PLAIN, wire.DESCRIBED):
            w = self.store.new(self.name, 8)  # eight bytes of zeros that claim to be of that type
            w.array[:] = bytes(8)
            values = wire.VALUE.pack(number, 1) + wire.DIMS[1].pack(8)
            w._object.connection.call(wire.COMMIT, values=1, claim=w._claim, payload=values)
            w._claim = 0
            with self.assertRaisesRegex(objects.BadRequest, self.name):
                self.store.pop(self.name)
        self.settled()

    def test_an_entry_is_an_array_to_numpy(self):
        self.create(capacity=8)
        with self.store.new(self.name, (2,), "f4") as a:
            a[:] = 1, 2
        entry = self.store.read_latest(self.name)
        array = np.asarray(entry)
        self.assertTrue(np.shares_memory(array, entry.array))
        self.assertEqual((array.tolist(), array.dtype, array.flags.writeable), ([1, 2], np.float32, False))
        self.assertEqual(np.asarray(entry, "i8").tolist(), [1, 2])
        self.assertTrue(np.array(entry).flags.owndata)
        self.assertEqual(np.stack([entry, entry]).shape, (2, 2))
        entry.release()
        with self.assertRaises(objects.Spent):
            np.asarray(entry)
        writing = self.store.new(self.name, (2,), "f4")
        np.asarray(writing)[:] = 3
        writing.commit()
        self.assertEqual(self.store.get(self.name).tolist(), [3, 3])

    def test_tracks_travel_together(self):
        tracks = [objects.Track((4,), "f4", name="obs"), objects.Track(bytes=64, name="rest")]
        self.create(tracks=tracks)
        self.store.push(self.name, (np.ones(4, np.float32), b"abc"))
        with self.store.new(self.name, [((2,), np.float32), ((3,), np.int16)]) as (obs, rest):
            obs[:], rest[:] = 2, 3
        with self.store.pop(self.name) as (obs, rest):
            self.assertEqual((obs.sum(), bytes(rest)), (4, b"abc"))
        with self.store.pop(self.name) as (obs, rest):
            self.assertEqual((obs.sum(), rest.sum()), (4, 9))
        with self.assertRaises(objects.WrongTracks):
            self.store.push(self.name, (np.ones(4, np.float32),))

    def test_put_makes_an_object_as_large_as_needed(self):
        a = np.arange(1000, dtype=np.float64)
        self.store.put(self.name, a, capacity=2)
        self.store.put(self.name, a + 1)
        np.testing.assert_array_equal(self.store.get(self.name), a + 1)
        np.testing.assert_array_equal(self.store.get(self.name, 0), a)
        with self.assertRaises(objects.Full):
            self.store.put(self.name, a, timeout=0)
        with self.assertRaises(objects.Full):
            self.store.put(self.name, np.zeros(1001), timeout=0)
        with self.assertRaises(objects.TooLarge):
            self.store.push(self.name, np.zeros(2000), timeout=0)


class Values(ObjectsTest):
    VALUES = [None, True, 7, -1.5, 2j, "text", b"bytes", {1, "a"}, frozenset({None}), (1, "mixed", None), ("a", "b"), [[1], [2, 3], "x"],
              {"n": (1, {2})}, 1 << 70]

    def test_a_value_comes_back_as_it_was(self):
        self.create(capacity=len(self.VALUES))
        for value in self.VALUES:
            self.store.push(self.name, value)
        for got, want in zip(self.store.get_all(self.name), self.VALUES):
            self.assertEqual((got, type(got)), (want, type(want)))
        for value in self.VALUES:
            self.store.put(self.name + "-put", value)
            self.assertEqual(self.store.get(self.name + "-put"), value)

    def test_numbers_in_a_list_are_an_array(self):
        for value in ([1.5, 2.5], (1, 2, 3), [[1, 2], [3, 4]]):
            self.store.put(self.name, value)
            got = self.store.get(self.name)
            self.assertIsInstance(got, np.ndarray)
            self.assertEqual(got.tolist(), np.array(value).tolist())

    def test_get_of_several_and_of_what_is_missing(self):
        self.create(capacity=8)
        self.assertIsNone(self.store.get(self.name))
        for i in range(4):
            self.store.push(self.name, i)
        self.store.delete(self.name, 1)
        self.assertEqual(self.store.get(self.name, [3, 0]), [3, 0])
        self.assertEqual(self.store.get(self.name, (0, 1, np.int64(2), 9)), [0, None, 2, None])
        self.assertIsNone(self.store.get(self.name, 1))
        self.assertEqual(self.store.get(self.name, []), [])
        with self.assertRaises(objects.NotFound):
            self.store.get("nothing")

    def test_put_of_a_list_makes_an_entry_of_each(self):
        arrays = [np.arange(n, dtype="f8") for n in (3, 100, 0)]
        pushed = self.store.put(self.name, arrays, as_list=True, redundancy=2)
        self.assertEqual([p.index for p in pushed], [0, 1, 2])
        for got, want in zip(self.store.get_all(self.name), arrays):
            np.testing.assert_array_equal(got, want)
        self.assertEqual(self.store.stat(self.name)["Config"]["Capacity"], 5)
        for i in range(2):
            self.store.push(self.name, i, timeout=0)
        with self.assertRaises(objects.Full):
            self.store.push(self.name, 0, timeout=0)
        self.store.put(self.name, list(range(10)), as_list=True, timeout=0)  # it grows
        self.assertEqual(self.store.get(self.name, range(5, 15)), list(range(10)))
        self.store.put(self.name + "-tracks", [[arrays[0], 1], [arrays[1], 2]], as_list=True)
        self.assertEqual([b for _, b in self.store.get_all(self.name + "-tracks")], [1, 2])
        with self.assertRaisesRegex(objects.WrongTracks, "items of 2 and of 1 tracks"):
            self.store.put(self.name + "-uneven", [[arrays[0], 1], arrays[1]], as_list=True)

    def test_a_larger_put_makes_the_object_larger(self):
        self.store.put(self.name, np.zeros(4))
        entry = self.store.read(self.name, 0)
        with objects.Store() as other:
            other.push(self.name, np.ones(4), timeout=5)  # it knows the small object
            held = other.new(self.name, (4,), "f8")
            held.array[:] = 3
            self.assertEqual(self.store.put(self.name, np.full(1000, 2.0)).index, 2)
            self.assertEqual(held.commit(), 3)
            other.push(self.name, np.full(1000, 4.0))
        got = self.store.get_all(self.name)
        self.assertEqual([len(a) for a in got], [4, 4, 1000, 4, 1000])
        self.assertEqual([a[0] for a in got], [0, 1, 2, 3, 4])
        self.assertEqual(entry.array.tolist(), [0] * 4)
        entry.release()
        self.store.create(self.name + "-typed", 2, shape=2, dtype="f4")
        self.store.put(self.name + "-typed", np.zeros(9, "f4"))
        with self.assertRaises(objects.WrongDType):
            self.store.put(self.name + "-typed", np.zeros(99))
        self.settled()

    def test_many_grow_it_at_once(self):
        def play(seed):
            rng = np.random.default_rng(seed)
            for i in range(40):
                n = int(rng.integers(1, 4000))
                self.store.put(self.name, np.full(n, n), capacity=1000, timeout=20)
                with self.store.pop(self.name, timeout=20) as a:
                    assert (a == len(a)).all()

        self.assertEqual(set(joined(*[in_child(play, i) for i in range(4)])), {0})
        stat = self.settled(spares=4)
        self.assertEqual((stat["Next"], stat["Entries"]), (160, 0))

    def test_with_keeps_index_and_arrays(self):
        self.create(capacity=4)
        self.store.push(self.name, 0)
        self.store.push(self.name, np.arange(3))
        with self.store.read_latest(self.name) as a:
            self.assertEqual((a.index, a.tolist()), (1, [0, 1, 2]))
        self.store.put(self.name + "-tracks", (np.arange(3), b"xy"))
        with self.store.read_latest(self.name + "-tracks") as entry:
            obs, rest = entry
            self.assertEqual((entry.index, len(entry), entry[1], entry.arrays[0].tolist()), (0, 2, b"xy", [0, 1, 2]))
        with self.assertRaises(objects.Spent):
            obs, rest = entry

    def test_classes_of_ones_own_by_pickle_and_only_where_it_is_asked_for(self):
        with objects.Store(pickle=True) as willing:
            willing.put(self.name, Own(7))
            self.assertEqual(willing.get(self.name).n, 7)
            willing.put(self.name, np.array([Own(8)]))
            self.assertEqual(willing.get(self.name)[0].n, 8)
            willing.put(self.name, {"plain": 1})
            self.assertEqual(self.store.get(self.name), {"plain": 1})  # no pickle where none is needed
            with self.assertRaisesRegex(objects.WrongDType, r"would run code of the program that wrote it: Store\(pickle=True\) allows"):
                self.store.get(self.name, 0)
            import pickle
            again = pickle.loads(pickle.dumps(willing))
            self.assertEqual(again.get(self.name, 0).n, 7)
            again.close()
        for use in (lambda: self.store.push(self.name, Own(1)), lambda: self.store.put(self.name + "-new", Own(1))):
            with self.assertRaisesRegex(objects.WrongDType, r"rlhost.plain takes no Own: .*Store\(pickle=True\)"):
                use()
        self.settled()


class Own:
    def __init__(self, n):
        self.n = n


class Locks(ObjectsTest):
    def setUp(self):
        super().setUp()
        self.store.put(self.name, np.zeros(64, "i8"))
        self.entry = self.store.read_latest(self.name)

    def test_writes_in_place_are_seen_by_all(self):
        with self.entry.lock() as a:
            a += 5
        with objects.Store() as other, other.read_latest(self.name) as b:
            self.assertEqual(set(b.tolist()), {5})
        with self.entry.lock(shared=True) as a:
            self.assertFalse(a.flags.writeable)
            self.assertEqual(a[0], 5)
        lock = self.entry.lock()
        lock.release()
        with self.assertRaises(objects.Spent):
            lock.release()
        self.entry.release()
        with self.assertRaises(objects.Spent):
            self.entry.lock()

    def test_others_wait(self):
        with objects.Store() as other:
            theirs = other.read_latest(self.name)
            with self.entry.lock(shared=True), theirs.lock(shared=True):
                pass
            with self.entry.lock():
                for shared in (False, True):
                    for timeout in (0, 0.01):
                        with self.assertRaisesRegex(objects.Locked, "%s.: entry 0: entry is locked" % self.name):
                            theirs.lock(timeout, shared=shared)
            with theirs.lock(timeout=0) as a:
                a[0] = 1
            theirs.release()

    def test_many_count(self):
        def play():
            entry = self.store.read_latest(self.name)
            for _ in range(100):
                with entry.lock(shared=True) as a:
                    assert (a == a[0]).all()
                with entry.lock() as a:
                    for i in range(len(a)):  # not at once
                        a[i] += 1
            entry.release()

        self.assertEqual(set(joined(*[in_child(play) for _ in range(4)])), {0})
        self.assertEqual(set(self.entry.array.tolist()), {400})

    def test_a_client_killed_under_the_lock_leaves_the_entry_torn_and_the_lock_free(self):
        read, write = os.pipe()

        def die():
            with self.store.read_latest(self.name).lock() as a:
                a[:32] = 9
                os.write(write, b"x")
                time.sleep(60)

        pid = in_child(die)
        os.read(read, 1)
        threading.Timer(0.05, os.kill, (pid, signal.SIGKILL)).start()
        with self.assertRaisesRegex(objects.Torn, "%r: entry 0: the program that was writing it in place did not finish: write it again" % self.name):
            self.entry.lock(timeout=60)  # it waits for the one that dies
        self.assertEqual(joined(pid), [-signal.SIGKILL])
        with self.assertRaises(objects.Torn):
            self.entry.lock(shared=True)
        self.assertFalse(self.entry.torn)  # it was not when it was read
        with objects.Store() as other:
            self.assertTrue(other.read_latest(self.name).torn)
            self.assertTrue(other.batch_read(self.name, [0]).torn)
        with self.entry.lock(repair=True) as a:
            a[:] = 1
        with self.entry.lock(shared=True) as a:
            self.assertEqual(set(a.tolist()), {1})
        os.close(read)
        os.close(write)

    def test_an_exception_under_the_lock_leaves_it_torn(self):
        with self.assertRaises(ZeroDivisionError), self.entry.lock() as a:
            a[0] = 1 // 0
        with self.assertRaises(objects.Torn):
            self.entry.lock()
        with self.assertRaises(ZeroDivisionError), self.entry.lock(repair=True):
            1 // 0
        with self.assertRaises(objects.Torn):
            self.entry.lock()

    def test_an_interrupted_wait_takes_no_lock(self):
        def interrupt(*_):
            raise KeyboardInterrupt

        with objects.Store() as other:
            theirs = other.read_latest(self.name).lock()
            before = signal.signal(signal.SIGALRM, interrupt)
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.01)
                with self.assertRaises(KeyboardInterrupt):
                    self.entry.lock()
            finally:
                signal.signal(signal.SIGALRM, before)
            theirs.release()
            with other.read_latest(self.name).lock(timeout=10) as a:
                a[0] = 1

    def test_an_interrupt_right_after_the_request_takes_no_lock(self):
        connection = self.entry._object.connection
        send = connection.send

        def interrupted(*frame):
            connection.send = send
            send(*frame)
            raise KeyboardInterrupt

        with objects.Store() as other:
            theirs = other.read_latest(self.name).lock()
            connection.send = interrupted
            with self.assertRaises(KeyboardInterrupt):
                self.entry.lock()
            theirs.release()
            with other.read_latest(self.name).lock(timeout=10) as a:
                a[0] = 1

    def test_what_cannot_be_written_in_place(self):
        self.store.put(self.name + "-dict", {"a": 1})
        with self.assertRaisesRegex(objects.WrongDType, "neither arrays nor bytes"):
            self.store.read_latest(self.name + "-dict").lock()
        self.store.put(self.name + "-bytes", b"abc")
        entry = self.store.read_latest(self.name + "-bytes")
        with entry.lock() as b:
            b[0] = 65
        self.assertEqual(bytes(entry.array), b"Abc")

    def test_an_object_that_has_grown_is_read_again(self):
        self.store.put(self.name, np.zeros(1000))
        with self.assertRaisesRegex(objects.Removed, "it has grown, and this is what the entry was before"):
            self.entry.lock()
        with self.store.read(self.name, 0).lock() as a:
            a[0] = 1
        with self.store.read(self.name, 0).lock(), self.assertRaises(objects.Busy):
            self.store.put(self.name, np.zeros(5000))
        self.assertEqual(self.store.get(self.name, 0)[0], 1)


class Descriptors(ObjectsTest):
    def test_this_machine_has_many_addresses_and_others_are_refused(self):
        for ip in ("localhost", "127.0.0.1", "127.9.9.9", "::1", socket.gethostname()):
            try:
                path = objects.ConnectionDescriptor(ip=ip, port=12345, authkey=b"key").path
            except objects.Elsewhere:
                self.assertIn(ip, ("::1", socket.gethostname()))  # a machine may be without IPv6, and not know itself
                continue
            self.assertEqual(os.path.basename(path), "store-port-12345.sock")
        for ip in ("192.0.2.1", "198.51.100.7"):
            with self.assertRaisesRegex(objects.Elsewhere, "a store at '%s', port 5: .* serve a store on each machine" % ip):
                objects.Store(objects.ConnectionDescriptor(ip, 5, b"key"))


class Defects(ObjectsTest):
    """What SMOS gets wrong, each in a test that shows that it is right here."""

    def test_force_delete_tears_nothing(self):
        self.create(capacity=2)
        index = self.store.push(self.name, np.full(512, 1.0))
        entry = self.store.read(self.name, index)
        with self.assertRaises(objects.Busy):
            self.store.delete(self.name, index)
        self.store.delete(self.name, index, revoke=True)
        for i in range(20):
            self.store.delete(self.name, self.store.push(self.name, np.full(512, 2.0)))
        self.assertTrue((entry.array == 1).all())
        with self.assertRaises(objects.NoEntry):
            self.store.read(self.name, index)
        entry.release()

    def test_double_release_names_object_and_entry(self):
        self.create()
        index = self.store.push(self.name, 1)
        entry = self.store.pop(self.name)
        entry.release()
        with self.assertRaises(objects.Spent) as e:
            entry.release()
        self.assertIn("object %r: entry %d" % (self.name, index), str(e.exception))
        for use in (lambda: entry.array, entry.copy, entry.__enter__):
            with self.assertRaises(objects.Spent):
                use()
        writing = self.store.new(self.name, 8)
        writing.abort()
        with self.assertRaises(objects.Spent):
            writing.commit()
        self.settled()

    def test_an_error_leaves_no_lock_held(self):
        self.create()
        with self.assertRaises(objects.Exists):
            self.create()
        with self.assertRaises(objects.NotFound):
            self.store.push("nothing", 1)
        with self.assertRaises(objects.NotFound):
            self.store.remove("nothing")
        self.store.push(self.name, 1)

    def test_oversize_is_refused_and_leaks_nothing(self):
        self.create(capacity=2, bytes=64)
        neighbour = self.store.new(self.name, 64)
        neighbour.array[:] = bytes(64)
        for _ in range(5):
            with self.assertRaises(objects.TooLarge) as e:
                self.store.push(self.name, np.ones(17, np.float32))
            self.assertIn("64", str(e.exception))
            with self.assertRaises(objects.TooLarge):
                self.store.new(self.name, 17, np.float32)
        self.assertEqual(bytes(neighbour.array), bytes(64))
        neighbour.commit()
        self.store.push(self.name, np.ones(16, np.float32), timeout=0)
        self.settled()

    def test_an_exception_aborts_what_was_being_written(self):
        self.create(capacity=1)
        with self.assertRaises(ZeroDivisionError):
            with self.store.new(self.name, 8) as a:
                a[0] = 1 // 0
        self.assertEqual(self.store.push(self.name, 1, timeout=0), 0)

    def test_what_is_forgotten_is_given_back(self):
        self.create(capacity=2)
        self.store.push(self.name, 1)
        self.store.pop(self.name)
        self.store.new(self.name, 8)
        gc.collect()
        self.store.push(self.name, 1, timeout=5)
        self.store.push(self.name, 1, timeout=5)
        self.settled()

    def test_killed_clients_leak_nothing(self):
        self.create(capacity=4)
        self.store.push(self.name, 1)
        read, write = os.pipe()

        def hold():
            held = [self.store.read(self.name, 0), self.store.new(self.name, 8), self.store.pop(self.name)]
            os.write(write, b"x")
            time.sleep(60)
            del held

        pid = in_child(hold)
        os.read(read, 1)
        os.kill(pid, signal.SIGKILL)
        self.assertEqual(joined(pid), [-signal.SIGKILL])
        self.settled()
        for i in range(4):
            self.store.push(self.name, i, timeout=0)
        os.close(read)
        os.close(write)

    def test_waiting_is_woken_and_ends_at_its_deadline(self):
        self.create(capacity=1)
        for call, error in (
                (lambda: self.store.pop(self.name, timeout=0.01), objects.Empty),
                (lambda: self.store.pop(self.name, timeout=0), objects.Empty),
                (lambda: self.store.read_latest(self.name), objects.Empty),
                (lambda: self.store.read(self.name, 0), objects.NoEntry),
                (lambda: self.store.wait_for("nothing", timeout=0.01), objects.NotFound)):
            self.assertRaises(error, call)
        other = in_child(lambda: self.store.push(self.name, 5))
        with self.store.pop(self.name) as a:
            self.assertEqual(a, 5)
        self.store.push(self.name, 6)
        with self.assertRaises(objects.Full):
            self.store.push(self.name, 7, timeout=0.01)
        pusher = in_child(lambda: self.store.push(self.name, 7))
        with self.store.pop(self.name) as a:
            self.assertEqual(a, 6)
        with self.store.read_latest(self.name, after=1, timeout=10) as a:
            self.assertEqual(a, 7)
        self.assertEqual(joined(other, pusher), [0, 0])

    def test_round_trips_are_counted(self):
        self.create(capacity=8)
        array = np.ones(4)
        self.store.push(self.name, array)
        self.store.pop(self.name).release()

        def cost(fn):
            before = self.store.round_trips
            fn()
            return self.store.round_trips - before

        self.assertEqual(cost(lambda: self.store.push(self.name, array)), 1)  # for the push before
        self.assertEqual(cost(lambda: self.store.push(self.name, array, timeout=1)), 2)  # and this one
        self.store.flush()
        self.assertEqual(cost(lambda: self.store.push(self.name, array)), 0)
        self.store.flush()
        self.assertEqual(cost(lambda: self.store.read_latest(self.name).release()), 1)
        self.assertEqual(cost(lambda: self.store.pop(self.name).release()), 1)

        def write():
            with self.store.new(self.name, (4,), float) as a:
                a[:] = array

        self.assertEqual(cost(write), 2)

    def test_host_loss_is_an_error_at_once(self):
        with tempfile.TemporaryDirectory() as folder:
            with self.assertRaises(objects.HostLost) as e:
                objects.Store(os.path.join(folder, "none.sock"))
            self.assertIn("none.sock", str(e.exception))

    def test_a_host_that_dies_ends_every_wait_at_once(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "o.sock")
            listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            listener.bind(path)
            listener.listen()

            def host():
                connection, _ = listener.accept()
                hello = connection.recv(1000)
                connection.send(hello[:1] + bytes(3) + hello[4:8] + bytes(40))
                connection.recv(1000)
                os.kill(os.getpid(), signal.SIGKILL)

            pid = in_child(host)
            listener.close()
            store = objects.Store(path)
            for _ in range(2):  # the second finds nobody to connect to
                with self.assertRaises(objects.HostLost) as e:
                    store.wait_for("something")
                self.assertIn(path, str(e.exception))
            self.assertEqual(joined(pid), [-signal.SIGKILL])
            store.close()

    def test_no_file_is_left_in_dev_shm(self):
        before = set(os.listdir("/dev/shm"))
        self.create(bytes=1 << 20)
        self.store.push(self.name, np.ones(1000))
        self.assertEqual(set(os.listdir("/dev/shm")) - before, set())
        import multiprocessing.resource_tracker as tracker
        self.assertIsNone(tracker._resource_tracker._pid)


class Processes(ObjectsTest):
    def test_eight_writers_push_and_read_the_latest(self):
        self.create(capacity=64)

        def play(seed):
            rng = np.random.default_rng(seed)
            for _ in range(150):
                self.store.push(self.name, np.full(256, rng.integers(1 << 30)))
                with self.store.read_latest(self.name, timeout=None) as a:
                    assert (a == a[0]).all()
                    self.store.pop(self.name).release()
                    assert (a == a[0]).all()

        self.assertEqual(set(joined(*[in_child(play, i) for i in range(8)])), {0})
        self.assertEqual(self.settled()["Next"], 8 * 150)

    def test_batches_are_whole(self):
        self.create(capacity=256)
        for i in range(256):
            self.store.push(self.name, np.full(64, i))

        def check(seed):
            rng = np.random.default_rng(seed)
            for _ in range(10):
                want = rng.integers(256, size=128)
                with self.store.batch_read(self.name, want) as batch:
                    assert batch.indices == tuple(want)
                    for i, a in zip(want, batch):
                        assert (a == i).all()

        self.assertEqual(set(joined(*[in_child(check, i) for i in range(8)])), {0})
        with self.assertRaises(objects.NoEntry):
            self.store.batch_read(self.name, [0, 999])
        self.assertEqual(len(self.store.get_all(self.name)), 256)
        self.settled()

    def test_a_forked_child_has_a_session_of_its_own(self):
        self.create()
        self.store.push(self.name, 1)
        entry = self.store.read(self.name, 0)

        def child():
            assert self.store.get(self.name) == 1
            entry.release()  # nothing: it is the parent's

        self.assertEqual(joined(in_child(child)), [0])
        with self.assertRaises(objects.Busy):
            self.store.delete(self.name, 0)
        entry.release()
        self.store.delete(self.name, 0)


class Sessions(ObjectsTest):
    def test_threads_wait_side_by_side(self):
        self.create(capacity=4)
        got, errors = [], []

        def pop():
            try:
                for _ in range(25):
                    with self.store.pop(self.name, timeout=10) as a:
                        got.append(int(a))
            except Exception as e:
                errors.append(e)

        threads = [threading.Thread(target=pop) for _ in range(4)]
        for t in threads:
            t.start()
        for i in range(100):
            self.store.push(self.name, i, timeout=10)
        for t in threads:
            t.join(20)
        self.assertEqual(errors, [])
        self.assertEqual(sorted(got), list(range(100)))
        self.settled()

    def test_an_interrupted_wait_takes_nothing(self):
        self.create()

        def interrupt(*_):
            raise KeyboardInterrupt

        before = signal.signal(signal.SIGALRM, interrupt)
        try:
            for _ in range(5):
                signal.setitimer(signal.ITIMER_REAL, 0.01)
                with self.assertRaises(KeyboardInterrupt):
                    self.store.pop(self.name)
        finally:
            signal.signal(signal.SIGALRM, before)
        self.store.push(self.name, 3)
        self.assertEqual(self.store.count(self.name), 1)
        with self.store.pop(self.name, timeout=5) as a:
            self.assertEqual(a, 3)
        self.settled()

    def test_a_removed_object_is_found_again_by_name(self):
        self.create()
        self.store.push(self.name, 1)
        entry = self.store.read(self.name, 0)
        with objects.Store() as other:
            other.remove(self.name)
            with self.assertRaises(objects.Removed):
                self.store.push(self.name, 2, timeout=5)
            with self.assertRaises(objects.NotFound):
                self.store.push(self.name, 2)
            other.create(self.name, 4, bytes=8192)
        self.assertEqual(self.store.push(self.name, np.zeros(1024)), 0)
        self.assertEqual(entry.array, 1)
        entry.release()
        self.store.remove(self.name)
        self.assertNotIn(self.name, self.store.names())

    def test_a_push_that_fails_later_is_told_of(self):
        for ask in (lambda pushed: pushed.index, lambda pushed: self.store.push(self.name, 3), lambda _: self.store.flush()):
            self.create()
            self.assertEqual(self.store.push(self.name, 1), 0)
            with objects.Store() as other:
                other.remove(self.name)
            pushed = self.store.push(self.name, 2)  # into the block that the first push brought
            with self.assertRaises(objects.Removed):
                ask(pushed)
            self.create()
            self.assertEqual(int(self.store.push(self.name, 4)), 0)
            self.store.remove(self.name)

    def test_a_pop_behind_a_push_that_fails_has_its_error(self):
        def remade():
            with objects.Store() as other:
                other.remove(self.name)
                other.create(self.name, 4, bytes=8192)
            self.store.push(self.name, 2)  # into the block that the first push brought

        def refused():
            values = objects.layout.Object.pack
            with mock.patch.object(objects.layout.Object, "pack", lambda o, arrays: values(o, arrays)[:-1] + b"\xff"):
                self.store.push(self.name, np.zeros(4))  # the host does not take it: such a shape has no place in a block

        for fails, error in ((remade, objects.Removed), (refused, objects.TooLarge)):
            for take in (self.store.pop, lambda name: self.store.read_latest(name, after=7, timeout=None), lambda name: self.store.read(name, 9, timeout=None)):
                self.create(**{} if fails is remade else {"capacity": 1, "spares": -1, "bytes": 4096})
                self.store.push(self.name, 1)
                with self.store.pop(self.name):
                    pass
                fails()
                with self.assertRaisesRegex(error, "the entry that was pushed last is lost"):
                    take(self.name)
                self.assertEqual(self.store.stat(self.name)["Writing"], 0)
                self.store.push(self.name, 3)  # nothing of the push that failed is in its way
                with self.store.pop(self.name, timeout=5) as a:
                    self.assertEqual(a, 3)
                self.store.remove(self.name)

    def test_what_was_pushed_last_is_not_lost_at_the_end(self):
        self.create(capacity=1)
        self.store.push(self.name, 0)

        def child():
            self.store.push(self.name, 1)
            self.store.close()

        pid = in_child(child)
        for want in (0, 1):
            with self.store.pop(self.name, timeout=10) as a:
                self.assertEqual(a, want)
        self.assertEqual(joined(pid), [0])

    def test_what_was_pushed_last_is_not_lost_with_a_store_that_nobody_has_closed(self):
        def write(name):
            store = objects.Store()
            for i in range(3):
                store.push(name, i)
            return store.read(name, 0)

        for i in range(20):
            self.store.create("%s-%d" % (self.name, i), 4, bytes=64)
            entry = write("%s-%d" % (self.name, i))
            self.assertEqual(self.store.get_all("%s-%d" % (self.name, i)), [0, 1, 2])
            self.assertEqual(entry.array, 0)  # its connection is not that of the store alone

    def test_a_popped_entry_takes_no_room_until_its_release_is_told(self):
        self.create(capacity=8)
        self.store.push(self.name, 1, timeout=0)
        with self.store.pop(self.name) as a:
            self.assertEqual(a, 1)
        with objects.Store() as other:
            stat = other.stat(self.name)
            self.assertLessEqual((stat["Kept"], stat["Lent"]), (1, 1))
            for i in range(8):
                other.push(self.name, i, timeout=0)
            with self.assertRaises(objects.Full):
                other.push(self.name, 8, timeout=0)
        self.store.names()  # any request
        self.assertEqual(self.store.stat(self.name)["Kept"], 0)
        with self.assertRaises(objects.LimitExceeded):
            with self.store.pop(self.name):
                pass
            self.store.batch_read(self.name, range(10000))
        self.assertEqual(self.store.stat(self.name)["Kept"], 0)

    def test_a_closed_store_says_so(self):
        store = objects.Store()
        store.close()
        with self.assertRaises(objects.Closed):
            store.names()

    def test_names_are_found_by_prefix(self):
        for i in range(3):
            self.store.create("%s/%d" % (self.name, i), 1, bytes=1)
        self.assertEqual(self.store.names(self.name + "/"), ["%s/%d" % (self.name, i) for i in range(3)])


if __name__ == "__main__":
    unittest.main()
