"""Event loops, signals and slots, in one process and in several. The first cases are those of signal-slot's own tests."""

import logging
import multiprocessing
import os
import queue
import signal as signals
import subprocess
import sys
import threading
import time
import unittest

import numpy
from rlhost.signal_slot import (
    EventLoop, EventLoopObject, EventLoopProcess, EventLoopStatus, ProcessDied, TightLoop, Timer, get_mp_queue, process_name, signal,
)

CONTEXTS = ["fork", "spawn", "forkserver"]


class Node(EventLoopObject):
    """Remembers what it gets, and sends it on."""

    def __init__(self, loop, name):
        super().__init__(loop, name)
        self.got = []

    @signal
    def out(self): ...

    @signal
    def told(self): ...

    def take(self, *args):
        self.got.append(args)

    def echo(self, *args):
        self.out.emit(*args)

    def where(self, *_):
        self.out.emit(process_name(self.event_loop.process), os.getpid())

    def ends(self, *_):
        self.event_loop.stop()

    def fails(self, *_):
        raise KeyError("no such thing")

    def dies(self, *_):
        os.kill(os.getpid(), signals.SIGKILL)


def until_stopped(loop, seconds=60.0):
    """Runs the loop; a test that hangs ends with an error."""
    limit = Timer(loop, seconds, single_shot=True)
    limit.timeout.connect(late := Late(loop, "late"), "late")
    try:
        return loop.exec()
    finally:
        limit.stop(), limit.detach(), late.detach()


class Late(EventLoopObject):
    def late(self):
        raise TimeoutError("the loop has not been stopped")


