package bus_test

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/loop"
	"github.com/rlhost/rlhost/hostabi"
)

// stage is one version of a component that forwards its messages.
type stage struct {
	r   *loop.Receiver
	in  *bus.Slot
	out *bus.Signal
}

// order checks that each emitter's messages come in order, without a gap. It belongs to one version at a time.
type order struct {
	last []uint32
}

func (o *order) check(t *testing.T, where string, m *hostabi.Message) {
	if m.T != o.last[m.Split]+1 {
		t.Errorf("%s: message %d of emitter %d came when %d was due", where, m.T, m.Split, o.last[m.Split]+1)
	}
	o.last[m.Split] = m.T
}

func newStage(t *testing.T, l *loop.Loop, state *order, claims bus.Retainer) *stage {
	s := &stage{r: l.NewReceiver("stage")}
	s.r.Hold()
	s.out = bus.NewSignal(s.r, "out", "payload", claims)
	s.in = bus.NewSlot(s.r, "in", "payload", func(m *hostabi.Message) {
		state.check(t, "stage", m)
		if err := s.out.Emit(*m); err != nil {
			t.Error(err)
		}
	})
	return s
}

// swaps replaces a stage by new versions in all the ways there are.
type swaps struct {
	t       *testing.T
	crew    *crew
	random  *rand.Rand
	state   *order
	claims  *claims
	now     *stage
	in, out *bus.Connection
	made    [2]int
}

func (s *swaps) next() {
	next := newStage(s.t, s.crew.loops[s.random.IntN(3)], s.state, s.claims)
	way := s.random.IntN(2)
	s.made[way]++
	if way == 0 { // one without effect
		s.redirect(next.in)
		for range s.random.IntN(20) {
			runtime.Gosched()
		}
		s.redirect(s.now.in)
		next.r.Close()
		return
	}
	drained := make(chan struct{})
	s.now.r.Post(func(*hostabi.Message) { close(drained) }, hostabi.Message{})
	<-drained
	s.now.r.Loop().Do(func() {
		s.redirect(next.in)
		if err := bus.MoveSignal(s.out, next.out); err != nil {
			s.t.Error(err)
		}
	})
	old := s.now
	s.now = next
	next.r.Release()
	old.r.Close()
}

func (s *swaps) redirect(to *bus.Slot) {
	if err := bus.Redirect(bus.Way{Connection: s.in, To: to}); err != nil {
		s.t.Error(err)
	}
}

func TestStage_IsReplacedInFullFlow(t *testing.T) {
	const emitters = 3
	each := 3000
	if testing.Short() {
		each = 800
	}
	for _, o := range [][2]bus.Options{
		{{Depth: 3}, {Depth: 2}}, {{Depth: 1}, {Mode: bus.Queue, Depth: 1}}, {{Mode: bus.Queue, Depth: 4}, {Depth: 3}},
		{{Mode: bus.Queue, Depth: 2}, {Mode: bus.Queue, Depth: 40}},
		{{Depth: emitters * each, Overflow: bus.DropOldest}, {Mode: bus.Queue, Depth: 3}},
		{{Mode: bus.Reply, Peer: 7, Depth: 3}, {Mode: bus.Reply, Peer: 7, Depth: 3}},
	} {
		seed := rand.Uint64()
		c := newCrew(t, 3)
		s := &swaps{t: t, crew: c, random: rand.New(rand.NewPCG(seed, 0)), claims: newClaims()}
		s.state = &order{last: make([]uint32, emitters)}
		s.now = newStage(t, c.loops[0], s.state, s.claims)
		s.now.r.Release()
		source := bus.NewSignal(nil, "source", "payload", s.claims)
		arrived := make(chan struct{})
		n, end := uint64(0), &order{last: make([]uint32, emitters)}
		sink := bus.NewSlot(c.loops[2].NewReceiver("sink"), "sink", "payload", func(m *hostabi.Message) {
			end.check(t, "sink", m)
			if n++; m.Sequence != n {
				t.Errorf("sink: sequence %d came when %d was due", m.Sequence, n)
			}
			if n == uint64(emitters*each) {
				close(arrived)
			}
		})
		s.in, s.out = connect(t, source, s.now.in, o[0]), connect(t, s.now.out, sink, o[1])
		var wg sync.WaitGroup
		for e := range uint32(emitters) {
			wg.Go(func() {
				for i := range uint32(each) {
					if err := source.Emit(hostabi.Message{Handle: 7, Split: e, T: i + 1, Sender: 7}); err != nil {
						t.Error(err)
					}
					if i%64 == 0 {
						runtime.Gosched()
					}
				}
			})
		}
		for more := true; more; {
			select {
			case <-arrived:
				more = false
			default:
				s.next()
			}
		}
		wg.Wait()
		c.end(t)
		s.claims.expectBalance(t)
		if t.Failed() {
			t.Fatalf("%+v: seed %d, ways %v", o, seed, s.made)
		}
	}
}

