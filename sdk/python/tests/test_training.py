"""Tests of rlhost.train, load, predict and evaluate, with the real program."""

import gc
import importlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import sysconfig
import tempfile
import textwrap
import time
import types
import unittest
import unittest.mock
import warnings

import gymnasium
import made
import numpy

import rlhost
from rlhost import pipelines
from rlhost.program import _found
from rlhost.version import RELEASE


class InFolder(unittest.TestCase):
    """A test in a folder of its own."""

    def setUp(self):
        warnings.simplefilter("ignore", rlhost.RlhostWarning)
        folder = self.enterContext(tempfile.TemporaryDirectory()) if hasattr(self, "enterContext") else self._enter()
        back = os.getcwd()
        os.chdir(folder)
        self.addCleanup(os.chdir, back)

    def _enter(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        return folder.name

    def script(self, text, wait=True, **keys):
        """Runs a program of Python."""
        path = pathlib.Path("script.py").absolute()
        path.write_text(textwrap.dedent(text))
        child = subprocess.Popen([sys.executable, path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **keys)
        return (*child.communicate(timeout=120), child.returncode) if wait else child


def trainings(folder):
    """The processes of rlhost that work in a folder."""
    found = []
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if os.readlink(process / "cwd") == os.path.realpath(folder) and b"--attached" in (process / "cmdline").read_bytes():
                found.append(int(process.name))
        except OSError:
            pass
    return found


class TrainTest(InFolder):
    def test_a_run_of_an_id_of_gymnasium_acts_in_it(self):
        run = rlhost.train("CartPole-v1", 40_000, seed=1, envs=16, workers=2, net={"hidden": [32]}, learner={"epochs": 4}, progress=False)
        self.assertEqual((run.id, run.reason, run.folder), ("cartpole/0001", "env_steps", pathlib.Path("runs/cartpole/0001").absolute()))
        self.assertGreater(run.eval_return, 100)
        self.assertAlmostEqual(numpy.mean(run.returns), run.eval_return, 5)
        metrics = run.metrics()
        self.assertEqual(metrics[-1]["global_step"], run.env_steps)
        self.assertIn("hidden = [32]", (run.folder / "pipeline.toml").read_text())
        policy = rlhost.load(run)
        action, state = policy.predict(gymnasium.make("CartPole-v1").reset(seed=1)[0])
        self.assertIn(action, (0, 1))
        self.assertIsNone(state)
        here, there = rlhost.evaluate(policy, "CartPole-v1", episodes=20), rlhost.evaluate(run, episodes=20)
        self.assertEqual((len(here.returns), len(here.lengths), len(there.returns)), (20, 20, 20))
        self.assertLess(abs(here.mean - there.mean), 100)
        self.assertEqual(rlhost.evaluate(policy, "CartPole-v1", episodes=20), here)

    def test_the_same_seed_is_the_same_run_as_on_the_command_line(self):
        run = rlhost.train("cartpole@1", 20_000, seed=7, envs=16, learner={"epochs": 2}, progress=False)
        path = pathlib.Path("again.toml")
        path.write_text('rlhost = 1\n[run]\nname = "again"\nseed = 7\nstop = { env_steps = 20_000 }\n[env.env]\nuse = "cartpole@1"\n[train]\npreset = "general"\n'
                        'env = "env"\n[component.rollout]\nenvs = 16\n[component.learner]\nepochs = 2\n')
        of_file = rlhost.train(path, progress=False)
        self.assertEqual(of_file.end["params_hash"], run.end["params_hash"])
        other = rlhost.train(path, seed=8, keys={"component.learner.epochs": 1}, name="other", progress=False)
        self.assertEqual(other.id, "other/0001")
        self.assertNotEqual(other.end["params_hash"], run.end["params_hash"])
        with self.assertRaisesRegex(TypeError, "say workers there"):
            rlhost.train(path, workers=2)

    def test_classes_and_functions_are_environments(self):
        for maker in made.Warm, made.warm:
            run = rlhost.train(maker, 4096, args={"start": 19.0}, wrap=[{"time_limit": 40}], progress=False)
            self.assertEqual(run.reason, "env_steps")
            self.assertLessEqual(max(run.returns), 40)
            policy = rlhost.load(run)
            obs = maker().reset(seed=3)[0]
            self.assertEqual(policy.predict(obs), policy.predict({"room/off": obs["room"]["off"], "season": 1}))
            both = policy.predict({"room": {"off": numpy.stack([obs["room"]["off"]] * 2)}, "season": numpy.array([1, 1])})[0]
            self.assertEqual(both.tolist(), [policy.act(obs)] * 2)
            self.assertEqual(len(rlhost.evaluate(policy, maker, episodes=3).returns), 3)

    def test_a_script_trains_on_its_own_class_under_main(self):
        body = "run = rlhost.train(Mine, 4096, wrap=[{'time_limit': 50}], progress=False); print(run.reason)"
        head = f"import sys; sys.path.insert(0, {os.path.dirname(made.__file__)!r})\nimport made, rlhost\nclass Mine(made.Warm): pass\n"
        out, err, code = self.script(head + f"if __name__ == '__main__': {body}")
        self.assertEqual((out, code), ("env_steps\n", 0), err)
        out, err, code = self.script(head + body)
        self.assertEqual(code, 1)
        self.assertIn('put the call under if __name__ == "__main__"', err)
        self.assertIn("E019", err)

    def test_metrics_reach_the_callback_which_can_stop(self):
        seen = []

        def on(m):
            seen.append(m)
            return m["global_step"] < 10_000
        run = rlhost.train("cartpole@1", 100_000_000, on=on, progress=False)
        self.assertEqual((run.reason, run.eval_return, run.returns), ("interrupted", None, []))
        self.assertLess(run.env_steps, 50_000_000)
        self.assertGreaterEqual(seen[-1]["global_step"], 10_000)
        self.assertEqual(seen, run.metrics()[:len(seen)])
        again = rlhost.train(resume=run, keys={"run.stop.env_steps": run.env_steps + 2048}, progress=False)
        self.assertEqual((again.id, again.reason), (run.id, "env_steps"))

    def test_what_a_callback_raises_comes_out_and_nothing_is_left(self):
        def on(m):
            raise KeyError("mine")
        with self.assertRaisesRegex(KeyError, "mine"):
            rlhost.train("cartpole@1", 100_000_000, on=on, progress=False)
        self.assertEqual(trainings("."), [])
        self.assertEqual(json.loads(pathlib.Path("runs/cartpole/0001/run.json").read_text())["reason"], "interrupted")

    def test_a_cell_that_runs_twice_leaves_nothing_of_the_first_time(self):
        cell = compile("""
venv = rlhost.make_vec("cartpole@1", 2)
venv.reset(seed=1)
run = rlhost.train("cartpole@1", 2048, progress=False)
""", "<cell>", "exec")
        names = {"rlhost": rlhost}
        exec(cell, names)
        first, host = names["run"], names["venv"]._child.pid
        exec(cell, names)
        gc.collect()
        self.assertEqual((first.id, names["run"].id), ("cartpole/0001", "cartpole/0002"))
        self.assertFalse(pathlib.Path(f"/proc/{host}").exists())
        self.assertEqual(len(trainings(".")), 1)
        names["venv"].close()
        self.assertEqual(trainings("."), [])

    def test_spaces_that_cannot_be_learned_from_are_named_with_the_key_that_drops_them(self):
        def train(**keys):
            return rlhost.train(made.Listing, 2048, progress=False, **keys)
        for what in train, lambda **keys: rlhost.make_vec(made.Listing, **keys):
            with self.assertRaisesRegex((rlhost.TrainingError, rlhost.VecError), r"(?s)E018.*Sequence.*as .heard.*args = \{ drop = \[.NAME.\] \}"):
                what()
            self.assertEqual(trainings("."), [])
        self.assertEqual(train(args={"drop": ["heard"]}).reason, "env_steps")

    def test_a_full_disk_is_an_error_and_leaves_nothing(self):
        disk = pathlib.Path("disk")
        disk.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk], capture_output=True).returncode:
            self.skipTest("a small disk cannot be mounted here")
        self.addCleanup(subprocess.run, ["umount", "-l", disk.absolute()], check=True)
        with self.assertRaisesRegex(rlhost.TrainingError, "no space left on device: free some space there"):
            rlhost.train("cartpole@1", 4096, dir=disk, net={"hidden": [512, 512]}, progress=False)
        self.assertEqual(trainings("."), [])

    def test_several_seeds_are_summed_up(self):
        runs = rlhost.train("cartpole@1", 20_000, seeds=range(3), jobs=2, progress=False)
        self.assertEqual([r.reason for r in runs], ["env_steps"] * 3)
        self.assertAlmostEqual(runs.summary["mean"]["value"], numpy.mean(runs.returns), 4)
        self.assertTrue(all(r.metrics() for r in runs))
        self.assertEqual(len({r.load().folder for r in runs}), 3)

    def test_what_is_wrong_is_named_with_its_place(self):
        for keys, code, text in (
                ({"net": {"hiden": [1]}}, "E002", r"<stdin>:\d+:1: error\[E002\]: unknown key `hiden` in \[policy.main.net\]\n  help: did you mean `hidden`"),
                ({"learner": {"epochs": -1}}, "E005", r"`epochs` is -1"),
                ({"env": "CartPole-v9"}, "E010", "CartPole"),
                ({"env": "./nowhere.wasm"}, "E012", "nowhere.wasm"),
                ({"env": "none.toml"}, "E012", "none.toml"),
                ({"resume": "nothing"}, None, "nothing")):
            with self.subTest(keys), self.assertRaisesRegex(rlhost.TrainingError, text) as raised:
                rlhost.train(**{"env": "cartpole@1", "env_steps": 1000, "progress": False, **keys})
            self.assertEqual(raised.exception.code, code)
        for env, text in (lambda: None, "a lambda"), (made.Outer.Inner, "not at the top of a module"), (7, "no environment"):
            with self.assertRaisesRegex(TypeError, text):
                rlhost.train(env)

    def test_warnings_of_the_host_are_pythons(self):
        with self.assertWarnsRegex(rlhost.RlhostWarning, r"warning\[W104\].*no limit"):
            rlhost.train(made.Warm, 2048, progress=False)

    def test_control_c_saves_and_is_told(self):
        child = self.script("""
            import rlhost
            try:
                rlhost.train("cartpole@1", 1_000_000_000, on=lambda m: print("trains", flush=True), progress=False)
            except rlhost.Interrupted as e:
                print("saved", e.run.folder.name, e.run.reason, flush=True)
            """, wait=False)
        self.assertEqual(child.stdout.readline(), "trains\n")
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=60)
        self.assertEqual(out.splitlines()[-1], "saved 0001 interrupted", err)
        self.assertEqual(trainings("."), [])

    def test_a_killed_program_leaves_no_training(self):
        child = self.script("""
            import rlhost
            rlhost.train("cartpole@1", 1_000_000_000, on=lambda m: print("trains", flush=True), progress=False)
            """, wait=False)
        self.assertEqual(child.stdout.readline(), "trains\n")
        self.assertEqual(len(trainings(".")), 1)
        child.kill()
        child.communicate(timeout=60)
        end = time.monotonic() + 60
        while trainings("."):
            self.assertLess(time.monotonic(), end, "the training goes on")
            time.sleep(0.01)
        self.assertEqual(json.loads(pathlib.Path("runs/cartpole/0001/run.json").read_text())["reason"], "interrupted")


