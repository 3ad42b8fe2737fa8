"""The programs of with_smos.py with rlhost."""

import sys

import numpy as np
from rlhost import objects

WHERE = objects.ConnectionDescriptor(ip="localhost", port=int(sys.argv[2]), authkey=b"some_key")


def serve():
    server = objects.Server(WHERE)
    server.start()
    print("ready", flush=True)
    sys.stdin.read()
    server.stop()


def write():
    store = objects.Store(WHERE)
    store.put(name="test_obj", data="Hello World!")
    store.put(name="items", data=[np.arange(3.0), "two", {3}, (4, "four"), None], as_list=True, redundancy=2)
    store.create("queue", capacity=4, tracks=[objects.Track(bytes=1024), objects.Track(bytes=1024)])
    for i in range(3):
        store.push("queue", [np.full(4, i), "item %d" % i])


def read():
    store = objects.Store(WHERE)
    print(store.get(name="test_obj"))
    print(store.get_all(name="items"))
    print(store.get("items", [1, 9, 3]))
    with store.pop("queue") as (array, text):
        print(array.tolist(), text)
    with store.read_latest("queue") as (array, text):
        print(array.tolist(), text)
    print(store.count("queue"))
    store.remove(name="test_obj")


{"serve": serve, "write": write, "read": read}[sys.argv[1]]()
