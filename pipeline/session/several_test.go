package session_test

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/runs"
	"github.com/rlhost/rlhost/pipeline/session"
	"github.com/rlhost/rlhost/plugins/builtin"
)

// duet has two chains of components, each of a policy with a network of its own: that of rival is longer on the way to a dataset.
const duet = `
rlhost = 1
[run]
name = "duet"
stop = { env_steps = 8192, window = 4 }
checkpoint = { every = "0s" }
evaluation = { episodes = 4 }
[env.cartpole]
use = "cartpole@1"
[train]
preset = "ppo"
env = "cartpole"
mode = "sync"
[policy.main]
env = "cartpole"
net = { hidden = [8] }
[policy.rival]
env = "cartpole"
net = { hidden = [4, 4] }
normalize_obs = true
[component.rollout]
envs = 4
splits = 2
horizon = 64
[component.batcher]
dataset_rows = 256
[component.learner]
minibatch = 64
epochs = 1
anneal_env_steps = 8192
[component.runner]
log = ["jsonl"]
[component.rollout_b]
kind = "rollout"
env = "cartpole"
envs = 6
splits = 1
horizon = 96
[component.inference_b]
kind = "inference"
policy = "rival"
[component.batcher_b]
kind = "batcher"
dataset_rows = 576
[component.learner_b]
kind = "learner"
policy = "rival"
minibatch = 64
epochs = 1
` + duetWires

const duetWires = `
[[wire]]
signal = "rollout_b.obs_ready"
slot = "inference_b.act"
mode = "queue"
depth = 64
on_full = "block"
[[wire]]
signal = "inference_b.actions"
slot = "rollout_b.on_actions"
mode = "reply"
depth = 64
on_full = "block"
[[wire]]
signal = "rollout_b.trajectories"
slot = "batcher_b.on_trajectories"
mode = "queue"
depth = 64
on_full = "block"
[[wire]]
signal = "batcher_b.datasets"
slot = "learner_b.on_dataset"
mode = "queue"
depth = 4
on_full = "block"
[[wire]]
signal = "learner_b.weights"
slot = ["inference_b.on_weights", "batcher_b.on_weights"]
mode = "latest"
depth = 1
on_full = "coalesce"
[[wire]]
signal = "rollout_b.episodes"
slot = "runner.on_episodes"
mode = "all"
depth = 4096
on_full = "block"
[[wire]]
signal = "learner_b.stats"
slot = "runner.on_stats"
mode = "all"
depth = 256
on_full = "block"
`

// trainer trains pipelines in one folder of runs.
type trainer struct {
	*testing.T
	parts *graph.Parts
	dir   string
	log   strings.Builder
}

func newTrainer(t *testing.T) *trainer {
	parts, engines := builtin.New(builtin.Options{})
	t.Cleanup(func() {
		if err := engines.Close(); err != nil {
			t.Error(err)
		}
	})
	return &trainer{T: t, parts: parts, dir: t.TempDir()}
}

func (s *trainer) graph(file string, sets ...string) *graph.Graph {
	s.Helper()
	g, problems := graph.Parse("duet.toml", []byte(file), graph.ParseOptions{Parts: s.parts, Sets: append([]string{"run.dir=" + s.dir}, sets...)})
	if g == nil {
		s.Fatal(problems)
	}
	return g
}

func (s *trainer) options() session.Options {
	s.log.Reset()
	return session.Options{Parts: s.parts, Log: slog.New(slog.NewTextHandler(&s.log, nil))}
}

func (s *trainer) train(file string, sets ...string) *session.Result {
	s.Helper()
	o := s.options()
	o.Graph = s.graph(file, sets...)
	r, err := session.Train(s.Context(), o)
	if err != nil {
		s.Fatal(err)
	}
	return r
}

// newest opens the newest run.
func (s *trainer) newest() *runs.Run {
	s.Helper()
	run, err := runs.Open(s.dir, "duet")
	if err != nil {
		s.Fatal(err)
	}
	return run
}

func (s *trainer) resume(o session.Options, sets ...string) *session.Result {
	s.Helper()
	o.Sets = sets
	x, err := session.Resume(s.Context(), s.newest(), o)
	if err != nil {
		s.Fatal(err)
	}
	r, err := x.Run(s.Context())
	if err = errors.Join(err, x.Close()); err != nil {
		s.Fatal(err)
	}
	return r
}

