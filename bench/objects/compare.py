"""Push and pop of arrays through rlhost's object store and through SMOS, and the way of a block to another process
and back through each of the means at hand. Everything takes turns in one run; figures are medians of rounds, with the
least and the most, and the control is rlhost against itself."""

import argparse
import multiprocessing
import os
import pathlib
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
SIZES = (64 << 10, 256 << 10, 1 << 20)

sys.path.insert(0, str(ROOT / "sdk" / "python"))  # the package as it is in this checkout
from rlhost import objects  # noqa: E402


def times(fn, n):
    """The median time of n calls, in microseconds."""
    spent = []
    for _ in range(n):
        start = time.perf_counter()
        fn()
        spent.append(time.perf_counter() - start)
    return statistics.median(spent) * 1e6


class Ours:
    """rlhost: pop gives a view, as SMOS does; nobody reads it in either."""

    def __init__(self, path):
        self.store = objects.Store(path, timeout=10)

    def prepare(self, size, array):
        name = "bench-%d" % size
        self.store.create(name, 64, bytes=size)

        def pair():
            self.store.push(name, array)
            self.store.pop(name).release()

        return pair


class Smos:
    def __init__(self):
        import SMOS
        self.server = SMOS.Server()
        self.server.start()
        address = self.server.address
        self.client = SMOS.Client(address() if callable(address) else address)

    def prepare(self, size, array):
        name = "bench%d" % size
        # Its blocks hold a header besides; 1 KiB more is enough.
        self.client.create_object(name=name, max_capacity=64, track_count=1, block_size=size + 1024)

        def pair():
            status, _ = self.client.push_to_object(name, array)
            assert status == 0, status
            status, handle, _ = self.client.pop_from_object(name, force_pop=False)
            assert status == 0, status
            self.client.free_handle(handle)

        return pair

    def stop(self):
        self.server.stop()


def spread(values):
    return "%.2f (%.2f-%.2f)" % (statistics.median(values), min(values), max(values))


def compare_stores(path, rounds, pairs):
    ours, theirs = Ours(path), Smos()
    print("push and pop of an array in one process, us for a pair; median of rounds (least-most)\n")
    print("| bytes | rlhost | SMOS | times as fast | control | copy of the array alone |")
    print("|---|---|---|---|---|---|")
    worst = {}
    for size in SIZES:
        array = np.arange(size // 4, dtype=np.float32)
        target = np.empty_like(array)
        a, b = ours.prepare(size, array), theirs.prepare(size, array)
        a(), b()
        mine, other, again, copies = [], [], [], []
        for _ in range(rounds):
            copies.append(times(lambda: np.copyto(target, array), pairs))
            mine.append(times(a, pairs))
            other.append(times(b, pairs))
            again.append(times(a, pairs))
        ratios = [o / (m * n) ** 0.5 for m, o, n in zip(mine, other, again)]
        worst[size] = statistics.median(ratios)
        print("| %d | %.1f | %.0f | %s | %s | %.1f |" % (
            size, statistics.median(mine + again), statistics.median(other), spread(ratios),
            spread([n / m for m, n in zip(mine, again)]), statistics.median(copies)), flush=True)
    theirs.stop()
    return worst


# The way of a block to another process: the parent sends it, the child takes it and answers with a byte. The child does
# not read the block; where the means delivers a copy, that is part of it.

def child_store(path, size, ready):
    store = objects.Store(path)
    ready.send(1)
    while True:
        store.pop("there-%d" % size).release()
        store.push("back-%d" % size, b"1")


def child_queue(there, back):
    while True:
        there.get()
        back.put(b"1")


def child_socket(conn, size):
    buffer = bytearray(size)
    while True:
        view = memoryview(buffer)
        while view:
            n = conn.recv_into(view)
            if n == 0:
                return
            view = view[n:]
        conn.sendall(b"1")


def child_grpc(address):
    import grpc
    from concurrent import futures
    limit = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
    server = grpc.server(futures.ThreadPoolExecutor(1), options=limit)
    handler = grpc.method_handlers_generic_handler("bench", {
        "Block": grpc.unary_unary_rpc_method_handler(lambda request, _: b"1")})
    server.add_generic_rpc_handlers((handler,))
    server.add_insecure_port(address)
    server.start()
    server.wait_for_termination()


def start(target, *args):
    process = multiprocessing.get_context("fork").Process(target=target, args=args, daemon=True)
    process.start()
    return process


def ways(path, size, array, folder):
    """Name, function that sends a block and waits for the answer, and the processes behind it."""
    store = objects.Store(path)
    store.create("there-%d" % size, 8, bytes=size)
    store.create("back-%d" % size, 8, bytes=8)
    parent, ready = multiprocessing.Pipe()
    process = start(child_store, path, size, ready)
    parent.recv()

    def through_store():
        store.push("there-%d" % size, array)
        store.pop("back-%d" % size).release()

    yield "rlhost objects", through_store, process
    there, back = multiprocessing.Queue(), multiprocessing.Queue()
    process = start(child_queue, there, back)
    yield "multiprocessing.Queue", lambda: (there.put(array), back.get()), process
    ours, theirs = socket.socketpair()
    process = start(child_socket, theirs, size)
    data = memoryview(array).cast("B")
    yield "unix socket", lambda: (ours.sendall(data), ours.recv(1)), process
    address = "unix:%s/grpc-%d" % (folder, size)
    process = subprocess.Popen([sys.executable, __file__, "--grpc", address])
    import grpc
    limit = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
    channel = grpc.insecure_channel(address, options=limit)
    grpc.channel_ready_future(channel).result(20)
    call = channel.unary_unary("/bench/Block")
    raw = array.tobytes()
    yield "gRPC", lambda: call(raw), process


def compare_ways(path, rounds, pairs):
    print("\na block to another process and a byte back, us; median of rounds (least-most)\n")
    print("| bytes | rlhost objects | multiprocessing.Queue | unix socket | gRPC |")
    print("|---|---|---|---|---|")
    for size in SIZES:
        array = np.arange(size // 4, dtype=np.float32)
        with tempfile.TemporaryDirectory() as folder:
            found = list(ways(path, size, array, folder))
            got = {name: [] for name, _, _ in found}
            for _, send, _ in found:
                send()
            for _ in range(rounds):
                for name, send, _ in found:
                    got[name].append(times(send, pairs))
            for _, _, process in found:
                process.kill()
        print("| %d | %s |" % (size, " | ".join(spread(v) for v in got.values())), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--pairs", type=int, default=100)
    parser.add_argument("--grpc", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.grpc:
        child_grpc(args.grpc)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "objects.sock")
        server = subprocess.Popen([ROOT / ".cache" / "peers" / "bin" / "objects-server", path])
        try:
            ratios = compare_stores(path, args.rounds, args.pairs)
            compare_ways(path, args.rounds, args.pairs)
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait()
    print("\nbar: push and pop of 1 MB at least 20 times as fast as SMOS: %.1f" % ratios[1 << 20])


if __name__ == "__main__":
    main()
