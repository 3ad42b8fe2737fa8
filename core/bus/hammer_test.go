package bus_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/loop"
	"github.com/rlhost/rlhost/hostabi"
)

// source is a component that emits n messages with blocks on sig, one a slot, then calls over.
func source(r *loop.Receiver, sig *bus.Signal, n int, over func()) {
	var step func(*hostabi.Message)
	step = func(m *hostabi.Message) {
		if m.T == uint32(n) {
			over()
			return
		}
		sig.Emit(hostabi.Message{Handle: hostabi.Handle(m.T%97 + 1), Sender: uint16(m.T % 3)})
		r.Post(step, hostabi.Message{T: m.T + 1})
	}
	r.Post(step, hostabi.Message{})
}

// crew is loops that run until end, which also closes them.
type crew struct {
	loops []*loop.Loop
	wg    sync.WaitGroup
}

func newCrew(t *testing.T, n int) *crew {
	c := &crew{}
	for i := range n {
		l := loop.New(fmt.Sprint(i))
		c.loops = append(c.loops, l)
		c.wg.Go(func() {
			if err := l.Run(context.Background()); err != nil {
				t.Errorf("Run = %v", err)
			}
		})
	}
	return c
}

func (c *crew) end(t *testing.T) {
	for _, l := range c.loops {
		l.Stop()
	}
	c.wg.Wait()
	for _, l := range c.loops {
		if err := l.Close(); err != nil {
			t.Errorf("Close = %v", err)
		}
	}
}

// ordered is a slot that checks that sequence numbers grow, by one if gapless.
func ordered(t *testing.T, r *loop.Receiver, gapless bool, each func(n int)) *bus.Slot {
	last, n := uint64(0), 0
	return bus.NewSlot(r, "in", "payload", func(m *hostabi.Message) {
		if m.Sequence <= last || gapless && m.Sequence != last+1 {
			t.Errorf("message %d came after %d", m.Sequence, last)
		}
		last = m.Sequence
		n++
		each(n)
	})
}

func TestConnections_ComeAndGoWhileMessagesFlow(t *testing.T) {
	const messages = 20_000
	crew := newCrew(t, 3)
	claims := newClaims()
	sender := crew.loops[0].NewReceiver("sender")
	sig := bus.NewSignal(sender, "out", "payload", claims)
	arrived := make(chan struct{})
	steady := ordered(t, crew.loops[1].NewReceiver("steady"), true, func(n int) {
		if n == messages {
			close(arrived)
		}
	})
	fixed := connect(t, sig, steady, bus.Options{Depth: 4})

	var over atomic.Bool
	var churn sync.WaitGroup
	var mu sync.Mutex
	made := []*bus.Connection{fixed}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for g := range 2 {
		churn.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(g)))
			for !over.Load() {
				o := bus.Options{
					Mode: bus.Mode(random.IntN(4)), Overflow: bus.Overflow(random.IntN(5)),
					Depth: 1 + random.IntN(4), Peer: uint16(random.IntN(3)),
				}
				r := crew.loops[random.IntN(3)].NewReceiver("sometimes")
				c, err := bus.Connect(sig, ordered(t, r, false, func(int) {}), o)
				if err != nil {
					continue // the peer is taken
				}
				mu.Lock()
				made = append(made, c)
				mu.Unlock()
				for range random.IntN(20) {
					runtime.Gosched()
				}
				switch random.IntN(5) {
				case 0, 1:
					c.Disconnect()
				case 2:
					r.Close()
					c.Disconnect()
				case 3:
					if err := bus.Redirect(bus.Way{Connection: c, To: ordered(t, crew.loops[random.IntN(3)].NewReceiver("then"), false, func(int) {})}); err != nil {
						t.Error(err)
					}
					c.DisconnectNow()
				default:
					c.DisconnectNow()
				}
			}
		})
	}
	source(sender, sig, messages, func() {})
	<-arrived
	over.Store(true)
	churn.Wait()
	crew.end(t)
	claims.expectBalance(t)
	for _, c := range made {
		if s := c.Stats(); s.Queued != 0 || s.Parked != 0 {
			t.Errorf("%+v after Close: %+v", c.Options(), s)
		}
	}
	if s := fixed.Stats(); s.Delivered != messages || s.Dropped != 0 || s.MaxQueued > 4 {
		t.Errorf("the steady connection: %+v, want %d delivered and at most 4 queued", s, messages)
	}
}

