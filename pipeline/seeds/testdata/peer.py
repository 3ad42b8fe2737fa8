"""Reads scores and the indices of bootstrap resamples as JSON and writes what the package rliable makes of them.

Input:  {"scores": [task][seed], "other": [task][seed], "draws": [resample][task][seed], "other_draws": the same of other}
Output: {"mean": [value, low, high], "median": …, "median_of_seeds": …, "iqm": …, "improvement": …}
"""
import json
import sys

import numpy as np
from rliable import library, metrics


class Draws:
    """Stands for numpy.random.choice, from which rliable takes its indices, one call a resample and argument."""

    def __init__(self, *sets):
        self.sets, self.calls = [np.asarray(s) for s in sets], 0

    def __call__(self, items, shape, replace):
        drawn = self.sets[self.calls % len(self.sets)][self.calls // len(self.sets)].T.astype(int)
        self.calls += 1
        assert drawn.shape == tuple(shape) and replace and drawn.max() < items
        return drawn


def estimate(function, scores, draws):
    np.random.choice = Draws(*draws)
    values, intervals = library.get_interval_estimates(
        {"x": scores}, lambda *x: np.array([function(*x)]), reps=len(draws[0]))
    return [values["x"][0], *intervals["x"][:, 0]]


def main():
    given = json.load(sys.stdin)
    scores, other = np.array(given["scores"]).T, np.array(given["other"]).T
    draws, other_draws = given["draws"], given["other_draws"]
    out = {name: estimate(function, scores, [draws]) for name, function in {
        "mean": metrics.aggregate_mean, "median": metrics.aggregate_median, "iqm": metrics.aggregate_iqm,
        "median_of_seeds": np.median}.items()}
    out["improvement"] = estimate(metrics.probability_of_improvement, [scores, other], [draws, other_draws])
    json.dump(out, sys.stdout)


main()
