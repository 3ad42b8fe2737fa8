"""Tests of rlhost.collect, with the real program."""

import os
import resource
import unittest

import made
import numpy
from test_training import InFolder

import rlhost


class CollectTest(InFolder):
    def test_the_rows_are_the_steps(self):
        policy = rlhost.train("cartpole@1", 4096, progress=False).load()
        for env in "CartPole-v1", "cartpole@1":
            with self.subTest(env):
                told = rlhost.collect(policy, env, "data.npz", episodes=5, seed=3)
                data = dict(numpy.load("data.npz"))
                self.assertEqual({name: (x.dtype.str, x.shape[1:]) for name, x in data.items()}, {
                    "obs": ("<f4", (4,)), "next_obs": ("<f4", (4,)), "action": ("<i8", ()), "reward": ("<f4", ()), "terminated": ("|b1", ()),
                    "truncated": ("|b1", ()), "episode": ("<i8", ())})
                self.assertEqual(numpy.bincount(data["episode"]).tolist(), told.lengths)
                self.assertEqual(numpy.bincount(data["episode"], data["reward"]).tolist(), told.returns)
                ends = data["terminated"] | data["truncated"]
                self.assertEqual(numpy.flatnonzero(ends).tolist(), (numpy.cumsum(told.lengths) - 1).tolist())
                inner = ~ends[:-1]
                numpy.testing.assert_array_equal(data["next_obs"][:-1][inner], data["obs"][1:][inner])
                self.assertFalse((data["next_obs"][:-1][~inner] == data["obs"][1:][~inner]).all(axis=1).any())
                self.assertEqual(rlhost.collect(policy, env, "again.npz", episodes=5, seed=3), told)
                for name, x in numpy.load("again.npz").items():
                    numpy.testing.assert_array_equal(x, data[name])

    def test_parts_have_their_paths(self):
        policy = rlhost.train(made.Warm, 2048, wrap=[{"time_limit": 50}], progress=False).load()
        told = rlhost.collect(policy, made.Warm, "data.npz", episodes=2, max_steps=7)
        data = numpy.load("data.npz")
        self.assertEqual(sorted(data), ["action", "episode", "next_obs/room/off", "next_obs/season", "obs/room/off", "obs/season", "reward", "terminated", "truncated"])
        self.assertEqual((told.lengths, len(data["reward"]), data["truncated"].any()), ([7, 7], 14, False))

    def test_what_cannot_be_written_is_named_and_leaves_no_file(self):
        policy = rlhost.train("cartpole@1", 2048, progress=False).load()
        for file, keys, error, text in (("a.csv", {}, ValueError, "does not end in .npz"), ("a.npz", {"episodes": 0}, ValueError, "want 1 or more"),
                                        ("nowhere/a.npz", {}, FileNotFoundError, "nowhere")):
            with self.assertRaisesRegex(error, text):
                rlhost.collect(policy, "cartpole@1", file, **{"episodes": 1, **keys})
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (500, before[1]))  # as a disk that has so much room
        try:
            with self.assertRaisesRegex(OSError, "File too large"):
                rlhost.collect(policy, "CartPole-v1", "full.npz", episodes=3)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        self.assertEqual(sorted(os.listdir()), ["runs"])


class CellTest(InFolder):
    def test_a_cell_that_is_run_twice_trains_twice(self):
        cell = compile("""
import rlhost
def on(m):
    seen.append(m["global_step"])
    if fails:
        raise KeyError("mine")
run = rlhost.train("cartpole@1", 4096, on=on, progress=False)
""", "cell", "exec")
        names = {"seen": [], "fails": True}
        with self.assertRaisesRegex(KeyError, "mine"):
            exec(cell, names)
        names["fails"] = False
        for number in 2, 3:
            names["seen"] = []
            exec(cell, names)
            self.assertEqual((names["run"].id, names["run"].reason, names["seen"][-1]), (f"cartpole/000{number}", "env_steps", 4096))


if __name__ == "__main__":
    unittest.main()