class OneLoop(unittest.TestCase):
    def setUp(self):
        self.loop = EventLoop("main")
        self.a, self.b = Node(self.loop, "a"), Node(self.loop, "b")

    def test_delivers_once_to_each_slot_in_the_order_of_connection(self):
        self.a.out.connect(self.b.take)
        self.a.out.connect(self.b.take)
        self.a.out.connect(self.b, "echo")
        self.b.out.connect(self.a.take)
        self.b.out.connect(self.a.ends)
        self.a.out.emit(1, {"x": [2]})
        until_stopped(self.loop)
        self.assertEqual((self.b.got, self.a.got), ([(1, {"x": [2]})], [(1, {"x": [2]})]))

    def test_emit_many_keeps_the_order(self):
        self.a.out.connect(self.b.take)
        self.a.emit("out", 0)
        self.a.out.emit_many([(k,) for k in range(1, 500)])
        self.a.emit_many("out", [])
        self.loop.stop()
        until_stopped(self.loop)
        self.assertEqual(self.b.got, [(k,) for k in range(500)])

    def test_ends_a_connection_and_says_so_where_there_is_none(self):
        self.a.out.connect(self.b.take)
        self.a.out.disconnect(self.b.take)
        with self.assertLogs("rlhost.signal_slot", "WARNING") as said:
            self.a.out.disconnect(self.b.take)
        self.assertIn("a.out is not connected to b.take", said.output[0])
        self.a.out.emit(1)
        self.a.out.connect(self.b.take)
        self.a.out.emit(2)
        self.loop.stop()
        until_stopped(self.loop)
        # Who is connected when a signal is delivered gets it.
        self.assertEqual(self.b.got, [(2,)])

    def test_broadcasts_to_subscribers(self):
        self.a.told.broadcast_on(self.loop)
        self.b.subscribe("told", self.b.take)
        self.a.subscribe("told", "take")
        self.a.unsubscribe("told", "take")
        self.a.told.emit(42, 43)
        self.loop.stop()
        until_stopped(self.loop)
        self.assertEqual((self.a.got, self.b.got), ([], [(42, 43)]))

    def test_tells_begin_and_end(self):
        self.loop.start.connect(self.a.take)
        self.loop.start.connect(self.loop.stop)
        self.loop.terminate.connect(self.b.take)
        self.assertEqual(until_stopped(self.loop), EventLoopStatus.NORMAL_TERMINATION)
        self.assertEqual((self.a.got, self.b.got), ([()], [()]))

    def test_an_object_that_is_detached_gets_nothing(self):
        self.a.out.connect(self.b.take)
        self.b.detach()
        self.a.out.emit(1)
        self.loop.stop()
        until_stopped(self.loop)
        self.assertEqual(self.b.got, [])
        Node(self.loop, "b")  # its name is free again

    def test_refuses_two_objects_of_one_name(self):
        with self.assertRaisesRegex(ValueError, "the loop main has an object a already"):
            Node(self.loop, "a")
        other = EventLoop("other")
        with self.assertRaisesRegex(ValueError, "the loop main has another object b"):
            self.a.out.connect(Node(other, "b").take)
        with self.assertRaisesRegex(TypeError, "is no slot"):
            self.a.out.connect(print)

    def test_a_slot_that_fails_ends_the_loop_with_its_exception(self):
        self.a.out.connect(self.b.fails)
        self.a.out.emit(5)
        with self.assertLogs("rlhost.signal_slot", "ERROR") as said, self.assertRaisesRegex(KeyError, "no such thing"):
            until_stopped(self.loop)
        self.assertIn("b.fails, connected to a.out, has failed with the arguments (5,)", said.output[0])

    def test_a_slot_may_emit_to_its_own_loop_at_any_time(self):
        self.a.out.connect(self.b.echo)
        self.b.out.connect(self.a.echo)
        self.b.out.connect(self.a.take)
        timer = Timer(self.loop, 0.05, single_shot=True)
        timer.timeout.connect(self.loop.stop)
        self.a.out.emit(1)
        until_stopped(self.loop)
        self.assertGreater(len(self.a.got), 10)

    def test_is_interrupted(self):
        t = threading.Timer(0.1, os.kill, (os.getpid(), signals.SIGINT))
        t.start()
        self.assertEqual(until_stopped(self.loop), EventLoopStatus.INTERRUPTED)
        t.join()

    def test_other_threads_emit(self):
        self.a.out.connect(self.b.take)
        threads = [threading.Thread(target=lambda k=k: [self.a.out.emit(k, n) for n in range(500)]) for k in range(4)]
        waker = threading.Timer(0.05, lambda: [t.start() for t in threads])
        waker.start()
        self.loop.start.connect(self.a.take)
        end = Node(self.loop, "end")

        def finish():
            for t in [waker, *threads]:
                t.join()
            self.loop.stop()
        threading.Timer(0.1, finish).start()
        until_stopped(self.loop)
        self.assertEqual(end.got, [])
        for k in range(4):
            self.assertEqual([n for (who, n) in self.b.got if who == k], list(range(500)))

    def test_loops_in_threads(self):
        other = EventLoop("other")
        c = Node(other, "c")
        self.a.out.connect(c.echo)
        c.out.connect(self.a.take)
        c.out.connect(self.a.ends)
        self.loop.terminate.connect(other.stop)
        thread = threading.Thread(target=until_stopped, args=(other,))
        thread.start()
        array = numpy.zeros(3)
        self.a.out.emit(array)
        until_stopped(self.loop)
        thread.join(60)
        self.assertFalse(thread.is_alive())
        self.assertIs(self.a.got[0][0], array)  # within a process arguments go as they are

    def test_process_events_does_one_round(self):
        self.a.out.connect(self.b.take)
        self.a.out.emit(1)
        self.loop.process_events()
        self.loop.process_events(0.0)
        self.assertEqual(self.b.got, [(1,)])


class Timers(unittest.TestCase):
    def setUp(self):
        self.loop = EventLoop("main")
        self.a = Node(self.loop, "a")

    def test_once_and_each(self):
        once, each, end = Timer(self.loop, 0.01, single_shot=True), Timer(self.loop, 0.02), Timer(self.loop, 0.2, single_shot=True)
        once.timeout.connect(self.a.take)
        b = Node(self.loop, "b")
        each.timeout.connect(b.take)
        end.timeout.connect(self.loop.stop)
        until_stopped(self.loop)
        self.assertEqual(len(self.a.got), 1)
        self.assertTrue(2 <= len(b.got) <= 10, len(b.got))
        self.assertEqual(once.remaining_time(), float("inf"))

    def test_stops_starts_and_changes(self):
        long = Timer(self.loop, 1000.0)
        long.timeout.connect(self.a.take)
        long.timeout.connect(self.loop.stop)
        stopped = Timer(self.loop, 0.01)
        stopped.timeout.connect(self.a.fails)
        stopped.stop()
        long.stop()
        long.set_interval(0.05)
        long.start()
        until_stopped(self.loop)
        self.assertEqual(len(self.a.got), 1)

    def test_skips_intervals_that_have_passed(self):
        each = Timer(self.loop, 0.01)
        each.timeout.connect(self.a.take)
        each._at = time.monotonic() - 1.0
        self.loop._schedule(each, each._at)
        self.loop.process_events(0.0)
        self.loop.process_events(0.0)
        self.assertEqual(len(self.a.got), 1)
        self.assertGreater(each.remaining_time(), 0.0)

    def test_a_tight_loop_runs_in_each_round(self):
        tight = TightLoop(self.loop, "tight")
        tight.iteration.connect(self.a.take)
        for _ in range(5):
            self.loop.process_events(0.0)
        self.assertGreaterEqual(len(self.a.got), 4)


