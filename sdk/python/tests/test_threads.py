"""Environments of a batch that threads step side by side."""

import random
import threading
import unittest

import numpy

from envhost import NEXT_STEP, SAME_STEP, Blocks, EnvHost, layout
from rlhost.gymnasium.crew import Crew
from test_gymnasium import ODD, odd
from threaded_envs import MEET


class Fault(Exception):
    def __init__(self, env):
        self.env = env


class CrewTest(unittest.TestCase):
    def test_each_is_taken_once_and_counted_once_all_before_it_are_done(self):
        done, held, counted = [0], threading.Event(), []

        def work(order, note):
            for i, name in order:
                if i == 0:
                    self.assertTrue(held.wait(30))
                else:
                    counted.append((i, name))
                note(i)
                if i == 4:
                    self.assertEqual(done[0], 0)  # the first is not done, so the host takes it for the one that hangs
                    held.set()

        Crew(2).share(work, done, "abcde")
        self.assertEqual((sorted(counted), done[0]), ([(1, "b"), (2, "c"), (3, "d"), (4, "e")], 5))

    def test_of_several_faults_the_first_environments_is_raised_when_all_have_ended_theirs(self):
        both, ended = threading.Barrier(2), []

        def work(order, note):
            for i, _ in order:
                both.wait(30)  # 0 and 1 are taken before either fails
                ended.append(i)
                raise Fault(i)

        with self.assertRaises(Fault) as raised:
            Crew(2).share(work, [0], range(100))
        self.assertEqual((raised.exception.env, sorted(ended)), (0, [0, 1]))


class BatchTest(unittest.TestCase):
    def test_steps_and_resets_that_wait_for_each_other_end(self):
        schema, size = layout(4, MEET, ("f32", ()))
        with EnvHost("threaded_envs:Meeting", MEET, environment=ODD, own_process=False, threads=MEET) as host:
            blocks = Blocks(1, schema, size, 1)
            host.share(blocks)
            self.assertIsNone(host.bind(blocks, 0))
            self.assertIsNone(host.reset(0, range(MEET)))
            for t in range(4):
                self.assertIsNone(host.step(t))
            numpy.testing.assert_array_equal(blocks.columns[0]["obs"], numpy.arange(5)[:, None].repeat(MEET, 1))

    def test_blocks_are_the_same_with_any_number_of_threads(self):
        seed = random.SystemRandom().randrange(1 << 30)
        for use, mode in (("CartPole-v1", SAME_STEP), ("CartPole-v1", NEXT_STEP), ("threaded_envs:Uneven", SAME_STEP)):
            played = [self.played(use, mode, threads, seed) for threads in (1, 3, 7)]
            for other in played[1:]:
                self.assertEqual(other, played[0], f"{use}, mode {mode}, seed {seed}")
            self.assertGreater(sum(played[0][0]["terminated"]), 0)

    def played(self, use, mode, threads, seed):
        """The columns after some steps, as bytes, and the metrics that were told."""
        rng, envs, steps = numpy.random.default_rng(seed), 7, 120
        with EnvHost(use, envs, environment=ODD, own_process=False, threads=threads, autoreset=mode) as host:
            observed = [(t.dtype, tuple(t.shape)) for t in host.host.worker._source.observations.tensors(0)]
            schema, size = layout(steps, envs, *observed)
            blocks = Blocks(1, schema, size, 1)
            host.share(blocks)
            told = []
            host.host.worker._batch._report = lambda *metric: told.append(metric)
            self.assertIsNone(host.bind(blocks, 0))
            self.assertIsNone(host.reset(0, [int(s) for s in rng.integers(0, 1 << 63, envs)]))
            blocks.columns[0]["action"][:] = rng.integers(0, 2, (steps, envs))
            for t in range(steps):
                self.assertIsNone(host.step(t))
            return {name: column.tobytes() for name, column in blocks.columns[0].items()}, told

    def test_the_first_environment_that_fails_is_named(self):
        host = odd(envs=5, args={"fail": "step"}, threads=3)
        with host:
            schema, size = layout(4, 5, ("f32", (2, 3)))
            blocks = Blocks(1, schema, size, 1)
            host.share(blocks)
            host.bind(blocks, 0)
            host.reset(0, range(5))
            self.assertEqual([host.step(t) for t in range(2)], [None, None])
            status, env, text = host.step(2)
            self.assertEqual((status, env), (-128, 0))
            self.assertIn("the third step", text)


if __name__ == "__main__":
    unittest.main()
