"""Tests of rlhost.sweep and rlhost.optuna, with the real program."""

import json
import pathlib
import signal
import subprocess
import sys
import time
import unittest
import unittest.mock

from test_training import InFolder, trainings

import rlhost

QUICK = {"env_steps": 4096, "episodes": 3, "progress": False, "preset": "general"}
RATE = {"from": 1e-4, "to": 1e-2, "scale": "log"}


class SweepTest(InFolder):
    def test_each_value_is_tried_with_each_seed(self):
        study = rlhost.sweep("cartpole@1", {"learner.learning_rate": [1e-3, 3e-4]}, seeds=range(3, 5), jobs=2, confirm={"top": 1, "seeds": 2}, **QUICK)
        self.assertEqual((study.id, len(study.trials), study.env_steps), ("cartpole/0001", 2, 4 * 4096))
        self.assertEqual([t["set"] for t in study.trials], [{"component.learner.learning_rate": 0.001}, {"component.learner.learning_rate": 0.0003}])
        self.assertEqual(study.best["value"], max(t["value"] for t in study.trials))
        confirmed, = study.confirmed
        self.assertEqual((confirmed["trial"], len(confirmed["values"])), (study.best["trial"], 2))
        self.assertAlmostEqual(confirmed["mean"]["value"], sum(confirmed["values"]) / 2)
        run = study.run(1, 4)
        self.assertEqual(run.eval_return, study.trials[1]["values"][1])
        alone = rlhost.train("cartpole@1", 4096, seed=4, preset="general", learner={"learning_rate": 3e-4}, progress=False)
        self.assertEqual(alone.end["params_hash"], run.end["params_hash"])
        with self.assertRaisesRegex(KeyError, "no trial 9"):
            study.run(9, 3)

    def test_the_table_is_a_frame_where_pandas_is(self):
        study = rlhost.sweep("cartpole@1", {"learner.epochs": [1, 2]}, confirm={"top": 0}, **QUICK)
        rows = [{"trial": t, "state": "ended", "value": study.trials[t]["value"], "env_steps": 4096, "component.learner.epochs": t + 1, "error": None}
                for t in range(2)]
        with unittest.mock.patch.dict(sys.modules, {"pandas": None}):
            self.assertEqual(study.table(), rows)
        fake = unittest.mock.Mock()
        with unittest.mock.patch.dict(sys.modules, {"pandas": fake}):
            self.assertIs(study.table(), fake.DataFrame.return_value)
        fake.DataFrame.assert_called_once_with(rows)

    def test_a_pipeline_file_and_asha_and_more_trials(self):
        pathlib.Path("p.toml").write_text('rlhost = 1\n[run]\nname = "filed"\n[env.it]\nuse = "cartpole@1"\n[train]\npreset = "general"\nenv = "it"\n'
                                          '[sweep]\ntrials = 4\nepisodes = 3\n[sweep.space]\n"component.learner.epochs" = { choices = [1, 2, 4] }\n')
        study = rlhost.sweep("p.toml", {"component.learner.learning_rate": RATE}, 8192, method="asha", sampler="sobol", jobs=2,
                             rungs={"least": 2048, "factor": 4}, confirm={"top": 0}, progress=False)
        self.assertEqual([t["state"] for t in study.trials].count("ended"), 1)
        self.assertEqual({"stopped", "ended"}, {t["state"] for t in study.trials})
        more = rlhost.sweep(resume=study, trials=6, progress=False)
        self.assertEqual((more.id, len(more.trials), more.keys), (study.id, 6, []))
        more = rlhost.sweep(resume=study, trials=12, progress=False)
        self.assertEqual([k["key"] for k in more.keys], ["component.learner.learning_rate"])
        self.assertTrue(all(0 <= k["share"] <= 1 and -1 <= k["trend"] <= 1 for k in more.keys), more.keys)

    def test_what_is_wrong_is_an_error_with_its_place(self):
        with self.assertRaises(rlhost.TrainingError) as raised:
            rlhost.sweep("cartpole@1", {"learner.epoch": [1, 2]}, **QUICK)
        self.assertEqual(raised.exception.code, "E002")
        self.assertIn("with component.learner.epoch=1: unknown key `epoch`", str(raised.exception))
        with self.assertRaisesRegex(TypeError, "a dict such as"):
            rlhost.sweep("cartpole@1", {"learner.epochs": 3}, **QUICK)
        with self.assertRaisesRegex(TypeError, "the seeds of a search follow each other"):
            rlhost.sweep("cartpole@1", {"learner.epochs": [1, 2]}, seeds=[1, 3], **QUICK)

    def test_ctrl_c_says_how_it_is_resumed_and_leaves_no_process(self):
        child = self.script("""
            import rlhost
            try:
                rlhost.sweep("cartpole@1", {"learner.epochs": [1, 2]}, 50_000_000, jobs=2, progress=False)
            except rlhost.Interrupted as e:
                print("interrupted:", e)
        """, wait=False)
        end = time.monotonic() + 60
        while not list(pathlib.Path("runs").glob("*/*/trials/*/*/*/*/metrics.jsonl")):
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=60)
        self.assertRegex(out, "interrupted: to go on: rlhost sweep --resume runs/cartpole/0001", err)
        self.assertEqual(trainings("."), [])


class OptunaTest(InFolder):
    def test_it_proposes_and_prunes_and_is_told_the_history_after_a_resume(self):
        space = {"learner.learning_rate": {"from": 1e-7, "to": 1e-2, "scale": "log"}, "learner.gamma": {"from": 0.9, "to": 0.999, "scale": "one_minus"},
                 "learner.epochs": {"from": 1, "to": 8, "integer": True}, "net.hidden": [[32], [64, 64]]}
        asked = {"method": "optuna", "trials": 8, "rungs": {"least": 2048, "factor": 2}, "confirm": {"top": 0}, "jobs": 1}
        study = rlhost.sweep("cartpole@1", space, **asked, **QUICK)
        self.assertEqual({t["state"] for t in study.trials}, {"ended", "stopped"})
        self.assertEqual(len({json.dumps(t["set"]) for t in study.trials}), 8)
        more = rlhost.sweep(resume=study, trials=10, jobs=1, progress=False)
        self.assertEqual([t["set"] for t in more.trials[:8]], [t["set"] for t in study.trials])
        self.assertEqual(len(more.trials), 10)

    def test_its_sampler_gets_the_values_that_it_is_told(self):
        """Of a function with its best at 0.3 the trials after the random ones are near it."""
        child = subprocess.Popen([sys.executable, "-m", "rlhost.optuna"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        say = lambda line: (child.stdin.write(json.dumps(line) + "\n"), child.stdin.flush())  # noqa: E731
        say({"begin": {"space": {"x": {"from": 0.0, "to": 1.0}}, "goal": "min", "seed": 1, "trials": 40, "env_steps": 1}})
        distances = []
        say({"begun": 0, "set": {"x": 0.25}})
        say({"passed": 0, "env_steps": 1, "value": 1.0})
        say({"tell": 0, "value": 0.05})
        say({"begun": 1, "set": {"x": 0.5}})
        say({"tell": 1, "error": "a pole broke"})
        for trial in range(2, 40):
            say({"ask": trial})
            x = json.loads(child.stdout.readline())["set"]["x"]
            say({"tell": trial, "value": abs(x - 0.3)})
            distances.append(abs(x - 0.3))
        out, _ = child.communicate(timeout=60)
        self.assertEqual((out, child.returncode), ("", 0))
        self.assertLess(sum(distances[-10:]) / 10, sum(distances[:10]) / 20)


if __name__ == "__main__":
    unittest.main()
