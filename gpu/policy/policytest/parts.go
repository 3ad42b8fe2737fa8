package policytest

import (
	"errors"
	"testing"

	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/gpu/policy"
)

// parts: from blocks that are cut along their environments a learner learns, in every bit, what it learns from blocks of these
// environments alone, and it gathers no other rows.
func (s *suite) parts(t *testing.T) {
	cut, alone := s.shape.options(2), s.shape.options(2*s.shape.envs)
	alone.Envs = 1
	acting, params := s.params(2), s.params(1)
	d, want := Acted(t, s, acting, cut), Acted(t, s, acting, alone)
	n := s.shape.envs / 2
	d.Parts = []trajectory.Part{{First: s.shape.envs - n, Envs: n, Number: 1}, {Envs: n - 1}}
	want.Blocks = want.Blocks[s.shape.envs-n : s.shape.envs+n-1]
	for _, c := range s.variants() {
		got, stats := s.update(t, params, c, d, 2)
		state, wantStats := s.update(t, params, c, want, 2)
		if c.VTrace { // its ratios are computed for all rows of the blocks
			stats.Gathered = wantStats.Gathered
		}
		if stats != wantStats || !sameBits(got, state) {
			t.Errorf("vtrace %v, burn-in %d: from parts it learns %+v, from these environments alone %+v; same bits: %v", c.VTrace, c.BurnInRows, stats, wantStats, sameBits(got, state))
		}
	}
	l := s.learner(t, params, s.config())
	for what, parts := range map[string][]trajectory.Part{
		"parts of one block of two":        {{Envs: 1}},
		"more environments than there are": {{Envs: s.shape.envs + 1}, {}},
		"a part without a mark of its own": {{Envs: 1, Number: trajectory.MaxParts(1)}, {}},
	} {
		d.Parts = parts
		if _, err := l.Update(d, rates); !errors.Is(err, policy.ErrDataset) {
			t.Errorf("Update with %s = %v, want ErrDataset", what, err)
		}
	}
}
