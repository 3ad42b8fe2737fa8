package wrap_test

import (
	"math"
	"slices"
	"testing"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/plugintest"
)

// shaped steps one environment with these rewards and returns the shaped ones.
func shaped(t *testing.T, rewards []float32, list ...env.Wrapper) (got []float32) {
	t.Helper()
	script := plugintest.Script{Length: func(int, int) int { return len(rewards) }, Reward: func(at plugintest.At) float32 { return rewards[at.Step] }}
	p := made(t, script, list...)
	if !env.Shapes(p) {
		t.Errorf("%v does not say that it shapes rewards", list)
	}
	s, err := trajectory.NewSchema(p.Spec(), trajectory.Shape{Steps: len(rewards), Envs: 1, Shaped: true})
	if err != nil {
		t.Fatal(err)
	}
	tr := trajectory.Trajectory{Schema: s, Mem: make([]byte, s.Bytes)}
	e, err := p.NewEnv(env.Options{Name: "test", Envs: 1, Autoreset: hostabi.SameStep})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Bind(env.Block{Trajectory: tr, FD: -1}); err != nil {
		t.Fatal(err)
	}
	if err := e.Reset(0, nil, []uint64{1}); err != nil {
		t.Fatal(err)
	}
	for step := range rewards {
		if err := e.Step(step); err != nil {
			t.Fatal(err)
		}
	}
	if raw := tr.Float32(trajectory.Reward); !slices.Equal(raw, rewards) {
		t.Errorf("rewards became %v, want the raw %v", raw, rewards)
	}
	return tr.Float32(trajectory.ShapedReward)
}

func TestRewards_WriteTheShapedRewardAlone(t *testing.T) {
	raw := []float32{-300, -0.25, 0, 0.5, 300, 3e38}
	for _, c := range []struct {
		list []env.Wrapper
		want []float32
	}{
		{[]env.Wrapper{{"reward_scale": 0.5}}, []float32{-150, -0.125, 0, 0.25, 150, 1.5e38}},
		{[]env.Wrapper{{"reward_scale": 4}}, []float32{-1200, -1, 0, 2, 1200, 3.4028235e38}},
		{[]env.Wrapper{{"reward_clip": 1}}, []float32{-1, -0.25, 0, 0.5, 1, 1}},
		{[]env.Wrapper{{"reward_clip": "sign"}}, []float32{-1, -1, 0, 1, 1, 1}},
		{[]env.Wrapper{{"reward_clip": 2.0}, {"reward_scale": -3.0}}, []float32{6, 0.75, 0, -1.5, -6, -6}},
		{[]env.Wrapper{{"reward_scale": -3.0}, {"time_limit": 100}, {"reward_clip": 2.0}}, []float32{2, 0.75, 0, -1.5, -2, -2}},
	} {
		if got := shaped(t, raw, c.list...); !slices.Equal(got, c.want) {
			t.Errorf("%v makes %v of %v, want %v", c.list, got, raw, c.want)
		}
	}
}

// Gymnasium's NormalizeReward over one environment, cut off at 10, worked out by hand for a gamma of one half: discounted returns 2, 3 and 1.5 with a
// mean of 0, a variance of 1 and a count of 0.0001 before them.
func TestRewardNormalize_DividesByTheDeviationOfReturns(t *testing.T) {
	got := shaped(t, []float32{2, 2, 0}, env.Wrapper{"reward_normalize": map[string]any{"gamma": 0.5}})
	mean, variance, count, sum := 0.0, 1.0, 1e-4, 0.0
	for i, r := range []float64{2, 2, 0} {
		sum = sum/2 + r
		// the variance of two groups with known means
		total := count + 1
		next := (mean*count + sum) / total
		variance = (count*(variance+(mean-next)*(mean-next)) + (sum-next)*(sum-next)) / total
		mean, count = next, total
		if want := min(r/math.Sqrt(variance+1e-8), 10); math.Abs(float64(got[i])-want) > 1e-5*math.Abs(want) {
			t.Errorf("step %d: %v, want %v", i, got[i], want)
		}
	}
}
