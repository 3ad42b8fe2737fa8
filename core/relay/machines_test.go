package relay

import (
	"bytes"
	"errors"
	"slices"
	"testing"
)

// recorder is a ReceiverPort that remembers.
type recorder struct {
	sent      []Message
	committed []uint64
	lost      Count
}

func (r *recorder) Send(m Message)                       { r.sent = append(r.sent, m) }
func (r *recorder) Commit(_, number, _ uint64, _ []byte) { r.committed = append(r.committed, number) }
func (r *recorder) Lost(_ uint64, c Count)               { r.lost = c }
func (r *recorder) last() Message                        { return r.sent[len(r.sent)-1] }
func open(from, previous, acknowledged uint64) (m Message) {
	return Message{Kind: Open, From: from, To: 1, Previous: previous, Number: acknowledged}
}
func data(from, number uint64) (m Message) {
	return Message{Kind: Data, From: from, To: 1, Number: number, Steps: 10 * number}
}

// A sender had three blocks under way when its lease ended. Its next incarnation takes them over, tells of the first, and dies: two are lost.
func TestReceiver_CountsBlocksThatWereTakenOverAndNeverCame(t *testing.T) {
	port := &recorder{}
	r := NewReceiver(1, 8, port)
	for _, m := range []Message{open(2, 0, 0), data(2, 1), {Kind: Probe, From: 2, To: 1, Number: 4, Steps: 40}} {
		r.Handle(m, nil)
	}
	r.Expire()
	r.Handle(data(2, 2), nil)
	if port.last().Kind != Refused {
		t.Errorf("after the lease: %+v", port.last())
	}
	r.Handle(open(3, 2, 0), nil)
	if m := port.last(); m.Kind != Opened || !m.Known || m.Number != 1 || m.Limit != 7 {
		t.Errorf("answer to the next incarnation: %+v", m)
	}
	r.Handle(data(3, 1), nil)
	r.Handle(open(4, 0, 0), nil)
	if want := []uint64{1, 1}; !slices.Equal(port.committed, want) || port.lost != (Count{2, 20}) {
		t.Errorf("committed %v, lost %+v", port.committed, port.lost)
	}
}

// Numbers that no sender can have given change nothing.
func TestReceiver_IgnoresNumbersBeyondTheLimit(t *testing.T) {
	port := &recorder{}
	r := NewReceiver(1, 4, port)
	r.Handle(open(2, 0, 0), nil)
	for _, m := range []Message{data(2, 5), {Kind: Probe, From: 2, To: 1, Number: 1 << 63}, {Kind: Ack, From: 2, To: 1}, {From: 2, To: 1}} {
		r.Handle(m, nil)
	}
	r.Told(2, 1, Count{Blocks: 9})
	r.Handle(open(3, 0, 0), nil)
	if len(port.committed) != 0 || port.lost != (Count{}) || len(port.sent) != 2 {
		t.Errorf("committed %v, lost %+v, %d messages", port.committed, port.lost, len(port.sent))
	}
}

// The limit follows what is committed, by as many as may be on their way, and stops where the window is full.
func TestReceiver_BoundsBlocksOnTheirWay(t *testing.T) {
	port := &recorder{}
	r := NewReceiver(1, 6, port)
	r.Hold(1)
	r.Bound(2)
	r.Handle(open(2, 0, 0), nil)
	limits := []uint64{port.last().Limit}
	for number := range uint64(5) {
		r.Handle(data(2, number+1), nil)
		limits = append(limits, port.last().Limit)
	}
	r.Freed(1)
	r.Freed(1)
	if limits = append(limits, port.last().Limit); !slices.Equal(limits, []uint64{2, 3, 4, 5, 5, 5, 7}) || len(port.committed) != 5 {
		t.Errorf("limits %v, committed %v", limits, port.committed)
	}
}

// A sender hears of commits and of a larger limit before it waits for them, and not of each.
func TestReceiver_AnswersBeforeItsSenderWaits(t *testing.T) {
	type step struct {
		commits, frees         int
		answers, number, limit uint64 // afterwards; of the last answer
	}
	for window, steps := range map[uint64][]step{
		12: {
			{3, 0, 1, 0, 12}, {1, 0, 2, 4, 12}, {0, 3, 2, 4, 12}, {1, 0, 2, 4, 12}, // each four
			{0, 1, 3, 5, 16}, {8, 0, 5, 13, 16}, // 5 had no answer
			{0, 5, 5, 13, 16}, {0, 1, 6, 13, 22}, // half
		},
		4: {{4, 0, 3, 4, 4}, {0, 1, 4, 4, 5}}, // 4 is reached
	} {
		port := &recorder{}
		r := NewReceiver(1, window, port)
		r.Handle(open(2, 0, 0), nil)
		for i, want := range steps {
			for range want.commits {
				r.Handle(data(2, r.committed.Blocks+1), nil)
			}
			if want.frees > 0 {
				r.Freed(uint64(want.frees))
			}
			got := step{want.commits, want.frees, uint64(len(port.sent)), port.last().Number, port.last().Limit}
			if got != want {
				t.Errorf("window %d, step %d: %+v, want %+v", window, i, got, want)
			}
		}
	}
}

