package ppo_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/gpu/cpu"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/policy/policytest"
	"github.com/rlhost/rlhost/gpu/ppo"
)

// watched is a backend that keeps the engines of its learners, and has one of them leave before a step.
type watched struct {
	policy.Backend
	engines []*watchedEngine
	leaves  int // which engine
	before  int // which of its steps, from 1; 0: none
}

func (b *watched) Compile(n *policy.Network) (policy.Program, error) {
	p, err := b.Backend.Compile(n)
	return &watchedProgram{p.(ppo.Dividing), b}, err
}

type watchedProgram struct {
	ppo.Dividing
	backend *watched
}

func (p *watchedProgram) NewSeated(params []float32, c ppo.Config) (ppo.Seated, error) {
	e, err := p.Dividing.NewSeated(params, c)
	w := &watchedEngine{Seated: e, of: p.backend, number: len(p.backend.engines)}
	p.backend.engines = append(p.backend.engines, w)
	return w, err
}

type watchedEngine struct {
	ppo.Seated
	seat   ppo.Seat
	of     *watched
	number int
	steps  int
	done   func() // after each step; may be nil
}

func (e *watchedEngine) Sit(s ppo.Seat) {
	e.seat = s
	e.Seated.Sit(s)
}

var errDied = errors.New("it has died")

func (e *watchedEngine) Step(lo int, ends []int) {
	e.steps++
	if e.number == e.of.leaves && e.steps == e.of.before {
		e.seat.Leave(errDied)
	}
	e.Seated.Step(lo, ends)
	if e.done != nil {
		e.done()
	}
}

// same returns the state that all engines have, bit for bit.
func (b *watched) same(t *testing.T) ppo.State {
	t.Helper()
	var first ppo.State
	for i, e := range b.engines {
		s, err := e.State()
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = s
		}
		if s.AdamSteps != first.AdamSteps || !slices.Equal(s.Params, first.Params) || !slices.Equal(s.AdamM, first.AdamM) || !slices.Equal(s.AdamV, first.AdamV) {
			t.Errorf("learner %d is at step %d and the first at %d, or their parameters differ", i, s.AdamSteps, first.AdamSteps)
		}
	}
	return first
}

const teamSteps = 12 // optimiser steps of an update

// newTeam returns three learners of a small network, and datasets for them.
func newTeam(t *testing.T, b *watched) (ppo.Learner, []*policy.Dataset) {
	return newTeamWith(t, b, 3, ppo.Hosts{})
}

func newTeamWith(t *testing.T, b *watched, learners int, hosts ppo.Hosts) (ppo.Learner, []*policy.Dataset) {
	t.Helper()
	n := policy.MLP{Obs: 5, Actions: 3, Hidden: []int{16}, Activation: policy.Tanh}.Network()
	c := ppo.Defaults()
	c.Epochs, c.Minibatch, c.Learners, c.VTrace = 2, 7, learners, true
	b.Backend = cpu.New()
	l, err := ppo.NewLearnerWith(b, &n, policy.Init(&n, 1), c, hosts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	var datasets []*policy.Dataset
	for seed := range uint64(3) {
		datasets = append(datasets, policytest.Acted(t, b.Backend, policy.Init(&n, 1), policytest.Options{Network: n, Steps: 8, Envs: 5, Blocks: 1, Seed: seed}))
	}
	return l, datasets
}

var teamRates = ppo.Rates{LearningRate: 1e-2, Clip: 0.2, Entropy: 0.01}

// After each update all learners of a team have the same bits.
func TestTeam_HasTheSameParameters(t *testing.T) {
	b := &watched{}
	l, datasets := newTeam(t, b)
	for i, d := range datasets {
		if _, err := l.Update(d, teamRates); err != nil {
			t.Fatal(err)
		}
		if got := b.same(t); got.AdamSteps != uint64(teamSteps*(i+1)) {
			t.Errorf("%d steps after dataset %d", got.AdamSteps, i)
		}
	}
}

// A learner that leaves before any step leaves the others with the parameters of the steps before it, and no other. The team learns from the
// next dataset as one that was cut there.
func TestTeam_ThatLosesALearnerHasMadeWholeSteps(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for before := 1; before <= teamSteps; before++ {
		b := &watched{leaves: random.IntN(3), before: before}
		l, datasets := newTeam(t, b)
		stats, err := l.Update(datasets[0], teamRates)
		if !errors.Is(err, errDied) {
			t.Fatalf("learner %d left before step %d: %v", b.leaves, before, err)
		}
		got := b.same(t)
		if got.AdamSteps != uint64(before-1) || stats.OptimizerSteps != float64(before-1) {
			t.Errorf("learner %d left before step %d: %d steps are made, %v are told", b.leaves, before, got.AdamSteps, stats.OptimizerSteps)
		}

		whole := &watched{}
		other, datasets := newTeam(t, whole)
		steps := 0
		whole.engines[0].done = func() {
			if steps++; steps == before-1 {
				other.Cut()
			}
		}
		if before == 1 {
			continue // nothing was learned
		}
		if _, err := other.Update(datasets[0], teamRates); !errors.Is(err, ppo.ErrCut) {
			t.Fatal(err)
		}
		if want := whole.same(t); !slices.Equal(got.Params, want.Params) {
			t.Errorf("learner %d left before step %d: the parameters are not those of %d steps", b.leaves, before, before-1)
		}
		b.before = 0
		if _, err := l.Update(datasets[1], teamRates); err != nil {
			t.Errorf("the next dataset: %v", err)
		}
		if got := b.same(t); got.AdamSteps != uint64(before-1+teamSteps) {
			t.Errorf("%d steps after the next dataset", got.AdamSteps)
		}
	}
}

// A cut ends the update of all learners between the same two steps.
func TestTeam_IsCutBetweenTwoSteps(t *testing.T) {
	b := &watched{}
	l, datasets := newTeam(t, b)
	cut := make(chan struct{})
	b.engines[2].done = func() {
		if b.engines[2].steps == 5 {
			l.Cut()
			close(cut)
		}
	}
	if _, err := l.Update(datasets[0], teamRates); !errors.Is(err, ppo.ErrCut) {
		t.Fatal(err)
	}
	<-cut
	if got := b.same(t); got.AdamSteps < 5 || got.AdamSteps > 6 {
		t.Errorf("a cut in step 5 came after step %d", got.AdamSteps)
	}
}

// A backend that learns with one learner says so.
func TestNewLearner_NamesABackendThatDoesNotDivide(t *testing.T) {
	n := policy.MLP{Obs: 2, Actions: 2, Activation: policy.Tanh}.Network()
	c := ppo.Defaults()
	c.Learners = 2
	_, err := ppo.NewLearner(alone{cpu.New()}, &n, policy.Init(&n, 1), c)
	var bad *table.Error
	if !errors.As(err, &bad) || bad.Code != ppo.CodeLearners || bad.Key != "learners" {
		t.Errorf("%v", err)
	}
}

// alone is a backend without ppo.Dividing.
type alone struct{ policy.Backend }

func (b alone) Compile(n *policy.Network) (policy.Program, error) {
	p, err := b.Backend.Compile(n)
	return struct{ ppo.Program }{p.(ppo.Program)}, err
}
