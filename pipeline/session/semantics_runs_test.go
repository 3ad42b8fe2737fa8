package session_test

import (
	"bufio"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/env"

	"github.com/rlhost/rlhost/examples/plugins"
	"github.com/rlhost/rlhost/gpu/cpu"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/pipeline"
	"github.com/rlhost/rlhost/pipeline/runs"
	"github.com/rlhost/rlhost/plugins/evaluation"
	"github.com/rlhost/rlhost/plugins/plugintest"
	"github.com/rlhost/rlhost/plugins/runner"
	"github.com/rlhost/rlhost/plugins/wasm"
)

// lateLoser has seven environments that end early with a return of 10, and one that ends after a hundred steps.
func lateLoser(last float32) plugintest.Script {
	return plugintest.Script{
		Length: func(env, _ int) int {
			if env == 7 {
				return 100
			}
			return 2
		},
		Reward: func(at plugintest.At) float32 {
			if at.Env == 7 {
				return last / 100
			}
			return 5
		},
	}
}

// Fast failures, or fast successes, end first: the window is not believed before every environment has its part.
func TestS8TheWindowWaitsForEveryEnvironment(t *testing.T) {
	for _, c := range []struct {
		what     string
		last     float32 // return of the late one
		window   int
		reason   component.StopReason
		datasets int
	}{
		{"its first episode ends in dataset 7", 10, 20, component.StopReturn, 7},
		{"two of its episodes have ended in dataset 13", 10, 10, component.StopReturn, 13},
		{"it loses, and the mean is far below", -1000, 20, component.StopEnvSteps, 16},
	} {
		o := experiment{script: lateLoser(c.last), sets: []string{
			"run.stop.return=9.9", fmt.Sprintf("run.stop.window=%d", c.window), "run.stop.env_steps=2048"}}.must(t)
		if o.reason != c.reason || len(o.hashes) != c.datasets {
			t.Errorf("%s: ended for %s after %d datasets, want %s after %d", c.what, o.reason, len(o.hashes), c.reason, c.datasets)
		}
	}
}

// The run ends at the very dataset that fulfils the rule, and that one is in the snapshot.
func TestS8StopRulesSeeTheNewestDataset(t *testing.T) {
	for steps, datasets := range map[int]int{128: 1, 129: 2, 256: 2, 500: 4, 512: 4} {
		o := experiment{script: uneven(), sets: []string{fmt.Sprintf("run.stop.env_steps=%d", steps)}}.must(t)
		_, w, err := learnerOf(o)
		if err != nil || o.reason != component.StopEnvSteps || len(o.hashes) != datasets || w.EnvSteps != uint64(128*datasets) {
			t.Errorf("env_steps = %d: ended for %s after %d datasets with %d env steps saved (%v), want %d datasets",
				steps, o.reason, len(o.hashes), w.EnvSteps, err, datasets)
		}
	}
}

// inMode is a plugin that offers one way of resetting.
type inMode struct {
	env.Plugin
	mode hostabi.Autoreset
}

func (p inMode) Spec() hostabi.EnvSpec {
	s := p.Plugin.Spec()
	s.Autoreset = p.mode
	return s
}

