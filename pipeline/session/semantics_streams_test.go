package session_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/trajectory"

	"github.com/rlhost/rlhost/gpu/cpu"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/pipeline"
	"github.com/rlhost/rlhost/pipeline/runs"
	"github.com/rlhost/rlhost/plugins/evaluation"
)

// drawn is the set of values drawn from random streams: the keys of actions, and the environments' own draws.
type drawn map[string]bool

// see adds the values in requests.
func (d drawn) see(requests []policy.Request) {
	for _, r := range requests {
		obs := r.Obs[0]
		for row := range obs.Rows {
			d[fmt.Sprintf("obs %x", obs.Data[row*obs.StrideRow:][:obs.StrideRow])] = true
			if r.Action != nil && !r.Greedy {
				d[fmt.Sprintf("action %x %d %d", r.Seed, r.FirstEnv+uint32(row), r.Step)] = true
			}
		}
	}
}

// spied is a backend whose actors record their requests.
func (d drawn) spied(b policy.Backend) policy.Backend { return &spy{Backend: b, acted: d.see} }

// apart fails for common values of two.
func (d drawn) apart(t *testing.T, what string, other drawn) {
	t.Helper()
	common := 0
	for x := range d {
		if other[x] {
			common++
		}
	}
	if common > 0 || len(d) < 100 || len(other) < 100 {
		t.Errorf("%s: %d and %d draws, %d in common", what, len(d), len(other), common)
	}
}

// Whatever seeds they have, training, evaluation and trial begin no episode alike and draw no action by the same key.
func TestS16EvaluationAndTrialDrawFromStreamsOfTheirOwn(t *testing.T) {
	plugin := keepOpen{builtinEnv(t, "cartpole@1")}
	train := drawn{}
	experiment{plugin: plugin, sets: []string{`component.rollout.layout="aos"`}, backend: train.spied}.must(t)
	for _, seed := range []uint64{0, 1, 7, 8} { // 7 is the lab's own
		evaluated, tried := drawn{}, drawn{}
		actor := func(d drawn) policy.Actor {
			n := policy.MLP{Obs: 4, Actions: 2, Hidden: []int{4}, Activation: policy.Tanh, HiddenGain: 1}.Network()
			a, err := policy.NewActor(d.spied(cpu.New()), &n, 32)
			if err == nil {
				err = a.Load(policy.Weights{Params: policy.Init(&n, 1)})
			}
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { a.Close() })
			return a
		}
		_, err := evaluation.Run(t.Context(), evaluation.Options{Plugin: plugin, Player: evaluation.Player{Actor: actor(evaluated)}, Episodes: 64, Envs: 32, Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = evaluation.Compare(t.Context(), evaluation.CompareOptions{Old: plugin, New: plugin, Player: evaluation.Player{Actor: actor(tried)}, Envs: 32, Episodes: 2, Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		train.apart(t, fmt.Sprintf("training with seed 7, evaluation with %d", seed), evaluated)
		train.apart(t, fmt.Sprintf("training with seed 7, trial with %d", seed), tried)
		evaluated.apart(t, fmt.Sprintf("evaluation and trial with seed %d", seed), tried)
	}
}

// A run that is resumed without its environments' state draws nothing that it has drawn before, however often that
// happens: in asynchronous mode, and in synchronous mode with environments that cannot be saved.
func TestS16AResumeDrawsFromStreamsOfItsOwn(t *testing.T) {
	for _, mode := range []string{"async", "sync"} {
		t.Run(mode, func(t *testing.T) { drawsAnew(t, mode, 4, func(b policy.Backend) policy.Backend { return b }) })
	}
}

// drawsAnew resumes a run on a backend so often that it has that many lives.
func drawsAnew(t *testing.T, mode string, count int, on func(policy.Backend) policy.Backend) {
	t.Helper()
	script := uneven()
	script.Flaws.NoSnapshot = true
	var lives []drawn
	var states map[string]component.State
	for life := range count {
		d := drawn{}
		x := experiment{script: script, resume: states, resumes: life, changes: true,
			sets:    []string{fmt.Sprintf("train.mode=%q", mode), fmt.Sprintf("run.stop.env_steps=%d", 512*(life+1))},
			backend: func(b policy.Backend) policy.Backend { return d.spied(on(b)) }}
		o := x.must(t)
		states = roundTrip(t, runs.Checkpoint{Components: o.states}).Components
		for before, other := range lives {
			d.apart(t, fmt.Sprintf("life %d and %d", life, before), other)
		}
		lives = append(lives, d)
	}
}

// An exact resume continues its streams, whichever life they are from, and so does the resume after it.
func TestS16AnExactResumeKeepsItsStreams(t *testing.T) { keepsItsStreams(t, nil) }

// keepsItsStreams compares a run on a backend, nil for the processor's, with an interrupted and resumed one.
func keepsItsStreams(t *testing.T, on func(policy.Backend) policy.Backend) {
	t.Helper()
	steps := func(n int) []string { return []string{fmt.Sprintf("run.stop.env_steps=%d", n)} }
	broken := experiment{script: uneven(), resumes: 3, sets: steps(512), backend: on}.must(t)
	again := experiment{script: uneven(), resumes: 4, sets: steps(1024), resume: broken.states, backend: on}.must(t)
	whole := experiment{script: uneven(), resumes: 3, sets: steps(1024), backend: on}.must(t)
	if got, want := again.hashes[len(again.hashes)-1], whole.hashes[len(whole.hashes)-1]; got != want {
		t.Errorf("parameters %.8s, unbroken %.8s", got, want)
	}
	if first := whole.blocks[0].meta.FirstStep; first == 0 || first%trajectory.LifeSteps != 0 {
		t.Errorf("a resumed run counts env steps from %d", first)
	}
}

// Nor is anything drawn again when the environments are replaced by as many in other splits, which begin new episodes.
func TestS16EnvironmentsThatReplaceOthersDrawFromStreamsOfTheirOwn(t *testing.T) {
	x := experiment{script: uneven(), changes: true, sets: []string{"run.stop.env_steps=1_000_000"}}
	replaced := make(chan error, 1)
	x.boundary = func(p *pipeline.Pipeline, n int, _ func() (map[string]component.State, error)) error {
		if n == 4 {
			go func() {
				_, err := replaceOne(t, p, x.parts(&tap{}), "component.rollout.splits=4")
				for range 8 {
					err = errors.Join(err, p.AtNextBoundary(t.Context(), func(pipeline.Snapshot) error { return nil }))
				}
				p.Stop(component.StopInterrupted)
				replaced <- err
			}()
		}
		return nil
	}
	o := x.must(t)
	if err := <-replaced; err != nil {
		t.Fatal(err)
	}
	lives := map[uint64]drawn{}
	for _, b := range o.blocks {
		life := b.meta.FirstStep / trajectory.LifeSteps
		if lives[life] == nil {
			lives[life] = drawn{}
		}
		for env := range b.Schema.Shape.Envs {
			for step := range b.Schema.Shape.Steps {
				lives[life][fmt.Sprint("obs ", b.observed(step, env))] = true
				lives[life][fmt.Sprint("action ", int(b.meta.FirstEnv)+env, b.meta.FirstStep+uint64(step))] = true
			}
		}
	}
	if len(lives) != 2 || lives[1] == nil {
		t.Fatalf("%d lives", len(lives))
	}
	lives[0].apart(t, "the environments before and after", lives[1])
}
