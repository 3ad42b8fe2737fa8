package session_test

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/graph/graphtest"
	"github.com/rlhost/rlhost/pipeline/runs"
	"github.com/rlhost/rlhost/pipeline/session"
	"github.com/rlhost/rlhost/plugins/builtin"
)

// A program that trains in two sessions gets the same result as in one, and its observer hears of both.
func TestResume_ContinuesExactlyAndSaysSo(t *testing.T) {
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
		g, problems := graphtest.Parse("cartpole.toml", []byte(cartpole), graph.ParseOptions{Parts: parts, Sets: []string{
			"run.dir=" + dir, fmt.Sprintf("run.stop.env_steps=%d", steps), "component.learner.lr_anneal_env_steps=4096"}})
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
	told := []string{
		"session.Started", "session.Serving", "session.Saved 2048 <nil>",
		"session.Resumed true 2048", "session.Started", "session.Serving", "session.Saved 4096 <nil>",
	}
	if !slices.Equal(events, told) {
		t.Errorf("observed %q, want %q", events, told)
	}
}

// Learners that divide each minibatch repeat bit for bit, and so do they in two sessions. Their run continues with any other number of them.
func TestResume_LearnersTogether(t *testing.T) {
	parts, engines := builtin.New(builtin.Options{})
	t.Cleanup(func() {
		if err := engines.Close(); err != nil {
			t.Error(err)
		}
	})
	o := session.Options{Parts: parts, Log: slog.New(slog.DiscardHandler)}
	begin := func(dir string, steps int) string {
		g, problems := graphtest.Parse("cartpole.toml", []byte(cartpole), graph.ParseOptions{Parts: parts, Sets: []string{
			"run.dir=" + dir, fmt.Sprintf("run.stop.env_steps=%d", steps), "component.learner.learners=2", "component.learner.lr_anneal_env_steps=4096"}})
		if g == nil {
			t.Fatal(problems)
		}
		o.Graph = g
		r, err := session.Train(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		return r.ParamsHash
	}
	resumed := func(dir string, sets ...string) string {
		run, err := runs.Open(dir, "cartpole")
		if err != nil {
			t.Fatal(err)
		}
		with := o
		with.Sets = append(sets, "run.stop.env_steps=4096")
		s, err := session.Resume(t.Context(), run, with)
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.Run(t.Context())
		if err = errors.Join(err, s.Close()); err != nil || got.EnvSteps != 4096 {
			t.Fatalf("%v: %+v, %v", sets, got, err)
		}
		return got.ParamsHash
	}
	want := begin(t.TempDir(), 4096)
	if again := begin(t.TempDir(), 4096); again != want {
		t.Error("two learners have other parameters the second time")
	}
	half := func() string {
		dir := t.TempDir()
		begin(dir, 2048)
		return dir
	}
	if got := resumed(half()); got != want {
		t.Error("two learners have other parameters after a resume")
	}
	for _, learners := range []string{"1", "3"} {
		if got := resumed(half(), "component.learner.learners="+learners); got == want {
			t.Errorf("%s learners have the bits of two: did two learn?", learners)
		}
	}
}

// odd is a backend whose kernels have another name.
type odd struct{ policy.Backend }

func (odd) Kernels() string { return "odd" }

// The backend of each policy is recorded, also of policies that do not lead, and a run that continues with another says so.
func TestResume_SaysWhichPolicyIsComputedOtherwise(t *testing.T) {
	s := newTrainer(t)
	made, changes := s.parts.Policy, true
	s.parts.Policy = func(decode func(any) error, env *hostabi.EnvSpec) (component.Policy, error) {
		p, err := made(decode, env)
		if d, ok := p.(*policy.Definition); ok && changes && d.Network.NormalizeObs() { // rival
			d.Backend = odd{d.Backend}
		}
		return p, err
	}
	kernels, why := "", ""
	s.observe = func(e session.Event) {
		switch e := e.(type) {
		case session.Started:
			kernels = e.Kernels
		case session.Resumed:
			why = e.Why
		}
	}
	s.train(duet, "run.stop.env_steps=1024")
	own := builtin.Kernels()
	if want := own + ", odd of rival"; kernels != want || s.newest().Info().Kernel != want {
		t.Errorf("kernels are %q, the run has %q, want %q", kernels, s.newest().Info().Kernel, want)
	}
	changes = false
	s.resume(s.options(), "run.stop.env_steps=2048")
	if want := "it began with kernels " + own + ", odd of rival and goes on with " + own; why != want || kernels != own {
		t.Errorf("the run goes on with %q: %q, want %q", kernels, why, want)
	}
}
