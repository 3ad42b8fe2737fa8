package session_test

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/policy/head"
	"github.com/rlhost/rlhost/gpu/policy/policytest"
	"github.com/rlhost/rlhost/hostabi"
)

// bandit is an environment of episodes of one step: it shows a number x from -1 to 1 and rewards the actions a with 1 - Σ(a -
// x)² over their elements, where choices are divided by the largest. A Gaussian of standard deviation σ whose mean is x gets 1 -
// σ² on average, and nothing gets more.
type bandit struct{ actions []policy.Dist }

// within is a bandit with a Box of one element.
func within(low, high float32) bandit {
	return bandit{[]policy.Dist{{Gaussian: &head.Gaussian{N: 1}, Bounds: &policy.Bounds{Low: []float32{low}, High: []float32{high}}}}}
}

// several is a bandit with an action of every kind.
func several() bandit {
	return bandit{[]policy.Dist{
		{Action: "gear", Start: 2, Categorical: &head.Categorical{N: 3}},
		{Action: "steer", Gaussian: &head.Gaussian{N: 2}, Bounds: &policy.Bounds{Low: []float32{-1, -0.5}, High: []float32{1, 0.5}}},
		{Action: "lights", Bernoulli: &head.Bernoulli{N: 2}}, {Action: "menu", Start: -1, MultiCategorical: &head.MultiCategorical{Counts: []int{2, 4}}}}}
}

func (b bandit) Spec() hostabi.EnvSpec {
	n := policy.MLP{Obs: 1, Heads: policy.Heads{Policy: b.actions}}.Network()
	return policytest.SpecOf(&n, false)
}

func (b bandit) Hash() string { return "bandit" }
func (b bandit) Close() error { return nil }

func (b bandit) NewEnv(o env.Options) (env.Env, error) {
	return &bandits{spec: b.Spec(), actions: b.actions, first: uint64(o.FirstEnv), seed: o.Seed, shown: make([]uint64, o.Envs)}, nil
}

type bandits struct {
	spec        hostabi.EnvSpec
	actions     []policy.Dist
	seed, first uint64
	shown       []uint64 // numbers, by environment
	b           env.Block
}

func (e *bandits) Spec() *hostabi.EnvSpec { return &e.spec }
func (e *bandits) Bind(b env.Block) error { e.b = b; return nil }
func (e *bandits) Renew() error           { return nil }
func (e *bandits) Close() error           { return nil }

func (e *bandits) Snapshot() (saved []byte, err error) {
	for _, n := range e.shown {
		saved = binary.LittleEndian.AppendUint64(saved, n)
	}
	return saved, nil
}

func (e *bandits) Restore(saved []byte) error {
	for i := range e.shown {
		e.shown[i] = binary.LittleEndian.Uint64(saved[8*i:])
	}
	return nil
}

func (e *bandits) Reset(t int, mask []uint8, seeds []uint64) error {
	for i := range e.shown {
		if mask == nil || mask[i] != 0 {
			e.show(t, i)
		}
	}
	return nil
}

func (e *bandits) show(t, i int) {
	m := e.b.Row(trajectory.Obs, t)
	m.Float32()[i*m.StrideRow/4] = 2*rand.New(rand.NewPCG(e.seed, (e.first+uint64(i))<<32|e.shown[i])).Float32() - 1
	e.shown[i]++
}

func (e *bandits) Step(t int) error {
	obs, actions := e.b.Row(trajectory.Obs, t), e.b.Rows(nil, trajectory.Action, t)
	reward, over := e.b.Row(trajectory.Reward, t).Float32(), e.b.Row(trajectory.Terminated, t).Data
	for i := range e.shown {
		reward[i], over[i] = 1, 1
		for k := range actions {
			for element := range actions[k].Elems {
				miss := e.taken(&actions[k], k, i, element) - obs.Float32()[i*obs.StrideRow/4]
				reward[i] -= miss * miss
			}
		}
		e.b.Row(trajectory.Truncated, t).Data[i] = 0
		e.b.Row(trajectory.FinalObs, 0).CopyRow(i, obs) // the one observation of the episode
		e.show(t+1, i)
	}
	return nil
}

