package policytest

import "testing"

// accumulates: an optimiser step on several minibatches is the reference's on all their rows at once, and there are as many steps as with
// one minibatch of that size.
func (s *suite) accumulates(t *testing.T) {
	d, params := s.stale(t)
	chunk := max(s.shape.net.Chunk, 1)
	c := s.config()
	c.Minibatch = max(d.Rows()/7/chunk, 1) * chunk
	for _, c.Accumulate = range []int{3, 100} {
		got, stats := s.update(t, params, c, d, 1)
		r := NewReference(s.shape.net, params, c)
		want, err := r.Update(d, rates)
		if err != nil {
			t.Fatal(err)
		}
		s.compareParams(t, got.Params, r.Graph.Params)
		s.compareStats(t, &stats, &want)
		one := c
		one.Minibatch, one.Accumulate = c.Minibatch*c.Accumulate, 1
		if _, whole := s.update(t, params, one, d, 1); stats.OptimizerSteps != whole.OptimizerSteps || stats.Gathered != whole.Gathered {
			t.Errorf("accumulate = %d: %+v, with one minibatch %+v", c.Accumulate, stats, whole)
		}
		if few := c.Accumulate == 100; few != (stats.OptimizerSteps == float64(c.Epochs)) {
			t.Errorf("accumulate = %d: %v optimiser steps", c.Accumulate, stats.OptimizerSteps)
		}
	}
}
