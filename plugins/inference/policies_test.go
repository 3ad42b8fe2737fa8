package inference

import (
	"math"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/policy/layer"
)

// untouched fills elements that have not been written.
const untouched = 77

// shared is a rig with blocks in whose rows two policies act: main in environments with odd numbers.
func shared(t *testing.T, n policy.Network, maxRows int) *rig {
	t.Helper()
	r := newRigOf(t, New(), n, 1, maxRows)
	r.lend(t, 2, "main rival")
	for _, tr := range r.blocks {
		for i := range tr.Bytes(trajectory.Policy) {
			tr.Bytes(trajectory.Policy)[i] = byte(1 - i%envs%2)
		}
		for i := range tr.Float32(trajectory.LogProb) {
			tr.Int32(trajectory.Action)[i], tr.Float32(trajectory.LogProb)[i] = untouched, untouched
			tr.Float32(trajectory.Bootstrap)[i] = untouched
		}
		for i := range tr.Float32(trajectory.Value) {
			tr.Float32(trajectory.Value)[i] = untouched
		}
		for i := range tr.Uint64(trajectory.PolicyVersion.At(2)) {
			tr.Uint64(trajectory.PolicyVersion.At(2))[i] = untouched
		}
	}
	r.publish(t, r.network, 1)
	return r
}

// A policy's rows are the same as if it acted in all of them, whatever the batches; the others' rows stay as they are.
func TestPolicies_InferenceWritesItsOwnRows(t *testing.T) {
	for name, n := range map[string]policy.Network{"without a state": network(), "with a GRU": keeping(&layer.GRU{Size: 6}, nil)} {
		for _, maxRows := range []int{1024, 1, 2, 3} {
			alone, r := newRigOf(t, New(), n, 2, 1024), shared(t, n, maxRows)
			alone.publish(t, n, 1)
			for _, x := range []*rig{alone, r} {
				for _, tr := range x.blocks {
					for i := range tr.Bytes(trajectory.Truncated) {
						tr.Bytes(trajectory.Truncated)[i] = 1
					}
					for i := range tr.Bytes(trajectory.Age) {
						tr.Bytes(trajectory.Age)[i] = byte(i / envs)
					}
				}
				for row := range steps {
					for block := range 2 {
						x.ask(t, block, row, func(q *trajectory.ActRequest) { q.Bootstrap = row > 0 })
					}
					x.MustSettle()
				}
				x.ask(t, 0, steps, func(q *trajectory.ActRequest) { q.ValueOnly, q.Bootstrap = true, true })
				x.MustSettle()
			}
			for block, tr := range r.blocks {
				want := alone.blocks[block]
				for i := range tr.Float32(trajectory.Value) {
					own := i%envs%2 == 1
					if last := i >= steps*envs; last && block > 0 {
						continue // was not asked for
					}
					checkNumber(t, name, "value", i, own, tr.Float32(trajectory.Value)[i], want.Float32(trajectory.Value)[i])
					if i >= steps*envs {
						continue
					}
					checkNumber(t, name, "log_prob", i, own, tr.Float32(trajectory.LogProb)[i], want.Float32(trajectory.LogProb)[i])
					checkNumber(t, name, "action", i, own, float32(tr.Int32(trajectory.Action)[i]), float32(want.Int32(trajectory.Action)[i]))
					if i < (steps-1)*envs {
						checkNumber(t, name, "bootstrap", i, own, tr.Float32(trajectory.Bootstrap)[i], want.Float32(trajectory.Bootstrap)[i])
					}
				}
				own, other := tr.Uint64(trajectory.PolicyVersion.At(1))[0], tr.Uint64(trajectory.PolicyVersion.At(2))[0]
				if own != 1 || other != untouched {
					t.Errorf("%s: main is said to have acted as version %d, want 1, and the other one as %d, want %d", name, own, other, untouched)
				}
			}
			for _, m := range r.replies {
				if q := trajectory.ActRequestOf(&m); q.Policy != 0 {
					t.Errorf("main answers as policy %d, want 0", q.Policy)
				}
			}
		}
	}
}

func checkNumber(t *testing.T, name, what string, i int, own bool, got, want float32) {
	t.Helper()
	if !own {
		want = untouched
	}
	if math.Float32bits(got) != math.Float32bits(want) {
		t.Fatalf("%s: %s %d is %v, want %v (own %v)", name, what, i, got, want, own)
	}
}

func TestPolicies_OneThatActsNowhereInABlockIsRefused(t *testing.T) {
	r := newRig(t, New(), 1, 8)
	r.lend(t, 1, "past rival")
	r.publish(t, r.network, 1)
	r.ask(t, 0, 0, nil)
	if err := r.Settle(); err == nil || !strings.Contains(err.Error(), `policy "main" acts in none of their rows, those that do: past rival`) {
		t.Errorf("a block of other policies: %v", err)
	}
}

func TestPolicies_OwnRowsAllocateNothing(t *testing.T) {
	shared(t, keeping(&layer.GRU{Size: 6}, nil), 7).servesWithoutAllocating(t)
}
