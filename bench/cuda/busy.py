#!/usr/bin/env python3
"""Who is busy in a run: trains as the arguments say, which are a command of rlhost, and asks it each second how it is.

It prints one line of JSON: processor seconds of each process, and of each component the mean of what it does a second and of what waits for
it, and how often it waited for what."""

import collections
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time


def children(pid):
    """The processes that a process has started."""
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        yield from map(int, (task / "children").read_text(encoding="ascii").split())


def processor_seconds(pid):
    """What a process has used so far, by its number and program; of its children, too."""
    used = {}
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        name = pathlib.Path(f"/proc/{pid}/comm").read_text(encoding="ascii").strip()
        used[f"{name} {pid}"] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        for child in children(pid):
            used |= processor_seconds(child)
    except OSError:
        pass  # it has ended
    return used


def status(program, folder):
    """What the job says of itself, or nothing where there is none (yet, or any more)."""
    p = subprocess.run([program, "status", "--json", "--runs", folder], capture_output=True, text=True)
    return json.loads(p.stdout) if p.returncode == 0 else None


def summary(samples):
    """Each component's part in the answers of status."""
    parts = collections.defaultdict(list)
    for s in samples:
        for c in s["components"]:
            parts[c["name"]].append(c)
    return {name: {"runs_in": of[0]["host"], "unit": of[0]["unit"], "rate": round(statistics.mean(c["rate"] for c in of)),
                   "queued": round(statistics.mean(c["queued"] for c in of), 2), "depth": max(c["depth"] for c in of),
                   "waits_for": dict(collections.Counter(c["waits_for"] for c in of if c.get("waits_for")))} for name, of in parts.items()}


def main(command, folder="out/busy"):
    if len(command) < 2 or command[1] != "train":
        sys.exit("usage: busy.py RLHOST train PIPELINE [FLAGS]")
    train = subprocess.Popen([*command, "--set", f'run.dir="{folder}"'], stdout=subprocess.DEVNULL)
    samples, used = [], {}
    while train.poll() is None:
        time.sleep(1)
        used |= processor_seconds(train.pid)
        if s := status(command[0], folder):
            samples.append(s)
    print(json.dumps({"samples": len(samples), "processor_seconds": used, "components": summary(samples)}))
    return train.returncode or (0 if samples else 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
