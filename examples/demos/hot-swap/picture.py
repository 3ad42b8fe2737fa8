"""Draws what the three scripts came to: episode length over wall time, one curve each, as picture.svg, and prints a table.

Usage: picture.py FOLDER. It needs nothing but Python.
"""

import glob
import json
import pathlib
import re
import sys

SCRIPTS = {"swap": "#0b6e4f", "resume": "#c77d0a", "restart": "#a3243b"}
TITLES = {"swap": "swap", "resume": "stop and resume", "restart": "start over"}
WIDTH, HEIGHT = 860, 420
LEFT, RIGHT, TOP, BOTTOM = 60, 20, 30, 50
GOAL = 475  # episode length at which the pole counts as balanced


class Script:
    """What one script has left behind."""

    def __init__(self, folder, name):
        self.name = name
        self.events = {}
        for line in (folder / f"{name}.events").read_text().splitlines():
            when, what = line.split(" ", 1)
            self.events[what] = float(when)
        self.begin = self.events["begin"]
        self.runs = []  # of points (seconds, episode length, env steps)
        for path in sorted(glob.glob(str(folder / name / "pole" / "*" / "metrics.jsonl"))):
            lines = [json.loads(line) for line in open(path)]
            self.runs.append([
                (line["time"] - self.begin, line.get("charts/episodic_length"), line["global_step"])
                for line in lines
            ])
        reply = folder / f"{name}.reply.json"
        self.reply = json.loads(reply.read_text()) if reply.exists() else None
        self.log = (folder / f"{name}.log").read_text()
        self.noticed = self.events["noticed"] - self.begin

    def curve(self):
        return [(t, length) for run in self.runs for t, length, _ in run if length is not None]

    def pause(self):
        """How long nothing was stepped because of the repair, in seconds."""
        if self.reply:
            return self.reply["pause_ms_max"] / 1000
        times = [t for run in self.runs for t, _, _ in run]
        stopped = self.events["stopped"] - self.begin
        return min(t for t in times if t > stopped) - max(t for t in times if t <= stopped)

    def balanced(self):
        """When the goal was reached after the repair, in seconds."""
        for t, length in self.curve():
            if t > self.noticed and length >= GOAL:
                return t
        return None

    def lost(self):
        """Env steps that were made and that nothing was learned from in the end."""
        if self.reply:
            return int(self.reply["dropped_env_steps"])
        if self.name == "restart":
            return int(self.runs[0][-1][2])
        return int(re.search(r"(\d+) env steps that nothing was learned from", self.log).group(1))


def axis(limit):
    """Round numbers from 0 to a limit, about six of them."""
    for step in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000):
        if limit / step <= 7:
            return range(0, int(limit) + 1, step)
    return range(0, int(limit) + 1, int(limit / 6))


def seconds(t):
    return f"{t * 1000:.1f} ms" if t < 0.1 else f"{t:.2f} s"


def draw(scripts):
    limit = max(s.curve()[-1][0] for s in scripts)
    x = lambda t: LEFT + t / limit * (WIDTH - LEFT - RIGHT)
    y = lambda v: HEIGHT - BOTTOM - v / 500 * (HEIGHT - TOP - BOTTOM)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="13">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
    ]
    for v in range(0, 501, 100):
        out.append(f'<path d="M{LEFT} {y(v):.1f}H{WIDTH - RIGHT}" stroke="#e4e4e4"/>')
        out.append(f'<text x="{LEFT - 8}" y="{y(v) + 4:.1f}" text-anchor="end" fill="#555">{v}</text>')
    for t in axis(limit):
        out.append(f'<text x="{x(t):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle" fill="#555">{t} s</text>')
    out.append(f'<text x="{LEFT}" y="18" fill="#555">episode length: env steps that the pole stays up, mean of 100 episodes</text>')
    for i, s in enumerate(scripts):
        color = SCRIPTS[s.name]
        points = " ".join(f"{x(t):.1f},{y(v):.1f}" for t, v in s.curve())
        out.append(f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="2" stroke-linejoin="round"/>')
        out.append(f'<path d="M{x(s.noticed):.1f} {TOP}V{HEIGHT - BOTTOM}" stroke="{color}" stroke-dasharray="3 4"/>')
        out.append(f'<text x="{WIDTH - RIGHT - 8}" y="{HEIGHT - BOTTOM - 14 - 18 * (len(scripts) - 1 - i):.1f}" text-anchor="end" fill="{color}">'
                   f"{TITLES[s.name]}: stood still {seconds(s.pause())}, {s.lost():,} env steps lost</text>")
    out.append("</svg>")
    return "\n".join(out) + "\n"


def main():
    folder = pathlib.Path(sys.argv[1])
    scripts = [Script(folder, name) for name in SCRIPTS]
    (folder / "picture.svg").write_text(draw(scripts))
    print(f"{'':16} {'stood still':>12} {'env steps lost':>15} {'balanced after s':>17} {'ended after s':>14}")
    for s in scripts:
        balanced = s.balanced()
        print(f"{TITLES[s.name]:16} {seconds(s.pause()):>12} {s.lost():15,} {'never' if balanced is None else f'{balanced:.1f}':>17} "
              f"{s.events['end'] - s.begin:14.1f}")
    print(folder / "picture.svg")


if __name__ == "__main__":
    main()
