package session_test

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rlhost/rlhost/internal/testkit"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/graph/graphtest"
	"github.com/rlhost/rlhost/pipeline/runs"
	"github.com/rlhost/rlhost/pipeline/session"
)

// A run whose folder is removed ends within seconds, and its last state is saved next to it.
func TestRun_EndsWithItsStateSavedNextToARemovedFolder(t *testing.T) {
	l := newFrozenLab(t)
	text := strings.ReplaceAll(selfPlay, "stop = { env_steps = 16_384 }", "stop = { env_steps = 100_000_000 }\ndir = \""+l.dir+"\"\ncheckpoint = { every = \"10ms\" }")
	g, problems := graphtest.Parse("four.toml", []byte(text), graph.ParseOptions{Parts: l.parts})
	if g == nil {
		t.Fatal(problems)
	}
	s, err := session.Begin(t.Context(), session.Options{Parts: l.parts, Graph: g, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	was := s.Folder()
	ended := running(context.Background(), s)
	testkit.Until(t, "something is saved", func() bool { return len(was.Checkpoints()) > 0 })
	for os.RemoveAll(was.Dir) != nil || !was.Gone() { // a checkpoint may be written meanwhile
	}
	began := time.Now()
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "was removed while it went on") {
		t.Errorf("Run: %v", err)
	}
	if d := time.Since(began); d > 20*time.Second {
		t.Errorf("it ended after %v", d)
	}
	beside := s.Folder()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if beside.Dir == was.Dir {
		t.Fatal("there is no other folder")
	}
	if _, err := os.Stat(was.Dir); err == nil {
		t.Errorf("%s was made again", was.Dir)
	}
	again, err := runs.Open(l.dir, beside.ID())
	if err != nil {
		t.Fatal(err)
	}
	c, err := again.Load(runs.Latest)
	if err != nil || c.EnvSteps == 0 {
		t.Fatalf("%d env steps are saved: %v", c.EnvSteps, err)
	}
	resumed, err := session.Resume(t.Context(), again, session.Options{Parts: l.parts, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if p := resumed.Progress(); p.EnvSteps != c.EnvSteps {
		t.Errorf("it goes on at %d env steps, want %d", p.EnvSteps, c.EnvSteps)
	}
	if err := resumed.Close(); err != nil {
		t.Error(err)
	}
}
