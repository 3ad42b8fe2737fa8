"""Tests of rlhost.sample, with the real program."""

import os
import pathlib
import signal
import subprocess
import tempfile
import unittest

import made
import numpy
from test_training import InFolder

import rlhost


def children():
    """The processes that this one has started and that live."""
    return [int(pid) for pid in pathlib.Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()]


class SampleTest(InFolder):
    def setUp(self):
        super().setUp()
        self.before = children()  # such as multiprocessing's, after other tests

    def test_random_actions(self):
        with rlhost.sample("random", "cartpole@1", rows=16, envs=8, seed=3, keys={"component.rollout.splits": 1}) as batches:
            batch = next(batches)
            self.assertEqual({name: batch[name].shape for name in ("obs", "action", "reward", "terminated", "truncated", "log_prob", "value")}, {
                "obs": (17, 8, 4), "action": (16, 8), "reward": (16, 8), "terminated": (16, 8), "truncated": (16, 8), "log_prob": (16, 8), "value": (17, 8)})
            self.assertTrue(batch.valid.all())
            self.assertEqual(set(numpy.unique(batch.action)), {0, 1})
            self.assertFalse(batch.obs.flags.writeable)
            last = numpy.array(batch.obs[-1])
            numpy.testing.assert_array_equal(next(batches).obs[0], last)  # the next one goes on where it ended
        self.assertEqual(children(), self.before)

    def test_a_trained_policy_acts(self):
        run = rlhost.train("cartpole@1", 20_480, progress=False)
        version = run.end["policy_version"]
        ends = {}
        for what, env in ((run, None), (run.id, "cartpole@1"), (os.path.relpath(run.folder), None), ("random", "cartpole@1")):
            ends[what, env] = 0
            with rlhost.sample(what, env, rows=128, envs=64) as batches:
                for _, batch in zip(range(8), batches):
                    ends[what, env] += int((batch.terminated | batch.truncated).sum())
                    if what != "random":
                        self.assertEqual(set(numpy.unique(batch.policy_version)), {version})
                        self.assertGreater(batch.value.mean(), 10)
                        self.assertTrue((batch.log_prob < 0).all())
        *trained, by_chance = ends.values()
        self.assertLess(max(trained) * 5, by_chance, ends)

    def test_a_pipeline_trains_meanwhile(self):
        pathlib.Path("mine.toml").write_text('rlhost = 1\n[run]\nstop = { env_steps = 8192 }\n[env.cartpole]\nuse = "cartpole@1"\n[train]\npreset = "general"\n')
        steps = 0
        versions = set()
        with rlhost.sample("mine.toml") as batches:
            for batch in batches:
                steps += int(batch.valid.sum())
                versions |= set(numpy.unique(batch.policy_version))
        self.assertGreaterEqual(steps, 4096)
        self.assertGreater(len(versions), 2)

    def test_environments_of_python_and_dicts(self):
        with rlhost.sample("random", made.Warm, rows=8, envs=4, workers=2, wrap=[{"time_limit": 5}]) as batches:
            batch = next(batches)
            self.assertEqual({name: batch[name].shape for name in ("obs", "obs/1", "reward")}, {"obs": (9, 2, 2), "obs/1": (9, 2), "reward": (8, 2)})

    def test_a_stop_rule_ends_the_iteration(self):
        batches = rlhost.sample("random", "cartpole@1", rows=16, envs=32, keys={"run.stop.env_steps": 5000})
        steps = sum(int(batch.valid.sum()) for batch in batches)
        self.assertGreaterEqual(steps, 5000)
        self.assertEqual(list(batches), [])
        self.assertEqual(children(), self.before)
        batches.close()

    def test_what_is_wrong_is_named(self):
        for what, env, keys, error, text in (
                ("random", None, {}, TypeError, "which environment"),
                ("nobody", None, {}, ValueError, "nobody"),
                ("mine.toml", "cartpole@1", {}, TypeError, "its own environments"),
                ("mine.toml", None, {}, rlhost.SamplingError, "mine.toml"),
                ("random", "cartpole@1", {"component.rollout.horizon": 0}, rlhost.SamplingError, "E005.*horizon"),
                ("random", "nothing@1", {}, rlhost.SamplingError, "nothing@1")):
            with self.subTest(what=what, keys=keys), self.assertRaisesRegex(error, text):
                next(rlhost.sample(what, env, keys=keys))
        self.assertEqual(children(), self.before)

    def test_a_killed_host_is_an_error(self):
        batches = rlhost.sample("random", "cartpole@1")
        next(batches)
        for pid in set(children()) - set(self.before):
            os.kill(pid, signal.SIGKILL)
        with self.assertRaisesRegex(rlhost.SamplingError, "-9"):
            for _ in batches:
                pass
        self.assertEqual(children(), self.before)

    def test_who_is_killed_leaves_nothing(self):
        child = self.script("""
            import os, rlhost
            batches = rlhost.sample("random", "cartpole@1")
            next(batches)
            print(batches._child.pid, flush=True)
            for batch in batches:
                pass
        """, wait=False)
        pid = int(child.stdout.readline())
        child.kill()
        child.communicate()
        with tempfile.TemporaryDirectory():
            subprocess.run(["tail", "--pid", str(pid), "-f", "/dev/null"], timeout=60, check=True)


if __name__ == "__main__":
    unittest.main()
