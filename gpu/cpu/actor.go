package cpu

import (
	"fmt"
	"slices"

	"github.com/rlhost/rlhost/gpu/cpu/internal/kern"
	"github.com/rlhost/rlhost/gpu/policy"
)

// actor implements policy.Actor.
type actor struct {
	*pass
	mean, scale []float32
	normal      bool          // observations are normalised
	enters      *policy.Entry // nil for observations that are read as they lie
	loaded      bool
	weights     policy.WeightsFormat
}

func newActor(set kern.Set, l *layout) *actor {
	p := newPass(set, l, aligned(l.whole))
	if l.kept > 0 {
		p.steps = steps{prev: slices.Repeat([]int32{-1}, p.block), state: make([]float32, p.block*l.kept)}
	}
	return &actor{pass: p, weights: l.net.Weights(), normal: l.net.NormalizeObs(), enters: l.entry()}
}

// Load copies the weights into the backend's layout.
func (a *actor) Load(w policy.Weights) error {
	if err := a.weights.Check(&w); err != nil {
		return err
	}
	a.importParams(a.params, w.Params)
	a.derive(a.params)
	a.mean, a.scale = a.mean[:0], a.scale[:0]
	if a.normal {
		a.mean, a.scale = append(a.mean, w.ObsMean...), append(a.scale, w.ObsScale...)
	}
	if a.enters != nil {
		a.enters.Mean, a.enters.Scale = a.mean, a.scale
	}
	a.loaded = true
	return nil
}

// Act serves the requests in order, each in blocks of rows.
func (a *actor) Act(requests []policy.Request) error {
	if !a.loaded {
		return policy.ErrNoWeights
	}
	for i := range requests {
		r := &requests[i]
		if err := a.sizes.Check(r); err != nil {
			return fmt.Errorf("request %d: %w", i, err)
		}
		for lo, rows := 0, r.Len(); lo < rows; lo += a.block {
			if err := a.rows(i, r, lo, min(lo+a.block, rows)); err != nil {
				return err
			}
		}
	}
	return nil
}

// rows acts on rows lo to hi of request i.
func (a *actor) rows(i int, r *policy.Request, lo, hi int) error {
	a.observe(r, lo, hi)
	a.out[a.plan.Value.At] = r.Value[lo:hi]
	if a.kept > 0 {
		a.begin(r, lo, hi)
	}
	a.forward(hi-lo, r.Action != nil || r.StateOut.Rows > 0)
	if r.StateOut.Rows > 0 {
		a.keep(&r.StateOut, lo, hi)
	}
	if r.Action == nil {
		return nil
	}
	if row := a.dist.act(r, lo, hi); row >= 0 {
		return &policy.RowError{Request: i, Row: row, Err: policy.ErrNoLegalAction}
	}
	return nil
}

// observe writes the operations' inputs for rows lo to hi of a request.
func (a *actor) observe(r *policy.Request, lo, hi int) {
	if a.enters != nil {
		a.enter(r, lo, hi)
		return
	}
	obs := &r.Obs[0]
	a.x = matrix{obs.Float32()[lo*obs.StrideRow/4:], obs.StrideRow / 4, obs.StrideElem / 4}
	if a.normal || a.staged {
		a.stage(a.x, hi-lo, a.mean, a.scale)
	}
}

// enter writes the operations' inputs for stored rows lo to hi.
func (a *actor) enter(r *policy.Request, lo, hi int) {
	for row := lo; row < hi; row++ {
		a.enters.Request(a.entered(row-lo, a.staged8, a.stagedX), r, row)
	}
	if a.bytes {
		a.pixels = a.layout.pixels(a.staged8)
	} else {
		a.x = matrix{a.stagedX, a.row, 1}
	}
}

// Close does nothing: an actor holds only memory.
func (a *actor) Close() error { return nil }
