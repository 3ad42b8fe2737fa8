package policy

import (
	"fmt"
	"math"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/gpu/policy/head"
)

var _ component.Doubtful = (*Definition)(nil)

// Shares of the range between an element's bounds that first actions should cover: with a larger deviation almost all of them
// are clipped, with a smaller one they differ too little to learn from.
const (
	leastSpread = 0.03
	mostSpread  = 3
)

// Doubt is about the first Box whose deviation does not suit its bounds when learning begins.
func (d *Definition) Doubt() *component.ConfigError {
	for i := range d.Network.Policy {
		of := &d.Network.Policy[i]
		if of.Gaussian == nil || of.Gaussian.Squash != head.Free {
			continue
		}
		deviation := math.Exp(of.Gaussian.LogStdRange().Clamp(d.Network.firstLogStd(of.From)))
		for e := range of.Gaussian.N {
			part := deviation / of.Bounds.drawn(e)
			if part >= leastSpread && part <= mostSpread || of.Bounds.open(e) {
				continue
			}
			help := "use action = { rescale = true }"
			if of.Bounds.Rescale {
				help = "use a log_std_init nearer to 0"
			}
			return &component.ConfigError{Key: "action", Help: help,
				Reason: fmt.Sprintf("draws first actions for element %d of %s with a deviation of %.3g, which is %.3g times the range from %g to %g",
					e, of.Action, deviation, part, of.Bounds.Low[e], of.Bounds.High[e])}
		}
	}
	return nil
}

// drawn is the range of an element in the units that it is drawn in, open whether it has a side without a bound or is of one
// number alone.
func (b *Bounds) drawn(i int) float64 {
	if b.Rescale {
		return 2
	}
	return float64(b.High[i]) - float64(b.Low[i])
}

func (b *Bounds) open(i int) bool {
	return b.Low[i] <= -Unbounded || b.High[i] >= Unbounded || b.Low[i] == b.High[i]
}

// firstLogStd is the initial logarithm of a Box's deviations; with deviations that depend on the state it is near 0.
func (n *Network) firstLogStd(from string) float64 {
	for i := range n.Nodes {
		if n.Nodes[i].Name == from && n.Nodes[i].Append != nil {
			return n.Nodes[i].Append.Init
		}
	}
	return 0
}