class PredictTest(InFolder):
    def test_numbers_batches_and_draws(self):
        policy = rlhost.train("FrozenLake-v1", 4096, progress=False).load()
        one = policy.predict(3)
        self.assertIs(type(one[0]), int)
        self.assertEqual(policy.predict(numpy.int64(3)), one)
        self.assertEqual(policy.predict(numpy.array([3])), one)
        self.assertEqual(policy.predict(numpy.array([[3]]))[0].tolist(), [one[0]])
        self.assertEqual(len(rlhost.evaluate(policy, "FrozenLake-v1", episodes=1).returns), 1)
        batch = policy.predict(numpy.array([3, 3, 5]))[0]
        self.assertEqual((batch.shape, batch[0]), ((3,), one[0]))
        policy.seed(1)
        drawn = [policy.predict(3, deterministic=False)[0] for _ in range(50)]
        policy.seed(1)
        self.assertEqual([policy.predict(3, deterministic=False)[0] for _ in range(50)], drawn)
        self.assertGreater(len(set(drawn)), 1)
        masked = {policy.predict(3, deterministic=False, mask=[0, 1, 0, 0])[0] for _ in range(20)}
        self.assertEqual(masked, {1})
        with self.assertRaisesRegex(ValueError, r"has the shape \(1, 2, 3\)"):
            policy.predict(numpy.zeros((1, 2, 3)))

    def test_texts_are_read_as_they_are_learned_from(self):
        with unittest.mock.patch.object(sys, "path", [os.path.dirname(made.__file__), *sys.path]):
            policy = rlhost.train("odd_envs:Odd-v0", 2048, args={"observation": "mission"}, progress=False).load()
            seen = [{"place": numpy.array([n], numpy.float32), "words": f"go{n}"} for n in (1, 2)]
            one = [policy.predict(obs)[0] for obs in seen]
            both = policy.predict({"place": numpy.array([[1], [2]], numpy.float32), "words": numpy.array(["go1", "go2"])})[0]
            self.assertEqual(both.tolist(), one)
            bytes_ = numpy.frombuffer(b"go1".ljust(30, b"\0"), numpy.uint8)
            self.assertEqual(policy.predict({"place": seen[0]["place"], "words": bytes_})[0], one[0])
            told = rlhost.evaluate(policy, "odd_envs:Odd-v0", episodes=3, args={"observation": "mission"})
            self.assertEqual(told.lengths, [4, 4, 4])

    def test_a_state_goes_from_step_to_step(self):
        policy = rlhost.train("cartpole@1", 2048, net={"core": {"kind": "gru", "size": 8}}, progress=False).load()
        obs = numpy.ones((2, 4), numpy.float32)
        action, first = policy.predict(obs)
        self.assertEqual((action.shape, first.shape), ((2,), (2, 8)))
        _, second = policy.predict(obs, first)
        _, begun = policy.predict(obs, first, episode_start=[True, False])
        numpy.testing.assert_allclose(begun, [first[0], second[1]], rtol=1e-6)
        single = policy.predict(obs[0], first[0])
        numpy.testing.assert_allclose(single[1], second[0], rtol=1e-5)
        with self.assertRaisesRegex(TypeError, "keeps a state"):
            policy.act(obs)

    def test_what_cannot_be_loaded_is_named(self):
        for what, text in ("nothing/3", "nothing"), ("none.npz", "none.npz"):
            with self.assertRaisesRegex((ValueError, OSError), text):
                rlhost.load(what)


