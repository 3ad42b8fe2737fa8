package ppo_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/gpu/cpu"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/policy/policytest"
	"github.com/rlhost/rlhost/gpu/ppo"
)

// A gradient that is not finite names the number that has made it so, with its environment and env step, and the remedy.
func TestUpdateNamesTheCauseOfAnInfiniteGradient(t *testing.T) {
	const row = 7 // t = 3 of environment 1
	n := policy.MLP{Obs: 2, Actions: 2, Activation: policy.Tanh}.Network()
	for name, c := range map[string]struct {
		spoil      func(b trajectory.Trajectory)
		want, help string
	}{
		"a reward": {func(b trajectory.Trajectory) { b.Float32(trajectory.Reward)[row] = -3e38 },
			"the largest number that was learned from is reward = -3e+38 of environment 1 at t = 3", "normalize_returns"},
		"an observation": {func(b trajectory.Trajectory) {
			x := b.Row(trajectory.Obs, 3)
			x.Float32()[(x.StrideRow+x.StrideElem)/4] = float32(math.NaN())
		}, "the largest number that was learned from is obs = NaN of environment 1 at t = 3", "normalize_obs"},
		"the policy": {func(b trajectory.Trajectory) {
			for i := range b.Float32(trajectory.LogProb) {
				b.Float32(trajectory.LogProb)[i] = -200
			}
			b.Float32(trajectory.LogProb)[row] = -300
		}, "the most unlikely action had log_prob = -300 of environment 1 at t = 3", "target_kl"},
	} {
		d := policytest.NewDataset(t, policytest.Options{Network: n, Steps: 5, Envs: 2, Blocks: 1, Seed: 1})
		c.spoil(d.Blocks[0])
		l, err := ppo.NewLearner(cpu.New(), &n, policy.Init(&n, 1), ppo.Defaults())
		if err != nil {
			t.Fatal(err)
		}
		_, err = l.Update(d, ppo.Rates{LearningRate: 1e-3, Clip: 0.2})
		var said *table.Error
		if !errors.Is(err, policy.ErrNotFinite) || !errors.As(err, &said) || said.Code != ppo.CodeGradient ||
			!strings.Contains(err.Error(), "gradient of optimiser step 1: not a finite number") || !strings.Contains(err.Error(), c.want) || !strings.Contains(said.Help, c.help) {
			t.Errorf("%s: %v; want %q, and help with %s", name, err, c.want, c.help)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
}
