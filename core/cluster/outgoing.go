package cluster

import (
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/rlhost/rlhost/core/relay"
)

// OutgoingOptions are what an Outgoing is made with.
type OutgoingOptions struct {
	To      string // subject at which the receiver listens
	Answers string // subject at which its answers arrive

	Incarnation uint64        // of this host
	Receiver    uint64        // of the receiving host
	Queue       int           // blocks that are under way at most
	Timeout     time.Duration // first wait for an answer

	// Body appends a block's bytes, each time that the block is sent.
	Body func(to []byte, b relay.Block) []byte
	// Ended ends the claims on blocks: the receiver has committed them, or has ended before it said so. It keeps nothing of the slice,
	// and may call Put.
	Ended func(blocks []relay.Block, committed bool)
}

// Outgoing sends blocks to one receiver on another host: it drives a relay.Sender over a Link. Its methods may be called from any goroutine; the
// functions of its options are called by one, and not after Close has returned.
type Outgoing struct {
	o     OutgoingOptions
	begun time.Time
	wake  chan struct{}
	done  chan struct{}
	ended sync.WaitGroup

	sender *relay.Sender // of the goroutine of drive
	last   uint64        // incarnation
	buffer []byte

	mu       sync.Mutex
	put      []relay.Block   // the sender has not got them yet
	heard    []relay.Message // the same for answers
	underWay int             // blocks that were put and have not ended
	counts   relay.SenderCounts
	link     *Link
	answer   *nats.Subscription
}

// Sends begins to send blocks.
func (l *Link) Sends(o OutgoingOptions) (*Outgoing, error) {
	out := &Outgoing{o: o, link: l, begun: time.Now(), wake: make(chan struct{}, 1), done: make(chan struct{}), last: o.Incarnation}
	var err error
	if out.answer, err = l.conn.Subscribe(l.prefix+o.Answers, out.hear); err != nil {
		return nil, err
	}
	out.sender = relay.NewSender(0, outgoingPort{out}, relay.SenderOptions{
		Incarnation: o.Incarnation, Receiver: o.Receiver, Queue: o.Queue, Timeout: o.Timeout,
	})
	out.ended.Go(out.drive)
	return out, nil
}

// Move makes the Outgoing send over another link.
func (out *Outgoing) Move(l *Link) error {
	answer, err := l.conn.Subscribe(l.prefix+out.o.Answers, out.hear)
	if err != nil {
		return err
	}
	out.mu.Lock()
	defer out.mu.Unlock()
	_ = out.answer.Unsubscribe() // an error says that the former link is closed
	out.link, out.answer = l, answer
	return nil
}

// Put takes a block and the claim on it. It returns false, and takes nothing, where too many blocks are under way.
func (out *Outgoing) Put(b relay.Block) bool {
	out.mu.Lock()
	full := out.underWay >= out.o.Queue
	if !full {
		out.put = append(out.put, b)
		out.underWay++
		out.counts.UnderWay.Blocks++
		out.counts.UnderWay.Steps += b.Steps
	}
	out.mu.Unlock()
	if full {
		return false
	}
	out.nudge()
	return true
}

// Counts returns what became of all blocks that were put.
func (out *Outgoing) Counts() relay.SenderCounts {
	out.mu.Lock()
	defer out.mu.Unlock()
	return out.counts
}

// Close ends the sending. Blocks that are under way stay the caller's.
func (out *Outgoing) Close() {
	close(out.done)
	out.ended.Wait()
	out.mu.Lock()
	defer out.mu.Unlock()
	_ = out.answer.Unsubscribe() // an error says that the link is closed
}

func (out *Outgoing) nudge() {
	select {
	case out.wake <- struct{}{}:
	default:
	}
}

// mostHeard bounds the answers that wait. All numbers in them are absolute, so one that is dropped changes nothing.
const mostHeard = 1024

// hear takes an answer.
func (out *Outgoing) hear(m *nats.Msg) {
	answer, _, err := relay.Parse(m.Data)
	if err != nil {
		return
	}
	out.mu.Lock()
	if len(out.heard) < mostHeard {
		out.heard = append(out.heard, answer)
	}
	out.mu.Unlock()
	out.nudge()
}

// drive gives the sender what has come, until Close.
func (out *Outgoing) drive() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	var put []relay.Block
	var heard []relay.Message
	for {
		if at, waits := out.sender.Deadline(); waits {
			timer.Reset(max(at-out.now(), time.Millisecond))
		}
		select {
		case <-out.done:
			return
		case <-out.wake:
		case <-timer.C:
			out.sender.Tick(out.now())
		}
		out.mu.Lock()
		put, out.put = out.put, put[:0]
		heard, out.heard = out.heard, heard[:0]
		out.mu.Unlock()
		for _, m := range heard {
			out.sender.Handle(out.now(), m)
		}
		for _, b := range put {
			if !out.sender.Put(out.now(), b) {
				panic("cluster: a sender has no room for a block within its bound")
			}
		}
	}
}

func (out *Outgoing) now() time.Duration { return time.Since(out.begun) }

// outgoingPort is the Outgoing as its sender sees it.
type outgoingPort struct{ *Outgoing }

// Send publishes a message. One that cannot be published is lost on its way.
func (p outgoingPort) Send(m relay.Message, b relay.Block) {
	p.buffer = m.AppendTo(p.buffer[:0])
	if m.Kind == relay.Data {
		p.buffer = p.o.Body(p.buffer, b)
	}
	p.mu.Lock()
	link := p.link
	p.mu.Unlock()
	for message := range messages(p.buffer, int(link.conn.MaxPayload())) {
		_ = link.conn.Publish(link.prefix+p.o.To, message)
	}
}

func (p outgoingPort) Committed(blocks []relay.Block) { p.end(blocks, true) }
func (p outgoingPort) InDoubt(blocks []relay.Block)   { p.end(blocks, false) }

func (p outgoingPort) end(blocks []relay.Block, committed bool) {
	p.mu.Lock()
	to := &p.counts.Committed
	if !committed {
		to = &p.counts.InDoubt
	}
	p.underWay -= len(blocks)
	for _, b := range blocks {
		to.Blocks++
		to.Steps += b.Steps
		p.counts.UnderWay.Blocks--
		p.counts.UnderWay.Steps -= b.Steps
	}
	p.mu.Unlock()
	p.o.Ended(blocks, committed)
}

// NextIncarnation counts up: the host's incarnations grow faster than a stream of it is refused.
func (p outgoingPort) NextIncarnation() uint64 { p.last++; return p.last }
