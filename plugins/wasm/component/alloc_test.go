//go:build !invariants

package component

import (
	"testing"

	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/plugintest"
)

// In the invariants build each claim keeps its stack.
func TestSlot_ACallAllocatesNothing(t *testing.T) {
	for name, columns := range map[string][]hostabi.ManifestColumn{
		"reads": {reads("reward"), reads("obs")}, "writes": {{Name: "reward", Flags: hostabi.ColumnWrite}},
	} {
		t.Run(name, func(t *testing.T) {
			s := source(file(t, slotOf(passOn(), columns...).bytes()), everything...)
			r, g := started(t, s, plugintest.RigOptions{Grants: map[string][]string{"in": {"reward"}}}, nil)
			x := newBlocks(t, r.Host.Arenas, 2, trajectory.Shape{Steps: 4, Envs: 2})
			a, b := x.with(1), x.with(2)
			call := func() {
				g.handle(g.slots[0], &hostabi.Message{Handle: a})
				g.handle(g.slots[0], &hostabi.Message{Handle: b})
			}
			call()
			if n := testing.AllocsPerRun(200, call); n != 0 {
				t.Errorf("%v allocations for two slot calls, want 0", n)
			}
			must(t, x.arena.Release(a))
			must(t, x.arena.Release(b))
		})
	}
}
