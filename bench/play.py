"""Measures what rlhost watch shows and takes: pictures a second, and how much of a processor, in a terminal of its own.

    go build -o bin/ ./cmd/rlhost && python3 bench/play.py [SECONDS]

Text is Freeway in 80 columns and 24 lines, at 60 pictures a second; blocks is a picture of 160 x 210 pixels of which half changes, at 30.
The times are the program's own, of all its threads, without its start.
"""

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time

PICTURE = b"\x1b[?2026h"  # begins each that is painted; text comes with one write each
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
GAME = """
#include "rl_env.h"
typedef struct { int32_t steps; } Game;
static bool setup(Game *g, rl_config *config) { (void)g; (void)config; return true; }
static void reset(Game *g, rl_rng *rng, float *obs) { (void)rng; g->steps = 0; obs[0] = 0; }
static void step(Game *g, rl_rng *rng, const int32_t *action, float *obs, rl_result *out)
{
    (void)rng; (void)action;
    obs[0] = 0;
    out->truncated = ++g->steps >= 100000;
}
static void draw(void *state, uint32_t i, rl_picture *p)
{
    const Game *g = (const Game *)state + i;
    for (int32_t row = 0; row < 13; row++)
        for (int32_t column = g->steps % 2; column < 10; column += 2)
            rl_draw_rect(p, (float)(column * 16), (float)(row * 16), 16, 16, 0x203040u + (uint32_t)(g->steps * 0x010305));
}
RL_ENV(Game, setup, reset, step, .name = "game@1", .action = RL_DISCRETE(2), .obs = RL_BOX(RL_F32, 0, 1, 1), .episode_limit = 100000,
       .picture_width = 160, .picture_height = 210, .picture_fps = 30, .draw = draw)
"""


def processor(pid):
    """Seconds of a processor that a process has taken, and those of its children that have ended."""
    fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    return sum(int(fields[i]) for i in (11, 12, 13, 14)) / os.sysconf("SC_CLK_TCK")


def watch(arguments, rows, columns, seconds):
    """Runs the program in a terminal, and returns its pictures a second, its share of a processor and its bytes a picture."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(TERM="xterm-256color", COLORTERM="truecolor")
        os.execv(os.path.join(ROOT, "bin/rlhost"), ["rlhost", *arguments])
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    pictures = told = 0
    began = start = None
    try:
        opened = time.monotonic()
        while start is None or time.monotonic() - start < seconds:
            if not select.select([terminal], [], [], 10)[0]:
                raise SystemExit("nothing is shown for 10 s")
            data = os.read(terminal, 1 << 20)
            if start is None and time.monotonic() - opened > 1:
                start, began = time.monotonic(), processor(pid)
            if start is not None:
                pictures += data.count(PICTURE) if "blocks" in arguments else 1
                told += len(data)
        took, used = time.monotonic() - start, processor(pid) - began
    finally:
        os.kill(pid, signal.SIGTERM)
        os.close(terminal)
        os.waitpid(pid, 0)
    return pictures / took, used / took, told / max(1, pictures)


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 10
    with tempfile.TemporaryDirectory() as folder:
        source, module = os.path.join(folder, "game.c"), os.path.join(folder, "game.wasm")
        with open(source, "w", encoding="utf-8") as f:
            f.write(GAME)
        subprocess.run(["clang-19", "--target=wasm32", "-std=c11", "-O3", "-nostdlib", "-msimd128", "-mbulk-memory", "-I", os.path.join(ROOT, "sdk/c"),
                        "-Wl,--no-entry,-z,stack-size=65536,--strip-all", source, "-o", module], check=True)
        for name, arguments, rows, columns in (
            ("text", ["watch", os.path.join(ROOT, "examples/plugins/minatar-c/freeway.wasm"), "--show", "text", "--fps", "60"], 24, 80),
            ("blocks", ["watch", module, "--show", "blocks", "--fps", "30"], 24, 80),
            ("large", ["watch", module, "--show", "blocks", "--fps", "30"], 110, 170),
        ):
            pictures, share, size = watch(arguments, rows, columns, seconds)
            print(f"{name:8} {pictures:5.1f} pictures/s, {100 * share:.1f} % of a processor, {size:.0f} bytes a picture")


main()
