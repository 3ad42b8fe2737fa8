package ppo

import (
	"math"

	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/gpu/policy"
)

// Targets holds the targets of a dataset, one element per row (t*E + e). The zero value is ready; its slices are
// reused by the next computation.
type Targets struct {
	Advantage []float32
	Return    []float32 // target of the value function; both are 0 in rows that belong to no episode

	carry []float64 // [N] the next row's contribution, per environment of one block
	next  []float32 // [N] value of the row after in which the agent acts, where agents do not always act
}

// GAE computes generalised advantage estimates (Schulman et al. 2016) and the returns advantage + value from
// the values that the acting policy stored.
//
// An end of an episode cuts the recursion: terminated takes 0 for the next value, truncated bootstrap_value, and terminated wins. A row
// before an invalid row that did not end its episode is cut as well and takes the value stored for its next observation. Rows in which an
// agent does not act are skipped: the next row is the agent's next one in which it acts, valid or not. Where the environment has a discount,
// a row's discount replaces gamma, or is multiplied with it: see Config.Discount. An invalid reward, discount or next value is a *RowError.
func (t *Targets) GAE(d *policy.Dataset, c *Config) error { return t.compute(d, c, nil) }

// VTrace computes V-trace targets (Espeholt et al. 2018) with the values that the acting policy stored, traces c = λ min(c̄,
// ratio) and ρ = min(ρ̄, ratio), where ratio = exp(newLogProb - log_prob) and newLogProb has one element per row. With ratio =
// ρ̄ = c̄ = 1 the returns equal GAE's. Beyond its own step's error, GAE's advantage has λ times the part that V-trace's has.
//
// The advantage is r + γ v' - V without the paper's factor ρ: the surrogate's own ratio to the acting policy is
// that importance weight, and it would count twice.
func (t *Targets) VTrace(d *policy.Dataset, c *Config, newLogProb []float32) error {
	return t.compute(d, c, newLogProb)
}

// transition is one row: next is the value of the next row, carry the recursion's sum from the next row (0 after a
// cut), to be passed to the previous one.
type transition struct {
	reward, discount, value, next, logProb, carry float64
}

// notFinite names the column of the reward or else of the next value, whichever is not finite.
func (s transition) notFinite(truncated bool) trajectory.Column {
	switch {
	case s.reward-s.reward != 0:
		return trajectory.Reward
	case !(s.discount >= 0 && s.discount <= 1):
		return trajectory.Discount
	case truncated:
		return trajectory.Bootstrap
	}
	return trajectory.Value
}

// gae returns advantage, return and the carry for the previous row: δ = r + γ V' - V; A = δ + γλ A'.
func (s transition) gae(c *Config) (advantage, ret, carry float64) {
	advantage = s.reward + s.discount*s.next - s.value + s.discount*c.GAELambda*s.carry
	return advantage, advantage + s.value, advantage
}

// vtrace does the same for V-trace: v - V = ρ (r + γ V' - V) + γ c (v' - V').
func (s transition) vtrace(c *Config, newLogProb float32) (advantage, ret, carry float64) {
	ratio := math.Exp(float64(newLogProb) - s.logProb)
	excess := min(c.RhoBar, ratio)*(s.reward+s.discount*s.next-s.value) +
		s.discount*c.GAELambda*min(c.CBar, ratio)*s.carry
	return s.reward + s.discount*(s.next+s.carry) - s.value, s.value + excess, excess
}

// compute fills in the targets, by V-trace if there are new log-probabilities.
func (t *Targets) compute(d *policy.Dataset, c *Config, newLogProb []float32) error {
	rows := d.Rows()
	t.Advantage, t.Return = zeroed(t.Advantage, rows), zeroed(t.Return, rows)
	for i := range d.Blocks {
		if err := t.block(d, i, c, newLogProb); err != nil {
			return err
		}
	}
	return nil
}

// block runs the recursion over one block from its last row to its first. The guest can rewrite reward and
// flags while it runs, so each is read once.
func (t *Targets) block(d *policy.Dataset, index int, c *Config, newLogProb []float32) error {
	b := d.Blocks[index]
	n, envs := d.BlockEnvs(), d.Envs()
	reward, value := learnedReward(b), b.Float32(trajectory.Value)
	discount := b.Float32(trajectory.Discount)
	bootstrap, logProb := b.Float32(trajectory.Bootstrap), b.Float32(trajectory.LogProb)
	terminated, truncated := b.Bytes(trajectory.Terminated), b.Bytes(trajectory.Truncated)
	valid := d.Valid(index)
	t.carry = zeroed(t.carry, n)
	active := b.Bytes(trajectory.Active)
	if active != nil {
		t.next = append(t.next[:0], value[d.Steps()*n:]...)
	}
	for step := d.Steps() - 1; step >= 0; step-- {
		for e := range n {
			i, row := step*n+e, step*envs+index*n+e
			following := value[i+n]
			if active != nil {
				if active[i] == 0 {
					continue
				}
				following, t.next[e] = t.next[e], value[i]
			}
			if valid[i] == 0 {
				t.carry[e] = 0
				continue
			}
			s := transition{reward: float64(reward[i]), discount: c.Gamma, value: float64(value[i]), next: float64(following),
				logProb: float64(logProb[i]), carry: t.carry[e]}
			if discount != nil {
				s.discount = float64(discount[i])
			}
			switch {
			case terminated[i] != 0:
				s.next, s.carry = 0, 0
			case truncated[i] != 0:
				s.next, s.carry = float64(bootstrap[i]), 0
			}
			if sum := s.reward + s.next; sum-sum != 0 || !(s.discount >= 0 && s.discount <= 1) { // infinite or not a number
				return d.RowError(row, s.notFinite(truncated[i] != 0), policy.ErrNotFinite)
			}
			if discount != nil && c.Discount == DiscountMultiply {
				s.discount *= c.Gamma
			}
			var advantage, ret float64
			if newLogProb == nil {
				advantage, ret, t.carry[e] = s.gae(c)
			} else {
				advantage, ret, t.carry[e] = s.vtrace(c, newLogProb[row])
			}
			t.Advantage[row], t.Return[row] = float32(advantage), float32(ret)
		}
	}
	return nil
}

// learnedReward returns the rewards that a block is learned from.
func learnedReward(b trajectory.Trajectory) []float32 {
	if shaped := b.Float32(trajectory.ShapedReward); shaped != nil {
		return shaped
	}
	return b.Float32(trajectory.Reward)
}

// ExplainedVariance returns 1 - Var(return - value)/Var(return) over the valid rows; 0 when the returns are all equal.
func (t *Targets) ExplainedVariance(s *Samples) float64 {
	n := float64(len(s.Valid))
	var meanRet, meanErr float64
	for _, r := range s.Valid {
		meanRet += float64(t.Return[r])
		meanErr += float64(t.Return[r]) - float64(s.Value[r])
	}
	meanRet, meanErr = meanRet/n, meanErr/n
	var varRet, varErr float64
	for _, r := range s.Valid {
		ret := float64(t.Return[r])
		varRet += (ret - meanRet) * (ret - meanRet)
		varErr += (ret - float64(s.Value[r]) - meanErr) * (ret - float64(s.Value[r]) - meanErr)
	}
	if varRet == 0 {
		return 0
	}
	return 1 - varErr/varRet
}

// zeroed returns n zeros, in the memory of s where it is large enough.
func zeroed[E any](s []E, n int) []E {
	s = sized(s, n)
	clear(s)
	return s
}
