"""Tests of rlhost.make_vec with a batch_size, with the real program."""

import collections
import os
import pathlib
import random
import signal
import tempfile
import unittest

import gymnasium
import made
import numpy
import threaded_envs

import rlhost


class AloneTest(unittest.TestCase):
    def make(self, *args, **keys):
        venv = rlhost.make_vec(*args, **keys)
        self.addCleanup(venv.close)
        return venv

    def held(self, num_envs, batch_size, **keys):
        """Environments that wait for a file, which does not exist."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        file = pathlib.Path(folder.name, "go")
        return self.make(threaded_envs.Held, num_envs, batch_size=batch_size, args={"file": str(file)}, **keys), file

    def test_each_environment_does_what_it_does_in_lockstep(self):
        seed = random.SystemRandom().randrange(1 << 30)
        for case, (use, batch, keys) in enumerate(((threaded_envs.Uneven, 3, {"workers": 2}), (threaded_envs.Uneven, 3, {"workers": 2, "threads": 2}),
                                 ("CartPole-v1", 7, {"workers": 2}), ("CartPole-v1", 2, {"autoreset": "next_step"}), ("Pendulum-v1", 4, {"workers": 3}),
                                 ("cartpole@1", 3, {}), ("cartpole@1", 3, {"wrap": [{"time_limit": 9}, {"frame_stack": 2}]}),
                                 ("cartpole@1", 3, {"autoreset": "next_step"}))):
            with self.subTest(use, batch=batch, seed=seed, **keys):
                self.compare(use, batch, keys, case % 2 == 0, seed)

    def compare(self, use, batch, keys, copy, seed, envs=7, steps=60):
        lock, alone = self.make(use, envs, **keys), self.make(use, envs, batch_size=batch, copy=copy, **keys)
        self.assertEqual((lock.observation_space, lock.action_space), (alone.observation_space, alone.action_space))
        lock.action_space.seed(seed)
        actions = [lock.action_space.sample() for _ in range(steps)]
        want = [[] for _ in range(envs)]
        obs, _ = lock.reset(seed=seed)
        for i in range(envs):
            want[i].append((obs[i].tobytes(), 0.0, False, False, b""))
        for given in actions:
            obs, reward, terminated, truncated, info = lock.step(given)
            for i in range(envs):
                ended = "_final_obs" in info and info["_final_obs"][i]
                want[i].append((obs[i].tobytes(), reward[i], terminated[i], truncated[i], info["final_obs"][i].tobytes() if ended else b""))
        got = [[] for _ in range(envs)]
        alone.async_reset(seed=seed)
        while min(map(len, got)) <= steps:
            obs, reward, terminated, truncated, info = alone.recv()
            self.assertEqual((len(obs), len(reward), len(terminated), len(truncated)), (batch,) * 4)
            for k, i in enumerate(info["env_id"]):
                ended = "_final_obs" in info and info["_final_obs"][k]
                got[i].append((obs[k].tobytes(), reward[k], terminated[k], truncated[k], info["final_obs"][k].tobytes() if ended else b""))
            following = numpy.array([actions[min(len(got[i]) - 1, steps - 1)][i] for i in info["env_id"]])
            alone.send(following, info["env_id"])
        for i in range(envs):
            self.assertEqual(got[i][:steps + 1], want[i], f"environment {i}")
        lock.close()
        alone.close()

    def test_dicts_and_masks_are_of_the_environments_of_the_batch(self):
        venv = self.make(made.Warm, 4, batch_size=2, workers=2)
        first, _ = venv.reset(seed=5)
        venv.async_reset(seed=5)
        for _ in range(2):
            obs, *_, info = venv.recv()
            for k, i in enumerate(info["env_id"]):
                numpy.testing.assert_array_equal(obs["room"]["off"][k], first["room"]["off"][i])
            self.assertEqual((obs["season"].tolist(), obs["season"].dtype), ([1, 1], first["season"].dtype))
        taxi = self.make("Taxi-v4", 4, batch_size=2)
        first, every = taxi.reset(seed=5)
        taxi.async_reset(seed=5)
        for _ in range(2):
            obs, *_, info = taxi.recv()
            self.assertEqual(obs.tolist(), first[info["env_id"]].tolist())
            numpy.testing.assert_array_equal(info["action_mask"], every["action_mask"][info["env_id"]])

    def test_none_waits_for_a_slow_one(self):
        venv, file = self.held(6, 2, workers=2, threads=2)
        venv.reset(seed=1)
        venv.send(numpy.array([1, 0, 0, 0, 0, 0]))
        seen = collections.Counter()
        for _ in range(40):
            *_, info = venv.recv()
            seen.update(info["env_id"].tolist())
            venv.send(numpy.zeros(2, int))
        self.assertEqual(sorted(seen), [1, 2, 3, 4, 5])
        file.touch()
        while 0 not in seen:
            *_, info = venv.recv()
            seen.update(info["env_id"].tolist())
            venv.send(numpy.zeros(2, int), info["env_id"])

    def test_of_a_process_with_one_thread_the_oldest_is_next(self):
        for use in threaded_envs.Uneven, "cartpole@1":
            venv = self.make(use, 5, batch_size=2)
            venv.async_reset(seed=1)
            order = []
            *_, info = venv.recv()
            for _ in range(50):
                order += info["env_id"].tolist()
                *_, info = venv.step(numpy.zeros(2, int))
            self.assertEqual(order, [k % 5 for k in range(100)])

    def test_misuse_is_named(self):
        venv, _ = self.held(4, 2)
        zeros = numpy.zeros(2, int)
        with self.assertRaisesRegex(gymnasium.error.ResetNeeded, "call reset or async_reset"):
            venv.send(zeros, [0, 1])
        venv.reset(seed=1)
        with self.assertRaisesRegex(gymnasium.error.NoAsyncCallError, "recv returns 2 environments and 0 are in steps: send"):
            venv.recv()
        venv.send(zeros[:1], [3])
        with self.assertRaisesRegex(gymnasium.error.NoAsyncCallError, "2 environments and 1 are in steps"):
            venv.recv()
        for error, ids, text in ((gymnasium.error.AlreadyPendingCallError, [0, 3], "environment 3 is in a step: send to it after a recv"),
                                 (ValueError, [0, 4], "env_id has 4: want 0 to 3"), (ValueError, [-1, 0], "env_id has -1"),
                                 (ValueError, [1, 1], r"an environment twice: \[1, 1\]"), (TypeError, [0.0, 1.0], "want a list of whole numbers"),
                                 (ValueError, [0, 1, 2], "cannot reshape")):
            with self.subTest(text), self.assertRaisesRegex(error, text):
                venv.send(zeros, ids)
        venv.send(zeros, [2, 0])  # none of them was begun
        self.assertEqual(venv.recv()[4]["env_id"].tolist(), [3, 2])
        for batch in 0, 5:
            with self.assertRaisesRegex(ValueError, f"batch_size is {batch}: want 1 to num_envs, which is 4"):
                rlhost.make_vec("cartpole@1", 4, batch_size=batch)
        with self.assertRaisesRegex(rlhost.VecError, "(?s)cannot be stepped|stepped in whole batches.*leave batch_size out.*gym_wrap"):
            rlhost.make_vec("CartPole-v1", 4, batch_size=2, wrap=[{"time_limit": 5}])

    def test_reset_forgets_what_steps_have_brought(self):
        venv, _ = self.held(4, 2, workers=2)
        venv.reset(seed=1)
        venv.send(numpy.zeros(4, int))
        obs, info = venv.reset(options={"reset_mask": numpy.array([True, False, False, False])})
        self.assertEqual((obs[:, 0].tolist(), info["env_id"].tolist()), ([0, 1, 1, 1], [0]))
        self.assertEqual(len(set(venv.recv()[4]["env_id"].tolist()) - {1, 2, 3}), 0)
        with self.assertRaisesRegex(gymnasium.error.NoAsyncCallError, "1 are in steps"):
            venv.recv()
        venv.reset(seed=1)
        with self.assertRaisesRegex(gymnasium.error.NoAsyncCallError, "0 are in steps"):
            venv.recv()

    def test_one_that_raises_costs_itself_alone(self):
        venv, _ = self.held(4, 2, workers=2)
        venv.reset(seed=1)
        venv.send(numpy.array([0, 2, 0, 0]))
        ids = []
        with self.assertRaisesRegex(rlhost.VecError, "env 1: status in rl_step at step 1.*asked to.*threaded_envs.py") as raised:
            while True:
                ids += venv.recv()[4]["env_id"].tolist()
        self.assertEqual(raised.exception.env_id.tolist(), [1])
        with self.assertRaisesRegex(gymnasium.error.ResetNeeded, "environment 1 has failed: reset it first"):
            venv.send(numpy.zeros(1, int), [1])
        while len(ids) < 2:
            ids += venv.recv()[4]["env_id"].tolist()
        obs, _ = venv.reset(options={"reset_mask": numpy.array([False, True, False, False])})
        self.assertEqual(obs[1], 0)
        venv.send(numpy.zeros(1, int), [1])

    def test_a_dead_process_costs_its_environments_alone(self):
        venv, file = self.held(4, 2, workers=2)
        venv.reset(seed=1)
        venv.send(numpy.zeros(2, int), [0, 3])
        _, pids, *_, info = venv.recv()
        of = dict(zip(info["env_id"].tolist(), pids))
        venv.send(numpy.array([1, 0, 0, 0]), [0, 1, 2, 3])  # 0 waits for ever, and 1 for 0
        os.kill(int(of[0]), signal.SIGKILL)
        with self.assertRaisesRegex(rlhost.VecError, "lost in rl_step") as raised:
            venv.recv()
            venv.recv()
        self.assertEqual(raised.exception.env_id.tolist(), [0, 1])
        venv.reset(options={"reset_mask": numpy.array([True, True, False, False])})
        venv.send(numpy.zeros(2, int))
        seen = set()
        for _ in range(10):
            *_, info = venv.recv()
            seen.update(info["env_id"].tolist())
            venv.send(numpy.zeros(2, int))
        self.assertLessEqual({0, 1}, seen)

    def test_attributes_are_asked_for_between_steps(self):
        venv, _ = self.held(3, 1, workers=2)
        venv.reset(seed=1)
        venv.send(numpy.zeros(3, int))
        self.assertEqual(venv.get_attr("steps"), (1, 1, 1))
        self.assertEqual(sorted(int(venv.recv()[4]["env_id"][0]) for _ in range(3)), [0, 1, 2])
        with self.assertRaisesRegex(rlhost.VecError, "nothing_like_it"):
            venv.get_attr("nothing_like_it")
        venv.send(numpy.zeros(1, int), [2])
        self.assertEqual(venv.recv()[4]["env_id"].tolist(), [2])

    def test_a_dead_host_is_an_error(self):
        venv, _ = self.held(2, 1)
        venv.reset(seed=1)
        venv.send(numpy.array([1, 1]))
        os.kill(venv._child.pid, signal.SIGKILL)
        with self.assertRaisesRegex(rlhost.VecError, "status -9"):
            venv.recv()

    def test_close_does_not_wait_for_a_step(self):
        venv, _ = self.held(2, 1)
        venv.reset(seed=1)
        venv.send(numpy.array([1, 1]))
        venv.close()


if __name__ == "__main__":
    unittest.main()