// builtinEnv loads an environment that the program brings along.
func builtinEnv(t *testing.T, name string) env.Plugin {
	t.Helper()
	r, err := wasm.New(wasm.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := r.Load(t.Context(), name, plugins.Builtins()[name], env.Source{Name: "lab"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(p.Close(), r.Close()); err != nil {
			t.Error(err)
		}
	})
	return p
}

func TestS12EvaluationDoesNotDependOnParallelEnvironments(t *testing.T) {
	for _, name := range []string{"cartpole@1", "pendulum@1"} {
		t.Run(name, func(t *testing.T) { evaluationsAgree(t, builtinEnv(t, name)) })
	}
}

// evaluationsAgree plays an environment with every way of resetting and several numbers at a time.
func evaluationsAgree(t *testing.T, p env.Plugin) {
	spec := p.Spec()
	actions, err := policy.DistsOf(&spec, policy.ActionOptions{Rescale: true})
	if err != nil {
		t.Fatal(err)
	}
	n := policy.MLP{Obs: spec.ObsElems(), Hidden: []int{16}, Activation: policy.Tanh,
		NormalizeObs: true, HiddenGain: math.Sqrt2, Heads: policy.Heads{Policy: actions, PolicyGain: 1}}.Network()
	w := policy.Weights{Params: policy.Init(&n, 5), ObsMean: []float32{0.1, 0, -0.01, 0.2}[:n.Obs()], ObsScale: []float32{2, 1, 8, 1.5}[:n.Obs()]}
	actor, err := policy.NewActor(cpu.New(), &n, 32)
	if err != nil {
		t.Fatal(err)
	}
	if err := actor.Load(w); err != nil {
		t.Fatal(err)
	}
	results := map[bool]*evaluation.Result{}
	for _, greedy := range []bool{true, false} {
		for _, mode := range modes {
			for _, envs := range []int{1, 7, 32} {
				got, err := evaluation.Run(t.Context(), evaluation.Options{Plugin: inMode{p, mode}, Player: evaluation.Player{Actor: actor}, Episodes: 20,
					Envs: envs, Seed: 11, Greedy: greedy})
				if err != nil {
					t.Fatal(err)
				}
				want := results[greedy]
				if want == nil {
					results[greedy], want = got, got
				}
				if !slices.Equal(got.Returns, want.Returns) || !slices.Equal(got.Lengths, want.Lengths) || got.Greedy != greedy {
					t.Errorf("greedy %v, %v, %d at a time: returns %v, want %v", greedy, mode, envs, got.Returns, want.Returns)
				}
			}
		}
	}
	if slices.Equal(results[true].Returns, results[false].Returns) {
		t.Error("greedy and sampled actions come to the same: the test looks at nothing")
	}
	if _, std := results[false].Mean(), results[false].Std(); std == 0 {
		t.Error("all episodes come to the same: the test looks at nothing")
	}
}

// roundTrip saves a checkpoint to disk and loads it.
func roundTrip(t *testing.T, c runs.Checkpoint) runs.Checkpoint {
	t.Helper()
	r, err := runs.Create(t.TempDir(), "lab")
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Save(c); err != nil {
		t.Fatal(err)
	}
	loaded, err := r.Load(runs.Latest)
	if err := errors.Join(err, r.Close()); err != nil {
		t.Fatal(err)
	}
	return loaded
}

// brokenRun runs an experiment with a stop, a checkpoint on disk and a resume in its middle, and compares it with the
// unbroken run: parameters after each dataset, all rows, and at the end the state of every component.
func brokenRun(t *testing.T, whole, first, second experiment) {
	t.Helper()
	want := whole.must(t)
	first.sets = append(slices.Clone(first.sets), "run.stop.env_steps=250")
	a := first.must(t)
	second.resume = roundTrip(t, runs.Checkpoint{Components: a.states, Exact: true}).Components
	b := second.must(t)
	if got := slices.Concat(a.hashes, b.hashes); !slices.Equal(got, want.hashes) || len(a.hashes) == 0 || len(b.hashes) == 0 {
		t.Errorf("parameters %.8s and, resumed, %.8s; unbroken %.8s", a.hashes, b.hashes, want.hashes)
	}
	if whole.plugin == nil { // else rows do not come from a script
		rows := a.rows(t)
		for env, more := range b.rows(t) {
			rows[env] = append(rows[env], more...)
		}
		sameRows(t, "resumed", rows, want.rows(t))
		if got := slices.Concat(a.tap.episodes, b.tap.episodes); !slices.Equal(got, want.tap.episodes) {
			t.Errorf("%d and %d episodes, want the %d of the unbroken run", len(a.tap.episodes), len(b.tap.episodes), len(want.tap.episodes))
		}
	}
	for name := range want.states {
		if whole.plugin != nil && name == "rollout" {
			continue // a guest's instance counts the fuel of rl_bind, which a resumed run calls once more
		}
		if got, want := stateHash(t, name, b.states), stateHash(t, name, want.states); got != want {
			t.Errorf("%s ends in another state than in the unbroken run", name)
		}
	}
}

// stateHash returns the hash of a component's state, of the runner without its times and without an earlier process's counts.
func stateHash(t *testing.T, name string, states map[string]component.State) string {
	t.Helper()
	s := states[name]
	var meta any = &json.RawMessage{}
	kept := map[string]json.RawMessage{}
	if name == "runner" {
		meta = &kept
	}
	if err := s.Decode(meta); err != nil {
		t.Fatal(err)
	}
	delete(kept, "wall_ns")
	delete(kept, "env_steps_offset")
	text, err := json.Marshal([]any{meta, s.Tensors, s.Blobs})
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", sha256.Sum256(text))
}

func TestS13ResumeIsExact(t *testing.T) {
	for name, x := range variants() {
		t.Run(name, func(t *testing.T) { brokenRun(t, x, x, x) })
	}
	t.Run("more rollouts", func(t *testing.T) {
		x := experiment{script: masked(), sets: []string{"component.rollout.count=2", "component.rollout.envs=4"}}
		brokenRun(t, x, x, x)
	})
	t.Run("after a trap", func(t *testing.T) {
		trapping := func(again bool) experiment {
			script, trapped := masked(), again
			script.Cue = func(at plugintest.At) plugintest.Cue {
				if at.Env == 2 && at.Calls == 9 && !trapped {
					trapped = true
					return plugintest.Trap
				}
				return plugintest.Nothing
			}
			return experiment{script: script}
		}
		brokenRun(t, trapping(false), trapping(false), trapping(true))
	})
	t.Run("cartpole", func(t *testing.T) {
		x := experiment{plugin: keepOpen{builtinEnv(t, "cartpole@1")}, sets: []string{"policy.main.normalize_obs=true"}}
		brokenRun(t, x, x, x)
	})
	learned := []string{"env.lab.wrap=[{ reward_scale = 0.1 }, { reward_clip = 1.0 }]", "component.learner.adaptive_kl=0.01", "component.learner.lr_anneal_env_steps=0",
		"component.learner.normalize_returns=true"}
	t.Run("a Box", func(t *testing.T) {
		x := experiment{plugin: keepOpen{builtinEnv(t, "pendulum@1")}, sets: append([]string{"policy.main.action.rescale=true"}, learned...)}
		brokenRun(t, x, x, x)
	})
	t.Run("wrappers", func(t *testing.T) {
		script := uneven()
		script.Reward = func(at plugintest.At) float32 { return float32(3*at.Step - 10*int(at.Action)) }
		x := experiment{script: script, sets: []string{"env.lab.wrap=[{ record_stats = \"frames\" }, { sticky_action = 0.3 }, { action_repeat = 2 }, " +
			"{ time_limit = 4 }, { reward_normalize = { gamma = 0.9 } }, { reward_clip = 5 }]"}}
		brokenRun(t, x, x, x)
	})
	t.Run("several actions", func(t *testing.T) {
		x := experiment{plugin: several(), sets: learned}
		brokenRun(t, x, x, x)
	})
}

// keepOpen is a plugin that several runs use.
type keepOpen struct{ env.Plugin }

func (keepOpen) Close() error { return nil }

// A snapshot is a value: the continuing run does not change it.
func TestS13SnapshotsDoNotChangeWithTheRun(t *testing.T) {
	var first map[string]component.State
	hashes := map[string]string{}
	x := variants()["disabled"]
	x.sets = append(x.sets, limitOf(6))
	x.boundary = func(_ *pipeline.Pipeline, n int, snapshot func() (map[string]component.State, error)) (err error) {
		if n == 1 {
			if first, err = snapshot(); err == nil {
				for name := range first {
					hashes[name] = stateHash(t, name, first)
				}
			}
		}
		return err
	}
	x.must(t)
	if len(first) != 6 {
		t.Fatalf("states of %v, want of all six components", slices.Sorted(maps.Keys(first)))
	}
	for name := range first {
		if got := stateHash(t, name, first); got != hashes[name] {
			t.Errorf("the snapshot of %s has changed since it was taken", name)
		}
	}
}

// Parameters are the same bits again with the same set of kernels; the set has a name, which a run records.
func TestS13HashesHoldPerKernelSet(t *testing.T) {
	looked := 0
	for _, kernels := range []string{"generic", "avx2", "avx512"} {
		backend, err := cpu.NewWith(kernels)
		if err != nil {
			continue // not on this machine
		}
		looked++
		x := experiment{script: masked(), backend: func(policy.Backend) policy.Backend { return backend }}
		a, b := x.must(t), x.must(t)
		if !slices.Equal(a.hashes, b.hashes) || backend.Kernels() != kernels {
			t.Errorf("%s (%s): %.8s, and again %.8s", kernels, backend.Kernels(), a.hashes, b.hashes)
		}
		if err := only(a.reported("losses/first_ratio_error"), 0); err != nil {
			t.Errorf("%s: first ratios: %v", kernels, err)
		}
	}
	if looked == 0 {
		t.Error("no set of kernels works")
	}
}

// In asynchronous mode a run continues from policy, optimiser and schedule; work under way is not in the snapshot.
func TestS13AsynchronousSnapshotsHoldTheLearnerAlone(t *testing.T) {
	async := func(steps int, resume map[string]component.State) *outcome {
		return experiment{script: uneven(), sets: []string{`train.mode="async"`, fmt.Sprintf("run.stop.env_steps=%d", steps)},
			resume: resume}.must(t)
	}
	a := async(512, nil)
	if names := slices.Sorted(maps.Keys(a.states)); !slices.Equal(names, []string{"learner", "runner", "tap"}) {
		t.Fatalf("states of %v, want of learner, runner and tap, which nobody waits for", names)
	}
	_, before, err := learnerOf(a)
	if err != nil {
		t.Fatal(err)
	}
	b := async(1024, roundTrip(t, runs.Checkpoint{Components: a.states}).Components)
	first := b.reports[0]
	if first["policy_version"] != float64(before.Version+1) || first["global_step"] != float64(before.EnvSteps+128) {
		t.Errorf("resumed at version %d and env step %d, the first report is %v", before.Version, before.EnvSteps, first)
	}
	for _, block := range b.blocks {
		if block.meta.MinVersion < before.Version {
			t.Errorf("a block of the resumed run acted with version %d, the oldest is %d", block.meta.MinVersion, before.Version)
		}
	}
}

func TestS14MetricsCarryTheNamesPeopleKnow(t *testing.T) {
	script := uneven()
	script.Metric = func(at plugintest.At) (string, float64) { return "height", float64(at.Step) }
	dir := t.TempDir()
	o := experiment{script: script, dir: dir, sets: []string{`component.runner.log=["jsonl"]`, "run.stop.env_steps=2048"}}.must(t)
	f, err := os.Open(filepath.Join(dir, runner.MetricsFile))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	n := 0
	for lines.Scan() {
		n++
		var line map[string]*float64
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		if step := line["global_step"]; step == nil || *step != float64(128*n) {
			t.Errorf("line %d: global_step is %v, want env steps learned from", n, step)
		}
		for _, name := range []string{
			"charts/SPS", "charts/episodic_return", "charts/episodic_length", "charts/learning_rate",
			"losses/policy_loss", "losses/value_loss", "losses/entropy", "losses/approx_kl", "losses/old_approx_kl",
			"losses/clipfrac", "losses/explained_variance", "losses/grad_norm",
			"lag/mean", "lag/max", "lag/dropped_rows", "policy_version", "env/height",
			"rollout/carried_bytes", "learner/gathered_bytes",
		} {
			if _, ok := line[name]; !ok {
				t.Errorf("line %d has no %s", n, name)
			}
		}
	}
	if n != len(o.reports) || n != 16 {
		t.Errorf("%d lines for %d datasets, want 16", n, len(o.reports))
	}
}
