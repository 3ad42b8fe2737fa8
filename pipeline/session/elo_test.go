package session_test

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/gpu/cpu"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/internal/testkit"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/graph/graphtest"
	"github.com/rlhost/rlhost/pipeline/players"
	"github.com/rlhost/rlhost/pipeline/runs"
	"github.com/rlhost/rlhost/pipeline/session"
	"github.com/rlhost/rlhost/plugins/evaluation"
	"github.com/rlhost/rlhost/plugins/learner"
	"github.com/rlhost/rlhost/plugins/opponents"
)

// selfPlay is Connect Four against former versions.
const selfPlay = `
rlhost = 1
[run]
name = "four"
policy = "main"
stop = { env_steps = 16_384 }
evaluation = { episodes = 12, seed = 5, greedy = false }
[env.four]
use = "connectfour@1"
[train]
preset = "general"
env = "four"
mode = "sync"
[policy.main]
net = { hidden = [16] }
[policy.past]
of = "main"
[component.rollout]
opponents = { past = 0.5 }
[component.opponents_past]
every_versions = 2
keep = 3
draw_every_versions = 3
[component.learner]
epochs = 1
lr_anneal_env_steps = 0
[component.runner]
log = []
`

// training trains text in the lab's folder, or resumes the newest run of that name where text is empty.
func (l *frozenLab) training(name, text string, sets ...string) *session.Result {
	l.Helper()
	o := session.Options{Parts: l.parts, Log: slog.New(slog.DiscardHandler)}
	var s *session.Session
	var err error
	if text == "" {
		o.Sets = sets
		s, err = session.Resume(l.Context(), l.run(name), o)
	} else {
		g, problems := graphtest.Parse(name+".toml", []byte(text), graph.ParseOptions{Parts: l.parts, Sets: append(sets, "run.dir="+l.dir)})
		if g == nil {
			l.Fatal(problems)
		}
		o.Graph = g
		s, err = session.Begin(l.Context(), o)
	}
	if err != nil {
		l.Fatal(err)
	}
	r, err := s.Run(l.Context())
	if err = errors.Join(err, s.Close()); err != nil {
		l.Fatal(err)
	}
	return r
}

// A run that plays against its own past resumes exactly: with the same opponents, drawn in the same order.
func TestSelfPlay_ResumesExactly(t *testing.T) {
	const all = "run.stop.env_steps=16384"
	whole := newFrozenLab(t)
	want := whole.training("four", selfPlay, all)
	wantPool := whole.checkpoint("four", runs.Latest).Components["opponents_past"]
	for _, half := range []int{4096, 7000, 10_240} {
		l := newFrozenLab(t)
		l.training("four", selfPlay, fmt.Sprintf("run.stop.env_steps=%d", half))
		got := l.training("four", "", all)
		if got.ParamsHash != want.ParamsHash || got.EnvSteps != want.EnvSteps {
			t.Errorf("stopped at %d env steps it ends with %s after %d, in one go with %s after %d", half, got.ParamsHash, got.EnvSteps, want.ParamsHash, want.EnvSteps)
		}
		if pool := l.checkpoint("four", runs.Latest).Components["opponents_past"]; !reflect.DeepEqual(pool, wantPool) {
			t.Errorf("stopped at %d env steps its pool ends as %s, in one go as %s", half, pool.RawMeta, wantPool.RawMeta)
		}
	}
	l := newFrozenLab(t)
	if other := l.training("four", strings.ReplaceAll(selfPlay, "past = 0.5", "past = 0.1"), all); other.ParamsHash == want.ParamsHash {
		t.Error("the share of opponents changes nothing")
	}
}

