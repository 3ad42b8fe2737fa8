package bus_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/loop"
	"github.com/rlhost/rlhost/hostabi"
)

func TestConnect_InModeLatestGivesTheNewestMessageAtOnce(t *testing.T) {
	latest := bus.Options{Mode: bus.Latest, Depth: 1}
	for name, before := range map[string]func(t *testing.T, f *fixture){
		"nothing was connected": func(*testing.T, *fixture) {},
		"another one is there":  func(t *testing.T, f *fixture) { connect(t, f.sig, f.in.Slot, latest) },
		"all get it":            func(t *testing.T, f *fixture) { connect(t, f.sig, f.in.Slot, bus.Options{Depth: 9}) },
		"it waits for room":     func(t *testing.T, f *fixture) { connect(t, f.sig, f.in.Slot, bus.Options{Depth: 1}) },
		"it waits in a queue":   func(t *testing.T, f *fixture) { connect(t, f.sig, f.in.Slot, bus.Options{Mode: bus.Queue, Depth: 1}) },
		"it was dropped": func(t *testing.T, f *fixture) {
			connect(t, f.sig, f.in.Slot, bus.Options{Depth: 1, Overflow: bus.DropNewest})
		},
		"it was for this peer": func(t *testing.T, f *fixture) { connect(t, f.sig, f.in.Slot, bus.Options{Mode: bus.Reply, Depth: 9}) },
		"it was for another peer": func(t *testing.T, f *fixture) {
			connect(t, f.sig, f.in.Slot, bus.Options{Mode: bus.Reply, Depth: 9, Peer: 1})
		},
	} {
		t.Run(name, func(t *testing.T) {
			with(t, func(t *testing.T, f *fixture) {
				late := newInbox(f.to.NewReceiver("late"))
				first := connect(t, f.sig, late.Slot, latest)
				first.Disconnect()
				before(t, f)
				f.emit(4)
				late = newInbox(f.to.NewReceiver("late"))
				c := connect(t, f.sig, late.Slot, latest)
				if f.claims.of(4) == 0 {
					t.Error("the block of the newest message is not held")
				}
				f.expect(c, bus.ConnectionStats{Queued: 1, MaxQueued: 1})
				f.receive()
				late.expect(t, 4)
				f.claims.expectBalance(t)
				if m, ok := f.sig.Newest(); !ok || m.Sequence != 4 || m.Handle != 4 {
					t.Errorf("Newest = %+v, %v", m, ok)
				}
			})
		})
	}
}

func TestConnect_GivesNothingIfNothingIsThere(t *testing.T) {
	with(t, func(t *testing.T, f *fixture) {
		c := connect(t, f.sig, f.in.Slot, bus.Options{Mode: bus.Latest, Depth: 1})
		if _, ok := f.sig.Newest(); ok {
			t.Error("a signal that emitted nothing has a newest message")
		}
		f.expect(c, bus.ConnectionStats{})
		c.Disconnect()
		f.emit(2)
		f.claims.refuse[2] = true // its block has been reused
		c = connect(t, f.sig, f.in.Slot, bus.Options{Mode: bus.Latest, Depth: 1})
		f.expect(c, bus.ConnectionStats{})
		f.emit(1)
		f.receive()
		f.in.expect(t, 3)
		f.claims.expectBalance(t)
	})
}

func TestContinue_TakesOverSequenceAndNewestMessage(t *testing.T) {
	with(t, func(t *testing.T, f *fixture) {
		next := bus.NewSignal(f.sender, "next", "payload", f.claims)
		f.emit(5)
		next.Continue(f.sig)
		connect(t, next, f.in.Slot, bus.Options{Mode: bus.Latest, Depth: 1})
		f.receive()
		next.Emit(hostabi.Message{})
		synctest.Wait()      // or the next one may take its place
		next.Continue(f.sig) // is earlier
		next.Emit(hostabi.Message{})
		synctest.Wait()
		f.in.expect(t, 5, 6, 7)
		if s := next.Stats(); s.Emitted != 7 {
			t.Errorf("stats %+v, want 7 emitted", s)
		}
	})
}

