"""RLinf's Channel on Ray: a producer and a consumer, each a Worker of its own, and the channel's own actor. Prints a line of JSON."""

import json
import sys
import time

import torch
from rlinf.scheduler import Channel, Cluster, NodePlacementStrategy, Worker

N, BIG = int(sys.argv[1]), int(sys.argv[2])
ITEM = {"n": 1, "text": "a small item", "values": [1.0, 2.0, 3.0]}


def quantile(times, q):
    return sorted(times)[int(len(times) * q)]


class Client(Worker):
    def __init__(self):
        super().__init__()

    def puts(self, channel, n, item):
        times = []
        for _ in range(n):
            begin = time.perf_counter()
            channel.put(item, weight=1)
            times.append(time.perf_counter() - begin)
        return times

    def gets(self, channel, n):
        channel.get()
        times, first = [], time.perf_counter()
        for _ in range(n - 1):
            begin = time.perf_counter()
            channel.get()
            times.append(time.perf_counter() - begin)
        return times, (n - 1) / (time.perf_counter() - first)


def main():
    cluster = Cluster(num_nodes=1)
    one = NodePlacementStrategy(node_ranks=[0])
    channel = Channel.create("bench")
    producer = Client.create_group().launch(cluster, name="producer", placement_strategy=one)
    consumer = Client.create_group().launch(cluster, name="consumer", placement_strategy=one)
    found = {}
    for name, n, item in (("small", N, ITEM), ("1 MB", BIG, torch.zeros(1 << 20, dtype=torch.uint8))):
        for timed in (False, True):
            count = n if timed else max(20, n // 10)
            getting = consumer.gets(channel, count)
            putting = producer.puts(channel, count, item)
            puts, (gets, rate) = putting.wait()[0], getting.wait()[0]
        found[name] = {"rate": rate, "put_p50_us": quantile(puts, 0.5) * 1e6, "get_p50_us": quantile(gets, 0.5) * 1e6}
    print("RESULT " + json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
