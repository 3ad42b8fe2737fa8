package policy

import (
	"errors"
	"fmt"
)

// ErrNoWeights is returned by an actor that is asked to act before its first Load.
var ErrNoWeights = errors.New("no weights loaded")

// Check reports whether a request's views have the sizes of a network that observes obs elements and has so many
// actions, so that a backend can index them freely.
func (r *Request) Check(obs, actions int) error {
	rows := r.Obs.Rows
	switch {
	case r.Rows != nil || r.State.Data != nil || r.StateOut.Data != nil || r.Start != nil:
		return fmt.Errorf("named rows and recurrent state: %w", ErrUnsupported)
	case rows < 0 || r.Obs.Elems != obs:
		return fmt.Errorf("%d rows of %d observed elements, the network has %d", rows, r.Obs.Elems, obs)
	case r.Obs.StrideRow < 0 || r.Obs.StrideElem < 0 || r.Obs.StrideRow%4 != 0 || r.Obs.StrideElem%4 != 0:
		return fmt.Errorf("observation strides %d and %d", r.Obs.StrideRow, r.Obs.StrideElem)
	case rows > 0 && (rows-1)*r.Obs.StrideRow+(obs-1)*r.Obs.StrideElem+4 > len(r.Obs.Data):
		return fmt.Errorf("observations of %d bytes are too few for %d rows", len(r.Obs.Data), rows)
	case len(r.Value) < rows:
		return fmt.Errorf("room for %d values of %d", len(r.Value), rows)
	case r.Action == nil:
		return nil
	case len(r.Action) < rows || len(r.LogProb) < rows:
		return fmt.Errorf("room for %d actions and %d log-probabilities of %d", len(r.Action), len(r.LogProb), rows)
	case r.Mask.Rows == 0:
		return nil
	case r.Mask.Rows != rows || r.Mask.Elems != actions || r.Mask.StrideRow < 0 || r.Mask.StrideElem < 0:
		return fmt.Errorf("mask of %d rows of %d actions, the network has %d", r.Mask.Rows, r.Mask.Elems, actions)
	case rows > 0 && (rows-1)*r.Mask.StrideRow+(actions-1)*r.Mask.StrideElem+1 > len(r.Mask.Data):
		return fmt.Errorf("mask of %d bytes is too small for %d rows", len(r.Mask.Data), rows)
	}
	return nil
}