// Both policies go on bit for bit from a checkpoint, whatever their datasets are made of: it is taken where both have learned
// from one.
func TestSeveral_ResumeIsExactForBothPolicies(t *testing.T) {
	s := newTrainer(t)
	whole := s.train(duet)
	if len(whole.ParamsHashes) != 1 || whole.ParamsHashes["rival"] == "" || whole.ParamsHashes["rival"] == whole.ParamsHash {
		t.Fatalf("hashes %s and %v, want one of each policy", whole.ParamsHash, whole.ParamsHashes)
	}
	for _, stop := range []int{256, 1500, 4096} {
		part := s.train(duet, fmt.Sprintf("run.stop.env_steps=%d", stop))
		if part.ParamsHash == whole.ParamsHash || part.ParamsHashes["rival"] == whole.ParamsHashes["rival"] {
			t.Errorf("after %d env steps a policy has the parameters of the end", stop)
		}
		exact := false
		o := s.options()
		o.Observe = func(e session.Event) {
			if e, ok := e.(session.Resumed); ok {
				exact = e.Exact
			}
		}
		r := s.resume(o, "run.stop.env_steps=8192")
		if !exact || r.ParamsHash != whole.ParamsHash || r.ParamsHashes["rival"] != whole.ParamsHashes["rival"] || r.Episodes != whole.Episodes {
			t.Errorf("interrupted after %d env steps, exact %v: %.8s and %.8s after %d episodes, want %.8s and %.8s after %d", stop, exact,
				r.ParamsHash, r.ParamsHashes["rival"], r.Episodes, whole.ParamsHash, whole.ParamsHashes["rival"], whole.Episodes)
		}
	}
}

// A policy that learns beside another learns what it learns alone.
func TestSeveral_ChainsDoNotTouchEachOther(t *testing.T) {
	s := newTrainer(t)
	both := s.train(duet)
	alone, _, _ := strings.Cut(duet, "[component.rollout_b]")
	if got := s.train(alone); got.ParamsHash != both.ParamsHash {
		t.Errorf("parameters %.8s beside another policy, alone %.8s", both.ParamsHash, got.ParamsHash)
	}
}

// shared has two policies that play against each other in the same rollout, each with a learner.
const shared = `
rlhost = 1
[run]
name = "duet"
stop = { env_steps = 8192, window = 4 }
checkpoint = { every = "0s" }
evaluation = { episodes = 4 }
[env.game]
use = "connectfour@1"
[train]
preset = "ppo"
env = "game"
mode = "sync"
[policy.main]
env = "game"
net = { hidden = [8] }
[policy.rival]
env = "game"
net = { hidden = [4, 4] }
[component.rollout]
envs = 4
splits = 2
horizon = 64
policies = { "*/0" = "main", "*/1" = "rival" }
[component.batcher]
dataset_rows = 256
[component.batcher_rival]
dataset_rows = 256
[component.learner]
minibatch = 64
epochs = 1
anneal_env_steps = 8192
[component.learner_rival]
minibatch = 64
epochs = 1
anneal_env_steps = 8192
[component.runner]
log = ["jsonl"]
`

// past adds an opponent that nobody learns.
const past = `
[policy.past]
of = "main"
`

func TestSeveral_ResumeIsExactWhereTheyShareARollout(t *testing.T) {
	s := newTrainer(t)
	whole := s.train(shared)
	if whole.ParamsHashes["rival"] == "" {
		t.Fatalf("hashes %s and %v, want one of each policy", whole.ParamsHash, whole.ParamsHashes)
	}
	part := s.train(shared, "run.stop.env_steps=3000")
	r := s.resume(s.options(), "run.stop.env_steps=8192")
	if part.ParamsHash == whole.ParamsHash || r.ParamsHash != whole.ParamsHash || r.ParamsHashes["rival"] != whole.ParamsHashes["rival"] {
		t.Errorf("%.8s and %.8s, interrupted; in one go %.8s and %.8s", r.ParamsHash, r.ParamsHashes["rival"], whole.ParamsHash, whole.ParamsHashes["rival"])
	}
}

// Every env step is accounted for, once, whoever acted in it.
func TestSeveral_EnvStepsAddUp(t *testing.T) {
	for name, c := range map[string]struct {
		file    string
		sets    []string
		ignored bool
	}{
		"chains":                  {file: duet},
		"one rollout":             {file: shared},
		"one rollout, async":      {file: shared, sets: []string{"train.mode=async"}},
		"chains, async":           {file: duet, sets: []string{"train.mode=async"}},
		"an opponent":             {file: shared + past, sets: []string{"component.rollout.opponents={ past = 0.5 }"}, ignored: true},
		"an opponent, async":      {file: shared + past, sets: []string{"component.rollout.opponents={ past = 0.5 }", "train.mode=async"}, ignored: true},
		"old ones dropped, async": {file: shared, sets: []string{"train.mode=async", "component.batcher_rival.max_policy_lag=1", "component.learner_rival.epochs=8"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newTrainer(t)
			o := s.options()
			o.Graph = s.graph(c.file, c.sets...)
			x, err := session.Begin(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			_, err = x.Run(t.Context())
			n := x.Pipeline().Steps()
			if err = errors.Join(err, x.Close()); err != nil {
				t.Fatal(err)
			}
			if n.Made != n.Trained+n.Dropped+n.UnderWay || n.Trained == 0 || c.ignored != (n.Reasons["not_learned"] > 0) {
				t.Errorf("%+v: they do not add up, or those of policies that nobody learns are missing", n)
			}
		})
	}
}
