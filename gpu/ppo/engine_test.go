package ppo_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/gpu/cpu"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/policy/policytest"
	"github.com/rlhost/rlhost/gpu/ppo"
)

// deferred is an engine that does nothing before Finish, like a device with a long queue.
type deferred struct {
	ppo.Engine
	calls []string
}

func (e *deferred) Begin(*ppo.Round) { e.calls = append(e.calls, "begin") }
func (e *deferred) Target()          { e.calls = append(e.calls, "target") }
func (e *deferred) Epoch(rows []uint32) {
	e.calls = append(e.calls, fmt.Sprintf("epoch of %d", len(rows)))
}
func (e *deferred) Step(lo int, ends []int) {
	call := strconv.Itoa(lo)
	for _, hi := range ends {
		call += fmt.Sprintf("-%d", hi)
	}
	e.calls = append(e.calls, call)
}
func (e *deferred) Finish() (ppo.Stats, error) {
	e.calls = append(e.calls, "finish")
	return ppo.Stats{OptimizerSteps: 4}, nil
}

// All of an update is submitted before anything is known of its outcome.
func TestUpdateSubmitsWithoutWaiting(t *testing.T) {
	n := policy.MLP{Obs: 2, Actions: 2, Activation: policy.Tanh}.Network()
	d := policytest.NewDataset(t, policytest.Options{Network: n, Steps: 5, Envs: 2, Blocks: 1, Seed: 1})
	for recompute, want := range map[string]string{
		ppo.RecomputeDataset: "begin target epoch of 10 0-5 5-10 epoch of 10 0-5 5-10 finish",
		ppo.RecomputeEpoch:   "begin target epoch of 10 0-5 5-10 target epoch of 10 0-5 5-10 finish",
	} {
		c := ppo.Defaults()
		c.Epochs, c.Minibatch, c.TargetKL, c.VTrace, c.VTraceRecompute = 2, 8, 0.01, true, recompute
		e := &deferred{}
		l, err := ppo.Over(e, &n, n.Params(), c)
		if err != nil {
			t.Fatal(err)
		}
		stats, err := l.Update(d, ppo.Rates{})
		if got := strings.Join(e.calls, " "); err != nil || got != want || stats.OptimizerSteps != 4 {
			t.Errorf("recompute = %s: %s, %v, %v; want %s", recompute, got, stats.OptimizerSteps, err, want)
		}
	}
}

// With accumulate an optimiser step has as many minibatches, and the last of an epoch what is left, in nearly equal parts.
func TestUpdateDividesStepsIntoMinibatches(t *testing.T) {
	n := policy.MLP{Obs: 2, Actions: 2, Activation: policy.Tanh}.Network()
	d := policytest.NewDataset(t, policytest.Options{Network: n, Steps: 5, Envs: 4, Blocks: 1, Seed: 1})
	for _, x := range []struct {
		minibatch, accumulate int
		want                  string
	}{
		{5, 2, "0-5-10 10-15-20"},
		{3, 4, "0-3-6-8-10 10-13-16-18-20"},
		{20, 3, "0-20"},
		{8, 100, "0-7-14-20"},
	} {
		c := ppo.Defaults()
		c.Epochs, c.Minibatch, c.Accumulate = 1, x.minibatch, x.accumulate
		e := &deferred{}
		l, err := ppo.Over(e, &n, n.Params(), c)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.Update(d, ppo.Rates{}); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(e.calls[3:len(e.calls)-1], " "); got != x.want {
			t.Errorf("minibatch = %d, accumulate = %d: steps %s, want %s", x.minibatch, x.accumulate, got, x.want)
		}
	}
}

// ordered is an engine that notes the rows of each epoch.
type ordered struct {
	deferred
	epochs [][]uint32
}

func (e *ordered) Epoch(rows []uint32) { e.epochs = append(e.epochs, slices.Clone(rows)) }

