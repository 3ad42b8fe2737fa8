"""Says what machine the figures are from, and how busy it is with other things."""

import os
import pathlib
import platform
import time

import ours
import peers


def busy(seconds=0.5):
    """The share of all processors that is in use now, 0 to 1."""
    total, idle = times()
    time.sleep(seconds)
    total_after, idle_after = times()
    return 1 - (idle_after - idle) / max(total_after - total, 1)


def times():
    """Clock ticks of all processors since the machine was started: of all kinds, and idle."""
    first = pathlib.Path("/proc/stat").read_text(encoding="ascii").splitlines()[0]
    fields = [int(v) for v in first.split()[1:9]]
    return sum(fields), fields[3] + fields[4]


def processor():
    """What /proc/cpuinfo says of the first processor."""
    first = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").split("\n\n")[0]
    return {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in first.splitlines())}


def commit():
    try:
        return ours.output(["git", "describe", "--always", "--dirty"]).strip()
    except (ours.Failed, OSError):
        return "without git"


def describe():
    cpu = processor()
    return {
        "cpu": f"{cpu.get('model name')}, family {cpu.get('cpu family')}, model {cpu.get('model')}",
        "cores": len(os.sched_getaffinity(0)), "avx512": "avx512f" in cpu.get("flags", "").split(),
        "memory_gib": round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30),
        "linux": platform.release(), "python": platform.python_version(),
        "go": ours.output(["go", "env", "GOVERSION"]).strip(),
        "rlhost": commit(),
        "torch": peers.version("sb3", "torch"), "stable_baselines3": peers.version("sb3", "stable-baselines3"),
        "gymnasium": peers.version("envpool", "gymnasium"), "envpool": peers.version("envpool", "envpool"),
        "sample_factory": peers.version("sf", "sample-factory"),
    }
