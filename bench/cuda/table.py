#!/usr/bin/env python3
"""Prints docs/results/cuda.md from a record of record.py: from the one that is named, else from the newest under bench/cuda/results.

    bench/cuda/table.py > docs/results/cuda.md
"""

import glob
import json
import sys

HEAD = """# The CUDA backend, measured

Made by `bench/cuda/table.py` from a record of `bench/cuda/record.py`, which says of each part what was
run ([testing](../contributing/testing.md#on-a-gpu)).
Bars are the design's, for an H200.

| | |
|---|---|
"""


def newest():
    """The record that was made last."""
    records = []
    for path in glob.glob("bench/cuda/results/*.json"):
        with open(path, encoding="utf-8") as text:
            records.append(json.load(text))
    if not records:
        sys.exit("there is no record under bench/cuda/results")
    return max(records, key=lambda r: r["date"])


def number(x):
    return f"{x:,.0f}" if abs(x) >= 100 else f"{x:.3g}"


def main(names):
    if names:
        with open(names[0], encoding="utf-8") as text:
            record = json.load(text)
    else:
        record = newest()
    rows = [(name, record[name]) for name in ("device", "driver", "cpu", "commit", "date")]
    print(HEAD + "\n".join(f"| {name} | {value} |" for name, value in rows))
    print("\n| part | what | bar | outcome |\n|---|---|---|---|")
    for name, part in record["parts"].items():
        print(f"| {name} | {part['what']} | {part['bar'] or 'none'} | {part['outcome']} |")
    for name, part in record["parts"].items():
        figures = {benchmark: of for run in part["runs"] for benchmark, of in run.get("figures", {}).items()}
        if figures:
            print(f"\n## {name}: {part['what']}\n\n| benchmark | measured |\n|---|---|")
        for benchmark, of in figures.items():
            print(f"| `{benchmark}` | {', '.join(f'{number(x)} {unit}' for unit, x in of.items())} |")


if __name__ == "__main__":
    main(sys.argv[1:])
