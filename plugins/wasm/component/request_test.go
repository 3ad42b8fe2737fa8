package component

import (
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/plugintest"
	"github.com/rlhost/rlhost/plugins/wasm/internal/asm"
)

// answering returns a guest that does something with each act request.
func answering(code asm.Code) built {
	m := hostabi.Manifest{Name: "built@1", Columns: []hostabi.ManifestColumn{{Name: "action", Flags: hostabi.ColumnWrite}},
		Signals: []hostabi.ManifestPort{{Name: "actions", Payload: "actions"}}, Slots: []hostabi.ManifestPort{{Name: "act", Payload: "act_request"}}}
	return built{functions: map[string]asm.Code{hostabi.ExportSlot: code + asm.Const(0)}, manifest: m.Describe()}
}

// asked is a rig around a component that answers act requests, and a block on loan to the test.
type asked struct {
	*plugintest.Rig
	g       *component
	loan    arena.Loan
	tr      trajectory.Trajectory
	request hostabi.Message
	got     []hostabi.Message
}

func ask(t *testing.T, b built, shape trajectory.Shape, table map[string]any) *asked {
	t.Helper()
	r, g := started(t, source(file(t, b.bytes()), everything...), plugintest.RigOptions{Grants: map[string][]string{"act": {"action"}}}, table)
	x := &asked{Rig: r, g: g}
	r.From("actions", func(m *hostabi.Message) { x.got = append(x.got, *m) })
	var err error
	x.loan, err = newBlocks(t, r.Host.Arenas, 1, shape).arena.Loan()
	must(t, err)
	x.tr, err = trajectory.Borrowed(r.Host.Arenas, x.loan.Handle())
	must(t, err)
	clear(x.tr.Int32(trajectory.Action))
	t.Cleanup(func() {
		if err := x.loan.Abort(); err != nil {
			t.Error(err)
		}
	})
	x.request = trajectory.ActRequest{Block: x.loan.Handle(), T: 1, Split: 3, Step: 77, FirstEnv: 5}.Message()
	x.request.Sender = 9
	return x
}

func (x *asked) send(t *testing.T) error {
	t.Helper()
	must(t, x.ToOnLoan("act").Emit(x.request))
	return x.Settle()
}

// actionAt is the address of an action, that many elements after the first.
func actionAt(elements int32) asm.Code {
	return asm.Get(1) + asm.Load(4) + asm.Load(0) + asm.Const(4*elements) + asm.Add
}

var onPages = trajectory.Shape{Steps: 4, Envs: 2, Granted: "action"}

// A guest's writes into a block on loan are there when it answers, without a copy; the answer is the request with the policy and the
// version that acted.
func TestRequest_IsWrittenInPlaceAndAnswered(t *testing.T) {
	shape := onPages
	shape.Policies = "main rules"
	version := asm.Get(1) + asm.Const(42) + asm.Store(16)
	forged := asm.Get(1) + asm.Const(0x7f) + asm.Store(12) + asm.Get(1) + asm.Const(0x7f) + asm.Store(24) // split and inline are not the guest's
	x := ask(t, answering(actionAt(2)+asm.Const(1)+asm.Store(0)+version+forged+passOn()), shape, map[string]any{"policy": "rules"})
	must(t, x.send(t))
	if len(x.got) != 1 {
		t.Fatalf("%d answers, want 1", len(x.got))
	}
	want := trajectory.ActRequestOf(&x.request)
	want.Policy = 1
	if r := trajectory.ActRequestOf(&x.got[0]); r != want || x.got[0].Sender != 9 || x.got[0].PolicyVersion != 42 {
		t.Errorf("answered with %+v of %+v, want %+v", r, x.got[0], want)
	}
	if v := x.tr.Int32(trajectory.Action)[2]; v != 1 || x.g.copied.Value() != 0 {
		t.Errorf("the action is %d after %d copied bytes, want 1 and none", v, x.g.copied.Value())
	}
}

