"""Optuna for rlhost sweep: it proposes the values of trials, and prunes.

    [sweep]
    program = ["python3", "-m", "rlhost.optuna"]
    method = "program"     # it prunes, too

Arguments: the names of a sampler and of a pruner of Optuna, by default TPESampler and MedianPruner."""

from __future__ import annotations

import json
import sys
from typing import Any


class Values:
    """One key of the space in Optuna's terms: choices by their places, and one_minus as the logarithm of the distance from 1."""

    def __init__(self, key: str, dim: dict[str, Any]):
        self.key, self.dim, self.choices = key, dim, dim.get("choices")
        self.minus = dim.get("scale") == "one_minus"

    def suggest(self, trial: Any) -> Any:
        """The value that a trial gets."""
        if self.choices is not None:
            return self.choices[trial.suggest_categorical(self.key, list(range(len(self.choices))))]
        low, high, log = self.dim["from"], self.dim["to"], self.dim.get("scale") == "log"
        if self.dim.get("integer"):
            return int(trial.suggest_int(self.key, int(low), int(high), log=log))
        if not self.minus:
            return float(trial.suggest_float(self.key, low, high, log=log))
        return min(max(1 - trial.suggest_float(self.key, 1 - high, 1 - low, log=True), low), high)

    def given(self, value: Any) -> Any:
        """A value as Optuna's parameter."""
        if self.choices is not None:
            return self.choices.index(value)
        return min(max(1 - value, 1 - self.dim["to"]), 1 - self.dim["from"]) if self.minus else value


class Search:
    """A study, told and asked by lines."""

    def __init__(self, begin: dict[str, Any], sampler: str, pruner: str):
        import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self.states = optuna.trial.TrialState
        made = getattr(optuna.samplers, sampler)(seed=begin["seed"])
        self.study = optuna.create_study(direction="maximize" if begin["goal"] == "max" else "minimize", sampler=made,
                                         pruner=getattr(optuna.pruners, pruner)())
        self.space = [Values(key, dim) for key, dim in sorted(begin["space"].items())]
        self.trials: dict[int, Any] = {}

    def ask(self, number: int) -> dict[str, Any]:
        trial = self.trials[number] = self.study.ask()
        return {values.key: values.suggest(trial) for values in self.space}

    def heard(self, line: dict[str, Any]) -> dict[str, Any] | None:
        """Takes a line, and returns its answer, if it has one."""
        if "ask" in line:
            return {"set": self.ask(line["ask"])}
        if "begun" in line:
            self.study.enqueue_trial({values.key: values.given(line["set"][values.key]) for values in self.space})
            self.ask(line["begun"])
        elif "passed" in line:
            self.trials[line["passed"]].report(line["value"], line["env_steps"])
        elif "report" in line:
            trial = self.trials[line["report"]]
            trial.report(line["value"], line["env_steps"])
            return {"prune": bool(trial.should_prune())}
        elif "error" in line:
            self.study.tell(self.trials[line["tell"]], state=self.states.FAIL)
        elif line.get("pruned"):
            self.study.tell(self.trials[line["tell"]], state=self.states.PRUNED)
        else:
            self.study.tell(self.trials[line["tell"]], line["value"])
        return None


def main(sampler: str = "TPESampler", pruner: str = "MedianPruner") -> None:
    search = None
    for line in map(json.loads, sys.stdin):
        if search is None:
            search = Search(line["begin"], sampler, pruner)
        elif (answer := search.heard(line)) is not None:
            print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
