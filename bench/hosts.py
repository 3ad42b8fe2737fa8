"""Measures a run on one host beside the same run on four, on this machine: its learner on one, its environments on three that have joined.

    go build -o bin/ ./cmd/rlhost && python3 bench/hosts.py [ROUNDS] [SECONDS]

Each round has one host, four, and one again, which is the control. A run's rate is the env steps that it has learned from, by the clock and by what all
of its processes take of the processors, without its first seconds. Four hosts are processes that speak through loopback: the cores are the same.
"""

import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
RLHOST = os.path.join(ROOT, "bin/rlhost")
HOSTS = 3
WARM = 3  # seconds
TOKEN = "runs/bench/0001/join.token"
PIPELINE = """
rlhost = 1
[run]
name = "bench"
stop = { wall_time = "10m" }
[env.cartpole]
use = "cartpole@1"
[train]
preset = "fast"
[group.actors]
components = ["rollout", "inference"]
count = 3
"""
CLUSTER = """
place = "spread"
[cluster]
listen = "127.0.0.1:0"
wait_for = 3
slots = 0
"""


def processor(pid):
    """Seconds of a processor that a process has taken."""
    with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def trained(folder):
    """Env steps that the run has learned from, or None while it cannot say."""
    said = subprocess.run([RLHOST, "status", "--json"], cwd=folder, capture_output=True, check=False)
    return json.loads(said.stdout)["env_steps"]["trained"] if said.returncode == 0 else None


def until(what, tell):
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if found := tell():
            return found
        time.sleep(0.1)
    raise SystemExit(f"after a minute: {what}")


def measure(hosts, seconds):
    """Runs on so many joined hosts, or on this one alone, and returns env steps a second and env steps a second of a processor."""
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "pipeline.toml"), "w", encoding="utf-8") as f:
            f.write(PIPELINE + (CLUSTER if hosts else ""))
        programs = [["train"]] + [["join", "--token-file", TOKEN, "--name", f"h{i}", "--slots", "1"] for i in range(hosts)]
        processes = []
        try:
            for program in programs:
                if processes:
                    until("there is no token", lambda: os.path.exists(os.path.join(folder, TOKEN)))
                with open(os.path.join(folder, f"{len(processes)}.log"), "wb") as log:
                    processes.append(subprocess.Popen([RLHOST, *program], cwd=folder, stdout=log, stderr=log))
            until("nothing is learned", lambda: trained(folder))
            time.sleep(WARM)
            steps, used, began = trained(folder), sum(processor(p.pid) for p in processes), time.monotonic()
            time.sleep(seconds)
            steps, used, took = trained(folder) - steps, sum(processor(p.pid) for p in processes) - used, time.monotonic() - began
        finally:
            for p in processes:
                p.send_signal(signal.SIGINT)
            for p in processes:
                p.wait()
    return steps / took, steps / used


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 10
    ratios = []
    for number in range(rounds):
        one, four, again = measure(0, seconds), measure(HOSTS, seconds), measure(0, seconds)
        ratios.append([four[0] / one[0], again[0] / one[0], four[1] / one[1], again[1] / one[1]])
        print(f"round {number + 1}: one host {one[0]:,.0f} env steps/s, {HOSTS} joined {four[0]:,.0f}; a second of a processor {one[1]:,.0f}, {four[1]:,.0f}", flush=True)
    clock, control, busy, idle = (statistics.median(r) for r in zip(*ratios))
    print(f"joined against one: {clock:.3f} by the clock (control {control:.3f}), {busy:.3f} by the processors (control {idle:.3f})")


main()