class Processes(unittest.TestCase):
    def make(self, how, name="worker", **more):
        p = EventLoopProcess(name, multiprocessing.get_context(how), daemon=True, **more)
        self.addCleanup(lambda: (p.kill(), p.join()) if p.is_alive() else None)
        return p

    def test_values_go_there_and_back(self):
        for how in CONTEXTS:
            with self.subTest(how):
                loop, p = EventLoop("main"), self.make(how)
                a, b, c = Node(loop, "a"), Node(p.event_loop, "b"), Node(p.event_loop, "c")
                a.out.connect(b.echo)
                b.out.connect(a.take)
                a.told.connect(c.where)
                c.out.connect(a.take)
                c.out.connect(a.ends)
                values = [(None, 1 << 70, {"k": (1.5, "é", b"\0")}), (numpy.arange(300_000, dtype="f4"),), ()]
                a.out.emit(*values[0])  # before it is started
                p.start()
                a.out.emit_many(values[1:])
                a.told.emit()
                until_stopped(loop)
                p.stop()
                p.join(60)
                self.assertEqual(p.exitcode, 0)
                self.assertEqual(a.got[0], values[0])
                numpy.testing.assert_array_equal(a.got[1][0], values[1][0])
                self.assertEqual(a.got[2:], [(), ("worker", p.pid)])

    def test_two_processes_without_the_first(self):
        for how in CONTEXTS:
            with self.subTest(how):
                loop, p, q = EventLoop("main"), self.make(how, "p"), self.make(how, "q")
                a, b, c = Node(loop, "a"), Node(p.event_loop, "b"), Node(q.event_loop, "c")
                a.out.connect(b.echo)
                b.out.connect(c.echo)
                c.out.connect(a.take)
                c.out.connect(a.ends)
                a.out.emit("through both")
                p.start(), q.start()
                loop.terminate.connect(p.stop)
                loop.terminate.connect(q.stop)
                until_stopped(loop)
                p.join(60), q.join(60)
                self.assertEqual((a.got, p.exitcode, q.exitcode), ([("through both",)], 0, 0))

    def test_connects_and_disconnects_while_both_run(self):
        for how in CONTEXTS:
            with self.subTest(how):
                loop, p, q = EventLoop("main"), self.make(how, "p"), self.make(how, "q")
                a, b, c = Node(loop, "a"), Node(p.event_loop, "b"), Node(q.event_loop, "c")
                c.out.connect(a.take)
                c.out.connect(a.ends)
                p.start(), q.start()
                a.out.connect(b.echo)
                b.out.connect(c.echo)
                a.out.emit(1)
                until_stopped(loop)
                a.out.disconnect(b.echo)
                a.out.connect(c.echo)
                a.out.emit(2)
                until_stopped(loop)
                self.assertEqual(a.got, [(1,), (2,)])
                p.stop(), q.stop()
                p.join(60), q.join(60)
                late = Node(EventLoop("late"), "x")
                with self.assertRaisesRegex(RuntimeError, "the loop late was made after the process p was started"):
                    b.out.connect(late.take)

    def test_timers_of_a_process_obey_from_outside(self):
        loop, p = EventLoop("main"), self.make("spawn")
        a, t = Node(loop, "a"), Timer(p.event_loop, 1000.0, object_id="t")
        t.timeout.connect(a.take)
        t.timeout.connect(a.ends)
        p.start()
        t.set_interval(0.01)
        until_stopped(loop)
        p.stop()
        p.join(60)
        self.assertEqual((a.got[0], p.exitcode), ((), 0))

    def test_runs_the_function_of_the_process_first(self):
        loop, p = EventLoop("main"), self.make("spawn", init_func=os.putenv, args=("RLHOST_TEST", "1"))
        a = Node(loop, "a")
        p.event_loop.start.connect(a.ends)
        p.start()
        with self.assertRaisesRegex(RuntimeError, "the process worker has been started"):
            p.set_init_func_args()
        with self.assertRaisesRegex(RuntimeError, "runs in the process worker"):
            p.event_loop.exec()
        until_stopped(loop)
        p.stop()
        p.join(60)
        self.assertEqual(p.exitcode, 0)

    def test_a_full_queue_loses_signals_and_counts_them_but_not_the_end(self):
        loop, p = EventLoop("main"), self.make("fork", queue_bytes=100_000)
        a, b = Node(loop, "a"), Node(p.event_loop, "b")
        a.out.connect(b.ends)
        p.start()
        os.kill(p.pid, signals.SIGSTOP)
        try:
            with self.assertLogs("rlhost.signal_slot", "ERROR") as said:
                for k in range(3000):
                    a.out.emit("x" * 100)
            self.assertIn("a.out: the queue of the loop worker_evt_loop is full: 1 signals to it are lost", said.output[0])
            self.assertGreater(p.event_loop.lost, 1000)
            with self.assertRaisesRegex(ValueError, "a.out to the loop worker_evt_loop: message of .* queue_bytes="):
                a.out.emit("x" * 1_000_000)
            p.stop()
        finally:
            os.kill(p.pid, signals.SIGCONT)
        p.join(60)
        self.assertEqual(p.exitcode, 0)