func TestQueue_AcrossLoopsDeliversEachMessageOnce(t *testing.T) {
	const messages = 20_000
	for _, depth := range []int{1, 3} {
		crew := newCrew(t, 4)
		claims := newClaims()
		sender := crew.loops[0].NewReceiver("sender")
		sig := bus.NewSignal(sender, "out", "payload", claims)
		var seen [messages + 1]atomic.Int32
		var left atomic.Int64
		left.Store(messages)
		arrived := make(chan struct{})
		for i := range 4 {
			slot := bus.NewSlot(crew.loops[i].NewReceiver("sink"), "in", "payload", func(m *hostabi.Message) {
				seen[m.Sequence].Add(1)
				if left.Add(-1) == 0 {
					close(arrived)
				}
			})
			connect(t, sig, slot, bus.Options{Mode: bus.Queue, Depth: depth})
		}
		source(sender, sig, messages, func() {})
		<-arrived
		crew.end(t)
		claims.expectBalance(t)
		for i := 1; i <= messages; i++ {
			if n := seen[i].Load(); n != 1 {
				t.Errorf("depth %d: message %d was delivered %d times", depth, i, n)
			}
		}
	}
}

// Chains of Block connections with depth 1 across loops: every wake-up that is lost would end the test's flow.
func TestBlock_AcrossLoopsLosesNoMessageAndNoWakeUp(t *testing.T) {
	const messages, stages = 5_000, 6
	crew := newCrew(t, 3)
	claims := newClaims()
	arrived := make(chan struct{})
	sender := crew.loops[0].NewReceiver("sender")
	first := bus.NewSignal(sender, "out", "payload", claims)
	sig := first
	for i := range stages {
		r := crew.loops[(i*2+1)%3].NewReceiver("stage")
		next := bus.NewSignal(r, "out", "payload", claims)
		last := uint64(0)
		slot := bus.NewSlot(r, "in", "payload", func(m *hostabi.Message) {
			if last++; m.Sequence != last {
				t.Errorf("stage %d: message %d came when %d was due", i, m.Sequence, last)
			}
			if i == stages-1 && last == messages {
				close(arrived)
			}
			next.Emit(*m)
		})
		connect(t, sig, slot, bus.Options{Depth: 1})
		sig = next
	}
	source(sender, first, messages, func() {})
	<-arrived
	crew.end(t)
	claims.expectBalance(t)
}

func TestEmit_FromManyGoroutinesKeepsTheOrderOfEach(t *testing.T) {
	const emitters, each = 4, 3000
	for _, o := range []bus.Options{
		{Depth: 8}, {Mode: bus.Queue, Depth: 8}, {Depth: emitters * each, Overflow: bus.Fail}, {Depth: 8, Overflow: bus.DropOldest},
	} {
		crew := newCrew(t, 1)
		claims := newClaims()
		sig := bus.NewSignal(nil, "out", "payload", claims)
		var last [emitters]uint32
		slot := bus.NewSlot(crew.loops[0].NewReceiver("sink"), "in", "payload", func(m *hostabi.Message) {
			if m.T <= last[m.Split] {
				t.Errorf("%+v: emitter %d: message %d came after %d", o, m.Split, m.T, last[m.Split])
			}
			last[m.Split] = m.T
		})
		c := connect(t, sig, slot, o)
		var wg sync.WaitGroup
		for e := range emitters {
			wg.Go(func() {
				for i := range uint32(each) {
					if err := sig.Emit(hostabi.Message{Handle: 7, Split: uint32(e), T: i + 1}); err != nil {
						t.Errorf("%+v: Emit = %v", o, err)
					}
				}
			})
		}
		wg.Wait()
		c.Disconnect()
		for c.Stats().Queued+c.Stats().Parked > 0 {
			runtime.Gosched()
		}
		crew.end(t)
		claims.expectBalance(t)
		if s := c.Stats(); s.Delivered+s.Dropped != emitters*each || o.Overflow != bus.DropOldest && s.Dropped != 0 {
			t.Errorf("%+v: %+v, want %d in all", o, s, emitters*each)
		}
	}
}