// route is one connection that several goroutines move about.
type route struct {
	connection *bus.Connection
	slots      []*bus.Slot
	signals    [2]*bus.Signal
}

// change does something to the connection.
func (r *route) change(random *rand.Rand) error {
	switch random.IntN(3) {
	case 0:
		return bus.Redirect(bus.Way{Connection: r.connection, To: r.slots[random.IntN(len(r.slots))]})
	case 1:
		return bus.MoveSignal(r.connection, r.signals[random.IntN(2)])
	default:
		for range random.IntN(30) {
			runtime.Gosched()
		}
		return nil
	}
}

func TestConnection_IsMovedByManyGoroutinesAtOnce(t *testing.T) {
	const emitters, each = 4, 4000
	for _, o := range []bus.Options{
		{Depth: 3}, {Mode: bus.Queue, Depth: 3}, {Mode: bus.Reply, Depth: 5, Peer: 7},
		{Depth: emitters * each, Overflow: bus.Coalesce}, {Mode: bus.Queue, Depth: emitters * each, Overflow: bus.Fail},
	} {
		seed := rand.Uint64()
		c := newCrew(t, 3)
		claims := newClaims()
		r := &route{}
		var seen [emitters][each + 1]atomic.Int32
		var delivered atomic.Int64
		for i := range 6 {
			last := make([]uint32, emitters)
			r.slots = append(r.slots, bus.NewSlot(c.loops[i%3].NewReceiver("slot"), "slot", "payload", func(m *hostabi.Message) {
				if m.T <= last[m.Split] {
					t.Errorf("emitter %d: message %d came after %d", m.Split, m.T, last[m.Split])
				}
				last[m.Split] = m.T
				seen[m.Split][m.T].Add(1)
				delivered.Add(1)
			}))
		}
		owner := c.loops[0].NewReceiver("owner")
		r.signals = [2]*bus.Signal{bus.NewSignal(nil, "a", "payload", claims), bus.NewSignal(owner, "b", "payload", claims)}
		r.connection = connect(t, r.signals[0], r.slots[0], o)
		var emitting, changing sync.WaitGroup
		var over atomic.Bool
		for e := range uint32(emitters) {
			emitting.Go(func() {
				for i := range uint32(each) {
					m := hostabi.Message{Handle: hostabi.Handle(e + 1), Split: e, T: i + 1, Sender: 7}
					if err := r.signals[e%2].Emit(m); err != nil {
						t.Error(err)
					}
				}
			})
		}
		for g := range uint64(3) {
			changing.Go(func() {
				random := rand.New(rand.NewPCG(seed, g))
				for !over.Load() {
					if err := r.change(random); err != nil {
						t.Error(err)
					}
				}
			})
		}
		emitting.Wait()
		over.Store(true)
		changing.Wait()
		for s := r.connection.Stats(); s.Queued+s.Parked > 0; s = r.connection.Stats() {
			runtime.Gosched()
		}
		for i := range c.loops { // the last message taken is handled as well
			done := make(chan struct{})
			c.loops[i].NewReceiver("last").Post(func(*hostabi.Message) { close(done) }, hostabi.Message{})
			<-done
		}
		c.end(t)
		claims.expectBalance(t)
		reached := int64(emitters*each) - int64(r.signals[0].Stats().Unconnected+r.signals[1].Stats().Unconnected)
		if got := delivered.Load(); got != reached {
			t.Errorf("%d messages were delivered, want %d", got, reached)
		}
		for e := range seen {
			for i := range seen[e] {
				if n := seen[e][i].Load(); n > 1 {
					t.Errorf("message %d of emitter %d was delivered %d times", i, e, n)
				}
			}
		}
		if owner.Paused() {
			t.Errorf("the owner of an idle signal is still paused")
		}
		if t.Failed() {
			t.Fatalf("%+v: seed %d", o, seed)
		}
	}
}
