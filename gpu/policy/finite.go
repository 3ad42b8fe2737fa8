package policy

import (
	"errors"
	"fmt"
)

// ErrNotFinite is wrapped where a number that enters learning, or a parameter, is infinite or not a number.
var ErrNotFinite = errors.New("not a finite number")

func finite(x float32) bool { return x-x == 0 }

// CheckFinite returns an error that wraps ErrNotFinite and names the first tensor of the weights with an element that is infinite or not
// a number. It does not allocate where all are finite.
func (n *Network) CheckFinite(w Weights) error {
	if allFinite(w.Params) && allFinite(w.ObsMean) && allFinite(w.ObsScale) {
		return nil
	}
	for _, p := range n.Params() {
		for i, x := range w.Params[p.Offset:][:p.Rows*p.Cols] {
			if !finite(x) {
				return fmt.Errorf("element %d of tensor %s is %v, %w", i, p.Name, x, ErrNotFinite)
			}
		}
	}
	return fmt.Errorf("the statistics of observations have %w", ErrNotFinite)
}

// allFinite sums what is 0 of each finite number, so that the loop has no branch.
func allFinite(list []float32) bool {
	var zero float32
	for _, x := range list {
		zero += x - x
	}
	return zero == 0
}
