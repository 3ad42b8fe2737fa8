"""Runs the conformance set of hostabi/conformance/component on the host of this folder.

    python run_components.py [--words] [CASE ...]

With --words the messages must have the words of the set too, which another host may say otherwise.
"""
import sys
import time

from component import Block, Component, Ended, Message, Receiver, Run, Unanswered
from description import Refused, TooOld
from guest import Failed, Fault
from page import COMPONENT as abi
from run import SET, play_set, said_as, want

STOPS = ["component", "return", "env_steps", "wall_time"]


def blocks():
    """Three blocks of trajectories, of two steps of three environments."""
    made = [Block({"shaped_reward": (8, 2, 3, 1, 1), "obs": (8, 3, 3, 1, 2), "action": (4, 2, 3, 1, 1), "reward": (8, 2, 3, 1, 1), "terminated": (1, 2, 3, 1, 1), "truncated": (1, 2, 3, 1, 1)}) for _ in range(3)]
    for k, block in enumerate(made):
        block.column("reward")[:, :, 0, 0] = [[100 * k + 10 * t + e for e in range(3)] for t in range(2)]
    return made


def rewards(block):
    return block.column("reward").flatten().tolist()


class Play:
    """A case on its way: its instances share blocks, and what came of them."""

    def __init__(self, case):
        self.case, self.blocks, self.out, self.note, self.seen = case, blocks(), [], [], []

    def make(self):
        wasm = (SET / "component" / (self.case["name"] + ".wasm")).read_bytes()
        return Component(wasm, self.case.get("table"), self.case.get("grants", ()))

    def start(self, c):
        others = iter(self.case.get("others", ()))
        c.ask_other = lambda question, ask, args: self.other(c, question, ask, args, next(others, {}))
        writes = {} if self.case.get("denied") else {"written": ["shaped_reward" if self.case.get("asks") else "reward"]}
        c.start(Run("guest[2]", id=7, index=2, count=3, seed=7, writes=writes))
        for signal, take in (("out", self.take_out), ("note", self.note.append)):
            if signal not in self.case.get("unconnected", ()):
                c.receivers[signal] = Receiver(take)
        if "room" in self.case:
            c.receivers["note"].room = self.case["room"]

    def other(self, c, question, ask, args, answer):
        """Answers as another component, unless the case has no answer."""
        if "reply" in answer or "fault" in answer:
            want((ask, args) == (answer["ask"], answer["args"]), f"it asks {ask}({args}), want {answer}")
            fault = [answer[key] for key in ("fault", "text", "type", "place") if key in answer]
            c.answer_to(question, fault or None, answer.get("reply"))

    def take_out(self, m):
        self.out.append(m)
        self.seen.append(float(m.block.column("shaped_reward").flat[0]) if self.case.get("asks") else rewards(m.block)[0])

    def work(self, c, questions="questions"):
        """Gives an instance its messages, and waits for its timers."""
        before = len(self.note)
        for m in self.case.get("messages", ()):
            fields = {k: v for k, v in m.items() if k not in ("slot", "block")}
            c.send(m["slot"], Message(self.blocks[m["block"]] if "block" in m else None, **fields))
        if "room" in self.case:
            want(len(self.note) - before == self.case["room"], f"{len(self.note)} messages have come where there was room for {self.case['room']}")
            c.receivers["note"].room = float("inf")
        if self.case.get("pause"):
            c.pause()
            for _ in range(100):
                c.work()
        for question in self.case.get(questions, ()):
            self.ask(c, **question)
        if self.case.get("pause"):
            c.resume()
        c.work()
        end = time.monotonic() + 10
        while (len(self.note) - before < self.case.get("until", 0) or c.faults < self.case.get("faults_least", 0)) and time.monotonic() < end:
            c.work()

    def ask(self, c, name, args=None, reply=None, error=None, wrong=False):
        """Asks a question of the case, and looks at the answer."""
        try:
            have = c.ask(name, args)
            want(error is None and have == reply, f"{name} answers {have!r:.60}, want {reply!r:.60}, error {error}")
        except Unanswered as e:
            want(error is not None and said_as([error], str(e)) and wrong == e.wrong, f"{name} fails with {e}, because of its arguments: {e.wrong}; want {error}")

    def go_on(self, c):
        """Asks for a state, where the case is about that, and sends the messages once more."""
        if "snapshot" in self.case:
            try:
                c.snapshot()
                raise AssertionError("there is a state")
            except Fault as e:
                want(said_as(self.case["snapshot"], str(e)), f"rl_snapshot: {e}, want {self.case['snapshot']}")
            return self.work(c)
        if "successor" not in self.case:
            return
        state, other = c.snapshot(), self.make()
        self.start(other)
        try:
            other.restore(state)
            want(self.case["successor"], "a state was taken")
            self.work(other, "questions_then")
        except Failed as e:
            want(e.status == -9 and not self.case["successor"], f"a state was not taken: {e}")
            self.work(c)

    def compare(self, c):
        case = self.case
        for name, have in (("out", len(self.out)), ("notes", len(self.note)), ("seen", self.seen), ("senders", [m.sender for m in self.out]), ("rewards", rewards(self.blocks[0])),
                           ("faults", c.faults), ("stops", [STOPS[r] for r in c.stops]), ("slots", [s.name for s in c.manifest.slots])):
            want(case.get(name, have) == have, f"{name}: {have}, want {case.get(name)}")
        notes = self.numbers()
        want("notes" in case or notes == case.get("note", []), f"it notes {notes}, want {case.get('note')}")
        want((c.faults > 0) == (case["outcome"] == "fault" or case.get("faults", 0) > 0), f"{c.faults} faults: {c.logged}")
        want(all(any(line in text for _, text in c.logged) for line in case.get("log", ())), f"the log is {c.logged}")
        want(not c.tokens, "blocks are still claimed")
        if case.get("passes_on"):
            [m], [out] = case["messages"], self.out
            have = {"slot": m["slot"], "block": self.blocks.index(out.block), "inline": list(out.inline)} | {k: getattr(out, k) for k in ("t", "split", "policy_version", "kind", "sender")}
            want(have == m, f"passed on as {have}, want {m}")
        metrics = {}
        for (name, kind), values in c.metrics:
            metrics |= {name: sum(values)} if kind == abi.METRIC_COUNTER else {name: values[-1]} if kind == abi.METRIC_GAUGE and values else {name + "_count": len(values)}
        want(case.get("metrics", metrics) == metrics, f"the metrics are {metrics}, want {case.get('metrics')}")

    def numbers(self):
        return [m.inline[0] for m in self.note]

    def run(self):
        """Plays the case: its outcome, and what was said of it."""
        started = False
        try:
            c = self.make()
            self.start(c)
            started = True
            self.work(c)
            self.go_on(c)
            c.stop()
        except Refused as e:
            return "refused, too old" if isinstance(e, TooOld) else "refused", str(e)
        except Ended as e:
            return "ends", str(e)
        except Fault as e:
            want(not started, f"once it has started: {e}")
            return "fails", str(e)
        self.compare(c)
        return ("fault" if self.case["outcome"] == "fault" else "runs"), str(c.logged)


def run(case):
    """Runs a case twice: what it should have done otherwise is an AssertionError."""
    first, second = Play(case), Play(case)
    for play in first, second:
        outcome, said = play.run()
        expected = case["outcome"] + ", too old" * case.get("too_old", False)
        want(outcome == expected, f"{outcome} ({said}), want {expected}")
        want(outcome == "runs" or said_as(case.get("says", ()), said), f"{outcome} with {said!r}, want {case.get('says')}")
    want(first.numbers() == second.numbers(), f"it notes {first.numbers()}, then {second.numbers()}")


if __name__ == "__main__":
    sys.exit(play_set("component/cases.json", run))
