package bus_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/loop"
	"github.com/rlhost/rlhost/hostabi"
)

// window is how many messages a benchmark emits before it waits for their delivery.
const window = 1024

// run runs loops until the test or benchmark ends.
func run(tb testing.TB, loops ...*loop.Loop) {
	ended := make(chan error, len(loops))
	for _, l := range loops {
		go func() { ended <- l.Run(context.Background()) }()
	}
	tb.Cleanup(func() {
		for _, l := range loops {
			l.Stop()
		}
		for range loops {
			if err := <-ended; err != nil {
				tb.Error(err)
			}
		}
	})
}

// benchmarkEmit measures emission to slots on separate loops, delivery included.
func benchmarkEmit(b *testing.B, loops int, o bus.Options) {
	sig := bus.NewSignal(nil, "signal", "payload", nil)
	full := make(chan struct{}, loops)
	for i := range loops {
		l := loop.New(fmt.Sprint(i))
		got := 0
		slot := bus.NewSlot(l.NewReceiver("slot"), "slot", "payload", func(m *hostabi.Message) {
			if got++; m.T == window {
				full <- struct{}{}
			}
		})
		if _, err := bus.Connect(sig, slot, o); err != nil {
			b.Fatal(err)
		}
		run(b, l)
	}
	if o.Mode == bus.Queue {
		loops = 1
	}
	b.ReportAllocs()
	t := uint32(0)
	for b.Loop() {
		t++
		if err := sig.Emit(hostabi.Message{T: t}); err != nil {
			b.Fatal(err)
		}
		if t == window {
			for range loops {
				<-full
			}
			t = 0
		}
	}
}

func BenchmarkEmit_ToAnotherLoop(b *testing.B) {
	for _, o := range []bus.Options{
		{Mode: bus.All, Depth: window, Overflow: bus.Block},
		{Mode: bus.All, Depth: window, Overflow: bus.DropNewest},
		{Mode: bus.All, Depth: window, Overflow: bus.DropOldest},
		{Mode: bus.Queue, Depth: window, Overflow: bus.Block},
		{Mode: bus.Latest, Depth: 1},
		{Mode: bus.Reply, Depth: window, Overflow: bus.Block},
	} {
		b.Run(fmt.Sprintf("mode=%v/overflow=%v", o.Mode, o.Overflow), func(b *testing.B) { benchmarkEmit(b, 1, o) })
	}
}

func BenchmarkEmit_FanOut(b *testing.B) {
	for _, loops := range []int{1, 4, 8} {
		b.Run(fmt.Sprintf("loops=%d", loops), func(b *testing.B) {
			benchmarkEmit(b, loops, bus.Options{Depth: window, Overflow: bus.Block})
		})
	}
}

// BenchmarkEmit_Flooded has a component emit without pause into a connection of depth 64, so that it is paused
// and resumed all the time.
func BenchmarkEmit_Flooded(b *testing.B) {
	for _, depth := range []int{1, 64} {
		b.Run(fmt.Sprintf("depth=%d", depth), func(b *testing.B) {
			from, to := loop.New("from"), loop.New("to")
			source := from.NewReceiver("source")
			sig := bus.NewSignal(source, "signal", "payload", nil)
			full := make(chan struct{}, 1)
			slot := bus.NewSlot(to.NewReceiver("sink"), "slot", "payload", func(m *hostabi.Message) {
				if m.Sequence%window == 0 {
					full <- struct{}{}
				}
			})
			if _, err := bus.Connect(sig, slot, bus.Options{Depth: depth, Overflow: bus.Block}); err != nil {
				b.Fatal(err)
			}
			left := 0
			var emit func(*hostabi.Message)
			emit = func(*hostabi.Message) {
				sig.Emit(hostabi.Message{})
				if left--; left > 0 {
					source.Post(emit, hostabi.Message{})
				}
			}
			run(b, from, to)
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				if n++; n == window {
					n = 0
					source.Control(func(*hostabi.Message) { left = window; source.Post(emit, hostabi.Message{}) }, hostabi.Message{})
					<-full
				}
			}
		})
	}
}

func BenchmarkEmit_ToOwnLoop(b *testing.B) {
	l := loop.New("loop")
	r := l.NewReceiver("component")
	sig := bus.NewSignal(r, "signal", "payload", nil)
	left := 0
	full := make(chan struct{}, 1)
	slot := bus.NewSlot(r, "slot", "payload", func(*hostabi.Message) {
		if left--; left == 0 {
			full <- struct{}{}
			return
		}
		sig.Emit(hostabi.Message{})
	})
	if _, err := bus.Connect(sig, slot, bus.Options{Depth: 4, Overflow: bus.Block}); err != nil {
		b.Fatal(err)
	}
	run(b, l)
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		if n++; n == window {
			n = 0
			r.Control(func(*hostabi.Message) { left = window; sig.Emit(hostabi.Message{}) }, hostabi.Message{})
			<-full
		}
	}
}

func BenchmarkEmit_PingPong(b *testing.B) {
	l1, l2 := loop.New("ping"), loop.New("pong")
	r1, r2 := l1.NewReceiver("ping"), l2.NewReceiver("pong")
	request := bus.NewSignal(r1, "request", "payload", nil)
	reply := bus.NewSignal(r2, "reply", "payload", nil)
	left := 0
	full := make(chan struct{}, 1)
	serve := bus.NewSlot(r2, "serve", "payload", func(m *hostabi.Message) { reply.Emit(*m) })
	next := bus.NewSlot(r1, "next", "payload", func(m *hostabi.Message) {
		if left--; left == 0 {
			full <- struct{}{}
			return
		}
		request.Emit(hostabi.Message{Sender: 7})
	})
	if _, err := bus.Connect(request, serve, bus.Options{Mode: bus.Queue, Depth: 4}); err != nil {
		b.Fatal(err)
	}
	if _, err := bus.Connect(reply, next, bus.Options{Mode: bus.Reply, Depth: 4, Peer: 7}); err != nil {
		b.Fatal(err)
	}
	run(b, l1, l2)
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		if n++; n == window {
			n = 0
			r1.Control(func(*hostabi.Message) { left = window; request.Emit(hostabi.Message{Sender: 7}) }, hostabi.Message{})
			<-full
		}
	}
}
