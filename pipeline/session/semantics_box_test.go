package session_test

import (
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

// bandit is an environment of episodes of one step: it shows a number x from -1 to 1 and rewards the action a with
// 1 - (a - x)². A Gaussian of standard deviation σ whose mean is x gets 1 - σ² on average, and nothing gets more.
type bandit struct{ low, high float32 }

func (b bandit) Spec() hostabi.EnvSpec {
	n := policy.MLP{Obs: 1, Heads: policy.Heads{Policy: []policy.Dist{{Gaussian: &head.Gaussian{N: 1},
		Bounds: &policy.Bounds{Low: []float32{b.low}, High: []float32{b.high}}}}}}.Network()
	return policytest.SpecOf(&n, false)
}

func (b bandit) Hash() string { return "bandit" }
func (b bandit) Close() error { return nil }

func (b bandit) NewEnv(o env.Options) (env.Env, error) {
	e := &bandits{spec: b.Spec()}
	for i := range o.Envs {
		e.rng = append(e.rng, rand.New(rand.NewPCG(o.Seed, uint64(o.FirstEnv+i))))
	}
	return e, nil
}

type bandits struct {
	spec hostabi.EnvSpec
	rng  []*rand.Rand
	b    env.Block
}

func (e *bandits) Spec() *hostabi.EnvSpec    { return &e.spec }
func (e *bandits) Bind(b env.Block) error    { e.b = b; return nil }
func (e *bandits) Renew() error              { return nil }
func (e *bandits) Snapshot() ([]byte, error) { return []byte{0}, nil }
func (e *bandits) Restore([]byte) error      { return nil }
func (e *bandits) Close() error              { return nil }

func (e *bandits) Reset(t int, mask []uint8, seeds []uint64) error {
	for i := range e.rng {
		if mask == nil || mask[i] != 0 {
			e.show(t, i)
		}
	}
	return nil
}

func (e *bandits) show(t, i int) {
	m := e.b.Row(trajectory.Obs, t)
	m.Float32()[i*m.StrideRow/4] = 2*e.rng[i].Float32() - 1
}

func (e *bandits) Step(t int) error {
	obs, action := e.b.Row(trajectory.Obs, t), e.b.Row(trajectory.Action, t)
	reward, over := e.b.Row(trajectory.Reward, t).Float32(), e.b.Row(trajectory.Terminated, t).Data
	for i := range e.rng {
		miss := action.Float32()[i*action.StrideRow/4] - obs.Float32()[i*obs.StrideRow/4]
		reward[i], over[i] = 1-miss*miss, 1
		e.b.Row(trajectory.Truncated, t).Data[i] = 0
		e.b.Row(trajectory.FinalObs, 0).CopyRow(i, obs) // the one observation of the episode
		e.show(t+1, i)
	}
	return nil
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
	sets := []string{"run.stop.env_steps=65536", "component.learner.anneal_env_steps=65536", "component.learner.learning_rate=0.003",
		"policy.main.action.log_std=fixed", "policy.main.action.log_std_init=-1.6"}
	for name, c := range map[string]struct {
		box   bandit
		scale float64 // of the action for what is drawn
		sets  []string
	}{
		"clipped":  {bandit{-2, 2}, 1, nil},
		"rescaled": {bandit{-2, 2}, 2, []string{"policy.main.action.rescale=true", "policy.main.action.log_std_init=-2.3"}},
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

// The environment gets what lies within its bounds; the learner has what was drawn.
func TestS5BoxActionsAreCutOffForTheEnvironmentAlone(t *testing.T) {
	o := experiment{plugin: bandit{-0.5, 0.25}}.must(t)
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