// taken returns an element of an action: of a Box the number, of choices which of them from 0 to 1.
func (e *bandits) taken(m *trajectory.Matrix, action, row, element int) float32 {
	at, d := (row*m.StrideRow+element*m.StrideElem)/4, &e.actions[action]
	if counts := d.Counts(); counts != nil {
		return float32(m.Int32()[at]-d.Start) / float32(counts[element]-1)
	}
	return m.Float32()[at]
}

// learned returns the mean reward of the last quarter of a run.
func learned(o *outcome) float64 {
	sum, n := 0.0, 0
	for i := len(o.blocks) * 3 / 4; i < len(o.blocks); i++ {
		for _, r := range o.blocks[i].Float32(trajectory.Reward) {
			sum, n = sum+float64(r), n+1
		}
	}
	return sum / float64(n)
}

func TestS20AGaussianPolicyReachesTheKnownOptimum(t *testing.T) {
	const logStd = -1.6
	sets := []string{"run.stop.env_steps=65536", "component.learner.lr_anneal_env_steps=65536", "component.learner.learning_rate=0.003",
		"policy.main.action.log_std=fixed", "policy.main.action.log_std_init=-1.6"}
	for name, c := range map[string]struct {
		box   bandit
		scale float64 // of the action per drawn unit
		sets  []string
	}{
		"clipped":  {within(-2, 2), 1, nil},
		"rescaled": {within(-2, 2), 2, []string{"policy.main.action.rescale=true", "policy.main.action.log_std_init=-2.3"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			std := math.Exp(logStd)
			if c.scale != 1 {
				std = c.scale * math.Exp(-2.3)
			}
			o := experiment{plugin: c.box, sets: append(append([]string(nil), sets...), c.sets...)}.must(t)
			want := 1 - std*std
			if got := learned(o); math.Abs(got-want) > 0.005*want {
				t.Errorf("mean reward %v, in theory %v", got, want)
			}
		})
	}
}

// The environment gets actions within its bounds; the learner has the raw samples.
func TestS5BoxActionsAreCutOffForTheEnvironmentAlone(t *testing.T) {
	o := experiment{plugin: within(-0.5, 0.25)}.must(t)
	cut := 0
	for _, b := range o.blocks {
		raw, action := b.Float32(trajectory.RawAction), b.Float32(trajectory.Action)
		for i, x := range raw {
			if want := min(max(x, -0.5), 0.25); action[i] != want {
				t.Fatalf("drawn %v, the environment gets %v, want %v", x, action[i], want)
			}
			if action[i] != x {
				cut++
			}
		}
	}
	if cut == 0 {
		t.Error("no action was cut off: the test looks at too little")
	}
}

// The environment gets every action in its own terms: within bounds, counted from its start.
func TestS20SeveralActionsAreDrawnAndLearnedTogether(t *testing.T) {
	o := experiment{plugin: several(), sets: []string{"run.stop.env_steps=16384", "component.learner.learning_rate=0.01",
		"component.learner.lr_anneal_env_steps=0"}}.must(t)
	seen := map[[3]int]int{}
	for _, b := range o.blocks {
		for k, d := range several().actions {
			counts := d.Counts()
			if counts == nil {
				continue
			}
			m := b.Rows(nil, trajectory.Action, 0)[k]
			for row := range m.Rows {
				for i, n := range counts {
					x := int(m.Int32()[(row*m.StrideRow+i*m.StrideElem)/4] - d.Start)
					if x < 0 || x >= n {
						t.Fatalf("element %d of action %d is %d from its start, of %d", i, k, x, n)
					}
					seen[[3]int{k, i, x}]++
				}
			}
		}
	}
	if len(seen) != 3+2+2+2+4 {
		t.Errorf("%d choices were taken of 13: %v", len(seen), seen)
	}
	if err := only(o.reported("losses/first_ratio_error"), 0); err != nil {
		t.Error(err)
	}
	before := 0.0
	for _, r := range o.blocks[0].Float32(trajectory.Reward) {
		before += float64(r) / float64(len(o.blocks[0].Float32(trajectory.Reward)))
	}
	if after := learned(o); after < before+0.5 {
		t.Errorf("mean reward %v in the first block, %v at the end: nothing is learned", before, after)
	}
}
