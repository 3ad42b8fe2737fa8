package session_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/pipeline/export"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/graph/graphtest"
	"github.com/rlhost/rlhost/pipeline/runs"
	"github.com/rlhost/rlhost/pipeline/session"
	"github.com/rlhost/rlhost/plugins/builtin"
)

// duet has two chains of components, each of a policy with its own network: rival's data takes longer to become a dataset.
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
lr_anneal_env_steps = 8192
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

	observe func(session.Event) // or nil
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
	g, problems := graphtest.Parse("duet.toml", []byte(file), graph.ParseOptions{Parts: s.parts, Sets: append([]string{"run.dir=" + s.dir}, sets...)})
	if g == nil {
		s.Fatal(problems)
	}
	return g
}

func (s *trainer) options() session.Options {
	s.log.Reset()
	return session.Options{Parts: s.parts, Log: slog.New(slog.NewTextHandler(&s.log, nil)), Observe: s.observe}
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

// Both policies continue bit for bit from a checkpoint, whatever their datasets are made of: it is taken where both have learned from one.
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

// A policy learns the same next to another as alone.
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
lr_anneal_env_steps = 8192
[component.learner_rival]
minibatch = 64
epochs = 1
lr_anneal_env_steps = 8192
[component.runner]
log = ["jsonl"]
`

// past adds an opponent without a learner.
const past = `
[policy.past]
of = "main"
`

func TestSeveral_ResumeIsExactWhereTheyShareARollout(t *testing.T) {
	s := newTrainer(t)
	for _, c := range []struct {
		file string
		sets []string
	}{
		{file: shared},
		{file: shared + past, sets: []string{"component.rollout.opponents={ past = 0.5 }", "component.opponents_past.every_versions=2"}},
	} {
		whole := s.train(c.file, c.sets...)
		if whole.ParamsHashes["rival"] == "" {
			t.Fatalf("hashes %s and %v, want one of each policy", whole.ParamsHash, whole.ParamsHashes)
		}
		part := s.train(c.file, append(c.sets, "run.stop.env_steps=3000")...)
		r := s.resume(s.options(), "run.stop.env_steps=8192")
		if part.ParamsHash == whole.ParamsHash || r.ParamsHash != whole.ParamsHash || r.ParamsHashes["rival"] != whole.ParamsHashes["rival"] {
			t.Errorf("%v: %.8s and %.8s, interrupted; in one go %.8s and %.8s", c.sets, r.ParamsHash, r.ParamsHashes["rival"], whole.ParamsHash, whole.ParamsHashes["rival"])
		}
	}
}

// Evaluation and export are about the policy that is named, and without a name about the leading one.
func TestSeveral_EvaluationAndExportGoByName(t *testing.T) {
	s := newTrainer(t)
	r := s.train(duet, "run.stop.env_steps=2048", "run.policy=rival")
	run := s.newest()
	c, err := run.Load(runs.Latest)
	if err != nil {
		t.Fatal(err)
	}
	if c.EnvSteps != r.EnvSteps || run.Info().Policies["main"] == nil || run.Info().Policies["rival"] == nil || run.Info().Outcome.ParamsHashes["main"] == "" {
		t.Errorf("the checkpoint has %d env steps of the leading policy, the run %d; %+v", c.EnvSteps, r.EnvSteps, run.Info())
	}
	for name, want := range map[string]string{"": "rival", "main": "main", "rival": "rival"} {
		e, err := session.EvaluateRun(t.Context(), run, &c, session.RunEvaluation{Parts: s.parts, Policy: name, Episodes: 2, Seed: 1, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		x, err := session.Export(t.Context(), run, &c, s.parts, name, export.Safetensors)
		if err != nil {
			t.Fatal(err)
		}
		_, about, err := runs.DecodeTensors(x.File)
		if err != nil || e.Policy != want || about["policy"] != want || e.PolicyVersion != x.Version || (want == "rival") != (e.EnvSteps == c.EnvSteps) {
			t.Errorf("%q: evaluated %s with %d env steps, exported %v: %v", name, e.Policy, e.EnvSteps, about, err)
		}
	}
	var e *session.Error
	_, err = session.EvaluateRun(t.Context(), run, &c, session.RunEvaluation{Parts: s.parts, Policy: "mian", Episodes: 2})
	if !errors.As(err, &e) || !strings.Contains(err.Error(), "error[E043]") || !strings.Contains(err.Error(), "learned are: main, rival") {
		t.Errorf("evaluation of mian: %v", err)
	}
}

// Each policy begins with the weights that the one of its name had, one without such with its own.
func TestSeveral_InitFromGoesByName(t *testing.T) {
	s := newTrainer(t)
	first := s.train(duet, "run.stop.env_steps=2048")
	old := s.newest()
	alone, _, _ := strings.Cut(duet, "[component.rollout_b]")
	begin := func(file string, from *runs.Run) *session.Result {
		t.Helper()
		o := s.options()
		o.InitFrom, o.Graph = from, s.graph(file, "run.stop.env_steps=256", "component.learner.learning_rate=1e-30", "component.learner.lr_anneal_env_steps=0")
		if strings.Contains(file, "learner_b") {
			o.Graph = s.graph(file, "run.stop.env_steps=256", "component.learner.learning_rate=1e-30", "component.learner.lr_anneal_env_steps=0",
				"component.learner_b.learning_rate=1e-30", "component.learner_b.lr_anneal_env_steps=0")
		}
		r, err := session.Train(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if r := begin(duet, old); r.ParamsHash != first.ParamsHash || r.ParamsHashes["rival"] != first.ParamsHashes["rival"] || s.log.Len() > 0 {
		t.Errorf("from both: %.8s and %.8s, want %.8s and %.8s; %s", r.ParamsHash, r.ParamsHashes["rival"], first.ParamsHash, first.ParamsHashes["rival"], s.log.String())
	}
	single := begin(alone, old)
	if single.ParamsHash != first.ParamsHash {
		t.Errorf("one of both: %.8s, want %.8s", single.ParamsHash, first.ParamsHash)
	}
	r := begin(duet, s.newest())
	if r.ParamsHash != first.ParamsHash || r.ParamsHashes["rival"] == first.ParamsHashes["rival"] {
		t.Errorf("from one of both: %.8s and %.8s", r.ParamsHash, r.ParamsHashes["rival"])
	}
	if log := s.log.String(); !strings.Contains(log, "begins from scratch") || !strings.Contains(log, "policy=rival") {
		t.Errorf("it is not said that rival begins anew: %s", log)
	}
}

// The leading policy's metrics have their plain names; the other's have its name in front, in the same lines.
func TestSeveral_MetricsOfOthersHaveTheirNames(t *testing.T) {
	s := newTrainer(t)
	r := s.train(duet, "run.stop.env_steps=4096")
	text, err := os.ReadFile(filepath.Join(s.newest().Dir, "metrics.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	lines, last := strings.Split(strings.TrimSpace(string(text)), "\n"), map[string]float64{}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil {
		t.Fatal(err)
	}
	if len(lines) != int(r.PolicyVersion) || last["global_step"] != 4096 {
		t.Errorf("%d lines up to %g env steps, want one for each of %d datasets of the leading policy", len(lines), last["global_step"], r.PolicyVersion)
	}
	for _, name := range []string{"losses/policy_loss", "charts/episodic_return", "charts/episodic_length", "losses/valid_rows"} {
		own, one := last[name]
		other, two := last["rival/"+name]
		if !one || !two || own == other {
			t.Errorf("%s is %g, and of rival %g", name, own, other)
		}
	}
	if trained := last["rival/learner/env_steps"]; last["learner/env_steps"]-trained != 4096 || last["rival/global_step"] > trained {
		t.Errorf("%g env steps learned from, %g of them by rival", last["learner/env_steps"], trained)
	}
}

// Which policy leads is never guessed, and each has one learner.
func TestSeveral_ALeadingPolicyIsNamedOrRefused(t *testing.T) {
	s := newTrainer(t)
	nameless := strings.NewReplacer("[policy.main]", "[policy.red]\nenv = \"cartpole\"\n[policy.main]").Replace(duet)
	nameless = strings.Replace(nameless, "[component.learner]\n", "[component.learner]\npolicy = \"red\"\n", 1)
	nameless = strings.Replace(nameless, "[component.batcher]\n", "[component.inference]\npolicy = \"red\"\n[component.batcher]\n", 1)
	for _, c := range []struct {
		what, file string
		sets       []string
		name       string
		want       []string
	}{
		{what: "two, neither is main", file: nameless, want: []string{"several policies are learned, and none of them leads", "red, rival"}},
		{what: "an unknown one", file: duet, name: "mian", want: []string{`the pipeline has no policy "mian"`, "learned are: main, rival"}},
		{what: "one that nobody learns", file: nameless, name: "main", want: []string{`no learner learns policy "main"`, "learned are: red, rival"}},
	} {
		o := s.options()
		o.Graph, o.Policy = s.graph(c.file, c.sets...), c.name
		_, err := session.Train(t.Context(), o)
		var e *session.Error
		if !errors.As(err, &e) || e.Kind != session.Config || !strings.Contains(err.Error(), "duet.toml: error[E043]: ") || !strings.Contains(err.Error(), "\n  help: ") {
			t.Errorf("%s: %v, want E043", c.what, err)
			continue
		}
		for _, part := range c.want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %v, want %q in it", c.what, err, part)
			}
		}
	}
}

// A run may continue with another policy leading: its counts are then that policy's.
func TestSeveral_AnotherPolicyMayLeadFromACheckpointOn(t *testing.T) {
	s := newTrainer(t)
	first := s.train(duet, "run.stop.env_steps=2048")
	o := s.options()
	o.Policy = "rival"
	var from session.Resumed
	o.Observe = func(e session.Event) {
		if e, ok := e.(session.Resumed); ok {
			from = e
		}
	}
	r := s.resume(o, "run.stop.env_steps=9216")
	if from.EnvSteps == first.EnvSteps || from.PolicyVersion != first.PolicyVersion || r.EnvSteps != 9216 || r.ParamsHashes["main"] == "" {
		t.Errorf("from %d env steps of version %d to %d, with %v beside", from.EnvSteps, from.PolicyVersion, r.EnvSteps, r.ParamsHashes)
	}
	o.Policy = ""
	mains := from.EnvSteps
	r = s.resume(o, "run.stop.env_steps=9792")
	if from.EnvSteps%256 != 0 || from.EnvSteps <= first.EnvSteps || from.EnvSteps == mains || r.EnvSteps != 9984 || r.ParamsHashes["rival"] == "" {
		t.Errorf("main leads again from %d env steps to %d, with %v beside", from.EnvSteps, r.EnvSteps, r.ParamsHashes)
	}
}

// running runs a training on a new goroutine. Its error comes when it has ended.
func running(ctx context.Context, s *session.Session) <-chan error {
	ended := make(chan error, 1)
	go func() {
		_, err := s.Run(ctx)
		ended <- err
	}()
	return ended
}
