package plugintest

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/hostabi"
)

func sceneBits(t *testing.T, h *RuntimeHarness) {
	a := play(t, h, StageOptions{})
	random := rand.New(rand.NewPCG(1, 2))
	messages := []hostabi.Message{{Sender: 1}, { // without a sender it would get its component's
		Kind: OpEcho, T: 1<<32 - 1, Split: 1<<32 - 1, PolicyVersion: 1<<64 - 1, Sender: 1<<16 - 1, Inline: [2]uint64{1<<64 - 1, 1 << 63},
	}}
	for range 100 {
		messages = append(messages, hostabi.Message{
			T: random.Uint32(), Split: random.Uint32(), PolicyVersion: random.Uint64(), Sender: uint16(random.Uint32()),
			Inline: [2]uint64{random.Uint64(), random.Uint64()},
		})
	}
	for _, m := range messages {
		a.must(a.numbers.Emit(m))
	}
	for i, want := range messages {
		got := a.Next("numbers")
		a.expect("sequence", got.Sequence, uint64(i+1))
		a.expect("message", sent(got), want)
	}
}

// many is how many messages a runtime gets.
func (h *RuntimeHarness) many() int {
	if h.Slow {
		return 1500
	}
	return 5000
}

func sceneOrder(t *testing.T, h *RuntimeHarness) {
	a := play(t, h, StageOptions{})
	n := h.many()
	for i := range n {
		a.tell(OpAdd, uint64(i), 0)
		if i%10 == 0 {
			a.tell(OpEcho, uint64(i), 0)
		}
	}
	for i := 0; i < n; i += 10 {
		a.expect("echo", a.Next("numbers").Inline[0], uint64(i))
	}
	got := a.ask(OpCount, 0, 0)
	a.expect("messages and sum", got, [2]uint64{uint64(n + (n+9)/10 + 1), uint64(n) * uint64(n-1) / 2})
	a.tell(OpBurst, uint64(n), 5)
	for i := range n {
		m := a.Next("numbers")
		if m.T != uint32(i) || m.Inline[1] != 5 {
			t.Fatalf("message %d of the burst has T %d", i, m.T)
		}
	}
}

// sender is a component of the test that sends as fast as possible: its loop posts to itself, and the data lane is
// paused while there is no room.
func (a *act) sender(signal *bus.Signal, n int, op uint16) {
	var next func(m *hostabi.Message)
	next = func(m *hostabi.Message) {
		if int(m.T) == n {
			return
		}
		if err := signal.Emit(hostabi.Message{Kind: op, T: m.T, Inline: [2]uint64{uint64(m.T), 0}}); err != nil {
			a.t.Errorf("emit: %v", err)
		}
		a.test.Post(next, hostabi.Message{T: m.T + 1})
	}
	a.test.Post(next, hostabi.Message{})
}

func sceneSlow(t *testing.T, h *RuntimeHarness) {
	s := NewStage(t, h.New(t), StageOptions{})
	a := &act{Stage: s, t: t, harness: h}
	const depth = 8
	a.numbers = a.To("on_number", false, bus.Options{Mode: bus.All, Depth: depth, Overflow: bus.Block})
	a.Handle("numbers", bus.Options{Mode: bus.Latest}, func(m *hostabi.Message) {
		if m.Kind == OpCount {
			a.note(func() { a.got["numbers"] = append(a.got["numbers"], *m) })
		}
	})
	a.tell(OpSleep, 50, 0)
	n := h.many() / 5
	a.sender(a.numbers, n, OpAdd)
	a.Until("all are sent", func() bool { return a.numbers.Stats().Emitted == uint64(n)+1 })
	a.Until("all are delivered", func() bool {
		st := a.wires[0].Stats()
		return st.Queued == 0 && st.Parked == 0
	})
	a.tell(OpCount, 0, 0)
	a.expect("messages and sum", a.Next("numbers").Inline, [2]uint64{uint64(n) + 2, uint64(n) * uint64(n-1) / 2})
	if st := a.wires[0].Stats(); st.MaxQueued > depth || st.Blocked == 0 || st.Dropped > 0 {
		t.Errorf("the connection had %+v", st)
	}
}

