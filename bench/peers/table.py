"""Writes results as Markdown."""

ORDER = ["cartpole", "env", "learner", "inference", "sample-factory", "own", "seeds", "fresh"]


def markdown(results):
    """All results, by name of the part, as the section of docs/benchmarks.md."""
    parts = [results[name] for name in ORDER if name in results]
    lines = ["| what | against | rlhost | peer | ratio | least, most | bar | control |", "|---|---|---|---|---|---|---|---|"]
    lines += [row(r) for part in parts for r in part["rows"]]
    facts = [fact(f) for part in parts for f in part["facts"]]
    if facts:
        lines += ["", "| figure of rlhost alone | value | bar |", "|---|---|---|", *facts]
    return "\n".join([*lines, "", *(machine(name, results[name]) for name in ORDER if name in results), ""])


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


def machine(name, part):
    m = part["machine"]
    return (f"- {name}: {m['cpu']}, {m['cores']} cores, {'AVX-512' if m['avx512'] else 'no AVX-512'}, {m['memory_gib']} GiB, "
            f"{m['go']}, rlhost {m['rlhost']}; {part['rounds']} rounds, before which {100 * part['busy_min']:.0f} to "
            f"{100 * part['busy_max']:.0f} % of the processors were in use by others.")