// Without a shuffle every epoch has the rows as they were gathered, of a network that keeps a state chunk by chunk.
func TestUpdateWithoutShuffleKeepsTheOrder(t *testing.T) {
	plain := policy.MLP{Obs: 2, Actions: 2, Activation: policy.Tanh}.Network()
	keeps := policy.MLP{Obs: 2, Actions: 2, Activation: policy.Tanh, ShareTrunk: true, Core: &policy.Core{Kind: policy.CoreGRU, Size: 3}}.Network()
	keeps.Chunk = 3
	for _, n := range []policy.Network{plain, keeps} {
		d := policytest.NewDataset(t, policytest.Options{Network: n, Steps: 6, Envs: 4, Blocks: 2, InvalidEvery: 5, Seed: 1})
		var samples ppo.Samples
		if err := samples.Read(d, &n); err != nil {
			t.Fatal(err)
		}
		want := samples.Valid
		if n.Chunk > 0 {
			want = samples.Chunked
		}
		for _, shuffle := range []bool{false, true} {
			c := ppo.Defaults()
			c.Epochs, c.Minibatch, c.Shuffle = 2, 12, shuffle
			e := &ordered{}
			l, err := ppo.Over(e, &n, n.Params(), c)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := l.Update(d, ppo.Rates{}); err != nil {
				t.Fatal(err)
			}
			for i, rows := range e.epochs {
				if slices.Equal(rows, want) == shuffle {
					t.Errorf("chunks of %d, shuffle %t: epoch %d has rows %v, gathered were %v", n.Chunk, shuffle, i, rows, want)
				}
			}
		}
	}
}

// actsOnly is a backend whose programs cannot learn.
type actsOnly struct{ policy.Backend }

func (b actsOnly) Compile(n *policy.Network) (policy.Program, error) {
	p, err := b.Backend.Compile(n)
	return struct{ policy.Program }{p}, err
}

func TestNewLearnerRefusesABackendThatOnlyActsAndAZeroConfiguration(t *testing.T) {
	n := policy.MLP{Obs: 2, Actions: 2, Activation: policy.Tanh}.Network()
	_, err := ppo.NewLearner(actsOnly{cpu.New()}, &n, policy.Init(&n, 1), ppo.Defaults())
	if !errors.Is(err, policy.ErrUnsupported) || !strings.Contains(err.Error(), "backend cpu: learning") {
		t.Errorf("NewLearner = %v, want one that names the backend", err)
	}
	if _, err := ppo.NewLearner(cpu.New(), &n, policy.Init(&n, 1), ppo.Config{}); err == nil {
		t.Error("NewLearner took a zero configuration")
	}
}

// cutting is an engine whose step cuts its learner.
type cutting struct {
	deferred
	learner ppo.Learner
	at      string
}

func (e *cutting) Step(lo int, ends []int) {
	e.deferred.Step(lo, ends)
	if e.calls[len(e.calls)-1] == e.at {
		e.learner.Cut()
	}
}

// An update that is cut ends after its current minibatch, and later ones make no step.
func TestCutEndsAnUpdateBetweenMinibatches(t *testing.T) {
	n := policy.MLP{Obs: 2, Actions: 2, Activation: policy.Tanh}.Network()
	d := policytest.NewDataset(t, policytest.Options{Network: n, Steps: 5, Envs: 2, Blocks: 1, Seed: 1})
	c := ppo.Defaults()
	c.Epochs, c.Minibatch = 3, 4
	e := &cutting{at: "4-7"}
	l, err := ppo.Over(e, &n, n.Params(), c)
	if err != nil {
		t.Fatal(err)
	}
	e.learner = l
	for _, want := range []string{"begin target epoch of 10 0-4 4-7 finish", "begin finish"} {
		e.calls = nil
		_, err := l.Update(d, ppo.Rates{})
		if got := strings.Join(e.calls, " "); got != want || !errors.Is(err, ppo.ErrCut) {
			t.Errorf("%s, %v; want %s and ErrCut", got, err, want)
		}
	}
}
