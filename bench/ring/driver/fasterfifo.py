"""Drives faster-fifo's Python package: driver.py PRODUCERS CONSUMERS EACH PUT GET prints the nanoseconds from the
opening of the gate to the last message taken. Messages are bytes of length 16; get more than 1 means get_many."""
import multiprocessing
import sys
import time
from queue import Empty, Full

from faster_fifo import Queue

PILL = b"\xff" * 16
QUEUE_BYTES = 100_000


def put(queue, message):
    while True:
        try:
            return queue.put(message, timeout=1)
        except Full:
            pass


def put_many(queue, batch):
    while True:
        try:
            return queue.put_many(batch, timeout=1)
        except Full:
            pass


def produce(queue, gate, producing, consumers, each, batch):
    message = b"0123456789abcdef"
    gate.wait()
    if batch == 1:
        for _ in range(each):
            put(queue, message)
    else:
        for at in range(0, each, batch):
            put_many(queue, [message] * min(batch, each - at))
    with producing.get_lock():
        producing.value -= 1
        last = producing.value == 0
    for _ in range(consumers if last else 0):
        put(queue, PILL)


def consume(queue, gate, outcome, batch):
    count = pills = 0
    gate.wait()
    while pills == 0:
        try:
            got = [queue.get(timeout=1)] if batch == 1 else queue.get_many(timeout=1, max_messages_to_get=batch)
        except Empty:
            continue
        pills = got.count(PILL)
        count += len(got) - pills
    outcome[0], outcome[1] = time.monotonic_ns(), count
    for _ in range(pills - 1):
        put(queue, PILL)


def main():
    producers, consumers, each, put_batch, get_batch = map(int, sys.argv[1:])
    fork = multiprocessing.get_context("fork")
    queue, gate, producing = Queue(QUEUE_BYTES), fork.Barrier(producers + consumers + 1), fork.Value("i", producers)
    outcomes = [fork.Array("q", 2, lock=False) for _ in range(consumers)]
    children = [fork.Process(target=produce, args=(queue, gate, producing, consumers, each, put_batch)) for _ in range(producers)]
    children += [fork.Process(target=consume, args=(queue, gate, outcome, get_batch)) for outcome in outcomes]
    for child in children:
        child.start()
    gate.wait()
    started = time.monotonic_ns()
    for child in children:
        child.join()
    if sum(outcome[1] for outcome in outcomes) != each * producers:
        sys.exit("messages were lost")
    print(max(outcome[0] for outcome in outcomes) - started)


main()
