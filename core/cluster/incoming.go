package cluster

import (
	"sync"
	"sync/atomic"

	"github.com/nats-io/nats.go"

	"github.com/rlhost/rlhost/core/relay"
)

// IncomingOptions are what an Incoming is made with.
type IncomingOptions struct {
	From    string // subject at which blocks arrive
	Answers string // subject at which the sender listens

	Incarnation uint64 // of this host
	Window      int    // blocks that may be filled and not free again
	Held        int    // of them, blocks of another sender that fill it already; Freed is called for them too
	Flight      int    // blocks that may be on their way at once; 0: the window
	Largest     int    // bytes of a block at most

	// Commit copies a block's bytes, which belong to the caller afterwards, and delivers it. There is room for it: the window counts those.
	Commit func(steps uint64, body []byte)
	// Lost counts blocks that were under way and will not come.
	Lost func(c relay.Count)
}

// Incoming takes the blocks of one sender on another host: it drives a relay.Receiver over a Link. Its methods may be called from any goroutine.
// Commit and Lost are called one at a time, and may call no method of it but Freed.
type Incoming struct {
	o     IncomingOptions
	link  *Link
	comes *nats.Subscription
	freed atomic.Uint64 // blocks since the receiver last heard of them

	mu       sync.Mutex // held while the receiver works; unlock gives it up
	receiver *relay.Receiver
	buffer   []byte
	parts    assembly
	closed   bool
}

// Receives begins to take blocks.
func (l *Link) Receives(o IncomingOptions) (*Incoming, error) {
	in := &Incoming{o: o, link: l}
	in.receiver = relay.NewReceiver(o.Incarnation, uint64(o.Window), incomingPort{in})
	in.receiver.Hold(uint64(o.Held))
	if o.Flight > 0 {
		in.receiver.Bound(uint64(o.Flight))
	}
	var err error
	if in.comes, err = l.conn.Subscribe(l.prefix+o.From, in.take); err != nil {
		return nil, err
	}
	// The window bounds what waits here; the library's own bound would drop blocks.
	if err := in.comes.SetPendingLimits(-1, -1); err != nil {
		return nil, err
	}
	return in, nil
}

// Freed says that committed blocks are free again. Where the receiver works it hears of them afterwards.
func (in *Incoming) Freed(blocks int) {
	in.freed.Add(uint64(blocks))
	in.settle()
}

// settle tells the receiver of blocks that are free again, unless it works: then unlock does.
func (in *Incoming) settle() {
	for in.freed.Load() > 0 && in.mu.TryLock() {
		if freed := in.freed.Swap(0); !in.closed {
			in.receiver.Freed(freed)
		}
		in.mu.Unlock()
	}
}

func (in *Incoming) unlock() {
	in.mu.Unlock()
	in.settle()
}

// Expire says that the sending host's lease is over. It may come back with a newer incarnation.
func (in *Incoming) Expire() {
	in.mu.Lock()
	defer in.unlock()
	in.receiver.Expire()
}

// Missing returns what the sending host is known to have made and has not brought, beyond what was lost.
func (in *Incoming) Missing() relay.Count {
	in.mu.Lock()
	defer in.unlock()
	return in.receiver.Missing()
}

// Close ends the receiving: nothing is committed any more when it returns.
func (in *Incoming) Close() {
	_ = in.comes.Unsubscribe() // an error says that the link is closed
	in.mu.Lock()
	in.closed = true
	in.unlock()
}

// take gives the receiver a message.
func (in *Incoming) take(m *nats.Msg) {
	message, body, err := relay.Parse(m.Data)
	if err != nil {
		return
	}
	in.mu.Lock()
	defer in.unlock()
	if in.closed {
		return
	}
	if at := partOf(m.Data); at != (part{}) {
		if body = in.parts.add(message, at, body, in.o.Largest); body == nil {
			return
		}
	}
	in.receiver.Handle(message, body)
}

// incomingPort is the Incoming as its receiver sees it.
type incomingPort struct{ *Incoming }

// Send publishes an answer. One that cannot be published is lost on its way.
func (p incomingPort) Send(m relay.Message) {
	p.buffer = m.AppendTo(p.buffer[:0])
	_ = p.link.conn.Publish(p.link.prefix+p.o.Answers, p.buffer)
}

func (p incomingPort) Commit(_, _, steps uint64, body []byte) { p.o.Commit(steps, body) }
func (p incomingPort) Lost(_ uint64, c relay.Count)           { p.o.Lost(c) }