// A run's ratings are of its pool's versions and the newest one, the same at every call.
func TestRatings_RatesEveryVersionThatARunHas(t *testing.T) {
	l := newFrozenLab(t)
	ended := l.training("four", selfPlay, "run.stop.env_steps=40000")
	c := l.checkpoint("four", runs.Latest)
	versions, err := new(opponents.Pool).Versions(c.Components["opponents_past"])
	if err != nil {
		t.Fatal(err)
	}
	if versions[len(versions)-1] != c.PolicyVersion {
		versions = append(versions, c.PolicyVersion)
	}
	rated := func(o session.RunEvaluation) *players.Ratings {
		t.Helper()
		o.Parts, o.Log = l.parts, slog.New(slog.DiscardHandler)
		x, err := session.RateRun(t.Context(), l.run("four"), &c, o)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	got := rated(session.RunEvaluation{Episodes: 12, Seed: 5})
	var found []uint64
	for _, r := range got.Versions {
		found = append(found, r.Version)
		switch newest := r.Version == c.PolicyVersion; {
		case r.Policy != "main" || newest != (r.Against == nil) || math.IsNaN(r.Elo):
			t.Errorf("rating %+v", r)
		case !newest && r.Against.Episodes() != 12:
			t.Errorf("version %d has played %+v, want 12 episodes", r.Version, r.Against)
		}
	}
	if !slices.Equal(found, versions) || got.Versions[0].Elo != 0 || got.Newest().Version != c.PolicyVersion || len(found) < 4 {
		t.Errorf("rated are %v, want %v, the first with 0: %s", found, versions, got)
	}
	if e := ended.Evaluation; e == nil || !reflect.DeepEqual(e.Ratings, got) {
		t.Errorf("at its end the run has %s, later %s", e.Ratings, got)
	}
	if more := rated(session.RunEvaluation{Episodes: 400, Seed: 9}); more.Versions[0].Against.Score() < 0.55 { // by two deviations of a match between equals
		t.Errorf("the newest version does not beat the first: %s", more)
	}
	if m := got.Random; m == nil || m.Episodes() != 12 || !strings.Contains(got.WinRates(), " won against random, ") {
		t.Errorf("against random actions: %+v, %q", m, got.WinRates())
	}
	always := true
	if greedy := rated(session.RunEvaluation{Episodes: 12, Seed: 5, Greedy: &always}); !greedy.Greedy || greedy.Random != nil || reflect.DeepEqual(greedy.Versions, got.Versions) {
		t.Errorf("greedy actions: %s", greedy)
	}
	if text := got.String(); !strings.Contains(text, "\nmain@0 ") || !strings.Contains(text, "   newest") || !strings.Contains(text, "\nrandom actions ") || len(strings.Split(text, "\n")) != 2+len(found) {
		t.Errorf("its table is\n%s", text)
	}
}

// In a run with a pool, evaluations rate the policy as its checkpoint does later: metrics, status and events have the Elo.
func TestRatings_AreMadeDuringTheRun(t *testing.T) {
	s := newTrainer(t)
	text := strings.NewReplacer(`name = "four"`, `name = "duet"`, "log = []", `log = ["jsonl"]`, "env_steps = 16_384", "env_steps = 500_000_000").Replace(selfPlay)
	evaluated := make(chan session.Evaluated, 1)
	s.observe = func(e session.Event) {
		if e, ok := e.(session.Evaluated); ok {
			select {
			case evaluated <- e:
			default: // one is enough to look at
			}
		}
	}
	g := s.begun(text, "run.evaluation.every_env_steps=16384", "run.evaluation.share=1.0", `run.checkpoint={ every = "0s", keep = 1000 }`)
	e := <-evaluated
	var status control.StatusReply
	testkit.Until(t, "status and metrics tell the Elo", func() bool {
		g.do(control.VerbStatus, nil, &status)
		metrics, err := os.ReadFile(filepath.Join(g.x.Folder().Dir, "metrics.jsonl"))
		return err == nil && status.Elo != nil && regexp.MustCompile(`"eval/elo":-?[0-9]`).Match(metrics)
	}, &status)
	g.end()
	run := s.newest()
	c, err := run.Load(strconv.FormatUint(e.PolicyVersion, 10))
	if err != nil {
		t.Fatal(err)
	}
	want, err := session.RateRun(t.Context(), run, &c, session.RunEvaluation{Parts: s.parts, Episodes: 12, Seed: 5, Log: slog.New(slog.DiscardHandler)})
	if err != nil || !reflect.DeepEqual(e.Ratings, want) || len(want.Versions) < 2 || e.Ratings.Elo() != want.Newest().Elo {
		t.Errorf("version %d: %v while the run goes on, of its checkpoint %v: %v", e.PolicyVersion, e.Ratings, want, err)
	}
}

// Of several learned policies the named one is rated, with the env steps of its own learner.
func TestRatings_AreOfThePolicyThatIsNamed(t *testing.T) {
	s := newTrainer(t)
	s.train(shared+past, "component.rollout.opponents={ past = 0.5 }", "component.opponents_past.every_versions=2", "run.stop.env_steps=2048")
	run := s.newest()
	c, err := run.Load(runs.Latest)
	if err != nil {
		t.Fatal(err)
	}
	o := session.RunEvaluation{Parts: s.parts, Policy: "rival", Episodes: 2, Seed: 1, Log: slog.New(slog.DiscardHandler)}
	e, err := session.EvaluateRun(t.Context(), run, &c, o)
	if err != nil {
		t.Fatal(err)
	}
	got, err := session.RateRun(t.Context(), run, &c, o)
	if err != nil {
		t.Fatal(err)
	}
	if x := got.Newest(); x != &got.Versions[0] || x.Policy != "rival" || x.Version != e.PolicyVersion || got.EnvSteps != e.EnvSteps || got.EnvSteps == c.EnvSteps {
		t.Errorf("rated is %+v after %d env steps, want rival at version %d after %d (the leading policy's are %d)", *x, got.EnvSteps, e.PolicyVersion, e.EnvSteps, c.EnvSteps)
	}
	for _, x := range got.Versions[1:] {
		if x.Policy != "main" {
			t.Errorf("%+v: only versions of main are kept", x)
		}
	}
}

func TestRatings_SaysWhatCannotBeRated(t *testing.T) {
	l := newFrozenLab(t)
	l.training("cartpole", cartpole, "run.stop.env_steps=512", "run.evaluation.episodes=1")
	l.training("four", strings.NewReplacer("[policy.past]\nof = \"main\"\n", "", "opponents = { past = 0.5 }", "", "[component.opponents_past]\nevery_versions = 2\nkeep = 3\ndraw_every_versions = 3\n", "").Replace(selfPlay), "run.stop.env_steps=2048")
	l.training("idle", strings.NewReplacer(`name = "four"`, `name = "idle"`, "opponents = { past = 0.5 }", "", "[component.opponents_past]\nevery_versions = 2\nkeep = 3\ndraw_every_versions = 3\n", "").Replace(selfPlay), "run.stop.env_steps=2048")
	for name, want := range map[string]string{"cartpole": "one agent", "four": "nobody to play against", "idle": "nobody to play against"} {
		c := l.checkpoint(name, runs.Latest)
		_, err := session.RateRun(t.Context(), l.run(name), &c, session.RunEvaluation{Parts: l.parts, Episodes: 2, Log: slog.New(slog.DiscardHandler)})
		var e *session.Error
		if !errors.As(err, &e) || e.Kind != session.Usage || !strings.Contains(err.Error(), "error["+players.CodeUnrated+"]") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
}

// A policy is evaluated with the policies that play the other agents in training.
func TestEvaluate_PlaysWithTheRolloutsPolicies(t *testing.T) {
	l := newFrozenLab(t)
	l.training("four", selfPlay, "run.stop.env_steps=40000")
	stranger := l.checkpoint("four", runs.Latest)
	duel := strings.NewReplacer(`name = "four"`, `name = "duel"`, "of = \"main\"", "env = \"four\"\nfrom = \"four/1\"\nnet = { hidden = [16] }\nnormalize_obs = true",
		"opponents = { past = 0.5 }", `policies = { "*/0" = "main", "*/1" = "past" }`, "[component.opponents_past]\nevery_versions = 2\nkeep = 3\ndraw_every_versions = 3\n", "").Replace(selfPlay)
	ended := l.training("duel", duel, "run.stop.env_steps=4096")
	c := l.checkpoint("duel", runs.Latest)
	got, err := session.EvaluateRun(t.Context(), l.run("duel"), &c, session.RunEvaluation{Parts: l.parts, Episodes: 12, Seed: 5, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	table := graph.EnvTable{Source: env.DefaultSource()}
	table.Use = "connectfour@1"
	plugin, err := l.parts.Load(t.Context(), "four", table, ".")
	if err != nil {
		t.Fatal(err)
	}
	defer plugin.Close()
	player := func(c runs.Checkpoint) evaluation.Player {
		n, w, err := learner.Weights(c.Components["learner"])
		if err != nil {
			t.Fatal(err)
		}
		actor, err := policy.NewActor(cpu.New(), &n, 64)
		if err == nil {
			t.Cleanup(func() { _ = actor.Close() })
			err = actor.Load(w)
		}
		if err != nil {
			t.Fatal(err)
		}
		return evaluation.Player{Actor: actor, Network: &n}
	}
	want, err := evaluation.Run(t.Context(), evaluation.Options{Plugin: plugin, Player: player(c), Others: []evaluation.Player{player(stranger)},
		Plays: func(_, agent int) int { return agent }, Episodes: 12, Envs: 12, Seed: 5, MaxSteps: got.MaxSteps})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got.Sampled.Returns, want.Returns) || want.Mean() == 0 {
		t.Errorf("returns %v, want %v", got.Sampled.Returns, want.Returns)
	}
	if e := ended.Evaluation; e == nil || !slices.Equal(e.Sampled.Returns, want.Returns) {
		t.Errorf("at its end the run returns %v, want %v", e.Sampled.Returns, want.Returns)
	}
}

// Without zero lag, too, a resumed run has the versions that its pool kept.
func TestSelfPlay_APoolOutlivesAnAsynchronousRun(t *testing.T) {
	l := newFrozenLab(t)
	l.training("four", selfPlay, "train.mode=async", "run.stop.env_steps=16384", "component.opponents_past.keep=50")
	versions := func() []uint64 {
		list, err := new(opponents.Pool).Versions(l.checkpoint("four", runs.Latest).Components["opponents_past"])
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	before := versions()
	l.training("four", "", "run.stop.env_steps=32768")
	if after := versions(); len(before) < 2 || len(after) <= len(before) || !slices.Equal(after[:len(before)], before) {
		t.Errorf("the pool keeps %v, and %v after the resume", before, after)
	}
}
