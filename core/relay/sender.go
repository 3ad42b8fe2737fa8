package relay

import (
	"slices"
	"time"

	"github.com/rlhost/rlhost/hostabi"
)

// Block is a block of the sending host's arena, on which the sender has a claim.
type Block struct {
	Handle hostabi.Handle
	Steps  uint64 // env steps in it
}

// Count is a number of blocks and of the env steps in them.
type Count struct{ Blocks, Steps uint64 }

func (c *Count) add(blocks ...Block) {
	for _, b := range blocks {
		c.Blocks++
		c.Steps += b.Steps
	}
}

func (c Count) minus(other Count) Count { return Count{c.Blocks - other.Blocks, c.Steps - other.Steps} }

// SenderPort carries out what a Sender asks. Its methods are called within the Sender's, and call none of them.
type SenderPort interface {
	// Send sends a message, with the block's bytes if it is Data. One that cannot be sent counts as lost on its way.
	Send(m Message, b Block)
	// Committed ends the claims on blocks that the receiver has committed. It keeps nothing of the slice.
	Committed(blocks []Block)
	// InDoubt ends the claims on blocks whose receiver ended before it acknowledged. It keeps nothing of the slice.
	InDoubt(blocks []Block)
	// NextIncarnation returns an incarnation above all that this host has had.
	NextIncarnation() uint64
}

// SenderOptions are what a Sender is made with.
type SenderOptions struct {
	Incarnation uint64        // of the sending host
	Receiver    uint64        // the receiver's
	Queue       int           // blocks that wait for a number
	Timeout     time.Duration // first wait for an answer; later ones are up to four times as long
}

// Sender is one host's end towards one receiver. It is not safe for several goroutines.
type Sender struct {
	port     SenderPort
	from, to uint64
	queueMax int
	timeout  time.Duration

	opening  bool
	previous uint64  // the incarnation that numbered kept, while opening; 0: none
	next     uint64  // number of the next block
	acked    Count   // of this incarnation; while opening, of previous
	given    uint64  // sum of the env steps of all numbers given
	limit    uint64  // highest number that the receiver allows
	kept     []Block // numbers acked.Blocks+1 to next-1
	queue    []Block // without a number

	armed    bool
	deadline time.Duration
	wait     time.Duration
	resent   uint64 // first number of the last resend, 0: none
	resentAt time.Duration

	committed, doubt Count
}

// NewSender returns a Sender that has asked its receiver to open.
func NewSender(now time.Duration, port SenderPort, o SenderOptions) *Sender {
	s := &Sender{port: port, from: o.Incarnation, to: o.Receiver, queueMax: o.Queue, timeout: o.Timeout, next: 1}
	s.open(now)
	return s
}

// Put takes a block and the claim on it. It returns false, and takes nothing, where the queue is full.
func (s *Sender) Put(now time.Duration, b Block) bool {
	if len(s.queue) >= s.queueMax {
		return false
	}
	s.queue = append(s.queue, b)
	s.pump(now)
	return true
}

// Tick does what is due at Deadline. It sends no block: what was lost is sent again when the receiver says so.
func (s *Sender) Tick(now time.Duration) {
	if !s.armed || now < s.deadline {
		return
	}
	if s.opening {
		s.sendOpen()
	} else {
		s.send(Message{Kind: Probe, Number: s.next - 1, Steps: s.given}, Block{})
	}
	s.arm(now)
}

// Deadline returns when Tick is to be called, and false where nothing is waited for.
func (s *Sender) Deadline() (at time.Duration, waits bool) { return s.deadline, s.armed }

// Handle takes a message from the receiver.
func (s *Sender) Handle(now time.Duration, m Message) {
	if m.From != s.from || m.To != s.to {
		return // for a former life of either end
	}
	switch m.Kind {
	case Opened:
		s.opened(now, m)
	case Ack:
		s.acknowledged(now, m)
	case Refused:
		if !s.opening {
			s.previous = s.from
		}
		s.from = s.port.NextIncarnation()
		s.open(now)
	case Stranger:
		if m.Limit > s.to {
			s.Replace(now, m.Limit)
		}
	}
}

// Replace says that the receiver's incarnation has ended and which one is there now. What was under way is in doubt: it may have been used.
func (s *Sender) Replace(now time.Duration, receiver uint64) {
	s.doubtKept()
	s.previous, s.acked, s.given, s.next, s.to = 0, Count{}, 0, 1, receiver
	s.open(now)
}

