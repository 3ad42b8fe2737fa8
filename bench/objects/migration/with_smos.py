"""SMOS's first programs, as its README has them: a server, a program that writes and one that reads."""

import sys

import numpy as np
import SMOS

WHERE = SMOS.ConnectionDescriptor(ip="localhost", port=int(sys.argv[2]), authkey=b"some_key")


def serve():
    server = SMOS.Server(WHERE)
    server.start()
    print("ready", flush=True)
    sys.stdin.read()
    server.stop()


def write():
    client = SMOS.Client(WHERE)
    client.put(name="test_obj", data="Hello World!")
    client.put(name="items", data=[np.arange(3.0), "two", {3}, (4, "four"), None], as_list=True, redundancy=2)
    client.create_object(name="queue", max_capacity=4, track_count=2, block_size=[1024, 1024])
    for i in range(3):
        client.push_to_object("queue", [np.full(4, i), "item %d" % i])


def read():
    client = SMOS.Client(WHERE)
    print(client.get(name="test_obj"))
    print(client.get(name="items"))
    print(client.get("items", [1, 9, 3]))
    status, handle, (array, text) = client.pop_from_object("queue")
    print(array.tolist(), text)
    client.free_handle(handle)
    status, handle, (array, text) = client.read_latest_from_object("queue")
    print(array.tolist(), text)
    client.release_entry(handle)
    print(client.get_entry_count("queue")[1])
    client.remove_object(name="test_obj")


{"serve": serve, "write": write, "read": read}[sys.argv[1]]()