class PipelineTest(unittest.TestCase):
    def test_values_are_read_back_as_they_were(self):
        value = {"a": [1, -2.5, 1e-7, True, "q\"\\\n\x7fé"], "b c": {"d": (1, 2)}, "e": numpy.float64(0.5), "f": range(2), "g": pathlib.Path("x")}
        if sys.version_info < (3, 11):
            self.skipTest("tomllib is new in 3.11")
        import tomllib
        read = tomllib.loads("v = " + pipelines.toml(value))["v"]
        self.assertEqual(read, {"a": [1, -2.5, 1e-7, True, "q\"\\\n\x7fé"], "b c": {"d": [1, 2]}, "e": 0.5, "f": [0, 1], "g": "x"})
        with self.assertRaisesRegex(TypeError, "which TOML cannot write"):
            pipelines.toml(object())

    def test_environments_have_the_names_of_pipelines(self):
        for env, use, name in (("CartPole-v1", "gymnasium:CartPole-v1", "cartpole"), ("ALE/Pong-v5", "gymnasium:ALE/Pong-v5", "pong"),
                               ("my.module:Env-v0", "gymnasium:my.module:Env-v0", "env"), ("cartpole@1", "cartpole@1", "cartpole"),
                               ("pettingzoo:mpe.simple", "pettingzoo:mpe.simple", "mpe-simple"), (made.Warm, "gymnasium:made:Warm", "warm"),
                               (gymnasium.spec("CartPole-v1"), "gymnasium:CartPole-v1", "cartpole")):
            self.assertEqual((pipelines.use(env), pipelines.name_of(pipelines.use(env))), (use, name))
        self.assertEqual(pipelines.use("x/my.wasm"), os.path.abspath("x/my.wasm"))

    def test_a_class_of_a_notebook_is_refused(self):
        notebook = types.ModuleType("__main__")
        cell = type("Cell", (), {"__module__": "__main__", "__qualname__": "Cell"})
        with unittest.mock.patch.dict(sys.modules, {"__main__": notebook}), self.assertRaisesRegex(TypeError, "%%writefile my_env.py"):
            pipelines.use(cell)


