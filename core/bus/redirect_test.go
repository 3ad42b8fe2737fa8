package bus_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/loop"
	"github.com/rlhost/rlhost/hostabi"
)

// numbers is a slot on a loop of the test that remembers its messages.
func numbers(r *loop.Receiver, into *[]uint32) *bus.Slot {
	return bus.NewSlot(r, r.Name(), "number", func(m *hostabi.Message) { *into = append(*into, m.T) })
}

func TestRedirect_TakesWaitingMessagesAlong(t *testing.T) {
	for _, apart := range []bool{false, true} {
		for _, o := range []bus.Options{
			{Mode: bus.All, Depth: 4, Overflow: bus.Block}, {Mode: bus.Queue, Depth: 4, Overflow: bus.Block},
			{Mode: bus.All, Depth: 8, Overflow: bus.DropOldest},
		} {
			t.Run(fmt.Sprintf("%v %v apart %v", o.Mode, o.Overflow, apart), func(t *testing.T) {
				here := loop.New("here")
				there := here
				if apart {
					there = loop.New("there")
				}
				var old, now []uint32
				before, after := here.NewReceiver("before"), there.NewReceiver("after")
				after.Hold()
				sig := bus.NewSignal(nil, "n", "number", nil)
				c, err := bus.Connect(sig, numbers(before, &old), o)
				if err != nil {
					t.Fatal(err)
				}
				emit := func(from, to uint32) {
					for n := from; n < to; n++ {
						if err := sig.Emit(hostabi.Message{T: n}); err != nil {
							t.Fatal(err)
						}
					}
				}
				emit(0, 6) // of blocking ones two wait for room
				before.Hold()
				if err := bus.Redirect(bus.Way{Connection: c, To: numbers(after, &now)}); err != nil {
					t.Fatal(err)
				}
				emit(6, 8)
				after.Release()
				runUntilIdle(t, there)
				if want := []uint32{0, 1, 2, 3, 4, 5, 6, 7}; !slices.Equal(now, want) || len(old) != 0 {
					t.Errorf("the new slot got %v and the old one %v, want %v and nothing", now, old, want)
				}
				if s := c.Stats(); s.Delivered != 8 || s.Dropped+uint64(s.Queued+s.Parked) != 0 {
					t.Errorf("%+v, want 8 delivered", s)
				}
			})
		}
	}
}

// runUntilIdle runs a loop until all queued messages and their consequences have been handled.
func runUntilIdle(t *testing.T, l *loop.Loop) {
	t.Helper()
	last := l.NewReceiver("last")
	rounds := 0
	var again func(*hostabi.Message)
	again = func(*hostabi.Message) {
		if rounds++; rounds == 100 {
			l.Stop()
			return
		}
		last.Post(again, hostabi.Message{})
	}
	last.Post(again, hostabi.Message{})
	if err := l.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestRedirect_KeepsTheOrderOfAllEmissions(t *testing.T) {
	with(t, func(t *testing.T, f *fixture) {
		before := f.to.NewReceiver("before")
		before.Hold()
		in := newInbox(before)
		signals := [2]*bus.Signal{f.sig, bus.NewSignal(f.sender, "other", "payload", f.claims)}
		var got []uint32
		var ways []bus.Way
		for _, sig := range signals {
			slot := bus.NewSlot(f.receiver, "after", "payload", func(m *hostabi.Message) { got = append(got, m.T) })
			ways = append(ways, bus.Way{Connection: connect(t, sig, in.Slot, bus.Options{Depth: 2}), To: slot})
		}
		emit := func(from, to uint32) {
			for n := from; n <= to; n++ {
				signals[n%2].Emit(hostabi.Message{T: n, Handle: hostabi.Handle(n)})
			}
		}
		emit(1, 6) // 5 and 6 wait for room
		if err := bus.Redirect(ways...); err != nil {
			t.Fatal(err)
		}
		for _, w := range ways {
			if w.Connection.Slot() != w.To || len(w.To.Connections()) != 1 || len(in.Connections()) != 0 {
				t.Error("a connection does not lead to its new slot")
			}
		}
		before.Close()
		emit(7, 8)
		f.receive()
		in.expect(t)
		if want := []uint32{1, 2, 3, 4, 5, 6, 7, 8}; !slices.Equal(got, want) || f.sender.Paused() {
			t.Errorf("slots got %v, want %v; the sender is paused: %v", got, want, f.sender.Paused())
		}
		f.claims.expectBalance(t)
	})
}

func TestRedirect_GivesTheNewestAgainInModeLatest(t *testing.T) {
	l := loop.New("l")
	var old, now []uint32
	sig := bus.NewSignal(nil, "n", "number", nil)
	before := l.NewReceiver("before")
	c, err := bus.Connect(sig, numbers(before, &old), bus.Options{Mode: bus.Latest, Depth: 1})
	if err != nil {
		t.Fatal(err)
	}
	_ = sig.Emit(hostabi.Message{T: 1})
	_ = sig.Emit(hostabi.Message{T: 2})
	l.NewReceiver("x").Post(func(*hostabi.Message) {
		if err := bus.Redirect(bus.Way{Connection: c, To: numbers(l.NewReceiver("after"), &now)}); err != nil {
			t.Error(err)
		}
	}, hostabi.Message{})
	runUntilIdle(t, l)
	if !slices.Equal(old, []uint32{2}) || !slices.Equal(now, []uint32{2}) {
		t.Errorf("the old slot got %v and the new one %v, want the newest message for both", old, now)
	}
}

func TestRedirect_RefusesAndThenDoesNothing(t *testing.T) {
	l, m := loop.New("l"), loop.New("m")
	var got []uint32
	sig := bus.NewSignal(nil, "n", "number", nil)
	connect := func(on *loop.Loop) *bus.Connection {
		c, err := bus.Connect(sig, numbers(on.NewReceiver("r"), &got), bus.Options{Mode: bus.All, Depth: 1})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	a, b := connect(l), connect(m)
	to := numbers(l.NewReceiver("to"), &got)
	other := bus.NewSlot(l.NewReceiver("other"), "other", "letter", func(*hostabi.Message) {})
	for name, ways := range map[string][]bus.Way{
		"two loops": {{a, to}, {b, to}}, "payload": {{a, to}, {a, other}}, "twice": {{a, to}, {a, to}},
	} {
		was := a.Slot()
		if err := bus.Redirect(ways...); err == nil || a.Slot() != was {
			t.Errorf("%s: Redirect = %v, slot %s", name, err, a.Slot().Name())
		}
	}
}

// A component's posts to itself stay its own when its slots become another's.
func TestRedirect_LeavesPosts(t *testing.T) {
	here := loop.New("here")
	var old, now []uint32
	before, after := here.NewReceiver("before"), here.NewReceiver("after")
	sig := bus.NewSignal(nil, "n", "number", nil)
	c, err := bus.Connect(sig, numbers(before, &old), bus.Options{Mode: bus.All, Depth: 4, Overflow: bus.Block})
	if err != nil {
		t.Fatal(err)
	}
	posted := 0
	before.Post(loop.Func(func(*hostabi.Message) { posted++ }), hostabi.Message{})
	if err := sig.Emit(hostabi.Message{T: 1}); err != nil {
		t.Fatal(err)
	}
	if err := bus.Redirect(bus.Way{Connection: c, To: numbers(after, &now)}); err != nil {
		t.Fatal(err)
	}
	runUntilIdle(t, here)
	if posted != 1 || len(old) != 0 || !slices.Equal(now, []uint32{1}) {
		t.Errorf("posted was delivered %d times, the old slot got %v and the new one %v", posted, old, now)
	}
}
