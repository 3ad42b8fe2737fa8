"""Timers of a component, with a clock of the test."""

import itertools
import types
import unittest
import unittest.mock

from rlhost import host


class TimerTest(unittest.TestCase):
    def setUp(self):
        self.now = 100.0
        clock = unittest.mock.patch.object(host.time, "monotonic", lambda: self.now)
        clock.start()
        self.addCleanup(clock.stop)
        self.host = host.Host.__new__(host.Host)
        self.host._timers, self.host._order, self.host._failed, self.host._reported = [], itertools.count(), False, self.now
        self.host._link = types.SimpleNamespace(begun=lambda: True)
        self.host._report_stats = lambda: None
        self.calls = []

    def at(self, now):
        self.now = now
        return self.host._tick()

    def note(self):
        self.calls.append(self.now)

    def test_once(self):
        self.host.after(0.25, self.note)
        self.assertAlmostEqual(self.at(100.0), 0.25)
        for now in (100.2, 100.3, 100.6):
            self.at(now)
        self.assertEqual(self.calls, [100.3])

    def test_periodic_in_its_rhythm_without_what_it_missed(self):
        self.host.every(0.25, self.note)
        for now in (100.0, 100.25, 100.26, 100.6, 100.7, 100.8, 103.1, 103.2, 103.25):
            self.at(now)
        self.assertEqual(self.calls, [100.25, 100.6, 100.8, 103.1, 103.25])
        self.assertAlmostEqual(self.at(103.3), 0.2)

    def test_canceled(self):
        once, often = self.host.after(0.1, self.note), self.host.every(0.1, self.note)
        once.cancel()
        self.at(100.1)
        often.cancel()
        self.at(101.0)
        self.assertEqual((self.calls, self.host._timers), ([100.1], []))
        itself = self.host.every(0.1, lambda: (self.note(), itself.cancel()))
        self.at(101.1)
        self.at(102.0)
        self.assertEqual((self.calls, self.host._timers), ([100.1, 101.1], []))

    def test_no_time(self):
        for seconds in (0, -1, float("nan")):
            with self.assertRaisesRegex(ValueError, "more than 0"):
                self.host.every(seconds, self.note)


if __name__ == "__main__":
    unittest.main()
