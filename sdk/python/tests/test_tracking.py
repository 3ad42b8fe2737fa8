"""The logs wandb and mlflow: with modules of their names, and with the packages themselves where they are installed."""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import unittest
import unittest.mock

from test_training import InFolder

import rlhost

# Stands for both packages: notes the calls that rlhost.tracking makes.
STAND = '''
import json, os, pathlib, types
NOTES = pathlib.Path(os.environ["NOTES"])
def note(*what):
    with NOTES.open("a") as file:
        file.write(json.dumps(what, default=str) + "\\n")
class Run:
    info = types.SimpleNamespace(run_id="the-id")
    def define_metric(self, name, step_metric=None): note("define", name, step_metric)
    def log(self, row): note("log", row)
    def finish(self): note("finish")
def init(**keys): note("init", keys); return Run()
def set_experiment(name): note("experiment", name)
def start_run(run_id, run_name): note("start", run_id, run_name); return Run()
def log_params(params): note("params", params)
def log_metrics(row, step): note("metrics", row, step)
def end_run(): note("end")
'''


class TrackingTest(InFolder):
    def train(self, name, steps=4096, **keys):
        return rlhost.train("cartpole@1", steps, keys={"component.runner.log": ["jsonl", name], "run.evaluation.episodes": 1}, seed=3, progress=False, **keys)

    def calls(self, name, run):
        """Trains with a module of that name, and returns the calls of it."""
        os.mkdir("modules")
        pathlib.Path("modules", f"{name}.py").write_text(STAND)
        notes = os.path.abspath("notes")
        sys.path.insert(0, os.path.abspath("modules"))
        self.addCleanup(sys.path.remove, os.path.abspath("modules"))
        with unittest.mock.patch.dict(os.environ, NOTES=notes):
            made = run()
        return made, [json.loads(line) for line in pathlib.Path(notes).read_text().splitlines()]

    def test_wandb_gets_the_keys_and_every_row(self):
        def run():
            made = self.train("wandb")
            return rlhost.train(resume=made, keys={"run.stop.env_steps": 8192}, progress=False)
        made, calls = self.calls("wandb", run)
        first = calls[0][1]
        self.assertEqual((len(first["id"]), first["resume"], first["name"], first["group"], first["dir"]), (8, "allow", "cartpole/0001", "cartpole", str(made.folder)))
        self.assertEqual((first["config"].get("run.seed", 3), first["config"].get("run.stop.env_steps", 4096)), (3, 4096))
        self.assertEqual([c[0] for c in calls].count("init"), 2)
        self.assertEqual([c[1]["id"] for c in calls if c[0] == "init"], [first["id"]] * 2)
        rows = [c[1] for c in calls if c[0] == "log"]
        self.assertEqual(rows, [{k: v for k, v in row.items() if v is not None} for row in made.metrics()])
        self.assertEqual([c[0] for c in calls].count("finish"), 2)

    def test_mlflow_gets_the_keys_and_every_row(self):
        made, calls = self.calls("mlflow", lambda: self.train("mlflow"))
        self.assertEqual(calls[:2], [["experiment", "rlhost"], ["start", None, "cartpole/0001"]])
        rows = [(c[1], c[2]) for c in calls if c[0] == "metrics"]
        self.assertEqual([step for _, step in rows], [row["global_step"] for row in made.metrics()])
        self.assertEqual(rows[-1][0]["charts/episodic_return"], made.metrics()[-1]["charts/episodic_return"])
        self.assertEqual(calls[-1], ["end"])
        self.assertEqual((made.folder / "mlflow.id").read_text(), "the-id")

    def test_a_missing_package_is_told_and_ends_nothing(self):
        os.mkdir("modules")
        pathlib.Path("modules", "wandb.py").write_text("raise ModuleNotFoundError(\"No module named 'wandb'\")")
        sys.path.insert(0, os.path.abspath("modules"))
        self.addCleanup(sys.path.remove, os.path.abspath("modules"))
        made = self.train("wandb", 40_960)
        self.assertEqual((made.reason, made.env_steps), ("env_steps", 40_960))
        done = subprocess.run([sys.executable, "-m", "rlhost.tracking", "wandb", str(made.folder)], capture_output=True, text=True, stdin=subprocess.DEVNULL,
                              env={**os.environ, "PYTHONPATH": os.path.abspath("modules")})
        self.assertEqual(done.returncode, 1)
        self.assertIn("-m pip install wandb", done.stderr)

    @unittest.skipUnless(importlib.util.find_spec("wandb"), "wandb is not installed")
    def test_wandb_itself_writes_a_run_offline(self):
        with unittest.mock.patch.dict(os.environ, WANDB_MODE="offline"):
            made = self.train("wandb")
        files = list((made.folder / "wandb").glob("offline-run-*/run-*.wandb"))
        self.assertEqual(len(files), 1)
        self.assertIn(b"charts/episodic_return", files[0].read_bytes())

    @unittest.skipUnless(importlib.util.find_spec("mlflow"), "mlflow is not installed")
    def test_mlflow_itself_has_the_metrics_in_a_folder(self):
        store = f"file://{os.path.abspath('store')}"
        with unittest.mock.patch.dict(os.environ, MLFLOW_TRACKING_URI=store, MLFLOW_ALLOW_FILE_STORE="true"):
            made = self.train("mlflow")
        run = next(pathlib.Path("store").glob("*/" + (made.folder / "mlflow.id").read_text()))
        lines = (run / "metrics" / "charts" / "episodic_return").read_text().splitlines()
        self.assertEqual([int(line.split()[2]) for line in lines], [row["global_step"] for row in made.metrics() if row["charts/episodic_return"] is not None])
        self.assertTrue(list((run / "params").iterdir()))


if __name__ == "__main__":
    unittest.main()
