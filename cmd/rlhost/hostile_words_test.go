package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

// breaksPy passes blocks on and then writes over the words of all arenas that it has, which say who holds which block, and is silent.
const breaksPy = `
import dataclasses, random, struct
import rlhost

MAGIC, WORDS_AT, BLOCK_BYTES = 0x414e455241524c52, 4096, 64
WORDS = {
    "zeros": lambda: bytes(8), "ones": lambda: b"\xff" * 8, "random": lambda: random.randbytes(8),
    "free": lambda: struct.pack("<Q", 1 << 27), "held": lambda: struct.pack("<Q", 1 << 27 | 2 << 24 | 0xffffff),
}

@dataclasses.dataclass
class Config:
    words: str = "zeros"
    at: int = 4

def spoil(word):
    with open("/proc/self/maps") as maps, open("/proc/self/mem", "r+b", buffering=0) as mem:
        for line in maps:
            place, access = line.split()[:2]
            if "memfd" not in line or not access.startswith("rw"):
                continue
            at = int(place.split("-")[0], 16)
            mem.seek(at)
            magic, _, blocks = struct.unpack("<QQQ", mem.read(24))
            if magic != MAGIC:
                continue
            for block in range(blocks):
                mem.seek(at + WORDS_AT + block * BLOCK_BYTES)
                mem.write(word())
            print("spoilt an arena", flush=True)

class Breaks(rlhost.Component):
    kind = "breaks"
    signals = [rlhost.Signal("trajectories", "trajectory")]
    slots = [rlhost.Slot("on_trajectories", "trajectory")]

    def configure(self, config):
        self.config, self.came = rlhost.decode(config, Config), 0

    def on_trajectories(self, m):
        self.came += 1
        if self.came > self.config.at:
            return
        self.host.forward("trajectories", m)
        if self.came == self.config.at:
            spoil(WORDS[self.config.words])

if __name__ == "__main__":
    rlhost.serve(Breaks)
`

// A run whose native plugin breaks the words of arenas ends: by an error, or by its stop rules, having said why it stood still.
func TestHostile_WordsOfArenas(t *testing.T) {
	if os.Getenv("RLHOST_HOSTILE") == "" {
		t.Skip("make test-hostile")
	}
	w := newWorkshop(t)
	w.write("breaks.py", breaksPy)
	w.write("words.toml", passed("async", inPython("./breaks.py", "breaks", w.python())))
	for _, mode := range []string{"async", "sync"} {
		for _, words := range []string{"zeros", "ones", "random", "free", "held"} {
			t.Run(mode+"/"+words, func(t *testing.T) {
				t.Parallel() // each waits for its wall
				w.of(t).endsWith(mode, words)
			})
		}
	}
}

// endsWith holds that a run ends whose arenas get such words.
func (w *workshop) endsWith(mode, words string) {
	w.t.Helper()
	began := time.Now()
	c := w.command("train", "words.toml", "--set", "train.mode="+mode, "--set", fmt.Sprintf("component.between.words=%q", words), "--set", "run.stop.wall_time=8s")
	c.WaitDelay = time.Second
	late := time.AfterFunc(2*time.Minute, func() { _ = c.Process.Kill() })
	out, err := c.CombinedOutput()
	late.Stop()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		w.t.Fatal(err)
	}
	code, said := c.ProcessState.ExitCode(), string(out)
	told := strings.Contains(said, "the run stands still") || strings.Contains(said, " failed; ")
	if !slices.Contains([]int{exitOK, exitFailed, exitNothing}, code) || !told || !strings.Contains(said, "spoilt an arena") {
		w.t.Errorf("exit code %d after %v:\n%s", code, time.Since(began), said)
	}
}