// A connection made in mode latest during emissions gets the last message in the end, and none comes after a newer one.
func TestConnect_InModeLatestMissesNothingThatIsEmittedMeanwhile(t *testing.T) {
	const emitters, each = 2, 1500
	crew := newCrew(t, 2)
	claims := newClaims()
	sig := bus.NewSignal(nil, "out", "payload", claims)
	var emitting, connecting sync.WaitGroup
	var over atomic.Bool
	var lasts []*atomic.Uint64
	connecting.Go(func() {
		for n := 0; !over.Load(); n++ {
			last := &atomic.Uint64{}
			slot := bus.NewSlot(crew.loops[n%2].NewReceiver("late"), "late", "payload", func(m *hostabi.Message) {
				if m.Sequence <= last.Load() {
					t.Errorf("message %d came after %d", m.Sequence, last.Load())
				}
				last.Store(m.Sequence)
			})
			c := connect(t, sig, slot, bus.Options{Mode: bus.Latest, Depth: 1})
			if n%8 == 0 && len(lasts) < 16 {
				lasts = append(lasts, last) // stays
			} else {
				c.Disconnect()
			}
			runtime.Gosched()
		}
	})
	for range emitters {
		emitting.Go(func() {
			for range each {
				if err := sig.Emit(hostabi.Message{Handle: 3}); err != nil {
					t.Error(err)
				}
				runtime.Gosched()
			}
		})
	}
	emitting.Wait()
	over.Store(true)
	connecting.Wait()
	for _, l := range crew.loops {
		handled := make(chan struct{})
		l.NewReceiver("last").Post(func(*hostabi.Message) { close(handled) }, hostabi.Message{})
		<-handled
	}
	for i, last := range lasts {
		if got := last.Load(); got != emitters*each {
			t.Errorf("connection %d has message %d in the end, want %d", i, got, emitters*each)
		}
	}
	crew.end(t)
	claims.expectBalance(t)
}

func TestUnclaimed_LooksAtMessagesWithoutHoldingTheirBlocks(t *testing.T) {
	with(t, func(t *testing.T, f *fixture) {
		var handles []hostabi.Handle
		slot := bus.NewSlot(f.receiver, "watch", "payload", func(m *hostabi.Message) { handles = append(handles, m.Handle) })
		c := connect(t, f.sig, slot, bus.Options{Depth: 3, Overflow: bus.DropNewest, Unclaimed: true})
		blocked := connect(t, f.sig, slot, bus.Options{Depth: 1, Unclaimed: true})
		f.emit(5)
		if f.claims.retains != 0 {
			t.Errorf("%d blocks were claimed", f.claims.retains)
		}
		blocked.DisconnectNow()
		f.emit(1)
		f.receive()
		if len(handles) != 3 || handles[0] != 1 || handles[2] != 3 {
			t.Errorf("saw blocks %v, want 1, 2 and 3", handles)
		}
		f.expect(c, bus.ConnectionStats{Delivered: 3, Dropped: 3, MaxQueued: 3})
		f.claims.expectBalance(t)
		if s := f.sig.Stats(); s.Unreleased != 0 {
			t.Errorf("%d blocks were released that were not claimed", s.Unreleased)
		}
		_, err := bus.Connect(f.sig, slot, bus.Options{Mode: bus.Queue, Depth: 1, Unclaimed: true})
		if err == nil {
			t.Error("an unclaimed queue connection was accepted")
		}
	})
}

func TestWatcher_NeverHoldsUpTheEmitter(t *testing.T) {
	l := loop.New("l")
	sender := l.NewReceiver("sender")
	sig := bus.NewSignal(sender, "out", "payload", newClaims())
	stuck := make(chan struct{})
	watcher := watch(t, sig, func(*hostabi.Message) { <-stuck })
	came := make(chan struct{})
	connect(t, sig, bus.NewSlot(l.NewReceiver("receiver"), "in", "payload", func(*hostabi.Message) { came <- struct{}{} }),
		bus.Options{Depth: 2})
	run(t, l)
	op := func() {
		if err := sig.Emit(hostabi.Message{Handle: 1}); err != nil || sender.Paused() {
			t.Errorf("Emit = %v, paused %v", err, sender.Paused())
		}
		<-came
	}
	for range 1000 {
		op()
	}
	if n := testing.AllocsPerRun(200, op); n != 0 {
		t.Errorf("%v allocations for each message, want 0", n)
	}
	if s := watcher.Stats(); s.Dropped < 1000 || s.Parked != 0 || s.Queued > 64 {
		t.Errorf("the watcher's connection: %+v", s)
	}
	close(stuck)
}
