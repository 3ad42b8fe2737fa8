package gorgonia_test

import (
	"reflect"
	"sync"
	"testing"

	"github.com/rlhost/rlhost/gpu/gorgonia"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/policy/policytest"
	"github.com/rlhost/rlhost/gpu/ppo"
)

// Learners on several goroutines share parameters and data but no graph. Run with -race.
func TestLearner_LearnersDoNotDisturbEachOther(t *testing.T) {
	n := policy.MLP{Obs: 4, Actions: 3, Hidden: []int{16, 16}, Activation: policy.Tanh}.Network()
	params := policy.Init(&n, 1)
	d := policytest.Acted(t, gorgonia.New(), params, policytest.Options{Network: n, Steps: 6, Envs: 25, Blocks: 1, Seed: 3})
	var states [3]ppo.State
	var group sync.WaitGroup
	for i := range states {
		group.Go(func() {
			l, err := ppo.NewLearner(gorgonia.New(), &n, params, ppo.Defaults())
			if err != nil {
				t.Error(err)
				return
			}
			defer l.Close()
			for range 2 {
				if _, err := l.Update(d, ppo.Rates{LearningRate: 1e-2, Clip: 0.2, Entropy: 0.01}); err != nil {
					t.Error(err)
				}
			}
			if states[i], err = l.State(); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	for i, s := range states[1:] {
		if !reflect.DeepEqual(s, states[0]) {
			t.Errorf("learner %d arrived at another state than learner 0", i+1)
		}
	}
}
