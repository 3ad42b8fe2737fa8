"""rlhost's Channel: a producer and a consumer, each a process of its own, and the channel's server; then the store's push and pop of the
same arrays, in turns with the channel's put and get. Prints a line of JSON."""

import json
import multiprocessing
import os
import sys
import tempfile
import time

import numpy as np
import rlhost
from rlhost import objects

N, BIG = int(sys.argv[1]), int(sys.argv[2])
ITEM = {"n": 1, "text": "a small item", "values": [1.0, 2.0, 3.0]}
ARRAY = np.zeros(1 << 20, np.uint8)


def quantile(times, q):
    return sorted(times)[int(len(times) * q)]


def puts(channel, n, item, results):
    times = []
    for _ in range(n):
        begin = time.perf_counter()
        channel.put(item, weight=1)
        times.append(time.perf_counter() - begin)
    results.put(("put", times))


def gets(channel, n, results):
    channel.get()
    times, first = [], time.perf_counter()
    for _ in range(n - 1):
        begin = time.perf_counter()
        channel.get()
        times.append(time.perf_counter() - begin)
    results.put(("get", (times, (n - 1) / (time.perf_counter() - first))))


def pushes(path, n, results):
    store = objects.Store(path)
    for _ in range(n):
        store.push("q", ARRAY)
    store.flush()
    results.put(("push", 0))
    time.sleep(1)


def pops(path, n, results):
    store = objects.Store(path)
    store.pop("q", timeout=60).release()
    first = time.perf_counter()
    for _ in range(n - 1):
        store.pop("q", timeout=60).release()
    results.put(("pop", (n - 1) / (time.perf_counter() - first)))


def both(context, a, b, *arguments):
    results = context.Queue()
    workers = [context.Process(target=fn, args=(*given, results)) for fn, given in zip((a, b), arguments)]
    for w in workers:
        w.start()
    found = dict(results.get() for _ in workers)
    for w in workers:
        w.join()
    return found


def alone(turn, n):
    """Pairs a second of one process, which has no other to wait for."""
    turn()
    begin = time.perf_counter()
    for _ in range(n):
        turn()
    return n / (time.perf_counter() - begin)


def main():
    os.environ["XDG_RUNTIME_DIR"] = tempfile.mkdtemp()
    context = multiprocessing.get_context("spawn")
    found = {}
    with rlhost.Channel.create("bench", 64) as c, objects.serve(program=os.environ.get("RLHOST_PROGRAM", "rlhost")) as store:
        for name, n, item in (("small", N, ITEM), ("1 MB", BIG, ARRAY)):
            r = both(context, gets, puts, (c, n), (c, n, item))
            times, rate = r["get"]
            found[name] = {"rate": rate, "put_p50_us": quantile(r["put"], 0.5) * 1e6, "get_p50_us": quantile(times, 0.5) * 1e6}
        store.create("q", 64, ARRAY.shape, ARRAY.dtype)
        ours, theirs = [], []
        for _ in range(5):
            ours.append(both(context, gets, puts, (c, BIG), (c, BIG, ARRAY))["get"][1])
            theirs.append(both(context, pops, pushes, (store.path, BIG), (store.path, BIG))["pop"])
        found["channel, 1 MB"], found["store, 1 MB"] = {"rate": quantile(ours, 0.5)}, {"rate": quantile(theirs, 0.5)}
        turns = {"channel": lambda: (c.put(ARRAY), c.get()), "store": lambda: (store.push("q", ARRAY), store.pop("q").release())}
        rates = {name: [] for name in turns}
        for _ in range(9):
            for name, turn in turns.items():
                rates[name].append(alone(turn, max(20, BIG // 10)))
        for name in turns:
            found[name + ", 1 MB, one process"] = {"rate": quantile(rates[name], 0.5)}
    print("RESULT " + json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
