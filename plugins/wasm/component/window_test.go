package component

import (
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/plugintest"
	"github.com/rlhost/rlhost/plugins/wasm/internal/asm"
)

// first is the first element of the slot's first column.
func first() asm.Code { return asm.Get(1) + asm.Load(4) + asm.Load(0) + asm.Load(0) }

// noted returns a number that the guest has noted.
func noted(t testing.TB, g *component) float32 {
	t.Helper()
	return math.Float32frombits(binary.LittleEndian.Uint32(g.run.View(noteAt, 4)))
}

// reader is a guest that notes the first reward of each block.
func reader(before asm.Code) built {
	return slotOf(asm.Const(noteAt)+first()+asm.Store(0)+before, reads("reward"))
}

// More blocks than windows: the least recently used gives way, and the guest still reads the right block.
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

// A guest without memory for another window uses an existing one.
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

// Windows larger than the limit do not count against it.
func TestWindows_DoNotCountAgainstTheLimit(t *testing.T) {
	s := source(file(t, reader("").bytes()), everything...)
	s.Memory = 1 << 20
	r, g := started(t, s, plugintest.RigOptions{}, nil)
	x := newBlocks(t, r.Host.Arenas, 4, trajectory.Shape{Steps: 512, Envs: 256})
	if x.schema.Bytes < 1<<20 {
		t.Fatalf("blocks of %d bytes, want more than the limit", x.schema.Bytes)
	}
	for i := range 8 {
		h := x.with(float32(i))
		g.handle(g.slots[0], &hostabi.Message{Handle: h})
		if got := noted(t, g); got != float32(i) {
			t.Errorf("block %d: the guest reads %v", i, got)
		}
		must(t, x.arena.Release(h))
	}
	if n, faults := g.remapped.Value(), g.faults.Value(); n != 0 || faults != 0 || g.run.in.OverLimit() {
		t.Errorf("%d windows remapped, %d faults, over the limit: %v", n, faults, g.run.in.OverLimit())
	}
}

// oneWindow is a guest that gives one window. Where another is asked for it grows the memory as far as that goes, and gives none.
func oneWindow() built {
	const given = noteAt + 8
	grow := asm.Loop + asm.Void + asm.Const(1) + asm.MemoryGrow + asm.Const(-1) + asm.Eq + asm.Eqz + asm.BrIf(0) + asm.End
	b := reader("")
	b.functions[hostabi.ExportAlloc] = asm.Get(1) + asm.Const(wasmPage) + asm.Eq + asm.If + asm.Void +
		asm.Const(given) + asm.Load(0) + asm.If + asm.Void + grow + asm.Const(0) + asm.Return + asm.End +
		asm.Const(given) + asm.Const(1) + asm.Store(0) + asm.End + allocate()
	return b
}

// A guest that keeps what it got to make a window of is put back, and has no more than its limit then; the window that it has is not
// made to do for the other block.
func TestWindows_AGuestKeepsNothingOfTheirRoom(t *testing.T) {
	r, g := started(t, hostile(t, oneWindow()), plugintest.RigOptions{}, nil)
	x := newBlocks(t, r.Host.Arenas, 2, trajectory.Shape{Steps: 256, Envs: 64})
	all := []hostabi.Handle{x.with(1), x.with(2)}
	for n := range 4 {
		g.handle(g.slots[0], &hostabi.Message{Handle: all[n%2]})
		if want := uint64(n+1) / 2; g.faults.Value() != want || g.run.in.Mem.Size > 4<<20 || g.run.in.OverLimit() || g.remapped.Value() != 0 {
			t.Errorf("after %d messages %d faults, want %d, %d windows remapped and a memory of %d bytes; log: %s",
				n+1, g.faults.Value(), want, g.remapped.Value(), g.run.in.Mem.Size, r.Log.String())
		}
	}
	if want := "to give, though a window does not count against its memory limit of 4 MiB"; !strings.Contains(r.Log.String(), want) {
		t.Errorf("the log says %s, want %q", r.Log.String(), want)
	}
	for _, h := range all {
		must(t, x.arena.Release(h))
	}
}

