package component

import (
	"encoding/binary"
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

// A guest that never gives its leases back is named when it asks for one too many. Then all of them are given back, so the
// producer of the blocks continues.
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
	if g.faults.Value() != 1 || g.blocks.returned.Value() != 3 {
		t.Errorf("%d faults after which %d leases were given back, want 1 and 3", g.faults.Value(), g.blocks.returned.Value())
	}
	for _, want := range []string{"hoarder", s.Use, "it keeps 3 leases of blocks and asks for another: give them back, or raise limits.leases"} {
		if !strings.Contains(r.Log.String(), want) {
			t.Errorf("the log does not say %s:\n%s", want, r.Log.String())
		}
	}
}

// A run that continued from a state would not have the blocks that are leased: there is none meanwhile, though the guest saves nothing.
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

// A fault costs the guest its state since the last dataset boundary, and not its earlier state. While it keeps blocks no state is saved.
func TestFault_GoesBackToTheLastBoundary(t *testing.T) {
	kind := asm.Get(1) + asm.Load(40)
	does := func(n int32, code asm.Code) asm.Code {
		return kind + asm.Const(n) + asm.Eq + asm.If + asm.Void + code + asm.End
	}
	block := asm.Get(1) + asm.Load(0)
	r, g := started(t, source(file(t, slotOf(does(1, asm.Unreachable)+does(2, block+asm.Call(lease)+asm.Drop), reads("reward")).bytes()), everything...), plugintest.RigOptions{}, nil)
	x := newBlocks(t, r.Host.Arenas, 1, trajectory.Shape{Steps: 2, Envs: 1})
	h := x.with(1)
	const good, trap, keep = 0, 1, 2
	for i, c := range []struct {
		kind     uint16
		boundary bool
		want     uint32 // messages that it knows of
	}{
		{good, false, 1}, {good, true, 2}, {good, false, 3}, {trap, false, 2}, // messages after the boundary are lost
		{trap, false, 2}, {keep, true, 3}, {good, false, 4}, {trap, false, 2}, // a boundary during a lease does not count
	} {
		g.handle(g.slots[0], &hostabi.Message{Handle: h, Kind: c.kind})
		if c.boundary {
			g.SaveState()
		}
		if got := binary.LittleEndian.Uint32(g.run.View(noteAt, 4)); got != c.want {
			t.Errorf("after message %d it has counted %d, want %d", i+1, got, c.want)
		}
	}
	must(t, x.arena.Release(h))
}
