package policy

import (
	"errors"
	"fmt"
	"math"

	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/gpu/policy/head"
)

// Bounds are the bounds of a Box, by element, and how raw samples become actions within them. A side without a bound has ±Unbounded.
type Bounds struct {
	Low  []float32 `json:"low"`
	High []float32 `json:"high"`
	// Rescale maps -1 to Low and 1 to High. Without it actions are drawn in the environment's units. Values beyond the
	// bounds are clipped. A squashed distribution lies between -1 and 1 and is always rescaled.
	Rescale bool `json:"rescale,omitempty"`
}

// Unbounded is the bound of an element that has none.
const Unbounded = math.MaxFloat32

// Within returns the action of element i for a raw sample. It is within the bounds for any sample.
func (b *Bounds) Within(i int, raw float32, squash head.Squash) float32 {
	low, high := b.Low[i], b.High[i]
	if squash == head.Tanh {
		raw = float32(math.Tanh(float64(raw)))
	}
	if b.Rescale || squash != head.Free {
		raw = low + (raw+1)*0.5*(high-low)
	}
	if !(raw >= low) { // not a number as well
		return low
	}
	return min(raw, high)
}

// Edges are the bounds for the mean of an element of a Box, in the units of its samples.
type Edges struct {
	Low, High float32 // ±Unbounded where there is none
	Scale     float32 // how many half ranges a unit is; 1 where a side has no bound
}

// squashedEdge is where tanh is within 0.5 % of its bound.
const squashedEdge = 3

// edges returns the edges of a Box, which are its bounds; nil for other actions.
func (d *Dist) edges() []Edges {
	if d.Bounds == nil || d.Gaussian == nil {
		return nil
	}
	list := make([]Edges, d.Gaussian.N)
	for i := range list {
		low, high := d.Bounds.Low[i], d.Bounds.High[i]
		switch {
		case d.Gaussian.Squash == head.Tanh:
			list[i] = Edges{-squashedEdge, squashedEdge, 1}
		case d.Bounds.Rescale:
			list[i] = Edges{-1, 1, 1}
		case d.Bounds.open(i):
			list[i] = Edges{low, high, 1}
		default:
			list[i] = Edges{low, high, 2 / (high - low)}
		}
	}
	return list
}

// Beyond returns how far a mean lies outside, in units: negative below Low, positive above High, else 0.
func (e *Edges) Beyond(mean float32) float32 {
	switch {
	case mean < e.Low:
		return mean - e.Low
	case mean > e.High:
		return mean - e.High
	}
	return 0
}

// Place writes the environment's actions for sampled rows of a Box.
func (d *Dist) Place(raw, action *trajectory.Matrix, lo, hi int) {
	from, to := raw.Float32(), action.Float32()
	for row := lo; row < hi; row++ {
		for i := range raw.Elems {
			to[(row*action.StrideRow+i*action.StrideElem)/4] = d.Bounds.Within(i, from[(row*raw.StrideRow+i*raw.StrideElem)/4], d.Gaussian.Squash)
		}
	}
}

func (d *Dist) checkBounds(of head.Dist) error {
	switch b := d.Bounds; {
	case !of.Continuous() && b != nil:
		return fmt.Errorf(": bounds of %v, which is not a Box", of)
	case !of.Continuous():
		return nil
	case b == nil || len(b.Low) != of.Size() || len(b.High) != of.Size() || d.Start != 0:
		return fmt.Errorf(": %v without bounds for each element, or with a start", of)
	}
	for i, low := range d.Bounds.Low {
		high := d.Bounds.High[i]
		if !(low <= high) || !finite(low) || !finite(high) {
			return fmt.Errorf(": element %d has bounds %g..%g", i, low, high)
		}
		if d.Scaled() && (low <= -Unbounded || high >= Unbounded) {
			return fmt.Errorf(": element %d: %w", i, ErrUnbounded)
		}
	}
	return nil
}

// ErrUnbounded is wrapped where the bounds of a Box must be finite and are not.
var ErrUnbounded = errors.New("an element without two finite bounds can be neither rescaled nor squashed")

// Scaled reports whether the bounds of a Box scale its raw samples.
func (d *Dist) Scaled() bool {
	return d.Bounds.Rescale || d.Gaussian != nil && d.Gaussian.Squash != head.Free
}

// within describes start and bounds for Lines.
func (d *Dist) within() string {
	switch {
	case d.Bounds != nil && d.Scaled():
		return fmt.Sprintf(" scaled to %v..%v", d.Bounds.Low, d.Bounds.High)
	case d.Bounds != nil:
		return fmt.Sprintf(" within %v..%v", d.Bounds.Low, d.Bounds.High)
	case d.Start != 0:
		return fmt.Sprintf(" from %d", d.Start)
	}
	return ""
}