// A window that was given back to the guest since its state was saved is one of the host's again after a fault.
func TestFault_HasTheWindowsOfTheState(t *testing.T) {
	x := newScene(t, source(file(t, reader("").bytes()), everything...), nil)
	must(t, x.send(1))
	x.g.save()
	w := *x.g.windows.list[0]
	must(t, x.g.free(x.g.windows.list[0]))
	must(t, x.g.goBack())
	if list := x.g.windows.list; len(list) != 1 || list[0].at != w.at || list[0].bytes != w.bytes || list[0].view != nil {
		t.Errorf("%d windows after the fault, want the one that was saved, with nothing mapped on it", len(list))
	}
	must(t, x.send(2))
	if got := noted(t, x.g); got != 2 || len(x.g.windows.list) != 1 {
		t.Errorf("the guest reads %v in %d windows", got, len(x.g.windows.list))
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

// After a fault the windows are mapped again.
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

// A column that may be written and has its own pages is written in place, in a block of any size: nothing is copied. All other
// pages are a private view.
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

// After a fault the block has its contents from before the call, and a repeated request finds them: nothing is shaped twice.
func TestWritable_AFaultLeavesTheBlockAlone(t *testing.T) {
	trap := first() + asm.Const(0x3f000000) + asm.Eq + asm.If + asm.Void + asm.Unreachable + asm.End // always
	r, g := started(t, source(file(t, writesReward(trap).bytes()), everything...), plugintest.RigOptions{Grants: map[string][]string{"in": {"reward"}}}, nil)
	x := newBlocks(t, r.Host.Arenas, 1, trajectory.Shape{Steps: 8, Envs: 256, Granted: "reward"})
	h := x.with(1, 2, 3)
	for range 2 { // the window is there at first, and mapped before at second
		g.handle(g.slots[0], &hostabi.Message{Handle: h})
	}
	if got := x.rewards(h); got[0] != 1 || got[1] != 2 || got[2] != 3 || g.faults.Value() != 2 {
		t.Errorf("rewards %v after %d faults, want those of before", got[:3], g.faults.Value())
	}
	must(t, x.arena.Release(h))
}

// A shaper that adds to the values in the block, and traps before it answers, finds the same values when it is asked again.
func TestRequest_ComesAgainOverWhatStoodThere(t *testing.T) {
	m := hostabi.Manifest{Name: "built@1", Columns: []hostabi.ManifestColumn{{Name: "shaped_reward", Flags: hostabi.ColumnWrite}},
		Signals: []hostabi.ManifestPort{{Name: "shaped", Payload: "shaped_rewards"}}, Slots: []hostabi.ManifestPort{{Name: "on_rewards", Payload: "reward_request"}}}
	at := asm.Get(1) + asm.Load(4) + asm.Load(0)
	add := at + at + asm.Load(0) + asm.Const(0x100000) + asm.Add + asm.Store(0)
	for name, c := range map[string]struct {
		then   asm.Code
		faults uint64
		want   float32
	}{"answers": {passOn(), 0, 1.125}, "traps": {asm.Unreachable, 4, 1}, "answers and traps": {passOn() + asm.Unreachable, 1, 1.125}} {
		b := built{functions: map[string]asm.Code{hostabi.ExportSlot: add + c.then + asm.Const(0)}, manifest: m.Describe()}
		r, g := started(t, source(file(t, b.bytes()), everything...), plugintest.RigOptions{Grants: granted()}, nil)
		loan, err := newBlocks(t, r.Host.Arenas, 1, trajectory.Shape{Steps: 2, Envs: 2, Granted: "shaped_reward"}).arena.Loan()
		must(t, err)
		tr, err := trajectory.Borrowed(r.Host.Arenas, loan.Handle())
		must(t, err)
		tr.Float32(trajectory.ShapedReward)[0] = 1
		request := trajectory.BlockRequest{Block: loan.Handle()}.Message()
		g.handle(g.slots[0], &request)
		if got := tr.Float32(trajectory.ShapedReward)[0]; got != c.want || g.faults.Value() != c.faults {
			t.Errorf("%s: %v after %d faults, want %v after %d", name, got, g.faults.Value(), c.want, c.faults)
		}
		must(t, loan.Abort())
	}
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
