package policytest

import (
	"fmt"
	"testing"

	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/ppo"
)

// Tolerance says how far a backend may be from the reference in float64.
type Tolerance struct {
	Output   float64 // values and log-probabilities, absolute
	Gradient float64 // over the largest element of the gradient
	Params   float64 // after the steps of a dataset, in units of the learning rate
	// Allocates excuses a backend from running without allocation.
	Allocates bool
}

// Float32 is the tolerance of a backend that computes in float32.
var Float32 = Tolerance{Output: 2e-5, Gradient: 2e-5, Params: 0.02}

// TestBackend runs the whole suite; with -short it leaves out the largest network.
func TestBackend(t *testing.T, b policy.Backend, tol Tolerance) {
	for _, c := range cases() {
		if testing.Short() && c.net.Obs > 32 {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			s := suite{Backend: b, tol: tol, shape: c}
			t.Run("forward equals the reference", s.forward)
			t.Run("greedy takes the most probable action", s.greedy)
			t.Run("rows are independent in every bit", s.rowsAreIndependent)
			t.Run("values alone are the same values", s.valueOnly)
			t.Run("a mask without a legal action is an error", s.noLegalAction)
			t.Run("strange observations give legal actions", s.strangeObservations)
			t.Run("gradient equals the reference and finite differences", s.gradient)
			t.Run("updates equal the reference", s.updates)
			t.Run("S18 actor and critic are clipped apart", s.clippedApart)
			t.Run("S15 minibatches are nearly equal parts", s.nearlyEqualParts)
			t.Run("V-trace equals the reference", s.vtrace)
			t.Run("ratio is exactly 1 with the weights that acted", s.ratioOne)
			t.Run("invalid rows enter nothing", s.invalidRows)
			t.Run("a padded batch equals the compacted one", s.padded)
			t.Run("target_kl ends the epochs", s.targetKL)
			t.Run("updates repeat in every bit", s.repeats)
			t.Run("state continues in every bit", s.continues)
			t.Run("bad rows are errors that name them", s.badRows)
			t.Run("numbers that are not finite do not reach parameters", s.notFinite)
			t.Run("datasets of other environments are refused", s.wrongDataset)
		})
	}
	first := suite{Backend: b, tol: tol, shape: cases()[0]}
	t.Run("large batches act like small ones", first.largeBatches)
	if tol.Allocates {
		return
	}
	t.Run("acting and updating do not allocate", first.memory)
}

type suite struct {
	policy.Backend
	tol   Tolerance
	shape shape
}

// shape is a network with the kind of data it meets.
type shape struct {
	name        string
	net         policy.Network
	masked, soa bool
	steps, envs int
	valueClip   float64
	minibatch   int
}

func cases() []shape {
	var all []shape
	add := func(n policy.Network, edit func(*shape)) {
		s := shape{net: n, steps: 9, envs: 13, minibatch: 48}
		if edit != nil {
			edit(&s)
		}
		trunk := "separate"
		if n.ShareTrunk {
			trunk = "shared"
		}
		s.name = fmt.Sprintf("%d-%v-%d %s %s", n.Obs, n.Hidden, n.Actions, n.Activation, trunk)
		all = append(all, s)
	}
	add(policy.Network{Obs: 4, Actions: 2, Hidden: []int{64, 64}, Activation: policy.Tanh}, nil)
	add(policy.Network{Obs: 4, Actions: 2, Hidden: []int{64, 64}, Activation: policy.Tanh, ShareTrunk: true}, nil)
	add(policy.Network{Obs: 7, Actions: 5, Hidden: []int{33, 17, 20}, Activation: policy.ReLU, NormalizeObs: true},
		func(s *shape) { s.masked, s.soa, s.envs = true, true, 29 })
	add(policy.Network{Obs: 3, Actions: 18, Hidden: []int{40}, Activation: policy.ELU, ShareTrunk: true, NormalizeObs: true},
		func(s *shape) { s.masked, s.valueClip = true, 0.2 })
	add(policy.Network{Obs: 19, Actions: 1, Hidden: nil, Activation: policy.Tanh, NormalizeObs: true},
		func(s *shape) { s.soa = true })
	add(policy.Network{Obs: 6, Actions: 3, Hidden: nil, Activation: policy.Tanh, ShareTrunk: true},
		func(s *shape) { s.masked = true })
	add(policy.Network{Obs: 65, Actions: 9, Hidden: []int{130, 96}, Activation: policy.Tanh},
		func(s *shape) { s.steps, s.envs, s.minibatch = 2, 51, 80 })
	return all
}

// params returns parameters with large heads, so that actions, ratios and gradients are not all alike.
func (s *suite) params(seed uint64) []float32 {
	n := s.shape.net
	n.PolicyGain, n.ValueGain = 2, 2
	p := policy.Init(&n, seed)
	for _, q := range n.Params() {
		if q.Rows == 1 {
			for j := range q.Cols {
				p[q.Offset+j] += 0.1 * float32(j%3-1)
			}
		}
	}
	return p
}

func (s *suite) dataset(t testing.TB, blocks int) *policy.Dataset {
	return NewDataset(t, Options{Network: s.shape.net, Steps: s.shape.steps, Envs: s.shape.envs, Blocks: blocks,
		Masked: s.shape.masked, SoA: s.shape.soa, InvalidEvery: 12, Seed: 42})
}

func (s *suite) actor(t testing.TB, params []float32, d *policy.Dataset) policy.Actor {
	t.Helper()
	a, err := policy.NewActor(s, &s.shape.net, s.shape.envs)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	if err := a.Load(policy.Weights{Version: 1, Params: params, ObsMean: d.ObsMean, ObsScale: d.ObsScale}); err != nil {
		t.Fatal(err)
	}
	return a
}

func (s *suite) learner(t testing.TB, params []float32, c ppo.Config) ppo.Learner {
	t.Helper()
	l, err := ppo.NewLearner(s, &s.shape.net, params, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func (s *suite) config() ppo.Config {
	c := ppo.Defaults()
	c.Epochs, c.Minibatch, c.ValueClip = 2, s.shape.minibatch, s.shape.valueClip
	return c
}
