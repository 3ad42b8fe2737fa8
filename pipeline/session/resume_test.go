package session_test

import (
	"fmt"
	"log/slog"
	"slices"
	"testing"

	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/runs"
	"github.com/rlhost/rlhost/pipeline/session"
	"github.com/rlhost/rlhost/plugins/builtin"
)

// A program that trains in two sessions comes to what it would have come to in one, and its observer is told of both.
func TestResume_GoesOnExactlyAndTellsOfIt(t *testing.T) {
	parts, engines := builtin.New(builtin.Options{})
	t.Cleanup(func() {
		if err := engines.Close(); err != nil {
			t.Error(err)
		}
	})
	var events []string
	o := session.Options{Parts: parts, Log: slog.New(slog.DiscardHandler), Observe: func(e session.Event) {
		text := fmt.Sprintf("%T", e)
		switch e := e.(type) {
		case session.Resumed:
			text += fmt.Sprintf(" %v %d", e.Exact, e.EnvSteps)
		case session.Saved:
			text += fmt.Sprintf(" %d %v", e.EnvSteps, e.Err)
		}
		events = append(events, text)
	}}
	begin := func(dir string, steps int) *session.Result {
		g, problems := graph.Parse("cartpole.toml", []byte(cartpole), graph.ParseOptions{Parts: parts, Sets: []string{
			"run.dir=" + dir, fmt.Sprintf("run.stop.env_steps=%d", steps), "component.learner.anneal_env_steps=4096"}})
		if g == nil {
			t.Fatal(problems)
		}
		o.Graph = g
		r, err := session.Train(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	want, dir := begin(t.TempDir(), 4096), t.TempDir()
	events = nil
	begin(dir, 2048)
	run, err := runs.Open(dir, "cartpole")
	if err != nil {
		t.Fatal(err)
	}
	o.Sets = []string{"run.stop.env_steps=4096"}
	s, err := session.Resume(t.Context(), run, o)
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.Run(t.Context())
	if err != nil || got.ParamsHash != want.ParamsHash || got.EnvSteps != want.EnvSteps {
		t.Errorf("resumed: %+v, %v; want parameters %s after %d env steps", got, err, want.ParamsHash, want.EnvSteps)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	told := []string{"session.Started", "session.Saved 2048 <nil>", "session.Resumed true 2048", "session.Started", "session.Saved 4096 <nil>"}
	if !slices.Equal(events, told) {
		t.Errorf("observed %q, want %q", events, told)
	}
}
