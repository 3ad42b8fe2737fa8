"""What every peer's script needs to report: the age of the process, timing, one JSON line per measurement."""

import argparse
import json
import os
import statistics
import time


def process_age():
    """Seconds since this process was started, interpreter and imports included; good to 10 ms."""
    with open("/proc/self/stat", encoding="ascii") as f:
        started = int(f.read().rpartition(")")[2].split()[19])
    return time.clock_gettime(time.CLOCK_BOOTTIME) - started / os.sysconf("SC_CLK_TCK")


def arguments(doc, envs):
    """The options of a script that measures environments: how many of them, and the time for each figure."""
    parser = argparse.ArgumentParser(description=doc)
    parser.add_argument("--envs", type=int, nargs="+", default=envs)
    parser.add_argument("--seconds", type=float, default=2, help="time for each figure")
    return parser.parse_args()


def emit(**figures):
    """Prints one measurement."""
    print(json.dumps(figures), flush=True)


def times(step, seconds, steps_per_sample=1, warm_up=0.3):
    """Calls step for about so many seconds and returns the best and the median time of one call, in nanoseconds."""
    until = time.perf_counter() + warm_up
    while time.perf_counter() < until:
        step()
    samples, until = [], time.perf_counter() + seconds
    while time.perf_counter() < until:
        began = time.perf_counter_ns()
        for _ in range(steps_per_sample):
            step()
        samples.append((time.perf_counter_ns() - began) / steps_per_sample)
    return min(samples), statistics.median(samples)


def rates(step, env_steps, seconds, rounds=10, burst=16):
    """Calls step, which makes env_steps, and returns the best and the median rate of some rounds, in env steps/s. It looks
    at the clock after every burst of calls."""
    step()
    figures = []
    for _ in range(rounds):
        calls, began = 0, time.perf_counter()
        while (now := time.perf_counter()) - began < seconds / rounds:
            for _ in range(burst):
                step()
            calls += burst
        figures.append(calls * env_steps / (now - began))
    return max(figures), statistics.median(figures)
