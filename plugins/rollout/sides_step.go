package rollout

import (
	"github.com/rlhost/rlhost/core/trajectory"
)

// stepSides steps every batch with the actions of row t.
func (s *split) stepSides() {
	d := s.sides
	d.waits, s.arrived = 0, 0
	for _, b := range d.all {
		b.calls++
		s.giveActions(b)
		if b.starter == nil {
			continue
		}
		over, err := b.starter.StartStep(s.t, s.ready)
		if b.err, b.stepping = err, !over; !over {
			d.waits++
		}
	}
	for _, b := range d.all {
		if b.starter == nil {
			b.err = b.env.Step(s.t)
		}
	}
	if s.stepping = d.waits > 0; !s.stepping {
		s.stepped(nil)
	}
}

// arrivedSide goes on when all batches have stepped.
func (s *split) arrivedSide() {
	d := s.sides
	if s.arrived++; s.arrived < d.waits {
		return
	}
	for _, b := range d.all {
		if b.stepping {
			b.stepping = false
			b.err = b.starter.FinishStep()
		}
	}
	s.stepping = false
	s.stepped(nil)
}

// giveActions copies the actions of row t. An environment that another one stands for gets the same one, or a legal
// one where masks say which those are: it may be at another place.
func (s *split) giveActions(b *batch) {
	to := b.pad.tr.Row(trajectory.Action, s.t)
	copy(to.Data, s.tr.Row(trajectory.Action, s.t).Data)
	if !s.tr.Schema.Has(trajectory.Mask) {
		return
	}
	mask, action := b.pad.tr.Row(trajectory.Mask, s.t), b.pad.tr.Int32(trajectory.Action)[s.t*s.n:]
	for env := range s.n {
		if s.sides.owner[env] != b {
			action[env] = firstLegal(mask, env)
		}
	}
}

func firstLegal(mask trajectory.Matrix, env int) int32 {
	for a := range mask.Elems {
		if mask.Data[env*mask.StrideRow+a*mask.StrideElem] != 0 {
			return int32(a)
		}
	}
	return 0
}

// gather copies what the step of row t has written for the environments that count into the split's block.
func (s *split) gather() {
	t := s.t
	for env, b := range s.sides.owner {
		s.tr.CopyOutcomeOf(env, t, b.pad.tr)
		s.gatherObs(t+1, env)
	}
}

// gatherObs copies what one environment observes in a row.
func (s *split) gatherObs(row, env int) {
	s.tr.CopyObservedOf(env, row, s.sides.owner[env].pad.tr, row)
}
