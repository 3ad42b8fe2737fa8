package gorgonia_test

import (
	"errors"
	"math"
	"slices"
	"sync"
	"testing"

	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/gpu/ppo"

	"github.com/rlhost/rlhost/gpu/gorgonia"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/policy/policytest"
)

var (
	small      = policy.MLP{Obs: 4, Actions: 3, Hidden: []int{16, 16}, Activation: policy.Tanh}.Network()
	smallRates = ppo.Rates{LearningRate: 1e-2, Clip: 0.2, Entropy: 0.01}
)

func smallDataset(t *testing.T, params []float32) *policy.Dataset {
	t.Helper()
	d := policytest.NewDataset(t, policytest.Options{Network: small, Steps: 6, Envs: 25, Blocks: 1, Masked: true,
		InvalidEvery: 7, Seed: 3})
	a, err := policy.NewActor(gorgonia.New(), &small, 25)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if err := a.Load(policy.Weights{Params: params}); err != nil {
		t.Fatal(err)
	}
	policytest.Act(t, a, d, 25)
	return d
}

func smallLearner(t *testing.T, params []float32) ppo.Learner {
	t.Helper()
	c := ppo.Defaults()
	c.Minibatch = 40 // more than there are in a part of the rows: the graph is padded
	l, err := ppo.NewLearner(gorgonia.New(), &small, params, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func mustState(t *testing.T, l ppo.Learner) ppo.State {
	t.Helper()
	s, err := l.State()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func sameState(a, b ppo.State) bool {
	return slices.Equal(a.Params, b.Params) && slices.Equal(a.AdamM, b.AdamM) && slices.Equal(a.AdamV, b.AdamV) &&
		a.AdamSteps == b.AdamSteps
}

func TestLearner_GoesOnFromItsStateExactly(t *testing.T) {
	params := policy.Init(&small, 1)
	d := smallDataset(t, params)
	unbroken, first, resumed := smallLearner(t, params), smallLearner(t, params), smallLearner(t, make([]float32, len(params)))
	update := func(l ppo.Learner) {
		t.Helper()
		if _, err := l.Update(d, smallRates); err != nil {
			t.Fatal(err)
		}
	}
	for range 4 {
		update(unbroken)
	}
	update(first)
	update(first)
	if err := resumed.SetState(mustState(t, first)); err != nil {
		t.Fatal(err)
	}
	update(resumed)
	update(resumed)
	if !sameState(mustState(t, resumed), mustState(t, unbroken)) {
		t.Errorf("the state after two datasets, a restart and two more differs from that after four")
	}
	got := make([]float32, len(params))
	if err := resumed.Params(got); err != nil || !slices.Equal(got, mustState(t, resumed).Params) {
		t.Errorf("Params differ from those of State, or %v", err)
	}
}

// Learners on several goroutines share parameters and data but no graph. Run with -race.
func TestLearner_LearnersDoNotDisturbEachOther(t *testing.T) {
	params := policy.Init(&small, 1)
	d := smallDataset(t, params)
	learners := []ppo.Learner{smallLearner(t, params), smallLearner(t, params), smallLearner(t, params)}
	var group sync.WaitGroup
	for _, l := range learners {
		group.Go(func() {
			for range 2 {
				if _, err := l.Update(d, smallRates); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	for i, l := range learners[1:] {
		if !sameState(mustState(t, l), mustState(t, learners[0])) {
			t.Errorf("learner %d arrived at other parameters than learner 0", i+1)
		}
	}
}

func TestLearner_KeepsItsParametersWhenGradientsAreNotFinite(t *testing.T) {
	params := policy.Init(&small, 1)
	for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(1))} {
		d := smallDataset(t, params)
		l := smallLearner(t, params)
		for i := range d.Blocks[0].Float32(trajectory.Obs) {
			d.Blocks[0].Float32(trajectory.Obs)[i] = bad
		}
		if _, err := l.Update(d, smallRates); !errors.Is(err, policy.ErrNotFinite) {
			t.Errorf("Update with observations of %v = %v, want %v", bad, err, policy.ErrNotFinite)
		}
		if !slices.Equal(mustState(t, l).Params, params) {
			t.Errorf("observations of %v changed parameters", bad)
		}
	}
}

func TestLearner_RefusesWhatDoesNotFit(t *testing.T) {
	params := policy.Init(&small, 1)
	if _, err := ppo.NewLearner(gorgonia.New(), &small, params[1:], ppo.Defaults()); err == nil {
		t.Errorf("NewLearner with a parameter missing: no error")
	}
	if _, err := ppo.NewLearner(gorgonia.New(), &small, params, ppo.Config{}); err == nil {
		t.Errorf("NewLearner with a zero configuration: no error")
	}
	unknown := policy.MLP{Obs: 1, Actions: 1, Hidden: []int{1}, Activation: "gelu"}.Network()
	if _, err := ppo.NewLearner(gorgonia.New(), &unknown, nil, ppo.Defaults()); err == nil {
		t.Errorf("NewLearner with an unknown activation: no error")
	}
	l := smallLearner(t, params)
	if err := l.Params(params[1:]); err == nil {
		t.Errorf("Params into too few elements: no error")
	}
	s := mustState(t, l)
	s.AdamV = s.AdamV[1:]
	if err := l.SetState(s); err == nil {
		t.Errorf("SetState with a moment missing: no error")
	}
	if _, err := l.Update(&policy.Dataset{}, smallRates); !errors.Is(err, policy.ErrDataset) {
		t.Errorf("Update without blocks = %v, want %v", err, policy.ErrDataset)
	}
}

func TestLearner_MakesNoStepWithoutValidRows(t *testing.T) {
	params := policy.Init(&small, 1)
	d := smallDataset(t, params)
	clear(d.Blocks[0].Bytes(trajectory.Valid))
	l := smallLearner(t, params)
	stats, err := l.Update(d, smallRates)
	if err != nil || stats.OptimizerSteps != 0 || stats.ValidRows != 0 {
		t.Errorf("Update = %+v, %v, want no steps", stats, err)
	}
	if !slices.Equal(mustState(t, l).Params, params) {
		t.Errorf("parameters changed")
	}
}

func TestActor_RefusesWhatItCannotActOn(t *testing.T) {
	a, err := policy.NewActor(gorgonia.New(), &small, 4)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	d := smallDataset(t, policy.Init(&small, 1))
	requests := policytest.Requests(d, d.Blocks[0], 0, 10)
	if err := a.Act(requests); !errors.Is(err, policy.ErrNoWeights) {
		t.Errorf("Act before Load = %v, want %v", err, policy.ErrNoWeights)
	}
	if err := a.Load(policy.Weights{Params: make([]float32, 3)}); err == nil {
		t.Errorf("Load of 3 parameters: no error")
	}
	if err := a.Load(policy.Weights{Params: policy.Init(&small, 1)}); err != nil {
		t.Fatal(err)
	}
	mask := requests[1].Mask
	for i := range mask.Elems {
		mask.Data[2*mask.StrideRow+i*mask.StrideElem] = 0
	}
	err = a.Act(requests)
	var row *policy.RowError
	if !errors.As(err, &row) || row.Request != 1 || row.Row != 2 || !errors.Is(err, policy.ErrNoLegalAction) {
		t.Errorf("Act without a legal action = %v, want %v in request 1, row 2", err, policy.ErrNoLegalAction)
	}
	requests[1].Value = nil
	if err := a.Act(requests); err == nil {
		t.Errorf("Act without room for values: no error")
	}
}

// Whatever numbers come out, an action exists and is legal, because others use it as an index.
func TestActor_TakesLegalActionsOfLogitsThatAreNotNumbers(t *testing.T) {
	for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), math.MaxFloat32} {
		params := policy.Init(&small, 1)
		d := smallDataset(t, params)
		for i := range params {
			params[i] *= bad
		}
		a, err := policy.NewActor(gorgonia.New(), &small, 25)
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Load(policy.Weights{Params: params}); err != nil {
			t.Fatal(err)
		}
		for _, greedy := range []bool{false, true} {
			requests := policytest.Requests(d, d.Blocks[0], 1, 25)
			requests[0].Greedy = greedy
			if err := a.Act(requests); err != nil {
				t.Fatal(err)
			}
			for row, action := range requests[0].Action {
				mask := requests[0].Mask
				if action < 0 || int(action) >= small.Actions() || mask.Data[row*mask.StrideRow+int(action)*mask.StrideElem] == 0 {
					t.Errorf("parameters of %v, greedy = %v: row %d takes action %d", bad, greedy, row, action)
				}
			}
		}
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestActor_GreedyTakesTheMostProbableLegalAction(t *testing.T) {
	params := policy.Init(&small, 1)
	d := smallDataset(t, params)
	a, err := policy.NewActor(gorgonia.New(), &small, 25)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if err := a.Load(policy.Weights{Params: params}); err != nil {
		t.Fatal(err)
	}
	requests := policytest.Requests(d, d.Blocks[0], 0, 25)
	requests[0].Greedy = true
	if err := a.Act(requests); err != nil {
		t.Fatal(err)
	}
	best := slices.Clone(requests[0].LogProb)
	requests[0].Greedy = false
	for step := range uint64(30) {
		requests[0].Step = step
		if err := a.Act(requests); err != nil {
			t.Fatal(err)
		}
		for row, logProb := range requests[0].LogProb {
			if logProb > best[row] {
				t.Fatalf("row %d: an action has the log-probability %v, the greedy one %v", row, logProb, best[row])
			}
		}
	}
}
