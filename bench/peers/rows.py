"""Rows of the table: measurements of both sides, gathered over rounds, and what follows from them."""

import math
import statistics


class Row:
    """One comparison. A round adds ours, theirs, and ours again, taken in that order: ours again over ours is the
    control that says how far two measurements of the same thing lie apart on this machine."""

    def __init__(self, what, against, unit, bar=None, faster="more"):
        self.what, self.against, self.unit, self.bar, self.faster = what, against, unit, bar, faster
        self.ours, self.theirs, self.again = [], [], []

    def add(self, ours, theirs, again):
        self.ours.append(ours)
        self.theirs.append(theirs)
        self.again.append(again)

    def ratios(self):
        """How many times as fast ours is, round by round; ours is the geometric mean of its two measurements."""
        both = [math.sqrt(a * b) for a, b in zip(self.ours, self.again)]
        pairs = list(zip(both, self.theirs))
        return [o / t if self.faster == "more" else t / o for o, t in pairs]

    def controls(self):
        return [b / a for a, b in zip(self.ours, self.again)]

    def result(self):
        ratios, controls = self.ratios(), self.controls()
        ratio = statistics.median(ratios)
        return {
            "what": self.what, "against": self.against, "unit": self.unit, "bar": self.bar,
            "ours": statistics.median(self.ours + self.again), "theirs": statistics.median(self.theirs),
            "ratio": ratio, "ratio_min": min(ratios), "ratio_max": max(ratios),
            "control_min": min(controls), "control_max": max(controls),
            "held": None if self.bar is None else ratio >= self.bar,
            "rounds": {"ours": self.ours, "theirs": self.theirs, "again": self.again},
        }


class Rows:
    """The rows of one part, in the order in which they were first added to."""

    def __init__(self):
        self.rows, self.facts = {}, {}

    def add(self, what, against, unit, ours, theirs, again, bar=None, faster="more"):
        key = (what, against)
        if key not in self.rows:
            self.rows[key] = Row(what, against, unit, bar, faster)
        self.rows[key].add(ours, theirs, again)

    def fact(self, what, value, unit, bar, held):
        """Adds a figure of ours that is held against a limit, not against a peer. The median of all rounds counts;
        held says whether a value is within the limit."""
        self.facts.setdefault(what, {"what": what, "unit": unit, "bar": bar, "test": held, "values": []})["values"].append(value)

    def result(self):
        facts = []
        for f in self.facts.values():
            test, value = f.pop("test"), statistics.median(f["values"])
            facts.append({**f, "value": value, "held": None if test is None else test(value)})
        return {"rows": [r.result() for r in self.rows.values()], "facts": facts}
