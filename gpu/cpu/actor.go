package cpu

import (
	"fmt"

	"github.com/rlhost/rlhost/core/trajectory"

	"github.com/rlhost/rlhost/gpu/cpu/internal/kern"
	"github.com/rlhost/rlhost/gpu/policy"
)

// actor implements policy.Actor.
type actor struct {
	*pass
	mean, scale []float32
	loaded      bool
	sample      kern.Sample
}

func newActor(set kern.Set, n policy.Network) *actor {
	l := newLayout(n)
	return &actor{pass: newPass(set, l, aligned(l.size))}
}

// Load copies the weights into the backend's layout.
func (a *actor) Load(w policy.Weights) error {
	if err := w.Check(&a.net); err != nil {
		return err
	}
	a.importParams(a.params, w.Params)
	a.mean, a.scale = a.mean[:0], a.scale[:0]
	if a.net.NormalizeObs {
		a.mean, a.scale = append(a.mean, w.ObsMean...), append(a.scale, w.ObsScale...)
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
		if err := r.Check(&a.net); err != nil {
			return fmt.Errorf("request %d: %w", i, err)
		}
		for lo := 0; lo < r.Obs.Rows; lo += a.block {
			if err := a.rows(i, r, lo, min(lo+a.block, r.Obs.Rows)); err != nil {
				return err
			}
		}
	}
	return nil
}

// rows acts on rows lo to hi of request i.
func (a *actor) rows(i int, r *policy.Request, lo, hi int) error {
	n := hi - lo
	x := matrix{r.Obs.Float32()[lo*r.Obs.StrideRow/4:], r.Obs.StrideRow / 4, r.Obs.StrideElem / 4}
	if a.net.NormalizeObs || len(a.layers) == 0 {
		x = a.stage(x, n, a.mean, a.scale)
	}
	a.forward(x, n, r.Action != nil, r.Value[lo:hi])
	if r.Action == nil {
		return nil
	}
	if row := a.forbid(&r.Mask, lo, hi); row >= 0 {
		return &policy.RowError{Request: i, Row: row, Err: policy.ErrNoLegalAction}
	}
	a.sample = kern.Sample{Rows: n, Actions: a.net.Actions, Logits: a.logits, LD: a.block, Seed: r.Seed, Step: r.Step,
		Env: r.FirstEnv + uint32(lo), Greedy: r.Greedy, Action: r.Action[lo:hi], LogProb: r.LogProb[lo:hi], Scratch: a.scratch}
	a.set.Sample(&a.sample)
	a.correct(r, lo, hi)
	return nil
}

// forbid makes the logits of masked actions impossible. It returns the first row without a legal action, or -1.
func (a *actor) forbid(mask *trajectory.Matrix, lo, hi int) int {
	if mask.Rows == 0 {
		return -1
	}
	for row := lo; row < hi; row++ {
		legal := false
		for j := range a.net.Actions {
			if mask.Data[row*mask.StrideRow+j*mask.StrideElem] != 0 {
				legal = true
				continue
			}
			a.logits[j*a.block+row-lo] = kern.Illegal
		}
		if !legal {
			return row
		}
	}
	return -1
}

// correct replaces illegal actions, which only logits that are not numbers can bring about. The mask is the
// guest's, and may have changed: its legal actions are looked at again, but nothing depends on there being one.
func (a *actor) correct(r *policy.Request, lo, hi int) {
	if r.Mask.Rows == 0 {
		return
	}
	for row := lo; row < hi; row++ {
		mask := r.Mask.Data[row*r.Mask.StrideRow:]
		if mask[int(r.Action[row])*r.Mask.StrideElem] != 0 {
			continue
		}
		for j := range a.net.Actions {
			if mask[j*r.Mask.StrideElem] != 0 {
				r.Action[row] = int32(j)
				break
			}
		}
	}
}

// Close does nothing: an actor holds only memory.
func (a *actor) Close() error { return nil }
