package component

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/plugintest"
	"github.com/rlhost/rlhost/plugins/wasm/internal/asm"
)

// first is the first element of the slot's first column.
func first() asm.Code { return asm.Get(1) + asm.Load(4) + asm.Load(0) + asm.Load(0) }

// noted returns a number that the guest has noted.
func noted(t testing.TB, g *guest) float32 {
	t.Helper()
	return math.Float32frombits(binary.LittleEndian.Uint32(g.run.View(noteAt, 4)))
}

// reader is a guest that notes the first reward of each block.
func reader(before asm.Code) built {
	return slotOf(asm.Const(noteAt)+first()+asm.Store(0)+before, reads("reward"))
}

// More blocks than windows: the least recently used gives way, and what is read is the block's all the same.
func TestWindows_TheLeastRecentlyUsedGivesWay(t *testing.T) {
	const n = maxWindows + 20
	r, g := started(t, source(file(t, reader("").bytes()), everything...), plugintest.RigOptions{}, nil)
	x := newBlocks(t, r.Host.Arenas, n, trajectory.Shape{Steps: 2, Envs: 1})
	var all []hostabi.Handle
	for i := range n {
		all = append(all, x.with(float32(i)))
	}
	read := func(i int) {
		t.Helper()
		g.handle(g.slots[0], &hostabi.Message{Handle: all[i]})
		if got := noted(t, g); got != float32(i) {
			t.Errorf("block %d: the guest reads %v", i, got)
		}
	}
	for i := range n {
		read(i)
		read(0) // used all the time, so it stays
	}
	if got := g.remapped.Value(); got != n-maxWindows {
		t.Errorf("%d windows remapped, want %d", got, n-maxWindows)
	}
	if len(g.windows.list) != maxWindows {
		t.Errorf("%d windows, want %d", len(g.windows.list), maxWindows)
	}
	read(1) // which has given way
	if got := g.remapped.Value(); got != n-maxWindows+1 {
		t.Errorf("%d windows remapped, want one more", got)
	}
	for _, h := range all {
		must(t, x.arena.Release(h))
	}
}

// A guest without memory for another window uses one that it has.
func TestWindows_MakeDoWithTheMemoryThereIs(t *testing.T) {
	s := source(file(t, reader("").bytes()), everything...)
	s.Memory = 6 * wasmPage
	r, g := started(t, s, plugintest.RigOptions{}, nil)
	x := newBlocks(t, r.Host.Arenas, 8, trajectory.Shape{Steps: 2, Envs: 1})
	var all []hostabi.Handle
	for i := range 8 {
		all = append(all, x.with(float32(i)))
	}
	for i := range 16 {
		g.handle(g.slots[0], &hostabi.Message{Handle: all[i%8]})
		if got := noted(t, g); got != float32(i%8) {
			t.Errorf("block %d: the guest reads %v", i%8, got)
		}
	}
	for _, h := range all {
		must(t, x.arena.Release(h))
	}
	if g.remapped.Value() == 0 {
		t.Error("no window was remapped")
	}
}

// wasmPage is the unit of a guest's memory.
const wasmPage = 65536

// A leased block stays where it is, however many come after it, and its guest can read it in a later call.
func TestLease_KeepsTheBlockInItsPlace(t *testing.T) {
	// The first message's block is leased and its column's address kept; the last message, with Kind 1, reads there.
	kept := int32(noteAt + 8)
	code := asm.Const(kept) + asm.Load(0) + asm.Eqz + asm.If + asm.Void +
		asm.Get(1) + asm.Load(0) + asm.Call(lease) + asm.Drop +
		asm.Const(kept) + asm.Get(1) + asm.Load(4) + asm.Load(0) + asm.Store(0) + asm.End +
		asm.Const(noteAt) + asm.Const(kept) + asm.Load(0) + asm.Load(0) + asm.Store(0)
	r, g := started(t, source(file(t, slotOf(code, reads("reward")).bytes()), everything...), plugintest.RigOptions{}, nil)
	const n = maxWindows + 5
	x := newBlocks(t, r.Host.Arenas, n, trajectory.Shape{Steps: 2, Envs: 1})
	for i := range n - 1 {
		h := x.with(float32(100 + i))
		g.handle(g.slots[0], &hostabi.Message{Handle: h})
		must(t, x.arena.Release(h))
		if got := noted(t, g); got != 100 {
			t.Fatalf("after %d messages the leased block reads %v, want 100", i+1, got)
		}
	}
}

// After a fault the windows are mapped anew.
func TestFault_LeavesTheWindowsRight(t *testing.T) {
	// It traps where the first reward is 2.
	trap := first() + asm.Const(int32(math.Float32bits(2))) + asm.Eq + asm.If + asm.Void + asm.Unreachable + asm.End
	x := newScene(t, source(file(t, reader(trap).bytes()), everything...), nil)
	for _, v := range []float32{1, 2, 3, 2, 4} {
		must(t, x.send(v))
		if got := noted(t, x.g); v != 2 && got != v {
			t.Errorf("the guest reads %v, want %v", got, v)
		}
	}
	if n := x.g.faults.Value(); n != 2 {
		t.Errorf("%d faults, want 2", n)
	}
}
