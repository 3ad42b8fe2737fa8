"""Prints how long a plugin takes from its start to its first message, and what of it is importing."""

import pathlib
import statistics
import sys
import time

from fakehost import FakeHost, python
from rlhost import Message

PLUGIN = str(pathlib.Path(__file__).with_name("counting.py"))


def first_message():
    """Milliseconds from the start of the process to the handshake and to the answer to its first message."""
    with FakeHost(python(PLUGIN)) as host:
        host.connect()
        shaken = time.perf_counter()
        host.call("Describe")
        host.start("wrong")
        host.send(Message(kind=9))
        host.receive()
        return (shaken - host.started) * 1e3, (time.perf_counter() - host.started) * 1e3


def main():
    rounds = [first_message() for _ in range(int(sys.argv[1]) if len(sys.argv) > 1 else 11)]
    for name, values in zip(("handshake", "first message"), zip(*rounds)):
        print(f"{name:14} median {statistics.median(values):.0f} ms, best {min(values):.0f}")


if __name__ == "__main__":
    main()
