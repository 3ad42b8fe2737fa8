#!/usr/bin/env python3
"""Results as Markdown. Run by itself, it writes the table of all stored results into docs/results/benchmarks.md; with --short
it prints the rows that have a bar, in three columns, for the README."""

import json
import sys

import ours

RESULTS = ours.CACHE / "results"
PAGE = ours.ROOT / "docs" / "results" / "benchmarks.md"
BEGIN, END = "<!-- measured: bench/peers/table.py writes what follows -->", "<!-- measured: end -->"
ORDER = ["cartpole", "env", "pixels", "learner", "inference", "nature", "impala", "recurrent", "sample-factory", "own", "seeds", "fresh"]


def markdown(results):
    """All results, by name of the part, as the section of docs/results/benchmarks.md."""
    parts = [results[name] for name in ORDER if name in results]
    rows = [row(r) for part in parts for r in part["rows"]]
    facts = [fact(f) for part in parts for f in part["facts"]]
    lines = []
    if rows:
        lines += ["| what | against | rlhost | peer | ratio | min, max | bar | control |", "|" + "---|" * 8, *rows, ""]
    if facts:
        lines += ["| rlhost alone | value | bar |", "|---|---|---|", *facts, ""]
    machines = ["| part | machine | Go | rlhost | rounds | processors that others used |", "|" + "---|" * 6]
    return "\n".join([*lines, *machines, *(machine(part) for part in parts), ""])


def short(results):
    """The rows with a bar, without the figures they come from."""
    rows = [r for name in ORDER if name in results for r in results[name]["rows"] if r["bar"] is not None]
    lines = [f"| {r['what']} | {r['against']} | {r['ratio']:.3g} × |" for r in rows]
    return "\n".join(["| what | against | times as fast |", "|---|---|---|", *lines])


def row(r):
    bar = "" if r["bar"] is None else f"{r['bar']} × {mark(r['held'])}"
    return " | ".join([
        f"| {r['what']}", r["against"], quantity(r["ours"], r["unit"]), quantity(r["theirs"], r["unit"]),
        f"**{r['ratio']:.3g} ×**", f"{r['ratio_min']:.3g}, {r['ratio_max']:.3g}", bar,
        f"{r['control_min']:.2f}–{r['control_max']:.2f} |"])


def fact(f):
    bar = f"{f['bar']} {mark(f['held'])}" if f["bar"] else ""
    return f"| {f['what']} | {quantity(f['value'], f['unit'])} | {bar} |"


def mark(held):
    return "✓" if held else "✗"


def quantity(value, unit):
    """A number with three digits that matter, and a unit of a fitting size."""
    if unit == "ns":
        for size, name in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")):
            if value >= size:
                return f"{value / size:.3g} {name}"
    if unit.startswith("env steps") and value >= 1e6:
        return f"{value / 1e6:.3g} M {unit}"
    if value >= 1000:
        return f"{value:,.0f} {unit}".strip()
    return f"{value:.3g} {unit}".strip()


def machine(part):
    m = part["machine"]
    return (f"| {part['part']} | {m['cpu']}, {m['cores']} cores, {'AVX-512' if m['avx512'] else 'no AVX-512'}, {m['memory_gib']} GiB | "
            f"{m['go']} | {m['rlhost']} | {part['rounds']} | {100 * part['busy_min']:.0f} to {100 * part['busy_max']:.0f} % |")


def stored(folder):
    """The newest result of every part, of this run or an earlier one."""
    return {f.stem: json.loads(f.read_text()) for f in folder.glob("*.json")}


def main():
    if "--short" in sys.argv[1:]:
        print(short(stored(RESULTS)))
        return
    before, begin, rest = PAGE.read_text().partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"{PAGE} lacks the marks that the table goes between")
    PAGE.write_text(f"{before}{begin}\n\n{markdown(stored(RESULTS))}\n{end}{after}")


if __name__ == "__main__":
    main()
