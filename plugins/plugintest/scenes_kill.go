package plugintest

import (
	"encoding/binary"
	"testing"

	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/hostabi"
)

// counter returns one of the counters of process runtimes.
func (a *act) counter(name string) uint64 {
	return a.Host.Stats.Counter("process/" + name + "/" + a.Host.Name).Value()
}

func sceneKilled(t *testing.T, h *RuntimeHarness) {
	a := play(t, h, StageOptions{Table: map[string]any{"blocks": int64(6)}})
	x := a.Arena(8, 4096, nil)
	a.ask(OpKeep, 0, 0) // a loan
	for range 2 {       // leases
		a.hand(x, BlockHold, 1)
		a.Next("numbers")
	}
	a.tell(OpMake, 7, 2) // blocks that the test holds
	var held []hostabi.Handle
	for range 2 {
		held = append(held, a.Next("blocks").Handle)
	}
	a.Settle()
	a.Kill()
	a.expect("count in the new process", a.ask(OpCount, 0, 0), [2]uint64{1, 0})
	a.expect("restarts", a.counter("restarts"), uint64(1))
	a.expect("lost messages", a.counter("lost_messages"), uint64(2))
	a.idle(x, 0)
	a.idle(a.own(), 2)
	for _, b := range held {
		a.expect("byte 0 of a block that the dead process had sent", a.read(b)[0], byte(7))
		a.Done(b)
	}
	a.tell(OpMake, 9, 6)
	a.takeBlocks(6)
	a.idle(a.own(), 0)
}

func sceneKilledState(t *testing.T, h *RuntimeHarness) {
	a := play(t, h, StageOptions{})
	for i := range uint64(10) {
		a.tell(OpAdd, i, 0)
	}
	a.ask(OpEcho, 0, 0)
	a.Saved()
	for range 5 {
		a.tell(OpAdd, 1000, 0)
	}
	a.ask(OpEcho, 0, 0)
	a.Kill()
	a.expect("count and sum of the new process", a.ask(OpCount, 0, 0), [2]uint64{12, 45})
	a.expect("lost messages", a.counter("lost_messages"), uint64(6))
	a.ask(OpBoundary, 0, 0) // takes a state itself
	a.tell(OpAdd, 5, 0)
	a.Kill()
	got := a.ask(OpCount, 0, 0)
	if got[1] != 45 && got[1] != 50 {
		t.Errorf("sum %d after a boundary, want 45 or 50", got[1])
	}
}

// A state taken at a boundary includes the effect of its message.
func sceneKilledBoundary(t *testing.T, h *RuntimeHarness) {
	boundary := func(s *Stage) {
		if _, err := s.Component.Snapshot(); err != nil {
			s.t.Errorf("snapshot at a boundary: %v", err)
		}
	}
	a := play(t, h, StageOptions{Boundary: boundary})
	for i := range uint64(3) {
		a.tell(OpAdd, i+1, 0)
	}
	a.ask(OpBoundary, 0, 0)
	a.Settle()
	a.Kill()
	a.expect("sum of the new process", a.ask(OpCount, 0, 0)[1], uint64(6))
	a.expect("lost messages", a.counter("lost_messages"), uint64(0))
	a.tell(OpAdd, 10, 0)
	a.ask(OpBoundary, 0, 0)
	a.tell(OpAdd, 100, 0)
	a.ask(OpEcho, 0, 0)
	a.Settle()
	a.Kill()
	a.expect("sum of the new process", a.ask(OpCount, 0, 0)[1], uint64(16))
	a.expect("lost messages", a.counter("lost_messages"), uint64(2))
}

func sceneKilledAsks(t *testing.T, h *RuntimeHarness) {
	a := play(t, h, StageOptions{})
	a.From("answers", false, bus.Options{Mode: bus.Reply, Depth: 16, Overflow: bus.Block, Peer: 77})
	x := a.Arena(4, 4096, nil)
	var asked []hostabi.Message
	for i := range uint64(3) {
		loan := a.loan(x)
		defer func() { a.must(loan.Abort()) }()
		binary.LittleEndian.PutUint64(loan.Bytes(), i)
		m := hostabi.Message{Kind: AskLater, Handle: loan.Handle(), T: uint32(i)}
		a.emit(a.asks, m)
		asked = append(asked, m)
	}
	a.ask(OpEcho, 0, 0)
	a.Kill()
	a.expect("asks in the new process", a.ask(OpReply, 0, 0)[0], uint64(3))
	for i, m := range asked {
		got := a.Next("answers")
		a.expect("block", got.Handle, m.Handle)
		b, err := x.Loaned(m.Handle)
		a.must(err)
		a.expect("what it wrote", binary.LittleEndian.Uint64(b[8:]), uint64(i)*2+1)
	}
}

func sceneKilledLatest(t *testing.T, h *RuntimeHarness) {
	s := NewStage(t, h.New(t), StageOptions{})
	a := &act{Stage: s, t: t, harness: h}
	a.From("numbers", false, bus.Options{Mode: bus.All, Depth: 64, Overflow: bus.Block})
	a.blocks = a.To("on_block", false, bus.Options{Mode: bus.Latest})
	x := a.Arena(6, 4096, nil)
	for i := range 3 {
		a.hand(x, BlockSum, byte(i+1))
		a.expect("sum", a.Next("numbers").Inline[0], uint64(i+1)*4096)
	}
	a.Kill()
	a.expect("sum, once more", a.Next("numbers").Inline[0], uint64(3)*4096)
	a.idle(x, 1) // kept for the next
}

func sceneKilledBusy(t *testing.T, h *RuntimeHarness) {
	const last = 4711
	a := play(t, h, StageOptions{Table: map[string]any{"blocks": int64(8)}})
	x := a.Arena(8, 4096, nil)
	for round := range 3 {
		for i := range 200 {
			a.handIfFree(x)
			a.tell(OpMake, uint64(i), 1)
			a.tell(OpEcho, uint64(round*1000+i), 0)
			if i == 100 {
				a.Kill()
			}
			a.takeBlocks(a.Waiting("blocks"))
		}
		a.tell(OpRelease, 1<<40, 0)
		a.emit(a.numbers, hostabi.Message{Kind: OpCount, T: last})
		for a.Next("numbers").T != last {
		}
		a.takeBlocks(a.Waiting("blocks"))
		a.idle(x, 0)
		a.idle(a.own(), 0)
	}
	if got := a.counter("restarts"); got != 3 {
		t.Errorf("%d restarts, want 3", got)
	}
}
