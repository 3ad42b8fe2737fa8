#!/usr/bin/env python3
"""Records a session in a terminal as an animated SVG: each line appears when the program has printed it.

Usage: record.py RLHOST PIPELINE PICTURE. It runs the commands below in a temporary folder, and needs nothing but Python.
"""

import html
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

COMMANDS = ["rlhost validate", "rlhost train", "rlhost eval cartpole --episodes 20", "rlhost runs"]
COLUMNS, SIZE, LEADING, MARGIN = 100, 13, 19, 16
TYPED = 0.9  # seconds that a command takes to be typed, and its output to be read
COLOURS = "<style>text{font:13px ui-monospace,Menlo,Consolas,monospace;fill:#d6deeb;opacity:0;animation:in .01s linear forwards}" \
    ".c{fill:#7fdbca;font-weight:bold}.g{fill:#addb67}@keyframes in{to{opacity:1}}" \
    "@media (prefers-reduced-motion:reduce){text{opacity:1;animation:none}}</style>"


def record(program, folder):
    """The lines of the session: seconds, class of their colour, text."""
    lines, at = [], 0.3
    for command in COMMANDS:
        lines.append((at, "c", "$ " + command))
        at += TYPED
        begun = time.monotonic()
        with subprocess.Popen([program, *command.split()[1:]], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as run:
            for line in run.stdout:
                kind = "g" if line.startswith(("target reached", "evaluation")) else ""
                lines.append((at + time.monotonic() - begun, kind, line.rstrip("\n")))
        if run.returncode:
            sys.exit(f"{command} ends with {run.returncode}: {lines[-1][2]}")
        at += time.monotonic() - begun + TYPED
    return lines


def draw(lines):
    """The session as SVG. Lines that are longer than the terminal are cut."""
    width, height = int(2 * MARGIN + COLUMNS * SIZE * 0.61), 2 * MARGIN + LEADING * len(lines)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-label="rlhost trains a policy in a terminal">',
           COLOURS, f'<rect width="{width}" height="{height}" rx="8" fill="#011627"/>']
    for row, (at, kind, text) in enumerate(lines):
        text = text if len(text) <= COLUMNS else text[:COLUMNS - 1] + "…"
        out.append(f'<text x="{MARGIN}" y="{MARGIN + LEADING * row + SIZE}" class="{kind}" style="animation-delay:{at:.2f}s" xml:space="preserve">{html.escape(text)}</text>')
    return "\n".join([*out, "</svg>", ""])


def main():
    program, pipeline, picture = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(pipeline, pathlib.Path(folder, "pipeline.toml"))
        pathlib.Path(picture).write_text(draw(record(str(pathlib.Path(program).resolve()), folder)))


main()
