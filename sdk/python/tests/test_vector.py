"""Tests of rlhost.make_vec, with the real program."""

import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest

import gymnasium
import made
import numpy
from gymnasium import spaces
from gymnasium.vector import AutoresetMode

import rlhost


def reference(env, num_envs, mode, **keys):
    return gymnasium.make_vec(env, num_envs, vectorization_mode="sync", vector_kwargs={"autoreset_mode": mode}, **keys)


class VectorTest(unittest.TestCase):
    def make(self, *args, **keys):
        venv = rlhost.make_vec(*args, **keys)
        self.addCleanup(venv.close)
        return venv

    def test_it_is_what_gymnasium_makes(self):
        for env, autoreset, mode, workers in (("CartPole-v1", "same_step", AutoresetMode.SAME_STEP, 2), ("CartPole-v1", "next_step", AutoresetMode.NEXT_STEP, 1),
                                              ("Pendulum-v1", "same_step", AutoresetMode.SAME_STEP, 2), ("FrozenLake-v1", "same_step", AutoresetMode.SAME_STEP, 1)):
            with self.subTest(env, autoreset=autoreset):
                ours, theirs = self.make(env, 6, workers=workers, autoreset=autoreset), reference(env, 6, mode)
                self.assertEqual((ours.observation_space, ours.action_space, ours.single_action_space, ours.metadata["autoreset_mode"]),
                                 (theirs.observation_space, theirs.action_space, theirs.single_action_space, mode))
                self.assertIsInstance(ours, gymnasium.vector.VectorEnv)
                a, b = ours.reset(seed=3)[0], theirs.reset(seed=3)[0]
                numpy.testing.assert_array_equal(a, b)
                self.assertEqual(a.dtype, b.dtype)
                theirs.action_space.seed(1)
                ends = 0
                for step in range(300):
                    actions = theirs.action_space.sample()
                    got, want = ours.step(actions), theirs.step(actions)
                    for x, y in zip(got[:4], want[:4]):
                        numpy.testing.assert_allclose(x, y, rtol=1e-6, err_msg=f"step {step}")
                    if "_final_obs" in want[4]:
                        ends += 1
                        numpy.testing.assert_array_equal(got[4]["_final_obs"], want[4]["_final_obs"])
                        for i in numpy.flatnonzero(got[4]["_final_obs"]):
                            numpy.testing.assert_allclose(got[4]["final_obs"][i], want[4]["final_obs"][i], rtol=1e-6)
                self.assertTrue(ends > 0 or mode != AutoresetMode.SAME_STEP)
                theirs.close()

    def test_modules_have_spaces_of_gymnasium(self):
        venv = self.make("cartpole@1", 4)
        self.assertEqual((venv.single_action_space, venv.single_observation_space.shape), (spaces.Discrete(2), (4,)))
        obs, _ = venv.reset(seed=1)
        self.assertIn(obs, venv.observation_space)
        again = venv.reset(seed=1)[0]
        numpy.testing.assert_array_equal(obs, again)
        numpy.testing.assert_array_equal(venv.reset(seed=[1, 2, 3, 4])[0], obs)
        self.assertFalse(numpy.array_equal(venv.reset(seed=[9, 2, 3, 4])[0], obs))
        before = venv.step(numpy.array([0, 1, 0, 1]))[0]
        after = venv.reset(options={"reset_mask": numpy.array([True, False, False, False])})[0]
        numpy.testing.assert_array_equal(before[1:], after[1:])
        self.assertFalse(numpy.array_equal(before[0], after[0]))

    def test_wrappers_and_arguments_are_those_of_a_pipeline(self):
        venv = self.make("cartpole@1", 2, wrap=[{"time_limit": 5}])
        venv.reset(seed=1)
        for _ in range(5):
            _, _, terminated, truncated, info = venv.step(numpy.array([0, 1]))
        self.assertEqual((terminated.tolist(), truncated.tolist(), info["_final_obs"].tolist()), ([False] * 2, [True] * 2, [True] * 2))

    def test_dicts_are_nested_and_classes_are_made(self):
        venv = self.make(made.Warm, 3, args={"start": 19.0})
        obs, _ = venv.reset(seed=5)
        self.assertIn(obs, venv.observation_space)
        alone = made.Warm(19.0)
        want, _ = alone.reset(seed=7)
        numpy.testing.assert_allclose(obs["room"]["off"][2], want["room"]["off"], rtol=1e-6)
        obs = venv.step(numpy.array([1, 1, 1]))[0]
        numpy.testing.assert_allclose(obs["room"]["off"][2], alone.step(1)[0]["room"]["off"], rtol=1e-6)

    def test_arrays_are_copies_unless_views_are_asked_for(self):
        for copy in True, False:
            venv = self.make("cartpole@1", 2, copy=copy)
            obs, _ = venv.reset(seed=1)
            kept = obs.copy()
            for _ in range(70):
                venv.step(numpy.array([0, 1]))
            self.assertEqual(numpy.array_equal(obs, kept), copy)

    def test_halves_of_a_step(self):
        venv = self.make("cartpole@1", 2)
        with self.assertRaises(gymnasium.error.ResetNeeded):
            venv.send(numpy.array([0, 1]))
        venv.reset(seed=1)
        with self.assertRaises(gymnasium.error.NoAsyncCallError):
            venv.recv()
        venv.send(numpy.array([0, 1]))
        with self.assertRaises(gymnasium.error.AlreadyPendingCallError):
            venv.send(numpy.array([0, 1]))
        self.assertEqual(venv.recv()[1].tolist(), [1, 1])
        with self.assertRaises(ValueError):
            venv.step(numpy.array([0, 1, 1]))
        self.assertEqual(venv.step(numpy.array([0, 1]))[1].tolist(), [1, 1])

    def test_what_cannot_be_made_is_named(self):
        for env, keys, text in (("CartPole-v9", {}, r"error\[E010\].*CartPole"), ("./nowhere.wasm", {}, "nowhere.wasm"),
                                ("cartpole@1", {"wrap": [{"tim_limit": 5}]}, "did you mean"), ("connectfour@1", {}, "several agents.*rlhost.train")):
            with self.subTest(env), self.assertRaisesRegex(rlhost.VecError, f"(?s){text}"):
                rlhost.make_vec(env, 2, **keys)
        for keys, text in (({"num_envs": 0}, "num_envs is 0: want 1 or more"), ({"workers": 0}, "workers is 0")):
            with self.assertRaisesRegex(ValueError, text):
                rlhost.make_vec("cartpole@1", **keys)
        with self.assertRaisesRegex(ValueError, "same_step or next_step"):
            rlhost.make_vec("cartpole@1", autoreset="later")

    def test_every_space_goes_both_ways(self):
        kinds = [{"observation": o} for o in ("box", "image", "discrete", "wide_image", "binary", "choices", "tuple", "text", "mission")]
        kinds += [{"action": a} for a in ("discrete", "box", "multi", "uneven", "binary", "wide", "tuple")]
        for keys in kinds:
            with self.subTest(**keys):
                ours, theirs = self.make("odd_envs:Odd-v0", 3, args=keys), reference("odd_envs:Odd-v0", 3, AutoresetMode.SAME_STEP, **keys)
                self.assertEqual((ours.observation_space, ours.action_space), (theirs.observation_space, theirs.action_space))
                theirs.action_space.seed(1)
                for _ in range(4):
                    got, want = ours.reset(seed=1)[0], theirs.reset(seed=1)[0]
                    self.same(got, want, ours.observation_space)
                    for _ in range(3):
                        actions = theirs.action_space.sample()
                        got, want = ours.step(actions), theirs.step(actions)
                        self.same(got[0], want[0], ours.observation_space)
                        for x, y in zip(got[1:4], want[1:4]):
                            numpy.testing.assert_allclose(x, y, rtol=1e-6)
                theirs.close()

    def same(self, got, want, space):
        if isinstance(space, spaces.Dict):
            self.assertEqual(list(got), list(want))
            got, want, space = got.values(), want.values(), space.spaces.values()
        elif isinstance(space, spaces.Text):
            self.assertEqual(got, want)
            return
        elif not isinstance(space, spaces.Tuple):
            self.assertEqual((got.dtype, got.shape), (want.dtype, want.shape))
            numpy.testing.assert_allclose(got, want, rtol=1e-6)
            return
        for parts in zip(got, want, space, strict=True):
            self.same(*parts)

    def test_methods_and_attributes_are_those_of_each_environment(self):
        ours = self.make(made.Tuned, 5, workers=2, args={"gym_wrap": ["made:Named"]}, wrap=[{"reward_scale": 2.0}])
        theirs = gymnasium.vector.SyncVectorEnv([lambda: made.Named(made.Tuned())] * 5)
        for venv in ours, theirs:
            venv.reset(seed=1)
            venv.set_attr("gravity", [1.0, 2.0, 3.0, 4.0, 5.0])
        for name, args, keys in (("heavier", (0.5,), {"times": 2}), ("gravity", (), {}), ("label", (), {}), ("steps", (), {})):
            self.assertEqual(ours.call(name, *args, **keys), theirs.call(name, *args, **keys))
        self.assertEqual(ours.get_attr("gravity"), (2.0, 3.0, 4.0, 5.0, 6.0))
        numpy.testing.assert_array_equal(ours.get_attr("table"), theirs.get_attr("table"))
        numpy.testing.assert_array_equal(ours.step(numpy.zeros(5, int))[0][:, 0], [2, 3, 4, 5, 6])
        large = numpy.random.default_rng(1).random((300, 1000))
        ours.set_attr("table", large)
        numpy.testing.assert_array_equal(ours.get_attr("table")[4], large)

    def test_what_cannot_be_called_or_sent_is_named(self):
        venv = self.make(made.Tuned, 4, workers=2)
        venv.reset(seed=1)
        for error, call, text in (
                (rlhost.VecError, lambda: venv.call("broken"), r"broken of environment 0 failed: RuntimeError: out of gas \(made.py:\d+\)"),
                (rlhost.VecError, lambda: venv.get_attr("colour"), "environment 0 failed: AttributeError.*colour"),
                (rlhost.VecError, lambda: venv.get_attr("action_space"), "action_space is a Discrete, which cannot be sent.*write a method"),
                (TypeError, lambda: venv.call("heavier", object()), "sent to environments in other processes.*takes no object"),
                (ValueError, lambda: venv.set_attr("gravity", [1.0]), "values has 1: want one for each of 4"),
                (ValueError, lambda: venv.call("reset"), "call reset of the VectorEnv"),
                (rlhost.VecError, lambda: self.make("cartpole@1", 2).get_attr("gravity"), "cartpole@1 has no attributes")):
            with self.assertRaisesRegex(error, f"(?s){text}"):
                call()
        self.assertEqual(venv.step(numpy.zeros(4, int))[1].tolist(), [1.0] * 4)
        venv.send(numpy.zeros(4, int))
        with self.assertRaises(gymnasium.error.AlreadyPendingCallError):
            venv.get_attr("gravity")
        venv.recv()
        self.assertEqual(venv.get_attr("gravity"), (9.8,) * 4)

    def test_an_environment_that_dies_of_a_call_is_made_again(self):
        venv = self.make(made.Tuned, 4, workers=2)
        venv.reset(seed=1)
        with self.assertRaisesRegex(rlhost.VecError, "process [0-9]+"):
            venv.call("die")
        with self.assertRaises(rlhost.VecError):
            venv.step(numpy.zeros(4, int))
        venv.reset(seed=1)
        self.assertEqual(venv.get_attr("gravity"), (9.8,) * 4)

    def test_options_reach_the_environments_that_are_reset(self):
        venv = self.make(made.Tuned, 4, workers=2)
        obs = venv.reset(seed=1, options={"wind": 3.0, "note": "first"})[0]
        numpy.testing.assert_array_equal(obs[:, 1], [3.0] * 4)
        self.assertEqual(venv.get_attr("options")[3]["note"], "first")
        venv.reset(options={"wind": 4.0, "reset_mask": numpy.array([False, True, False, True])})
        self.assertEqual([o["wind"] for o in venv.get_attr("options")], [3.0, 4.0, 3.0, 4.0])
        with self.assertRaisesRegex(rlhost.VecError, "cartpole@1 has no attributes, methods or options"):
            self.make("cartpole@1", 2).reset(options={"wind": 1.0})

    def test_reset_parameters_stay_for_all_episodes(self):
        venv = self.make(made.Tuned, 3, workers=2)
        numpy.testing.assert_allclose(venv.reset(seed=1)[0], [[9.8, 0.0]] * 3, rtol=1e-6)
        obs = venv.reset(options={"reset_params": {"gravity": [1.0, 2.0, 3.0]}, "wind": 1.0})[0]
        numpy.testing.assert_array_equal(obs, [[1, 1], [2, 1], [3, 1]])
        for step in range(40):  # over the end of the block, through episodes of three steps
            obs, _, terminated, _, _ = venv.step(numpy.zeros(3, int))
            numpy.testing.assert_array_equal(obs, [[1, step < 2], [2, step < 2], [3, step < 2]])
            self.assertEqual(terminated.all(), step % 3 == 2)
        obs = venv.reset(options={"reset_params": [[numpy.nan, 5.0]]})[0]
        numpy.testing.assert_allclose(obs, [[9.8, 5.0]] * 3, rtol=1e-6)
        for given, text in (({"gravity": 50.0}, "gravity of environment 0 is 50, want 0.1 to 20"), ({"mass": 1.0}, "no reset parameter 'mass': it has gravity, wind")):
            with self.assertRaisesRegex(ValueError, text):
                venv.reset(options={"reset_params": given})
        cart = self.make("CartPole-v1", 2, args={"gym_wrap": [{"use": "rlhost.gymnasium.params:Attributes", "gravity": [9.8, 1.0, 20.0]}]})
        cart.reset(seed=1, options={"reset_params": {"gravity": [2.0, numpy.nan]}})
        self.assertEqual(cart.get_attr("gravity"), (2.0, 9.8))
        with self.assertRaisesRegex(ValueError, "cartpole@1 has no reset parameters"):
            self.make("cartpole@1", 2).reset(options={"reset_params": [1.0]})

    def test_reset_parameters_of_a_module(self):
        walk = pathlib.Path(__file__).parents[3] / "examples/plugins/curriculum-c/walk.wasm"
        venv = self.make(walk, 2)
        venv.reset(seed=1, options={"reset_params": [[3.0], [6.0]]})
        lengths = []
        for _ in range(12):
            lengths.append(venv.step(numpy.ones(2, int))[2].tolist())
        self.assertEqual([numpy.flatnonzero(ends)[0] for ends in numpy.array(lengths).T], [2, 5])

    def test_wrong_declarations_of_reset_parameters_are_named(self):
        for declared, text in ((1, "reset_params is a int"), ({"g": [1, 2]}, "want three numbers"), ({"g": [5, 0, 1]}, "default between finite bounds"),
                               ({"a b": [1, 0, 2]}, "the name 'a b'")):
            with self.assertRaisesRegex(rlhost.VecError, f"(?s)E018.*{text}"):
                rlhost.make_vec(made.Declaring, args={"declared": declared})

    def test_an_environment_that_raises_is_named(self):
        venv = self.make("odd_envs:Odd-v0", 2, args={"fail": "step"})
        venv.reset(seed=1)
        with self.assertRaisesRegex(rlhost.VecError, "env [01].*(?s:.)*odd_envs.py"):
            for _ in range(20):
                venv.step(venv.action_space.sample())

    def test_a_dead_host_is_an_error_and_a_closed_one_is_gone(self):
        venv = self.make("cartpole@1", 2)
        venv.reset(seed=1)
        os.kill(venv._child.pid, signal.SIGKILL)
        with self.assertRaisesRegex(rlhost.VecError, "status -9"):
            venv.step(numpy.array([0, 1]))
        other = rlhost.make_vec("CartPole-v1", 2, workers=2)
        pid = other._child.pid
        other.close()
        self.assertFalse(pathlib.Path(f"/proc/{pid}").exists())

    def test_a_killed_program_leaves_no_host(self):
        child = subprocess.Popen([sys.executable, "-c", "import rlhost; v = rlhost.make_vec('CartPole-v1', 4, workers=2); v.reset(seed=1); "
                                  "print(v._child.pid, flush=True); input()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        host = pathlib.Path("/proc", child.stdout.readline().strip())
        self.assertTrue(host.exists())
        child.kill()
        child.communicate()
        end = time.monotonic() + 30
        while host.exists() and "State:\tZ" not in (host / "status").read_text():
            self.assertLess(time.monotonic(), end, "the host goes on")
            time.sleep(0.01)


if __name__ == "__main__":
    unittest.main()
