package ppo_test

import (
	"errors"
	"math"
	"testing"

	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/policy/policytest"
	"github.com/rlhost/rlhost/gpu/ppo"
)

// A guest can write anything to its rows. A bad index or number is refused, with the row.
func TestReadRefusesBadRows(t *testing.T) {
	const bad = 5
	n := policy.MLP{Obs: 2, Actions: 2, Activation: policy.Tanh}.Network()
	for name, c := range map[string]struct {
		spoil func(b trajectory.Trajectory)
		want  error
	}{
		"a negative action": {func(b trajectory.Trajectory) { b.Int32(trajectory.Action)[bad] = -1 }, policy.ErrActionRange},
		"a large action":    {func(b trajectory.Trajectory) { b.Int32(trajectory.Action)[bad] = 2 }, policy.ErrActionRange},
		"an illegal action": {func(b trajectory.Trajectory) { copy(b.Bytes(trajectory.Mask)[2*bad:], []byte{0, 1}) }, policy.ErrActionRange},
		"no legal action":   {func(b trajectory.Trajectory) { clear(b.Bytes(trajectory.Mask)[2*bad : 2*bad+2]) }, policy.ErrNoLegalAction},
		"a value":           {func(b trajectory.Trajectory) { b.Float32(trajectory.Value)[bad] = float32(math.NaN()) }, policy.ErrNotFinite},
		"a log-probability": {func(b trajectory.Trajectory) { b.Float32(trajectory.LogProb)[bad] = float32(math.Inf(-1)) }, policy.ErrNotFinite},
	} {
		d := policytest.NewDataset(t, policytest.Options{Network: n, Steps: 5, Envs: 2, Blocks: 1, Masked: true, Seed: 1})
		for i := range d.Blocks[0].Bytes(trajectory.Mask) {
			d.Blocks[0].Bytes(trajectory.Mask)[i] = 1
		}
		c.spoil(d.Blocks[0])
		var s ppo.Samples
		var row *policy.RowError
		if err := s.Read(d, &n); !errors.Is(err, c.want) || !errors.As(err, &row) || row.Row != bad {
			t.Errorf("%s: Read = %v, want %v of row %d", name, err, c.want, bad)
		}
	}
}

// The parts of an epoch are as few as minibatches of that size can be, in order, and differ by one row at most; where
// the size divides the rows they are all of that size.
func TestS15MinibatchesAreNearlyEqualParts(t *testing.T) {
	for n := range 300 {
		all := make([]uint32, n)
		for i := range all {
			all[i] = uint32(i)
		}
		for size := 1; size <= n+2; size++ {
			least, most, count, next := n, 0, 0, uint32(0)
			for rows, rest := []uint32(nil), all; len(rest) > 0; count++ {
				rows, rest = ppo.NextMinibatch(rest, size)
				least, most = min(least, len(rows)), max(most, len(rows))
				for _, row := range rows {
					if row != next {
						t.Fatalf("%d rows of %d: row %d follows %d", n, size, row, int(next)-1)
					}
					next++
				}
			}
			if next != uint32(n) || count != (n+size-1)/size || most > size || n > 0 && most-least > 1 {
				t.Fatalf("%d rows in minibatches of at most %d: %d of %d to %d rows, %d in all", n, size, count, least, most, next)
			}
			if n%size == 0 && n > 0 && least != size {
				t.Fatalf("%d rows in minibatches of %d, which divides them: one has %d", n, size, least)
			}
		}
	}
}