class Faults(unittest.TestCase):
    make = Processes.make

    def lost(self, how, kind):
        loop, p = EventLoop("main"), self.make(how)
        a, b = Node(loop, "a"), Node(p.event_loop, "b")
        Node(p.event_loop, "c")
        a.out.connect(b, kind)
        p.start()
        a.out.emit()
        return loop, p, a

    def test_a_process_that_is_killed_ends_the_loops_that_wait_for_it(self):
        for how in CONTEXTS:
            with self.subTest(how):
                loop, p, _ = self.lost(how, "dies")
                with self.assertLogs("rlhost.signal_slot", "ERROR"), self.assertRaisesRegex(
                        ProcessDied, "the process worker was killed by SIGKILL, and its objects b, c with it; connect a slot to its signal died") as e:
                    until_stopped(loop)
                self.assertEqual((e.exception.process, e.exception.exitcode, e.exception.objects), ("worker", -9, ["b", "c"]))

    def test_so_does_a_slot_that_fails_there(self):
        loop, p, _ = self.lost("fork", "fails")
        with self.assertLogs("rlhost.signal_slot", "ERROR"), self.assertRaisesRegex(ProcessDied, "the process worker ended with status 1"):
            until_stopped(loop)

    def test_a_slot_of_the_signal_died_goes_on_instead(self):
        loop, p, a = self.lost("fork", "dies")
        p.died.connect(a.take)
        p.died.connect(a.ends)
        with self.assertLogs("rlhost.signal_slot", "ERROR"):
            until_stopped(loop)
        self.assertEqual(a.got, [("worker", -9)])

    def test_a_process_that_is_ended_on_purpose_is_no_fault(self):
        loop, p = EventLoop("main"), self.make("fork")
        Node(p.event_loop, "b")
        p.start()
        p.kill()
        p.join()
        Timer(loop, 0.6, single_shot=True).timeout.connect(loop.stop)
        self.assertEqual(until_stopped(loop), EventLoopStatus.NORMAL_TERMINATION)

    def test_processes_end_with_the_one_that_started_them(self):
        program = ("import os, signal, sys\nfrom rlhost.signal_slot import EventLoopProcess\n"
                   "p = EventLoopProcess('worker')\np.start()\nprint(p.pid, flush=True)\nos.kill(os.getpid(), signal.SIGKILL)\n")
        child = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        end = time.monotonic() + 60
        while alive(int(child.stdout)) and time.monotonic() < end:
            time.sleep(0.05)
        self.assertFalse(alive(int(child.stdout)))

    def test_a_process_that_cannot_start_leaves_the_signals_here(self):
        loop, p = EventLoop("main"), self.make("spawn")
        a, b = Node(loop, "a"), Node(p.event_loop, "b")
        b.lock = threading.Lock()  # cannot be pickled
        a.out.connect(b.take)
        a.out.emit(1)
        with self.assertRaises(TypeError):
            p.start()
        p.event_loop.process_events()
        self.assertEqual(b.got, [(1,)])


def alive(pid):
    """Whether a process runs: not one that has ended and is not waited for."""
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


class Queues(unittest.TestCase):
    def test_takes_objects(self):
        q = get_mp_queue()
        for x in (1, {"a": (2,)}, None):
            q.put(x)
        self.assertEqual(q.get_many_nowait(), [1, {"a": (2,)}, None])
        with self.assertRaises(queue.Empty):
            q.get_many_nowait()


if __name__ == "__main__":
    logging.basicConfig()
    unittest.main()