func sceneHeld(t *testing.T, h *RuntimeHarness) {
	s := NewStage(t, h.New(t), StageOptions{})
	a := &act{Stage: s, t: t, harness: h}
	a.numbers = a.To("on_number", false, bus.Options{Mode: bus.All, Depth: 256, Overflow: bus.Block})
	gate := make(chan struct{})
	first := true
	var got []uint32
	a.Handle("numbers", bus.Options{Mode: bus.All, Depth: 8, Overflow: bus.Block}, func(m *hostabi.Message) {
		if first {
			<-gate
			first = false
		}
		a.note(func() { got = append(got, m.T) })
	})
	numbers := a.wires[len(a.wires)-1]
	n := h.many()
	a.tell(OpBurst, uint64(n), 0)
	a.tell(OpEcho, 0, 0)
	a.Until("the component is held up behind a full connection", func() bool {
		st := numbers.Stats()
		return a.Host.Receiver.Paused() && st.MaxQueued == 8 && st.Parked > 0
	})
	close(gate)
	a.Until("all messages", func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return len(got) == n+1
	})
	for i, tt := range got[:n] {
		if tt != uint32(i) {
			t.Fatalf("message %d has T %d", i, tt)
		}
	}
}

func sceneMake(t *testing.T, h *RuntimeHarness) {
	const size = 5000 // no multiple of a page
	a := play(t, h, StageOptions{Table: map[string]any{"blocks": int64(3), "block_bytes": int64(size)}})
	for round := range uint64(20) {
		a.tell(OpMake, round*13, 2)
		for range 2 {
			m := a.Next("blocks")
			a.expect("value", m.Inline, [2]uint64{round * 13, size})
			content := a.read(m.Handle)
			if len(content) != size {
				t.Fatalf("%d bytes, want %d", len(content), size)
			}
			for i, b := range content {
				if b != byte(round*13+uint64(i)) {
					t.Fatalf("byte %d is %d", i, b)
				}
			}
			a.Done(m.Handle)
		}
	}
	a.idle(a.own(), 0)
}

func sceneFull(t *testing.T, h *RuntimeHarness) {
	a := play(t, h, StageOptions{Table: map[string]any{"blocks": int64(3)}})
	a.tell(OpMake, 1, 5)
	var held []hostabi.Handle
	for range 3 {
		held = append(held, a.Next("blocks").Handle)
	}
	a.expect("T of a refusal", a.Next("numbers").T, uint32(1))
	a.tell(OpMake, 1, 1)
	a.expect("T of a refusal", a.Next("numbers").T, uint32(1))
	a.idle(a.own(), 3)
	for _, b := range held {
		a.Done(b)
	}
	a.idle(a.own(), 0)
	a.tell(OpMake, 1, 3)
	a.takeBlocks(3)
	a.idle(a.own(), 0)
}

func sceneAbort(t *testing.T, h *RuntimeHarness) {
	a := play(t, h, StageOptions{Table: map[string]any{"blocks": int64(2)}})
	for range 10 {
		a.expect("loan", a.ask(OpAbort, 0, 0)[0], uint64(1))
	}
	a.expect("a loan to keep", a.ask(OpKeep, 0, 0)[0], uint64(1))
	a.expect("a loan to keep", a.ask(OpKeep, 0, 0)[0], uint64(1))
	a.expect("a loan too many", a.ask(OpAbort, 0, 0)[0], uint64(0))
	a.expect("a loan too many", a.ask(OpKeep, 0, 0)[0], uint64(0))
	a.idle(a.own(), 2)
}

func sceneRead(t *testing.T, h *RuntimeHarness) {
	a := play(t, h, StageOptions{})
	x := a.Arena(4, 10000, nil)
	for i := range 20 {
		b := a.fill(x, byte(i))
		kind := uint16(BlockSum)
		if i%2 == 1 {
			kind = BlockTwice
		}
		a.emit(a.blocks, hostabi.Message{Kind: kind, Handle: b, T: uint32(i)})
		a.Done(b) // the message has its own claim
		m := a.Next("numbers")
		a.expect("sum and handle", m.Inline, [2]uint64{uint64(i) * 10000, uint64(b)})
		a.expect("T", m.T, uint32(i))
	}
	b := a.fill(x, 9)
	a.emit(a.blocks, hostabi.Message{Kind: BlockPass, Handle: b})
	m := a.Next("blocks")
	a.expect("block passed on", m.Handle, b)
	a.Done(b)
	a.Done(b)
	a.idle(x, 0)
}

