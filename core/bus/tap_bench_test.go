package bus_test

import (
	"fmt"
	"testing"

	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/loop"
	"github.com/rlhost/rlhost/hostabi"
)

// watch connects a slot on a separate loop that only looks at messages and never makes an emitter wait.
func watch(tb testing.TB, sig *bus.Signal, saw func(*hostabi.Message)) *bus.Connection {
	l := loop.New("watcher")
	slot := bus.NewSlot(l.NewReceiver("watcher"), "watch", sig.Payload(), saw)
	c := connect(tb, sig, slot, bus.Options{Depth: 64, Overflow: bus.DropNewest, Unclaimed: true})
	run(tb, l)
	return c
}

// BenchmarkEmit_Watched measures emission to a slot on another loop while watchers are connected. paced lets the
// watchers fall asleep between two messages, when a watcher costs most.
func BenchmarkEmit_Watched(b *testing.B) {
	for _, paced := range []bool{false, true} {
		for _, watchers := range []int{0, 1, 2} {
			b.Run(fmt.Sprintf("paced=%v/watchers=%d", paced, watchers), func(b *testing.B) {
				sig := bus.NewSignal(nil, "signal", "payload", nil)
				l := loop.New("loop")
				full := make(chan struct{}, 1)
				every := uint32(window)
				if paced {
					every = 1
				}
				slot := bus.NewSlot(l.NewReceiver("slot"), "slot", "payload", func(m *hostabi.Message) {
					if m.T == every {
						full <- struct{}{}
					}
				})
				connect(b, sig, slot, bus.Options{Depth: window, Overflow: bus.Block})
				for range watchers {
					watch(b, sig, func(*hostabi.Message) {})
				}
				run(b, l)
				b.ReportAllocs()
				t := uint32(0)
				for b.Loop() {
					t++
					if err := sig.Emit(hostabi.Message{T: t}); err != nil {
						b.Fatal(err)
					}
					if t == every {
						<-full
						t = 0
					}
				}
			})
		}
	}
}
