package ppo

import (
	"fmt"
	"math"

	"github.com/rlhost/rlhost/gpu/policy"
)

// Returns keeps the mean and variance of the targets of the value over the valid rows of datasets, in float64, by the
// pairwise update of Chan, Golub and LeVeque (1983). Its fields are its whole state.
type Returns struct {
	Count float64 `json:"count"`
	Mean  float64 `json:"mean"`
	M2    float64 `json:"m2"` // sum of squared deviations
}

// RawReturns are the statistics of a value that was learned without any: their unit is Raw, and they count as one row, so
// that the next dataset's replace them.
func RawReturns() Returns { return Returns{Count: 1, M2: 1} }

// Add takes in one return.
func (r *Returns) Add(x float64) {
	r.Count++
	delta := x - r.Mean
	r.Mean += delta / r.Count
	r.M2 += delta * (x - r.Mean)
}

// Merge takes in other rows.
func (r *Returns) Merge(other Returns) {
	if other.Count == 0 {
		return
	}
	total, delta := r.Count+other.Count, other.Mean-r.Mean
	r.Mean += delta * other.Count / total
	r.M2 += other.M2 + delta*delta*r.Count*other.Count/total
	r.Count = total
}

// returnsRows is how many rows statistics count for at most. Returns grow with the policy, so older ones fade.
const returnsRows = 1 << 16

// Fade makes older rows count less where there are more than enough.
func (r *Returns) Fade() {
	if keep := returnsRows / r.Count; keep < 1 {
		r.Count, r.M2 = r.Count*keep, r.M2*keep
	}
}

// Unit returns the unit that values are learned in under these statistics.
func (r *Returns) Unit() Unit {
	if r.Count == 0 {
		return Unit{}
	}
	return Unit{Mean: r.Mean, Deviation: math.Sqrt(r.M2 / r.Count)}
}

// Validate reports statistics that no returns have.
func (r *Returns) Validate() error {
	if sum := r.Count + r.Mean + r.M2; sum-sum != 0 || r.Count < 0 || r.M2 < 0 {
		return fmt.Errorf("statistics of returns: count %v, mean %v, squared deviations %v", r.Count, r.Mean, r.M2)
	}
	return nil
}

// Unit is the unit that a value is learned in: a value v is Mean + Deviation·x where the network's head has x. The zero
// Unit is that of a learner that has seen no returns yet: every value is 0.
type Unit struct{ Mean, Deviation float64 }

// Raw is the unit of values that are learned as they are.
var Raw = Unit{Deviation: 1}

// Normal returns a value in the unit. Without a deviation it is 0: the mean is all that is known of values.
func (u Unit) Normal(v float32) float32 {
	if u.Deviation == 0 {
		return 0
	}
	return float32((float64(v) - u.Mean) / u.Deviation)
}

// Denormalise changes the head of the value in a network's canonical vector, so that the network computes values as they
// are.
func (u Unit) Denormalise(n *policy.Network, params []float32) error {
	if u == Raw {
		return nil
	}
	h, err := HeadOf(n.Values[0].From, n.Params())
	if err == nil {
		h.Rescale(params, u.Deviation, u.Mean)
	}
	return err
}

// to returns the factors that turn outputs of the head in this unit into outputs of the same values in another: x·scale
// + shift. It is the identity where either has no deviation: the outputs then have no meaning to keep.
func (u Unit) to(next Unit) (scale, shift float64) {
	if u.Deviation == 0 || next.Deviation == 0 {
		return 1, 0
	}
	return u.Deviation / next.Deviation, (u.Mean - next.Mean) / next.Deviation
}

// Head is a dense node without an activation whose one output is a value: weight and bias in a canonical vector.
type Head struct{ Weight, Bias policy.Param }

// HeadOf returns the tensors of the node of that name. A node without weight and bias cannot be rescaled, which is policy.ErrUnsupported.
func HeadOf(node string, params []policy.Param) (h Head, err error) {
	for _, p := range params {
		switch p.Name {
		case node + ".weight":
			h.Weight = p
		case node + ".bias":
			h.Bias = p
		}
	}
	if h.Weight.Cols != 1 || h.Bias.Cols != 1 || h.Bias.Rows != 1 {
		return h, fmt.Errorf("normalize_returns: the value is of node %q, want a dense node with one output and a bias: %w",
			node, policy.ErrUnsupported)
	}
	return h, nil
}

// Rescale makes the head's output x in a canonical vector x·scale + shift.
func (h Head) Rescale(params []float32, scale, shift float64) {
	for i := range h.Weight.Rows {
		w := &params[h.Weight.Offset+i]
		*w = float32(float64(*w) * scale)
	}
	b := &params[h.Bias.Offset]
	*b = float32(float64(*b)*scale + shift)
}

// normalise puts returns into the unit that they are learned in.
func (t *Targets) normalise(s *Samples, u Unit) {
	if u == Raw {
		return
	}
	for _, row := range s.Valid {
		t.Return[row] = u.Normal(t.Return[row])
	}
}

// normalise puts the values of the acting policy into the unit that they are learned in.
func (s *Samples) normalise(u Unit) {
	if u == Raw {
		return
	}
	for _, row := range s.Valid {
		s.Value[row] = u.Normal(s.Value[row])
	}
}

// returnsOf returns the statistics of the valid rows' returns.
func (t *Targets) returnsOf(s *Samples) (r Returns) {
	for _, row := range s.Valid {
		r.Add(float64(t.Return[row]))
	}
	return r
}
