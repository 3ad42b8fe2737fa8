#!/usr/bin/env python3
"""Measures rlhost and its peers in one run, taking turns, and writes results and a table to .cache/peers/results.
Run it through run.sh, which installs and builds what it needs."""

import argparse
import datetime
import json
import subprocess
import sys
import traceback

import machine
import ours
import parts
import rows
import table

BUSY = 0.1  # of the processors, from which on a figure is not to be trusted


def measure(name, rounds, quick):
    """Runs all rounds of a part and returns its result. A round that fails is told and left out."""
    part, usual, _ = parts.ALL[name]
    gathered, busy, failed = rows.Rows(), [], 0
    rounds = rounds or (1 if quick else usual)
    for n in range(1, rounds + 1):
        busy.append(machine.busy())
        say(f"{name}: round {n} of {rounds}" + (f" (the machine is busy: {100 * busy[-1]:.0f} %)" if busy[-1] > BUSY else ""))
        try:
            part(gathered, n, quick)
        except (ours.Failed, subprocess.SubprocessError, OSError, ValueError) as e:
            failed += 1
            say(f"{name}: round {n} failed: {e}")
            if not isinstance(e, ours.Failed):
                traceback.print_exc()
    return {"part": name, "quick": quick, "rounds": rounds, "failed": failed, "busy_min": min(busy), "busy_max": max(busy),
            "taken": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            "machine": machine.describe(), **gathered.result()}


def say(text):
    print(text, file=sys.stderr, flush=True)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", nargs="*", help=f"what to measure, of {', '.join(parts.ALL)}; all of it if none is named")
    parser.add_argument("--rounds", type=int, help="rounds of every part")
    parser.add_argument("--quick", action="store_true", help="tiny rounds that show that the tools work; the figures mean nothing")
    parser.add_argument("--environments", action="store_true", help="print the peers' environments that the parts need")
    args = parser.parse_args()
    args.part = args.part or list(parts.ALL)
    if unknown := set(args.part) - set(parts.ALL):
        parser.error(f"no part is called {', '.join(sorted(unknown))}; there are {', '.join(parts.ALL)}")
    return args


def main():
    args = arguments()
    if args.environments:
        print(*dict.fromkeys(e for name in args.part for e in parts.ALL[name][2]))
        return 0
    folder = table.RESULTS / "quick" if args.quick else table.RESULTS
    folder.mkdir(parents=True, exist_ok=True)
    ours.train("pipeline.toml", "run.stop={ env_steps = 2048 }")  # fills the compile cache
    failed = 0
    for name in args.part:
        result = measure(name, args.rounds, args.quick)
        failed += result["failed"]
        (folder / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n")
        print(table.markdown({name: result}), flush=True)
    (folder / "table.md").write_text(table.markdown(table.stored(folder)))
    say(f"results: {folder.relative_to(ours.ROOT)}/*.json, table.md")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
