package ppo

import (
	"errors"
	"fmt"
	"math"

	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/gpu/policy"
)

// CodeGradient is the code of an update that numbers ended which are not finite; rlhost explain has its page.
const CodeGradient = "R020"

// largeNumber bounds rewards, values and inputs of a network: squares of such numbers, summed over a minibatch, overflow float32.
const largeNumber = 1e12

// suspect is a number of a row that may have made a gradient infinite.
type suspect struct {
	row    int
	column trajectory.Column
	x      float64
}

// beyond reports whether a number is larger than the suspect's. NaN is larger than all numbers.
func (s *suspect) beyond(x float64) bool {
	return math.IsNaN(x) && !math.IsNaN(s.x) || math.Abs(x) > math.Abs(s.x)
}

// blamed returns the error of an update with the likeliest cause and its remedy, if numbers ended it that are not finite.
func (l *learner) blamed(err error) error {
	var row *policy.RowError
	switch {
	case !errors.Is(err, policy.ErrNotFinite):
		return err
	case errors.As(err, &row):
		return &table.Error{Code: CodeGradient, Reason: err.Error(), Err: err,
			Help: "what the policy computes has run away, where the environment's numbers are not at fault: use target_kl = 0.02, or a smaller learning_rate"}
	}
	d := l.round.Dataset
	s := l.round.largest(l.network)
	reason, help := "the largest number that was learned from is", "normalize_obs = true bounds what enters"
	switch {
	case s.column == trajectory.Obs && !(math.Abs(s.x) < largeNumber):
	case s.column != trajectory.Obs && !(math.Abs(s.x) < largeNumber):
		help = "normalize_returns = true, or a wrapper such as { reward_clip = 10 } or { reward_scale = 0.01 }"
	default:
		s = l.round.unlikeliest()
		reason = "no number that was learned from is large, but the policy has gone far from the one that acted, by which the most unlikely action had"
		help = "use target_kl = 0.02, a smaller learning_rate, or a larger log_std_min of the policy's action"
	}
	return &table.Error{Code: CodeGradient, Help: help, Err: err,
		Reason: fmt.Sprintf("%v: %s %v = %.3g of %s", err, reason, s.column, s.x, d.Who(s.row))}
}

// largest returns the largest of the numbers that enter, rewards and values of a round's rows.
func (r *Round) largest(n *policy.Network) suspect {
	d, most := r.Dataset, suspect{column: trajectory.Obs}
	entered := make([]float32, n.Obs())
	for _, row := range r.Samples.Rows() {
		at := int(row)
		try := func(column trajectory.Column, x float32) {
			if most.beyond(float64(x)) {
				most = suspect{at, column, float64(x)}
			}
		}
		d.GatherObs(n, []uint32{row}, entered)
		for _, x := range entered {
			try(trajectory.Obs, x)
		}
		block, i := d.At(at)
		if shaped := block.Float32(trajectory.ShapedReward); shaped != nil {
			try(trajectory.ShapedReward, shaped[i])
		} else {
			try(trajectory.Reward, block.Float32(trajectory.Reward)[i])
		}
		try(trajectory.Value, block.Float32(trajectory.Value)[i])
		try(trajectory.Bootstrap, block.Float32(trajectory.Bootstrap)[i])
	}
	return most
}

// unlikeliest returns the valid row whose action had the least probability, or density.
func (r *Round) unlikeliest() suspect {
	least := suspect{column: trajectory.LogProb, x: math.Inf(1)}
	for _, row := range r.Samples.Valid {
		if x := float64(r.Samples.LogProb[row]); x < least.x {
			least.row, least.x = int(row), x
		}
	}
	return least
}
