package link

import (
	"context"
	"errors"
	"testing"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/loop"
	"github.com/rlhost/rlhost/core/ring"
	"github.com/rlhost/rlhost/core/shm"
	"github.com/rlhost/rlhost/hostabi"
)

// end is one end of a link, with a component that notes its messages.
type end struct {
	*Link
	loop      *loop.Loop
	receiver  *loop.Receiver
	got       []hostabi.Message
	control   []hostabi.Message
	fault     error
	onMessage func(port int, m *hostabi.Message) error
}

// pair is a link within one process whose two ends move when the test says so.
type pair struct {
	t            testing.TB
	arenas       *arena.Set
	blocks       *arena.Arena
	host, plugin *end
	toPlugin     *ring.SPSC
	toHost       *ring.SPSC
}

// options of a pair.
type options struct {
	cells    int  // of each ring; default 64
	sockets  bool // instead of rings
	limits   map[int]int
	window   int
	sends    []Port // of the host
	receives []Port // of the host
	answers  func(port int) int
}

func newPair(t testing.TB, o options) *pair {
	t.Helper()
	if o.sends == nil {
		o.sends = []Port{{Name: "in0"}, {Name: "in1"}}
	}
	if o.receives == nil {
		o.receives = []Port{{Name: "out0"}, {Name: "answers", OnLoan: true}}
	}
	p := &pair{t: t, arenas: arena.NewSet()}
	var err error
	p.blocks, err = p.arenas.Add(arena.Config{Name: "blocks", Blocks: 32, BlockBytes: 64,
		Segment: func(_ string, bytes int) (*shm.Segment, error) { return shm.Heap(bytes) }})
	if err != nil {
		t.Fatal(err)
	}
	p.connect(o)
	return p
}

// connect makes rings and both ends.
func (p *pair) connect(o options) {
	p.t.Helper()
	if o.cells == 0 {
		o.cells = 64
	}
	var host, plugin Transport
	if o.sockets {
		host, plugin = newSockets(p.t)
	} else {
		var err error
		if p.toPlugin, err = ring.New("to plugin", o.cells); err != nil {
			p.t.Fatal(err)
		}
		if p.toHost, err = ring.New("to host", o.cells); err != nil {
			p.t.Fatal(err)
		}
		host, plugin = &ring.Pair{Out: p.toPlugin, In: p.toHost}, &ring.Pair{Out: p.toHost, In: p.toPlugin}
	}
	p.host = p.newEnd(Config{Name: "host", Host: true, Transport: host, Sends: o.sends, Receives: o.receives,
		Limit: func(port int) int { return o.limits[port] }, Answers: o.answers})
	p.plugin = p.newEnd(Config{Name: "plugin", Transport: plugin, Sends: o.receives, Receives: o.sends,
		Window: o.window})
}

func (p *pair) newEnd(c Config) *end {
	p.t.Helper()
	e := &end{loop: loop.New(c.Name)}
	e.receiver = e.loop.NewReceiver(c.Name)
	c.Arenas, c.Receiver = p.arenas, e.receiver
	c.Deliver = func(port int, m *hostabi.Message) error {
		m.Slot = uint16(port)
		e.got = append(e.got, *m)
		if e.onMessage != nil {
			return e.onMessage(port, m)
		}
		return nil
	}
	c.Control = func(m *hostabi.Message) error { e.control = append(e.control, *m); return nil }
	c.Fault = func(err error) { e.fault = err }
	var err error
	if e.Link, err = New(c); err != nil {
		p.t.Fatal(err)
	}
	return e
}

// turn runs an end's loop until its queued messages have been handled.
func (e *end) turn() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	other := e.loop.NewReceiver("test")
	rounds := 4 // posts of slots are handled too
	var round func(*hostabi.Message)
	round = func(*hostabi.Message) {
		if rounds--; rounds > 0 {
			other.Post(round, hostabi.Message{})
			return
		}
		stop()
		other.Control(func(*hostabi.Message) {}, hostabi.Message{}) // makes the loop look at ctx before all else
	}
	other.Post(round, hostabi.Message{})
	if err := e.loop.Run(ctx); !errors.Is(err, context.Canceled) {
		panic(err)
	}
}

// idle is an idle loop's work, without the sleep.
func (e *end) idle() {
	e.Poll()
	e.turn()
	e.tell()
}

// settle moves both ends until nothing moves any more.
func (p *pair) settle() {
	p.t.Helper()
	for range 1000 {
		before := [2]Stats{p.host.Stats(), p.plugin.Stats()}
		p.plugin.idle()
		p.host.idle()
		if before == [2]Stats{p.host.Stats(), p.plugin.Stats()} && p.host.config.Transport.Len()+p.plugin.config.Transport.Len() == 0 {
			return
		}
	}
	p.t.Fatalf("the ends do not come to rest: %+v, %+v", p.host.Stats(), p.plugin.Stats())
}

// commit makes a block and returns its handle with one claim.
func (p *pair) commit() hostabi.Handle {
	p.t.Helper()
	loan, err := p.blocks.Loan()
	if err != nil {
		p.t.Fatal(err)
	}
	h, err := loan.Commit()
	if err != nil {
		p.t.Fatal(err)
	}
	return h
}

// release gives a claim back.
func (p *pair) release(h hostabi.Handle) {
	p.t.Helper()
	if err := p.blocks.Release(h); err != nil {
		p.t.Errorf("release %v: %v", h, err)
	}
}

// free reports whether a block is no longer claimed.
func (p *pair) free(h hostabi.Handle) bool { return p.blocks.Retain(h) != nil }

func (e *end) send(t testing.TB, port int, m hostabi.Message) {
	t.Helper()
	if err := e.Send(port, &m); err != nil {
		t.Fatalf("Send = %v", err)
	}
}

// close ends both ends; nothing of the arena may be claimed then.
func (p *pair) close() {
	p.t.Helper()
	p.host.Stop()
	p.plugin.Stop()
	for _, e := range []*end{p.host, p.plugin} {
		for _, u := range e.Unfinished() {
			if u.Claimed {
				p.release(u.Message.Handle)
			}
		}
		if e.receiver.Pauses() != 0 {
			p.t.Errorf("%s is paused %d times after Stop", e.config.Name, e.receiver.Pauses())
		}
	}
	if err := p.arenas.Close(); err != nil {
		p.t.Error(err)
	}
}

func times(n int, from uint32) []uint32 {
	list := make([]uint32, n)
	for i := range list {
		list[i] = from + uint32(i)
	}
	return list
}

// seen returns the T of the messages that an end got through a port.
func (e *end) seen(port int) []uint32 {
	list := []uint32{}
	for i := range e.got {
		if int(e.got[i].Slot) == port {
			list = append(list, e.got[i].T)
		}
	}
	return list
}

// asked returns how many of the peer's requests about blocks on loan have not been answered.
func (l *Link) asked() int {
	l.tx.Lock()
	defer l.tx.Unlock()
	return len(l.requests.asked)
}