func sceneLease(t *testing.T, h *RuntimeHarness) {
	a := play(t, h, StageOptions{})
	x := a.Arena(8, 4096, nil)
	var held []hostabi.Handle
	for i := range 5 {
		b := a.hand(x, BlockHold, byte(i+1))
		held = append(held, b)
		a.expect("leases and handle", a.Next("numbers").Inline, [2]uint64{uint64(i + 1), uint64(b)})
	}
	a.hand(x, BlockQuiet, 0)
	a.idle(x, 5)
	a.tell(OpRelease, 0, 0)
	for i, b := range held {
		a.expect("sum and handle", a.Next("numbers").Inline, [2]uint64{uint64(i+1) * 4096, uint64(b)})
	}
	a.expect("nothing left", a.ask(OpRelease, 0, 0), [2]uint64{})
	a.idle(x, 0)
}

func sceneStale(t *testing.T, h *RuntimeHarness) {
	a := play(t, h, StageOptions{})
	x := a.Arena(2, 4096, nil)
	lease := func(b hostabi.Handle) uint64 { return a.ask(OpLease, uint64(b), 0)[1] }
	live := a.fill(x, 1)
	loan := a.loan(x)
	a.expect("lease of a live block", lease(live), uint64(LeaseTaken))
	a.expect("lease of a block on loan", lease(loan.Handle()), uint64(LeaseUncommitted))
	a.Done(live)
	a.expect("lease of a block that is free", lease(live), uint64(LeaseStale))
	again := a.fill(x, 2)
	a.expect("lease of a block that was used again", lease(live), uint64(LeaseStale))
	a.expect("lease of its next use", lease(again), uint64(LeaseTaken))
	a.expect("lease of a block that there is not", lease(hostabi.MakeHandle(x.ID(), 2, 1)), uint64(LeaseRange))
	a.expect("lease in an arena that there is not", lease(hostabi.MakeHandle(200, 0, 1)), uint64(LeaseForeign))
	a.expect("lease of nothing", lease(0), uint64(LeaseForeign))
	a.must(loan.Abort())
	a.Done(again)
	a.idle(x, 0)
}

func sceneAsked(t *testing.T, h *RuntimeHarness) {
	a := play(t, h, StageOptions{})
	a.From("answers", false, bus.Options{Mode: bus.Reply, Depth: 16, Overflow: bus.Block, Peer: 77})
	x := a.Arena(4, 4096, nil)
	loan := a.loan(x)
	for row := range uint32(30) {
		binary.LittleEndian.PutUint64(loan.Bytes(), uint64(row)*1e9)
		q := hostabi.Message{Handle: loan.Handle(), T: row, Split: 3, PolicyVersion: 5, Inline: [2]uint64{uint64(row), 9}}
		if row%3 == 2 {
			q.Kind = AskLater
		}
		a.emit(a.asks, q)
		if q.Kind == AskLater {
			a.expect("asks held", a.ask(OpReply, 0, 0)[0], uint64(1))
		}
		q.Sender = 77
		a.expect("answer", sent(a.Next("answers")), q)
		a.expect("what it wrote", binary.LittleEndian.Uint64(loan.Bytes()[8:]), uint64(row)*2e9+1)
	}
	a.must(loan.Abort())
	a.idle(x, 0)
}

func sceneAsks(t *testing.T, h *RuntimeHarness) {
	a := play(t, h, StageOptions{Table: map[string]any{"blocks": int64(3)}})
	a.From("asks", false, bus.Options{Mode: bus.Queue, Depth: 16, Overflow: bus.Block})
	for round := range uint64(10) {
		var asks []hostabi.Message
		for i := range uint64(3) {
			a.tell(OpAsk, round*10+i, 0)
			asks = append(asks, a.Next("asks"))
		}
		a.tell(OpAsk, 0, 0)
		a.expect("T of a refusal", a.Next("numbers").T, uint32(1))
		for i := range asks {
			m := asks[len(asks)-1-i]
			loaned, err := a.own().Loaned(m.Handle)
			a.must(err)
			binary.LittleEndian.PutUint64(loaned[8:], binary.LittleEndian.Uint64(loaned)+1000)
			a.must(a.answers.Emit(m))
			b := a.Next("blocks")
			a.expect("block", b.Handle, m.Handle)
			a.expect("what the answer wrote", b.Inline[0], m.Inline[0]+1000)
			a.Done(b.Handle)
		}
	}
	a.idle(a.own(), 0)
}
