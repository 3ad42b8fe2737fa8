package link

import (
	"context"
	"fmt"
	"testing"

	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/loop"
	"github.com/rlhost/rlhost/hostabi"
)

// running is a pair whose loops run, with a signal at the host that the plugin answers.
type running struct {
	*pair
	request *bus.Signal
	left    int
	done    chan struct{}
}

// run starts everything. pump makes both ends run on separate goroutines, because their loops sleep elsewhere.
func run(t testing.TB, pump bool, answers bool) *running {
	return runOver(t, false, pump, answers)
}

// runOver is run, over sockets instead of rings if so wished.
func runOver(t testing.TB, sockets, pump, answers bool) *running {
	r := &running{pair: newPair(t, options{sockets: sockets, cells: hostabi.LinkCells, limits: map[int]int{0: 256}}), done: make(chan struct{})}
	asker := r.host.loop.NewReceiver("asker")
	r.request = bus.NewSignal(asker, "request", "x", nil)
	answer := bus.NewSignal(r.host.receiver, "answer", "x", nil)
	connect(t, r.request, bus.NewSlot(r.host.receiver, "in", "x", func(m *hostabi.Message) {
		if err := r.host.Send(0, m); err != nil {
			t.Error(err)
		}
	}))
	connect(t, answer, bus.NewSlot(asker, "back", "x", func(m *hostabi.Message) {
		if r.left--; r.left == 0 {
			r.done <- struct{}{}
			return
		}
		_ = r.request.Emit(*m)
	}))
	r.host.config.Deliver = func(_ int, m *hostabi.Message) error { return answer.Emit(*m) }
	out := bus.NewSignal(r.plugin.receiver, "out", "x", nil)
	out.Tap(func(m hostabi.Message) error { return r.plugin.Send(0, &m) })
	r.plugin.config.Deliver = func(_ int, m *hostabi.Message) error {
		if answers {
			return out.Emit(*m)
		}
		if m.T == 1 {
			r.done <- struct{}{}
		}
		return nil
	}
	for _, e := range []*end{r.host, r.plugin} {
		if pump {
			e.loop.SetSource(elsewhere(make(chan struct{}, 1)))
		}
		e.Start()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = e.loop.Run(context.Background())
		}()
		t.Cleanup(func() {
			e.loop.Stop()
			<-ended
			e.Stop()
		})
	}
	return r
}

// elsewhere keeps a loop's only place for a source taken. Nothing comes from it.
type elsewhere chan struct{}

var _ loop.Source = elsewhere(nil)

func (elsewhere) Poll() {}

// Wait waits for Nudge.
func (e elsewhere) Wait() { <-e }

// Nudge ends a Wait.
func (e elsewhere) Nudge() {
	select {
	case e <- struct{}{}:
	default:
	}
}

func connect(t testing.TB, s *bus.Signal, to *bus.Slot) {
	t.Helper()
	if _, err := bus.Connect(s, to, bus.Options{Depth: 256}); err != nil {
		t.Fatal(err)
	}
}

// trips goes from the host to the plugin and back that often.
func (r *running) trips(n int) {
	r.left = n
	_ = r.request.Emit(hostabi.Message{})
	<-r.done
}

// stream sends that many messages to the plugin.
func (r *running) stream(n int) {
	for i := range n {
		m := hostabi.Message{}
		if i == n-1 {
			m.T = 1
		}
		_ = r.request.Emit(m)
	}
	<-r.done
}

// BenchmarkLink_RoundTrip: bus, link, ring, link, slot, and all the way back.
func BenchmarkLink_RoundTrip(b *testing.B) {
	for _, pump := range []bool{false, true} {
		b.Run(fmt.Sprintf("pump=%v", pump), func(b *testing.B) {
			r := run(b, pump, true)
			b.ReportAllocs()
			for b.Loop() {
				r.trips(100)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/100, "ns/trip")
		})
	}
}

// BenchmarkLink_OneWay: bus, link, ring, link, slot, as fast as windows allow.
func BenchmarkLink_OneWay(b *testing.B) {
	r := run(b, false, false)
	b.ReportAllocs()
	for b.Loop() {
		r.stream(1000)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/message")
}

func TestLink_AllocatesNothing(t *testing.T) {
	for _, pump := range []bool{false, true} {
		r := run(t, pump, true)
		r.trips(1000)
		if n := testing.AllocsPerRun(20, func() { r.trips(50) }); n >= 1 {
			t.Errorf("pump = %v: %v allocations in 50 round trips, want 0", pump, n)
		}
	}
	r := run(t, false, false)
	r.stream(3000)
	if n := testing.AllocsPerRun(20, func() { r.stream(500) }); n >= 1 {
		t.Errorf("%v allocations for 500 messages, want 0", n)
	}
}