// Told returns the incarnations with the highest number given and the sum of its env steps, for this host's lease.
func (s *Sender) Told() (from, to uint64, given Count) {
	if s.opening {
		return s.from, s.to, Count{}
	}
	return s.from, s.to, Count{s.next - 1, s.given}
}

// SenderCounts are what became of the blocks that a Sender took.
type SenderCounts struct {
	Committed Count // by a receiver, which has said so
	UnderWay  Count // queued, or sent and not acknowledged
	InDoubt   Count // sent to a receiver that ended before it acknowledged
}

// Counts returns what became of all blocks that were put.
func (s *Sender) Counts() SenderCounts {
	c := SenderCounts{Committed: s.committed, InDoubt: s.doubt}
	c.UnderWay.add(s.kept...)
	c.UnderWay.add(s.queue...)
	return c
}

func (s *Sender) open(now time.Duration) {
	s.opening, s.wait = true, s.timeout
	s.sendOpen()
	s.arm(now)
}

func (s *Sender) sendOpen() {
	s.send(Message{Kind: Open, Previous: s.previous, Number: s.acked.Blocks}, Block{})
}

func (s *Sender) send(m Message, b Block) {
	m.From, m.To = s.from, s.to
	s.port.Send(m, b)
}

func (s *Sender) arm(now time.Duration) {
	s.armed, s.deadline = true, now+s.wait
	s.wait = min(2*s.wait, 4*s.timeout)
}

// pump numbers and sends what the limit allows.
func (s *Sender) pump(now time.Duration) {
	if s.opening {
		return
	}
	sent := 0
	for ; sent < len(s.queue) && s.next <= s.limit; sent++ {
		b := s.queue[sent]
		s.kept = append(s.kept, b)
		s.given += b.Steps
		s.send(Message{Kind: Data, Number: s.next, Steps: s.given}, b)
		s.next++
	}
	s.queue = slices.Delete(s.queue, 0, sent)
	switch {
	case len(s.kept)+len(s.queue) == 0:
		s.armed = false
	case !s.armed:
		s.wait = s.timeout
		s.arm(now)
	}
}

func (s *Sender) opened(now time.Duration, m Message) {
	if !s.opening || m.Previous != s.previous {
		return
	}
	if s.previous == 0 || !m.Known {
		s.doubtKept()
	} else {
		if m.Number < s.acked.Blocks || m.Number-s.acked.Blocks > uint64(len(s.kept)) {
			return // more or fewer than were ever under way
		}
		s.done(m.Number)
		s.queue = slices.Insert(s.queue, 0, s.kept...)
		s.kept = s.kept[:0]
	}
	s.opening, s.previous, s.next, s.acked, s.given, s.limit = false, 0, 1, Count{}, 0, m.Limit
	s.armed, s.resent = false, 0
	s.pump(now)
}

func (s *Sender) acknowledged(now time.Duration, m Message) {
	if s.opening || m.Number >= s.next || m.Number < s.acked.Blocks {
		return
	}
	if m.Number > s.acked.Blocks {
		s.done(m.Number)
		s.armed = false
	}
	s.limit = max(s.limit, m.Limit)
	if m.Resend {
		s.resend(now)
	}
	s.pump(now)
}

// resend sends all kept blocks, once a timeout for each first number.
func (s *Sender) resend(now time.Duration) {
	first := s.acked.Blocks + 1
	if len(s.kept) == 0 || s.resent == first && now-s.resentAt < s.timeout {
		return
	}
	s.resent, s.resentAt = first, now
	sum := s.acked
	for _, b := range s.kept {
		sum.add(b)
		s.send(Message{Kind: Data, Number: sum.Blocks, Steps: sum.Steps}, b)
	}
}

// done releases kept blocks up to a number.
func (s *Sender) done(number uint64) {
	n := int(number - s.acked.Blocks)
	s.acked.add(s.kept[:n]...)
	s.committed.add(s.kept[:n]...)
	s.port.Committed(s.kept[:n])
	s.kept = slices.Delete(s.kept, 0, n)
}

func (s *Sender) doubtKept() {
	if len(s.kept) == 0 {
		return
	}
	s.doubt.add(s.kept...)
	s.port.InDoubt(s.kept)
	s.kept = s.kept[:0]
}
