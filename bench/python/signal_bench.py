#!/usr/bin/env python3
"""rlhost.signal_slot beside signal-slot: the same program with either, both in one run, taking turns.

    .venv/bin/python bench/python/signal_bench.py [--signals 100000] [--rounds 3]

"one loop" is a ping-pong of two objects of one loop, "processes" one between two processes, "stream" signals in bursts of 100 that one
process sends and another takes, "arrays" a ping-pong of 1 MiB arrays between two processes. signal-slot-mp 1.0.5 is installed into .cache/peers/signal_slot the first time."""

import argparse
import importlib
import json
import logging
import pathlib
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
THEIRS = ROOT / ".cache" / "peers" / "signal_slot"
PINNED = "signal-slot-mp==1.0.5"
SHAPES = ["one loop", "processes", "stream", "arrays"]
BURST = 100


def one(name, shape, count):
    """Runs in an interpreter of its own, and prints signals/s."""
    logging.disable(logging.CRITICAL)
    m = importlib.import_module("rlhost.signal_slot" if name == "rlhost" else "signal_slot.signal_slot")

    class Ping(m.EventLoopObject):
        left = count

        @m.signal
        def ping(self): ...

        def on_start(self):
            self.begun = time.perf_counter()
            self.ping.emit(payload)

        def on_pong(self, data):
            self.left -= 2
            if self.left > 0:
                self.ping.emit(data)
            else:
                self.seconds = time.perf_counter() - self.begun
                process.stop()
                loop.stop()

    class Pong(m.EventLoopObject):
        @m.signal
        def pong(self): ...

        def on_ping(self, data):
            self.pong.emit(data)

    class Source(m.EventLoopObject):
        """Sends a burst for each that has been taken, four ahead."""

        @m.signal
        def burst(self): ...

        def on_taken(self):
            self.burst.emit_many([(k, 1.5) for k in range(BURST)])

    class Sink(m.EventLoopObject):
        left, seconds = count, 0.0

        @m.signal
        def taken(self): ...

        def on_start(self):
            self.begun = time.perf_counter()
            for _ in range(4):
                self.taken.emit()

        def on_burst(self, k, x):
            self.left -= 1
            if k == BURST - 1:
                self.taken.emit()
            if not self.left:
                self.seconds = time.perf_counter() - self.begun
                process.stop()
                loop.stop()

    loop, process = m.EventLoop("main"), m.EventLoopProcess("other")
    if shape == "stream":
        measured, other = Sink(loop, "sink"), Source(process.event_loop, "source")
        measured.taken.connect(other.on_taken)
        other.burst.connect(measured.on_burst)
    else:
        payload = (7, "reset")
        if shape == "arrays":
            import numpy
            payload = numpy.zeros(1 << 18, numpy.float32)
        measured = Ping(loop, "ping")
        other = Pong(loop if shape == "one loop" else process.event_loop, "pong")
        measured.ping.connect(other.on_ping)
        other.pong.connect(measured.on_pong)
    loop.start.connect(measured.on_start)
    process.start()
    loop.exec()
    process.join()
    print(json.dumps(count / measured.seconds))


def run(name, shape, count):
    interpreter = sys.executable if name == "rlhost" else THEIRS / "bin" / "python"
    out = subprocess.run([interpreter, __file__, "--one", name, shape, str(count)], check=True, capture_output=True, text=True, timeout=600)
    return json.loads(out.stdout)


def install():
    if not (THEIRS / "bin" / "python").exists():
        subprocess.run([sys.executable, "-m", "venv", THEIRS], check=True)
    if PINNED not in subprocess.run([THEIRS / "bin" / "pip", "freeze"], check=True, capture_output=True, text=True).stdout:
        subprocess.run([THEIRS / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", PINNED, "faster-fifo==1.5.2", "numpy==2.4.6"],
                       check=True)


def main():
    if sys.argv[1:2] == ["--one"]:
        name, shape, count = sys.argv[2:]
        one(name, shape, int(count))
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--signals", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    install()
    print("shape: rlhost.signal_slot signals/s, signal-slot, median ratio of rounds")
    for shape in SHAPES:
        count = args.signals // (100 if shape == "arrays" else 1)
        pairs = [(run("rlhost", shape, count), run("signal-slot", shape, count)) for _ in range(args.rounds)]
        ratios = [a / b for a, b in pairs]
        print(f"{shape}: {statistics.median(a for a, _ in pairs):,.0f}  {statistics.median(b for _, b in pairs):,.0f}  "
              f"x {statistics.median(ratios):.1f} ({min(ratios):.1f}-{max(ratios):.1f})", flush=True)


if __name__ == "__main__":
    main()