class ProgramTest(InFolder):
    def test_a_missing_program_or_another_version_is_named(self):
        for text, why in ((None, "is not there"), ('echo \'{"version": "9.9.9"}\'', "is rlhost 9.9.9"), ("echo hello", "does not tell its version"),
                          ("exit 3", "does not tell its version")):
            name = os.path.abspath("other")
            if text is not None:
                pathlib.Path(name).write_text("#!/bin/sh\n" + text)
                os.chmod(name, 0o755)
            _found.cache_clear()
            with unittest.mock.patch.dict(os.environ, RLHOST_PROGRAM=name), self.assertRaisesRegex(rlhost.ProgramError, why):
                rlhost.train("cartpole@1", 1000)
        _found.cache_clear()

    def test_the_command_never_finds_itself(self):
        scripts, elsewhere = sysconfig.get_path("scripts"), os.path.abspath("programs")
        os.symlink(scripts, "link")
        os.mkdir(elsewhere)
        pathlib.Path(elsewhere, "rlhost").write_text(f"#!/bin/sh\necho '{{\"version\": \"{RELEASE}\"}}'")
        os.chmod(f"{elsewhere}/rlhost", 0o755)
        for folders, found in ((scripts, None), (os.path.abspath("link"), None), (f"{scripts}:{elsewhere}", f"{elsewhere}/rlhost")):
            _found.cache_clear()
            with unittest.mock.patch.dict(os.environ, PATH=folders), unittest.mock.patch("rlhost.program._OWN", pathlib.Path("none")):
                if found:
                    self.assertEqual(_found(None), found)
                else:
                    self.assertRaisesRegex(rlhost.ProgramError, "is not there", _found, None)
        _found.cache_clear()

    def test_the_module_is_the_command(self):
        done = subprocess.run([sys.executable, "-m", "rlhost", "version", "--json"], capture_output=True, text=True)
        self.assertEqual(json.loads(done.stdout)["version"], importlib.import_module("rlhost.version").RELEASE, done.stderr)
        done = subprocess.run([sys.executable, "-m", "rlhost", "nothing"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)


if __name__ == "__main__":
    unittest.main()
