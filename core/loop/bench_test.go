package loop_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/rlhost/rlhost/core/loop"
	"github.com/rlhost/rlhost/hostabi"
)

// window is how many messages a benchmark posts before it waits for the loop to have handled them.
const window = 1024

// start runs loops until the benchmark ends.
func start(tb testing.TB, loops ...*loop.Loop) {
	done := make(chan error, len(loops))
	for _, l := range loops {
		go func() { done <- l.Run(context.Background()) }()
	}
	tb.Cleanup(func() {
		for _, l := range loops {
			l.Stop()
		}
		for range loops {
			if err := <-done; err != nil {
				tb.Error(err)
			}
		}
	})
}

// barrier returns a slot that counts messages and a function that waits until n more have come.
func barrier(n int) (slot func(*hostabi.Message), wait func()) {
	came := 0
	full := make(chan struct{}, 1)
	return func(*hostabi.Message) {
		if came++; came == n {
			came = 0
			full <- struct{}{}
		}
	}, func() { <-full }
}

func BenchmarkPost_ToAnotherLoop(b *testing.B) {
	l := loop.New("bench")
	r := l.NewReceiver("receiver")
	slot, wait := barrier(window)
	start(b, l)
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		r.Post(slot, hostabi.Message{T: 1})
		if n++; n == window {
			wait()
			n = 0
		}
	}
}

func BenchmarkPost_FanOut(b *testing.B) {
	for _, loops := range []int{1, 4, 8} {
		b.Run(fmt.Sprintf("loops=%d", loops), func(b *testing.B) {
			var receivers []*loop.Receiver
			var slots []func(*hostabi.Message)
			var waits []func()
			for i := range loops {
				l := loop.New(fmt.Sprint(i))
				receivers = append(receivers, l.NewReceiver("receiver"))
				slot, wait := barrier(window)
				slots, waits = append(slots, slot), append(waits, wait)
				start(b, l)
			}
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				for i, r := range receivers {
					r.Post(slots[i], hostabi.Message{T: 1})
				}
				if n++; n == window {
					for _, wait := range waits {
						wait()
					}
					n = 0
				}
			}
		})
	}
}

// A slot that posts to its own loop until it is stopped.
func BenchmarkPost_ToOwnLoop(b *testing.B) {
	l := loop.New("bench")
	r := l.NewReceiver("receiver")
	left := 0
	full := make(chan struct{}, 1)
	var again func(*hostabi.Message)
	again = func(*hostabi.Message) {
		if left--; left == 0 {
			full <- struct{}{}
			return
		}
		r.Post(again, hostabi.Message{})
	}
	start(b, l)
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		if n++; n == window {
			n = 0
			r.Control(func(*hostabi.Message) { left = window; r.Post(again, hostabi.Message{}) }, hostabi.Message{})
			<-full
		}
	}
}

func BenchmarkPost_PingPong(b *testing.B) {
	l1, l2 := loop.New("ping"), loop.New("pong")
	r1, r2 := l1.NewReceiver("ping"), l2.NewReceiver("pong")
	left := 0
	full := make(chan struct{}, 1)
	var ping, pong func(*hostabi.Message)
	ping = func(*hostabi.Message) {
		if left--; left == 0 {
			full <- struct{}{}
			return
		}
		r2.Post(pong, hostabi.Message{})
	}
	pong = func(*hostabi.Message) { r1.Post(ping, hostabi.Message{}) }
	start(b, l1, l2)
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		if n++; n == window {
			n = 0
			r1.Control(func(*hostabi.Message) { left = window; r1.Post(ping, hostabi.Message{}) }, hostabi.Message{})
			<-full
		}
	}
}
