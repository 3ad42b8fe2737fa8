package component

import (
	"errors"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/arena"
	core "github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/plugintest"
	"github.com/rlhost/rlhost/plugins/wasm/internal/asm"
)

// A guest that never gives its leases back is named where it asks for one too many; then all of them are given back, so that who
// fills the blocks goes on.
func TestLease_TooManyAreAFaultOfTheGuest(t *testing.T) {
	s := source(file(t, slotOf(asm.Get(1)+asm.Load(0)+asm.Call(lease)+asm.Drop, reads("reward")).bytes()), everything...)
	s.Leases = 3
	r, g := started(t, s, plugintest.RigOptions{Name: "hoarder"}, nil)
	x := newBlocks(t, r.Host.Arenas, 4, trajectory.Shape{Steps: 2, Envs: 1})
	holds := func() (n int) {
		core.Holder(g).Holds(func(a *arena.Arena, _ hostabi.Handle) {
			if n++; a != x.arena {
				t.Errorf("a block of %s", a.Name())
			}
		})
		return n
	}
	for i, want := range []int{1, 2, 3, 0, 1} {
		h := x.with(float32(i))
		g.handle(g.slots[0], &hostabi.Message{Handle: h})
		must(t, x.arena.Release(h))
		if got := holds(); got != want {
			t.Errorf("after %d messages it holds %d blocks, want %d", i+1, got, want)
		}
	}
	if g.faults.Value() != 1 || g.returned.Value() != 3 {
		t.Errorf("%d faults after which %d leases were given back, want 1 and 3", g.faults.Value(), g.returned.Value())
	}
	for _, want := range []string{"hoarder", s.Use, "it keeps 3 leases of blocks and asks for another: give them back, or raise limits.leases"} {
		if !strings.Contains(r.Log.String(), want) {
			t.Errorf("the log does not say %s:\n%s", want, r.Log.String())
		}
	}
}

// Whoever continued from a state would not have the blocks that are leased: there is none meanwhile, though the guest saves nothing.
func TestSnapshot_ThereIsNoneWhileBlocksAreLeased(t *testing.T) {
	r, g := started(t, source(example("chooser")), plugintest.RigOptions{}, map[string]any{"of": int64(2)})
	x := newBlocks(t, r.Host.Arenas, 2, trajectory.Shape{Steps: 2, Envs: 1})
	for i, keeps := range []bool{true, false} {
		h := x.with(float32(i))
		g.handle(g.slots[0], &hostabi.Message{Handle: h})
		must(t, x.arena.Release(h))
		if _, err := g.Snapshot(); errors.Is(err, core.ErrNoSnapshot) != keeps || (err == nil) == keeps {
			t.Errorf("after %d messages Snapshot = %v; keeps blocks %t", i+1, err, keeps)
		}
	}
}
