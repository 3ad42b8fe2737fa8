#!/usr/bin/env python3
"""Requests to components of a training run, from Python: how long one takes, and how much slower the run is at 100 a second.

    make build && bench/python/request_bench.py --runs 6

The run learns CartPole; its trajectories pass through a component in Go (a program) and episodes through one in Python. Env steps per
second are measured in windows of one run, with and without requests in turn; a third kind of window, again without, is the control."""

import argparse
import os
import pathlib
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import textwrap
import time

import rlhost

ROOT = pathlib.Path(__file__).resolve().parents[2]

PIPELINE = """
    rlhost = 1
    [run]
    name = "requests"
    stop = {{ wall_time = "1h" }}
    [env.cartpole]
    use = "cartpole@1"
    [train]
    preset = "fast"
    [plugin.go]
    path = "./shaper"
    [component.go]
    plugin = "go"
    [plugin.python]
    path = "./oracle.py"
    interpreter = ["{python}"]
    [component.python]
    plugin = "python"
    [[wire]]
    signal = "rollout.episodes"
    slot = "python.on_episodes"
    mode = "all"
    depth = 4096
    on_full = "drop_oldest"
    [[wire]]
    signal = "rollout.trajectories"
    slot = "go.on_trajectories"
    mode = "queue"
    depth = 64
    on_full = "block"
    replace = true
    write = ["reward"]
    [[wire]]
    signal = "go.trajectories"
    slot = "batcher.on_trajectories"
    mode = "queue"
    depth = 64
    on_full = "block"
"""

ORACLE = """
    import rlhost

    class Oracle(rlhost.Component):
        slots = [rlhost.Slot("on_episodes", "episode")]
        episodes = 0

        def on_episodes(self, m):
            self.episodes += 1

        @rlhost.request
        def total(self, scale: float = 1.0) -> float:
            return self.episodes * scale

    rlhost.serve(Oracle)
"""


def microseconds(times):
    times = sorted(times)
    return "p50 {:.0f}  p90 {:.0f}  p99 {:.0f} µs".format(*(times[int(len(times) * q)] * 1e6 for q in (0.5, 0.9, 0.99)))


def ask(run, worker, command, n, **args):
    times = []
    for _ in range(n):
        began = time.perf_counter()
        run.request(worker, command, **args)
        times.append(time.perf_counter() - began)
    return times


def steps(client):
    endpoint = client._endpoints[0]
    return endpoint.connections.ask("status", {})["env_steps"]["made"]


def window(client, seconds, rate, worker):
    """Env steps per second of a window with so many requests a second."""
    began, before = time.perf_counter(), steps(client)
    n = 0
    while (now := time.perf_counter() - began) < seconds:
        if rate and n <= now * rate:
            client.request(worker[0], worker[1], **worker[2])
            n += 1
        time.sleep(max(0.0, (n / rate if rate else seconds) - (time.perf_counter() - began)))
    return (steps(client) - before) / (time.perf_counter() - began)


def group(folder, n):
    """A request to 64 components in the process of a training, from Python."""
    program = folder / "requests"
    subprocess.run(["go", "build", "-o", program, "./bench/requests"], cwd=ROOT, check=True)
    at = folder / "group"
    at.mkdir()
    job = subprocess.Popen([program], cwd=at, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        with rlhost.connect(str(at / "runs" / "requests" / "0001"), timeout=120) as run:
            while steps(run) < 1_000_000:
                time.sleep(0.2)
            print(f"builtin  {microseconds(ask(run, 'oracle[3]', 'total', n, times=1))}", flush=True)
            times = []
            for _ in range(n // 4):
                began = time.perf_counter()
                found = run.group_request("total", times=1)
                times.append(time.perf_counter() - began)
                assert len(found) == 64, found
            print(f"group 64 {microseconds(times)}", flush=True)
    finally:
        job.terminate()
        job.wait()


def floor(n):
    """The same bytes to a process that only sends them back: what the machine takes now."""
    ours, theirs = socket.socketpair()
    echo = subprocess.Popen([sys.executable, "-c", "import socket, sys\ns = socket.socket(fileno=0)\nwhile d := s.recv(999): s.sendall(d)"], stdin=theirs)
    theirs.close()
    times = []
    for _ in range(n):
        began = time.perf_counter()
        ours.sendall(bytes(120))
        ours.recv(999)
        times.append(time.perf_counter() - began)
    ours.close()
    echo.wait()
    return times


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--requests", type=int, default=2000)
    p.add_argument("--runs", type=int, default=6, help="windows of each kind")
    p.add_argument("--seconds", type=float, default=5.0, help="of a window")
    o = p.parse_args()
    program = os.environ.get("RLHOST_PROGRAM", str(ROOT / "bin" / "rlhost"))
    with tempfile.TemporaryDirectory() as folder:
        at = pathlib.Path(folder)
        subprocess.run(["go", "build", "-o", at / "shaper", "./examples/plugins/process-go"], cwd=ROOT, check=True)
        (at / "oracle.py").write_text(textwrap.dedent(ORACLE))
        (at / "p.toml").write_text(textwrap.dedent(PIPELINE).format(python=sys.executable))
        job = subprocess.Popen([program, "train", "p.toml"], cwd=at, stdout=subprocess.DEVNULL)
        try:
            with rlhost.connect(str(at / "runs" / "requests" / "0001"), timeout=120) as run:
                while steps(run) < 1_000_000:
                    time.sleep(0.2)
                kinds = {"go": ("go", "set_scale", {"scale": 1.0}), "python": ("python", "total", {})}
                for name, (worker, command, args) in kinds.items():
                    ask(run, worker, command, 100, **args)
                    print(f"{name:8} {microseconds(ask(run, worker, command, o.requests, **args))}", flush=True)
                print(f"echo     {microseconds(floor(o.requests))}", flush=True)
                for name, worker in kinds.items():
                    ratios, controls = [], []
                    for i in range(o.runs):
                        order = ["none", "control", "asked"]
                        random.Random(i).shuffle(order)
                        rates = {kind: window(run, o.seconds, 100 if kind == "asked" else 0, worker) for kind in order}
                        ratios.append(rates["asked"] / rates["none"])
                        controls.append(rates["control"] / rates["none"])
                    told = ", ".join(f"{what} {statistics.median(r):.3f} ({min(r):.3f}–{max(r):.3f})" for what, r in (("ratio", ratios), ("control", controls)))
                    print(f"{name:8} 100 requests/s: env steps per second, {told}", flush=True)
        finally:
            job.terminate()
            job.wait()
        group(at, o.requests)


if __name__ == "__main__":
    main()