// Who asks waits for an answer, so a guest that has a fault gets the request again.
func TestRequest_ComesAgainAfterAFault(t *testing.T) {
	trapOnce := actionAt(1) + asm.Load(0) + asm.Eqz + asm.If + asm.Void + actionAt(1) + asm.Const(1) + asm.Store(0) + asm.Unreachable + asm.End
	x := ask(t, answering(trapOnce+passOn()), onPages, nil)
	must(t, x.send(t))
	if len(x.got) != 1 || x.g.faults.Value() != 1 {
		t.Errorf("%d answers after %d faults, want one each", len(x.got), x.g.faults.Value())
	}
}

// A guest that returns without an answer, once or after more emits than a call may make, has a fault: who asked would wait for ever. The
// request comes again, and a guest that never answers ends the run with its file and the call.
func TestRequest_WithoutAnAnswerIsAFault(t *testing.T) {
	once := actionAt(1) + asm.Load(0) + asm.Eqz + asm.If + asm.Void + actionAt(1) + asm.Const(1) + asm.Store(0) + asm.Const(0) + asm.Return + asm.End
	x := ask(t, answering(once+passOn()), onPages, nil)
	must(t, x.send(t))
	if len(x.got) != 1 || x.g.faults.Value() != 1 {
		t.Errorf("%d answers after %d faults, want one each", len(x.got), x.g.faults.Value())
	}
	x = ask(t, answering(""), onPages, nil)
	err := x.send(t)
	for _, says := range []string{"rl_slot", "did not answer the request", "guest.wasm", "restarted 3 times already (max_restarts)"} {
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("the run ends with %v, want %q in it", err, says)
		}
	}
}

// A guest that never gets through ends the run, instead of letting it wait.
func TestRequest_EndsTheRunAfterTooManyFaults(t *testing.T) {
	x := ask(t, answering(asm.Unreachable), onPages, nil)
	if err := x.send(t); err == nil || !strings.Contains(err.Error(), "restarted 3 times already (max_restarts)") {
		t.Errorf("the run ends with %v", err)
	}
}

// A request is answered once, by its block, and can be kept by nobody.
func TestRequest_IsAnsweredOnceAndNotLeased(t *testing.T) {
	note := func(at int32, code asm.Code) asm.Code { return asm.Const(noteAt+at) + code + asm.Store(0) }
	answer := asm.Const(0) + asm.Get(1) + asm.Call(emit)
	none := asm.Const(sentAt) + asm.Const(0) + asm.Store(0) + note(0, asm.Const(0)+asm.Const(sentAt)+asm.Call(emit))
	x := ask(t, answering(none+note(4, asm.Get(1)+asm.Load(0)+asm.Call(lease))+note(8, answer)+note(12, answer)), onPages, nil)
	must(t, x.send(t))
	for i, want := range []hostabi.Status{hostabi.StatusState, hostabi.StatusState, hostabi.StatusOK, hostabi.StatusState} {
		b := x.g.run.View(noteAt+uint32(4*i), 4)
		if got := hostabi.Status(int32(uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24)); got != want {
			t.Errorf("step %d: %v, want %v", i, got, want)
		}
	}
	if len(x.got) != 1 {
		t.Errorf("%d answers, want 1", len(x.got))
	}
}

// Blocks on loan cannot be written by a copy: others may write into the same rows meanwhile.
func TestRequest_NeedsPagesForWhatItWrites(t *testing.T) {
	x := ask(t, answering(passOn()), trajectory.Shape{Steps: 4, Envs: 2}, nil)
	if err := x.send(t); err == nil || !strings.Contains(err.Error(), "action has no pages of its own in blocks of blocks") {
		t.Errorf("the run ends with %v", err)
	}
}

// The policy that the table names must act in the blocks.
func TestRequest_IsForAPolicyThatActs(t *testing.T) {
	shape := onPages
	shape.Policies = "main rival"
	x := ask(t, answering(passOn()), shape, map[string]any{"policy": "rules"})
	if err := x.send(t); err == nil || !strings.Contains(err.Error(), `policy "rules" acts in none of their rows`) {
		t.Errorf("the run ends with %v", err)
	}
}
