package component

import (
	"errors"
	"testing"

	"github.com/rlhost/rlhost/core/arena"
	core "github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/plugintest"
	"github.com/rlhost/rlhost/plugins/wasm/internal/asm"
)

// keptAt is where a late guest keeps the address of the first element that it was granted.
const keptAt = noteAt + 8

// late is a guest that writes 0.5 where it is granted, answers, and keeps the address; then writes 2 there in another way.
func late(after asm.Code, others map[string]asm.Code) built {
	m := hostabi.Manifest{Name: "late@1",
		Signals: []hostabi.ManifestPort{{Name: "shaped", Payload: "shaped_rewards"}, {Name: "out", Payload: "trajectory"}},
		Slots:   []hostabi.ManifestPort{{Name: "asked", Payload: "reward_request"}, {Name: "in", Payload: "trajectory"}},
		Columns: []hostabi.ManifestColumn{{Slot: 0, Name: "shaped_reward", Flags: hostabi.ColumnWrite}, {Slot: 1, Name: "reward", Flags: hostabi.ColumnWrite}}}
	at := asm.Get(1) + asm.Load(4) + asm.Load(0)
	first := at + asm.Const(0x3f000000) + asm.Store(0) + asm.Const(keptAt) + at + asm.Store(0)
	answer := asm.Get(0) + asm.Get(1) + asm.Call(emit) + asm.Drop // signals and slots have the same order
	spoils := asm.Const(keptAt) + asm.Load(0) + asm.If + asm.Void + spoil + asm.End
	code := asm.Get(1) + asm.Load(0) + asm.If + asm.Void + first + answer + after + asm.Else + spoils + asm.End + asm.Const(0)
	functions := map[string]asm.Code{hostabi.ExportSlot: code}
	for name, code := range others {
		functions[name] = code
	}
	return built{functions: functions, manifest: m.Describe()}
}

// spoil writes 2 where the guest was granted to write.
var spoil = asm.Const(keptAt) + asm.Load(0) + asm.Const(0x40000000) + asm.Store(0)

// A guest that keeps writing into a granted column after its answer is the only one to see it. The block does not change after the
// answer, whether it is still on loan, committed, or leased by the guest.
func TestGranted_WritesAfterTheAnswerAreNotInTheBlock(t *testing.T) {
	const none = asm.Code("")
	leased := asm.Get(1) + asm.Load(0) + asm.Call(lease) + asm.Drop
	timed := asm.Const64(0) + asm.Const64(1e6) + asm.Call(timer) + asm.Drop
	released := asm.Get(1) + asm.Load(0) + asm.Call(release) + asm.Drop
	for name, b := range map[string]built{
		"in the slot":               late(spoil, nil),
		"from another message":      late(none, nil),
		"from a timer":              late(none, map[string]asm.Code{hostabi.ExportStartUp: timed + asm.Const(0), hostabi.ExportTimer: spoil + asm.Const(0)}),
		"in rl_snapshot":            late(none, map[string]asm.Code{hostabi.ExportSnapshot: spoil + asm.Const(0)}),
		"of a block that is leased": late(leased, nil),
		"behind its release":        late(leased+released, nil),
	} {
		for _, slot := range []string{"asked", "in"} {
			t.Run(name+", "+slot, func(t *testing.T) { writesLate(t, b, slot) })
		}
	}
}

func writesLate(t *testing.T, b built, slot string) {
	r, g := started(t, source(file(t, b.bytes()), everything...),
		plugintest.RigOptions{Grants: map[string][]string{"asked": {"shaped_reward"}, "in": {"reward"}}}, nil)
	x := newBlocks(t, r.Host.Arenas, 1, trajectory.Shape{Steps: 8, Envs: 4, Granted: "reward shaped_reward"})
	loan, err := x.arena.Loan()
	must(t, err)
	tr := trajectory.Trajectory{Schema: x.schema, Mem: loan.Bytes()}
	column := tr.Float32(trajectory.ShapedReward)
	send := r.ToOnLoan("asked")
	m := hostabi.Message{Handle: loan.Handle()}
	var held arena.Lease
	if slot == "in" {
		column, send = tr.Float32(trajectory.Reward), r.To("in")
		m.Handle, err = loan.Commit()
		must(t, err)
		held, err = x.arena.Lease(m.Handle)
		must(t, err)
		must(t, x.arena.Release(m.Handle))
	}
	column[0] = 1
	must(t, send.Emit(m))
	r.MustSettle()
	if column[0] != 0.5 {
		t.Fatalf("the guest was granted to write and has left %v", column[0])
	}
	must(t, r.To("in").Emit(hostabi.Message{})) // names no block: the guest spoils the one that it has kept
	r.MustSettle()
	if _, err := g.Snapshot(); err != nil && (g.blocks.leases == 0 || !errors.Is(err, core.ErrNoSnapshot)) {
		t.Error(err)
	}
	g.fire(0)
	if column[0] != 0.5 {
		t.Errorf("behind its answer the guest has written %v", column[0])
	}
	if slot == "in" {
		must(t, held.Release())
		return
	}
	must(t, loan.Abort())
}

// Rows of actions are asked for one by one, and the pages stay the guest's until the last: its changes meanwhile are actions of this
// block. After the last row it changes nothing.
func TestGranted_ActionsAreTheGuestsUntilTheLastRow(t *testing.T) {
	x := ask(t, answering(actionAt(0)+actionAt(0)+asm.Load(0)+asm.Const(1)+asm.Add+asm.Store(0)+passOn()+actionAt(0)+asm.Const(7)+asm.Store(0)), onPages, nil)
	for row, want := range []int32{7, 7, 8} { // one more than before, and 7 after each answer but the last
		x.request = trajectory.ActRequest{Block: x.loan.Handle(), T: row, ValueOnly: row == 2}.Message()
		must(t, x.send(t))
		if got := x.tr.Int32(trajectory.Action)[0]; got != want {
			t.Errorf("row %d leaves action %d, want %d", row, got, want)
		}
	}
}

// BenchmarkGranted is a slot call into an empty guest that may write a column of its block.
func BenchmarkGranted(b *testing.B) {
	guest := built{functions: map[string]asm.Code{hostabi.ExportSlot: asm.Const(0)}, manifest: described(hostabi.ManifestColumn{Name: "reward", Flags: hostabi.ColumnWrite})}
	r, g := started(b, source(file(b, guest.bytes()), everything...), plugintest.RigOptions{Grants: map[string][]string{"in": {"reward"}}}, nil)
	x := newBlocks(b, r.Host.Arenas, 1, trajectory.Shape{Steps: 128, Envs: 64, Granted: "reward"})
	m := hostabi.Message{Handle: x.with(1)}
	for b.Loop() {
		g.handle(g.slots[0], &m)
	}
	must(b, x.arena.Release(m.Handle))
}
