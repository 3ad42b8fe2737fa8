#!/usr/bin/env python3
"""rlhost.Queue beside faster-fifo's Python package: bytes of 16 from Python to Python, all in one run, taking turns.

    .venv/bin/python bench/python/queue_bench.py [--messages 200000] [--rounds 3] [MIX...]

cells is rlhost.Queue with message_bytes and codec="bytes", objects is as it is by default, faster-fifo too. A mix is
PRODUCERSxCONSUMERS. Each is measured one message at a time (put, get) and in bulk (put_many, get_many of
100). Time counts from when all processes are ready until the last message is out. faster-fifo 1.5.2 is installed into
.cache/peers/fifo the first time."""

import argparse
import json
import multiprocessing
import pathlib
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
THEIRS = ROOT / ".cache" / "peers" / "fifo"
PINNED = "faster-fifo==1.5.2"
MIXES = ["1x1", "1x10", "10x1", "3x20", "20x3", "20x20"]
BULK = 100
DATA = b"0123456789abcdef"
CAPACITY = 4096  # messages


def produce(q, ready, go, count, bulk):
    ready.release()
    go.wait()
    if not bulk:
        for _ in range(count):
            q.put(DATA, timeout=60)
        return
    batch = [DATA] * BULK
    for _ in range(count // BULK):
        q.put_many(batch, timeout=60)


def consume(q, ready, go, taken, total, bulk):
    """Takes messages until all of them are out; taken counts those of all consumers, now and then."""
    from queue import Empty
    ready.release()
    go.wait()
    own = 0
    while True:
        try:
            if bulk:
                own += len(q.get_many(timeout=0.02, max_messages_to_get=BULK))
            else:
                q.get(timeout=0.02)
                own += 1
        except Empty:
            pass
        else:
            if own < 1000:
                continue
        with taken.get_lock():
            taken.value += own
            if taken.value >= total:
                return
        own = 0


def measure(make, mix, messages, bulk):
    """Messages/s of one run."""
    producers, consumers = map(int, mix.split("x"))
    context = multiprocessing.get_context("fork")
    count = messages // producers // BULK * BULK
    total = count * producers
    q, ready, go, taken = make(), context.Semaphore(0), context.Event(), context.Value("q", 0)
    workers = [context.Process(target=produce, args=(q, ready, go, count, bulk)) for _ in range(producers)]
    workers += [context.Process(target=consume, args=(q, ready, go, taken, total, bulk)) for _ in range(consumers)]
    for w in workers:
        w.start()
    for _ in workers:
        ready.acquire()
    begun = time.perf_counter()
    go.set()
    while taken.value < total:
        time.sleep(0.0005)
    seconds = time.perf_counter() - begun
    for w in workers:
        w.join()
    return total / seconds


def one(name, mix, messages, bulk):
    """Runs in an interpreter of its own, and prints the figure."""
    if name == "cells":
        import rlhost

        def make():
            return rlhost.Queue(maxsize=CAPACITY, message_bytes=len(DATA), codec="bytes")
    elif name == "objects":
        import rlhost

        def make():
            return rlhost.Queue(CAPACITY * 48)
    else:
        import faster_fifo
        import faster_fifo_reduction  # noqa: F401

        def make():
            return faster_fifo.Queue(max_size_bytes=CAPACITY * 64)
    print(json.dumps(measure(make, mix, messages, bulk)))


def run(name, *args):
    interpreter = THEIRS / "bin" / "python" if name == "faster-fifo" else sys.executable
    out = subprocess.run([interpreter, __file__, "--one", name, *map(str, args)], check=True, capture_output=True, text=True)
    return json.loads(out.stdout)


def install():
    if not (THEIRS / "bin" / "python").exists():
        subprocess.run([sys.executable, "-m", "venv", THEIRS], check=True)
    if PINNED not in subprocess.run([THEIRS / "bin" / "pip", "freeze"], check=True, capture_output=True, text=True).stdout:
        subprocess.run([THEIRS / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", PINNED], check=True)


def ratio(a, b):
    ratios = [x / y for x, y in zip(a, b)]
    return f"x {statistics.median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f})"


def main():
    if sys.argv[1:2] == ["--one"]:
        name, mix, messages, bulk = sys.argv[2:]
        one(name, mix, int(messages), bulk == "True")
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("mix", nargs="*", default=MIXES)
    parser.add_argument("--messages", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    install()
    print("mix, how: messages/s, then the median ratio of rounds to faster-fifo (least-most); cells to cells again")
    for bulk in (False, True):
        for mix in args.mix:
            messages = args.messages * (10 if bulk else 1)
            rounds = [(run("cells", mix, messages, bulk), run("objects", mix, messages, bulk),
                       run("faster-fifo", mix, args.messages, bulk), run("cells", mix, messages, bulk)) for _ in range(args.rounds)]
            cells, objects, theirs, again = zip(*rounds)
            print(f"{mix} {'bulk' if bulk else 'single'}: cells {statistics.median(cells):,.0f} {ratio(cells, theirs)}  "
                  f"objects {statistics.median(objects):,.0f} {ratio(objects, theirs)}  faster-fifo {statistics.median(theirs):,.0f}  "
                  f"again {ratio(cells, again)}", flush=True)


if __name__ == "__main__":
    main()
