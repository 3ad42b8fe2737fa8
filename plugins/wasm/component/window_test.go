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

// writesReward writes 0.5 to the first reward, through the binding of its first column, and then code runs.
func writesReward(then asm.Code) built {
	at := asm.Get(1) + asm.Load(4) + asm.Load(0)
	return slotOf(at+asm.Const(0x3f000000)+asm.Store(0)+then+passOn(), hostabi.ManifestColumn{Name: "reward", Flags: hostabi.ColumnWrite}, reads("obs"))
}

// A column that may be written and has pages of its own is written where it lies, of a block of any size: nothing is copied. All
// other pages are a private view.
func TestWritable_OnPagesOfItsOwnIsTheBlock(t *testing.T) {
	obs := asm.Get(1) + asm.Load(4) + asm.Load(hostabi.ColumnBindingBytes) // where the second column lies
	r, g := started(t, source(file(t, writesReward(obs+asm.Const(0x40000000)+asm.Store(0)).bytes()), everything...),
		plugintest.RigOptions{Grants: map[string][]string{"in": {"reward"}}}, nil)
	x := newBlocks(t, r.Host.Arenas, 2, trajectory.Shape{Steps: 512, Envs: 256, Granted: "reward"})
	if x.schema.Bytes < 1<<20 {
		t.Fatalf("blocks of %d bytes, want 1 MiB or more", x.schema.Bytes)
	}
	place := placesOf(x.schema)["reward"]
	for range 2 {
		h := x.with(1, 2)
		g.handle(g.slots[0], &hostabi.Message{Handle: h})
		if got := x.rewards(h); got[0] != 0.5 || got[1] != 2 {
			t.Errorf("the block has rewards %v, want 0.5 and what its maker wrote", got[:2])
		}
		w := g.windows.list[len(g.windows.list)-1]
		lease, err := x.arena.Lease(h)
		must(t, err)
		tr := trajectory.Trajectory{Schema: x.schema, Mem: lease.Bytes()}
		if !sameFile(t, g.run.View(w.at+place.offset, place.bytes), tr.Bytes(trajectory.Reward)) {
			t.Error("the pages that the guest writes are not those of the block")
		}
		if v := tr.Float32(trajectory.Obs)[0]; v == 2 {
			t.Error("what the guest wrote where it may only read is in the block")
		}
		must(t, lease.Release())
		must(t, x.arena.Release(h))
	}
	if n := g.copied.Value(); n != 0 {
		t.Errorf("%d bytes copied, want 0", n)
	}
}

// After a fault the pages of the block stay as they are: nothing of the guest's earlier state is put into them.
func TestWritable_AFaultLeavesTheBlockAlone(t *testing.T) {
	trap := first() + asm.Const(0x3f000000) + asm.Eq + asm.If + asm.Void + asm.Unreachable + asm.End // always
	r, g := started(t, source(file(t, writesReward(trap).bytes()), everything...), plugintest.RigOptions{Grants: map[string][]string{"in": {"reward"}}}, nil)
	x := newBlocks(t, r.Host.Arenas, 1, trajectory.Shape{Steps: 8, Envs: 256, Granted: "reward"})
	h := x.with(1, 2, 3)
	g.handle(g.slots[0], &hostabi.Message{Handle: h})
	if got := x.rewards(h); got[0] != 0.5 || got[1] != 2 || got[2] != 3 || g.faults.Value() != 1 {
		t.Errorf("rewards %v after %d faults, want what was written before the one", got[:3], g.faults.Value())
	}
	must(t, x.arena.Release(h))
}

// A slot whose wire grants nothing sees the pages as a private view, though another slot may write them.
func TestWritable_IsForTheSlotOfTheGrant(t *testing.T) {
	m := hostabi.Manifest{Name: "built@1",
		Signals: []hostabi.ManifestPort{{Name: "out", Payload: "trajectory"}},
		Slots:   []hostabi.ManifestPort{{Name: "in", Payload: "trajectory"}, {Name: "looks", Payload: "trajectory"}},
		Columns: []hostabi.ManifestColumn{{Slot: 0, Name: "reward", Flags: hostabi.ColumnWrite}, {Slot: 1, Name: "reward"}}}
	at := asm.Get(1) + asm.Load(4) + asm.Load(0)
	b := built{functions: map[string]asm.Code{hostabi.ExportSlot: at + asm.Const(0x3f000000) + asm.Store(0) + asm.Const(0)}, manifest: m.Describe()}
	r, g := started(t, source(file(t, b.bytes()), everything...), plugintest.RigOptions{Grants: map[string][]string{"in": {"reward"}}}, nil)
	x := newBlocks(t, r.Host.Arenas, 1, trajectory.Shape{Steps: 8, Envs: 4, Granted: "reward"})
	for _, c := range []struct {
		slot int
		want float32
	}{{0, 0.5}, {1, 1}, {0, 0.5}, {1, 1}} {
		h := x.with(1)
		g.handle(g.slots[c.slot], &hostabi.Message{Handle: h})
		if got := x.rewards(h)[0]; got != c.want {
			t.Errorf("slot %d leaves reward %v, want %v", c.slot, got, c.want)
		}
		must(t, x.arena.Release(h))
	}
}
