package learner

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/gpu/cpu"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/policy/layer"
	"github.com/rlhost/rlhost/gpu/ppo"
	"github.com/rlhost/rlhost/plugins/plugintest"
)

func together(learners int) func(*config) {
	return func(c *config) { c.Learners = learners }
}

// Learners that divide each minibatch publish what one does, but for rounding: three datasets are 24 steps of Adam, each of 1e-2 at most. A step
// divides the gradient by its own size, so a relative error of 1e-6, of sums in another order, stays one of about that.
func TestLearnersTogether_PublishWhatOneDoes(t *testing.T) {
	for name, n := range map[string]policy.Network{"plain": plain(), "normalised": normalised()} {
		published := map[int][]policy.Weights{}
		for _, learners := range []int{1, 2, 3, 8} {
			r := newRig(t, rigOptions{network: n, seed: 3, config: together(learners)})
			for k := range 3 {
				r.teach(t, k, uint64(k), nil)
			}
			published[learners] = r.weights
			if len(r.weights) != 4 || r.Boundaries != 3 {
				t.Fatalf("%s: %d learners published %d versions", name, learners, len(r.weights))
			}
			for i, w := range r.weights {
				want := published[1][i]
				if !slices.Equal(w.ObsMean, want.ObsMean) || !slices.Equal(w.ObsScale, want.ObsScale) {
					t.Errorf("%s: %d learners have other statistics in version %d", name, learners, i)
				}
				for k := range w.Params {
					if off := math.Abs(float64(w.Params[k] - want.Params[k])); off > 1e-5 {
						t.Fatalf("%s: parameter %d of version %d of %d learners is off by %g", name, k, i, learners, off)
					}
				}
			}
		}
	}
}

// The state is everyone's: it can be restored with any number of learners, and learns on as before with the same one.
func TestLearnersTogether_RestoreWithAnyNumber(t *testing.T) {
	first := newRig(t, rigOptions{seed: 3, config: together(2)})
	first.teach(t, 0, 0, nil)
	saved := first.saved(t)
	first.teach(t, 1, 1, nil)
	want := first.weights[2].Params
	for _, learners := range []int{1, 2, 3} {
		r := newRig(t, rigOptions{seed: 3, config: together(learners), restore: saved})
		r.teach(t, 1, 1, nil)
		if !slices.Equal(r.weights[0].Params, first.weights[1].Params) {
			t.Errorf("%d learners begin with other parameters", learners)
		}
		if same := slices.Equal(r.weights[1].Params, want); learners == 2 && !same {
			t.Error("two learners go on in another way than those that were saved")
		}
	}
}

// Learners without a share are refused: a minibatch of a network that keeps a state has few chunks.
func TestLearnersTogether_SayWhatCannotBeDivided(t *testing.T) {
	keeping := &policy.Definition{Network: keeping(&layer.GRU{Size: 6}, nil), Backend: cpu.New()}
	err := plugintest.StartError(t, New(), plugintest.RigOptions{Name: "learner", Policies: map[string]component.Policy{"main": keeping}}, func(into any) error {
		c := into.(*config)
		c.Policy, c.Minibatch, c.Learners = "main", 2*keeping.Network.Chunk, 3
		return nil
	})
	var bad *component.ConfigError
	if !errors.As(err, &bad) || bad.Code != CodeShares || !strings.Contains(err.Error(), "a minibatch has 2 chunks") {
		t.Errorf("%v", err)
	}
}

// More learners than processors are worth a warning.
func TestLearnersTogether_WarnOfTooFewProcessors(t *testing.T) {
	r := newRig(t, rigOptions{config: together(3)})
	r.Log.Reset()
	r.c.warnOfProcessors(3)
	if r.Log.Len() > 0 {
		t.Errorf("three learners on three processors: %s", r.Log.String())
	}
	r.c.warnOfProcessors(2)
	if got := r.Log.String(); !strings.Contains(got, "learners=3 processors=2") {
		t.Errorf("log %q", got)
	}
}

// Learners on joined machines are refused where none can join, and begin where some can.
func TestLearnersTogether_OnJoinedMachines(t *testing.T) {
	for name, here := range map[string]func() ([]ppo.HostCaller, bool){
		"in a process": nil,
		"alone":        func() ([]ppo.HostCaller, bool) { return nil, false },
	} {
		err := plugintest.StartError(t, NewWith(here), plugintest.RigOptions{Name: "learner", Policies: map[string]component.Policy{
			"main": &policy.Definition{Network: plain(), Backend: cpu.New()}}}, func(into any) error {
			c := into.(*config)
			c.Policy, c.Hosts = "main", 2
			return nil
		})
		var bad *component.ConfigError
		if !errors.As(err, &bad) || bad.Code != CodeNoHosts || bad.Key != "hosts" {
			t.Errorf("%s: %v", name, err)
		}
	}
}
