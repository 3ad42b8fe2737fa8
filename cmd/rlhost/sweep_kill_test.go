package main

import (
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/rlhost/rlhost/internal/testkit"
)

// killedSearch is a search in rungs, with two seeds a trial and a confirmation.
const killedSearch = `rlhost = 1
[run]
name = "killed"
stop = { env_steps = 16_384 }
checkpoint = { every = "20ms" }
[env.cartpole]
use = "cartpole@1"
[train]
preset = "general"
env = "cartpole"
[sweep]
method = "halving"
trials = 4
seeds = 2
episodes = 3
rungs = { least = 4000, factor = 2 }
confirm = { top = 1, seeds = 2 }
[sweep.space]
"component.learner.learning_rate" = { from = 1e-4, to = 1e-2, scale = "log" }
`

// Searches that are killed −9 at random moments, and resumed, with other numbers of jobs, have the journal of one that was not, but for
// times: the parameters of every run too. RLHOST_KILLS says how many kills.
func TestSweep_KillsChangeNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program, file := filepath.Join(dir, "rlhost"), filepath.Join(dir, "killed.toml")
	testkit.Build(t, ".", program)
	if err := os.WriteFile(file, []byte(killedSearch), 0o644); err != nil {
		t.Fatal(err)
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	search := func(folder string, jobs int) *exec.Cmd {
		args := []string{"-C", folder, "sweep", "--jobs", strconv.Itoa(jobs)}
		if _, err := os.Stat(filepath.Join(folder, "runs", "killed", "0001", "set.json")); err == nil {
			args = append(args, "--resume", "killed/1")
		} else if err := os.RemoveAll(filepath.Join(folder, "runs")); err != nil { // killed before there was a set
			t.Fatal(err)
		} else {
			args = append(args, file)
		}
		return exec.Command(program, args...)
	}
	whole := t.TempDir()
	began := time.Now()
	if out, err := search(whole, 2).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	took, want := time.Since(began), journalOf(t, whole)
	folder, kills := t.TempDir(), 0
	for most := testkit.Kills(t, 4); kills < most; {
		c := search(folder, 1+random.IntN(3))
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- c.Wait() }()
		select {
		case err := <-ended:
			if err != nil {
				t.Fatal(err)
			}
			if got := journalOf(t, folder); got != want {
				t.Fatalf("after %d kills the journal is\n%s\nwant\n%s", kills, got, want)
			}
			folder = t.TempDir()
		case <-time.After(time.Duration(random.Int64N(int64(took)))):
			if err := c.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
				t.Fatal(err)
			}
			<-ended
			kills++
		}
	}
	if out, err := search(folder, 2).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if got := journalOf(t, folder); got != want {
		t.Errorf("after %d kills the journal is\n%s\nwant\n%s", kills, got, want)
	}
}

// journalOf is the journal of a search without its times.
func journalOf(t *testing.T, folder string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(folder, "runs", "killed", "0001", "journal.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	return regexp.MustCompile(`"time":"[^"]*"|"wall_seconds":[0-9.e+-]+`).ReplaceAllString(string(b), "")
}
