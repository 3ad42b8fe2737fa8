package bus_test

import (
	"fmt"
	"testing"

	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/loop"
	"github.com/rlhost/rlhost/hostabi"
)

func TestEmit_DoesNotAllocate(t *testing.T) {
	for _, o := range []bus.Options{
		{Depth: 4}, {Depth: 4, Overflow: bus.DropNewest}, {Depth: 4, Overflow: bus.DropOldest},
		{Depth: 4, Overflow: bus.Coalesce}, {Depth: 4, Overflow: bus.Fail}, {Mode: bus.Queue, Depth: 4},
		{Mode: bus.Latest, Depth: 1}, {Mode: bus.Reply, Depth: 4}, {Depth: 4, Unclaimed: true},
	} {
		t.Run(fmt.Sprintf("%v,%v", o.Mode, o.Overflow), func(t *testing.T) {
			l := loop.New("l")
			sig := bus.NewSignal(l.NewReceiver("sender"), "out", "payload", newClaims())
			came := make(chan struct{})
			slot := bus.NewSlot(l.NewReceiver("receiver"), "in", "payload", func(m *hostabi.Message) {
				if m.T == 3 {
					came <- struct{}{}
				}
			})
			connect(t, sig, slot, o)
			run(t, l)
			op := func() {
				for i := range uint32(3) {
					if err := sig.Emit(hostabi.Message{T: i + 1, Handle: 1}); err != nil {
						t.Error(err)
					}
				}
				<-came
			}
			for range 100 {
				op()
			}
			if n := testing.AllocsPerRun(200, op); n != 0 {
				t.Errorf("%v allocations for three messages, want 0", n)
			}
		})
	}
}

func TestEmit_ToAFullConnectionDoesNotAllocate(t *testing.T) {
	l := loop.New("l")
	sender := l.NewReceiver("sender")
	sig := bus.NewSignal(sender, "out", "payload", newClaims())
	came := make(chan struct{})
	slot := bus.NewSlot(l.NewReceiver("receiver"), "in", "payload", func(m *hostabi.Message) {
		if m.T == 9 {
			came <- struct{}{}
		}
	})
	connect(t, sig, slot, bus.Options{Depth: 2})
	run(t, l)
	emit := func(*hostabi.Message) {
		for i := range uint32(10) {
			if err := sig.Emit(hostabi.Message{T: i, Handle: 1}); err != nil {
				t.Error(err)
			}
		}
	}
	op := func() {
		sender.Post(emit, hostabi.Message{})
		<-came
	}
	for range 100 {
		op()
	}
	if n := testing.AllocsPerRun(200, op); n != 0 {
		t.Errorf("%v allocations for ten messages, want 0", n)
	}
}