func FuzzParse_ReadsWhatIsWritten(f *testing.F) {
	f.Add(Message{Kind: Data, From: 1 << 40, To: 2, Number: 3, Steps: 4}.AppendTo(nil))
	f.Add([]byte("short"))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, body, err := Parse(b)
		if err != nil {
			if !errors.Is(err, ErrMessage) {
				t.Fatal(err)
			}
			return
		}
		again, rest, err := Parse(append(m.AppendTo(nil), body...))
		if err != nil || again != m || !bytes.Equal(rest, body) || len(b)-len(body) != HeaderSize {
			t.Fatalf("%+v is read again as %+v: %v", m, again, err)
		}
	})
}

// Whatever a peer sends, neither end panics, nothing is committed twice in one incarnation, and the window holds.
func FuzzReceiver_SurvivesAnyMessages(f *testing.F) {
	f.Add([]byte{1, 2, 1, 0, 0, 3, 2, 1, 1, 0, 7, 2, 1, 9, 9})
	f.Fuzz(func(t *testing.T, script []byte) {
		const window = 4
		port := &recorder{}
		r := NewReceiver(1, window, port)
		freed := 0
		for len(script) >= 5 {
			m := Message{Kind: Kind(script[0] % 8), From: uint64(script[1]), To: uint64(script[2] % 2), Number: uint64(script[3]), Previous: uint64(script[4]), Steps: uint64(script[4])}
			if m.Kind == 0 && freed < len(port.committed) {
				r.Freed(1)
				freed++
			}
			r.Handle(m, nil)
			r.Told(m.From, m.To, Count{m.Number, m.Steps})
			if held := len(port.committed) - freed; held > window {
				t.Fatalf("%d blocks of a window of %d are held", held, window)
			}
			script = script[5:]
		}
	})
}

// claims is a SenderPort that counts.
type claims struct {
	t    *testing.T
	inc  uint64
	held map[Block]bool
}

func (c *claims) Send(Message, Block)     {}
func (c *claims) NextIncarnation() uint64 { c.inc++; return c.inc }
func (c *claims) InDoubt(blocks []Block)  { c.Committed(blocks) }
func (c *claims) Committed(blocks []Block) {
	for _, b := range blocks {
		if !c.held[b] {
			c.t.Fatalf("the claim on %v ends twice", b.Handle)
		}
		delete(c.held, b)
	}
}

// Whatever a peer sends, each claim ends at most once, and the counts are of the blocks that were put.
func FuzzSender_SurvivesAnyMessages(f *testing.F) {
	f.Add([]byte{2, 1, 4, 4, 0, 5, 1, 2, 6, 1, 6, 1, 0, 0, 0})
	f.Fuzz(func(t *testing.T, script []byte) {
		port := &claims{t: t, inc: 1, held: map[Block]bool{}}
		s := NewSender(0, port, SenderOptions{Incarnation: 1, Receiver: 1, Queue: 4, Timeout: 1})
		put := Count{}
		for at := 0; len(script) >= 5; at++ {
			b := Block{Handle: 1, Steps: uint64(at)}
			port.held[b] = true
			if s.Put(0, b) {
				put.add(b)
			} else {
				delete(port.held, b)
			}
			from, to, _ := s.Told()
			m := Message{Kind: Kind(script[0] % 8), From: from - uint64(script[1]%2), To: to, Number: uint64(script[2]), Limit: uint64(script[3]), Previous: uint64(script[4]), Known: script[1]&2 != 0, Resend: script[1]&4 != 0}
			s.Handle(0, m)
			c := s.Counts()
			sum := Count{c.Committed.Blocks + c.UnderWay.Blocks + c.InDoubt.Blocks, c.Committed.Steps + c.UnderWay.Steps + c.InDoubt.Steps}
			if sum != put || uint64(len(port.held)) != c.UnderWay.Blocks {
				t.Fatalf("%+v were put, %+v are counted, %d claims are held", put, c, len(port.held))
			}
			script = script[5:]
		}
	})
}
