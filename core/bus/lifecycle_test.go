package bus_test

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/loop"
	"github.com/rlhost/rlhost/hostabi"
)

func TestDisconnect_StillDeliversWaitingMessages(t *testing.T) {
	for _, overflow := range []bus.Overflow{bus.Block, bus.DropOldest} {
		with(t, func(t *testing.T, f *fixture) {
			c := connect(t, f.sig, f.in.Slot, bus.Options{Depth: 3, Overflow: overflow})
			f.emit(3)
			if overflow == bus.Block {
				f.emit(2)
			}
			c.Disconnect()
			c.Disconnect()
			last := uint64(f.next)
			f.emit(1) // does not enter
			f.receive()
			if got := uint64(len(f.in.got)); got != last {
				t.Errorf("%v: slot got %v, want all up to %d", overflow, f.in.got, last)
			}
			if f.sender.Paused() {
				t.Errorf("%v: the sender is still paused", overflow)
			}
			f.claims.expectBalance(t)
		})
	}
}

func TestDisconnectNow_DropsWaitingMessages(t *testing.T) {
	for _, overflow := range []bus.Overflow{bus.Block, bus.DropNewest, bus.Coalesce} {
		with(t, func(t *testing.T, f *fixture) {
			c := connect(t, f.sig, f.in.Slot, bus.Options{Depth: 3, Overflow: overflow})
			f.emit(5)
			c.Disconnect() // drains, until that takes too long
			c.DisconnectNow()
			c.DisconnectNow()
			if f.sender.Paused() {
				t.Errorf("%v: the sender is still paused", overflow)
			}
			f.receive()
			f.in.expect(t)
			f.claims.expectBalance(t)
			if s := c.Stats(); s.Dropped+s.Coalesced != 5 || s.Queued+s.Parked != 0 || s.Delivered != 0 {
				t.Errorf("%v: stats %+v, want all 5 dropped or coalesced", overflow, s)
			}
			slices.Sort(f.lost)
			f.expectLost(1, 2, 3, 4, 5)
		})
	}
}

func TestDisconnect_OfOneQueueSlotLeavesWaitingMessagesToTheOthers(t *testing.T) {
	with(t, func(t *testing.T, f *fixture) {
		second := newInbox(f.to.NewReceiver("second"))
		first := connect(t, f.sig, f.in.Slot, bus.Options{Mode: bus.Queue, Depth: 1})
		connect(t, f.sig, second.Slot, bus.Options{Mode: bus.Queue, Depth: 1})
		f.emit(6)
		first.DisconnectNow()
		f.receive()
		f.in.expect(t)
		second.expect(t, 2, 3, 4, 5, 6)
		f.claims.expectBalance(t)
	})
}

func TestConnect_TakesOverWaitingMessages(t *testing.T) {
	with(t, func(t *testing.T, f *fixture) {
		slow := f.to.NewReceiver("slow")
		slow.Pause()
		first := newInbox(slow)
		old := connect(t, f.sig, first.Slot, bus.Options{Mode: bus.Queue, Depth: 1})
		f.emit(3)
		old.Disconnect() // keeps what waits, as the last one
		connect(t, f.sig, f.in.Slot, bus.Options{Mode: bus.Queue, Depth: 8})
		f.receive()
		f.in.expect(t, 2, 3)
		slow.Resume()
		synctest.Wait()
		first.expect(t, 1)
		f.claims.expectBalance(t)
	})
}

func TestClose_ReleasesTheBlocksOfQueuedMessages(t *testing.T) {
	for _, o := range []bus.Options{
		{Depth: 3}, {Depth: 3, Overflow: bus.DropNewest}, {Depth: 3, Overflow: bus.DropOldest},
		{Mode: bus.Queue, Depth: 3}, {Mode: bus.Latest, Depth: 1}, {Mode: bus.Reply, Depth: 3},
	} {
		with(t, func(t *testing.T, f *fixture) {
			c := connect(t, f.sig, f.in.Slot, o)
			f.emit(5)
			f.receiver.Control(func(*hostabi.Message) { f.to.Stop() }, hostabi.Message{})
			if err := f.to.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := f.to.Close(); err != nil {
				t.Fatal(err)
			}
			f.claims.expectBalance(t)
			if f.sender.Paused() {
				t.Errorf("%+v: the sender waits for a closed loop", o)
			}
			before := c.Stats().Dropped
			if err := f.emit(2); err != nil && o.Overflow != bus.Fail {
				t.Errorf("%+v: Emit = %v", o, err)
			}
			if got, want := c.Stats().Dropped, before+2; got != want {
				t.Errorf("%+v: dropped %d after the loop was closed, want %d", o, got, want)
			}
			f.claims.expectBalance(t)
		})
	}
}

func TestQueue_PassesOverAClosedLoop(t *testing.T) {
	with(t, func(t *testing.T, f *fixture) {
		gone := loop.New("gone")
		lost := newInbox(gone.NewReceiver("lost"))
		connect(t, f.sig, lost.Slot, bus.Options{Mode: bus.Queue, Depth: 2})
		connect(t, f.sig, f.in.Slot, bus.Options{Mode: bus.Queue, Depth: 2})
		if err := gone.Close(); err != nil {
			t.Fatal(err)
		}
		f.emit(6)
		f.receive()
		f.in.expect(t, 1, 2, 3, 4, 5, 6)
		f.claims.expectBalance(t)
	})
}

func TestRetainer_RefusalKeepsTheMessageBack(t *testing.T) {
	with(t, func(t *testing.T, f *fixture) {
		for _, o := range []bus.Options{{Depth: 4}, {Mode: bus.Queue, Depth: 4}} {
			connect(t, f.sig, f.in.Slot, o)
		}
		f.claims.refuse[2] = true
		f.emit(1)
		if err := f.emit(1); !errors.Is(err, errStale) {
			t.Errorf("Emit of a stale handle = %v, want the retainer's error", err)
		}
		f.receive()
		f.in.expect(t, 1, 1)
		f.claims.expectBalance(t)
	})
}

func TestRetainer_FailedReleaseIsCounted(t *testing.T) {
	with(t, func(t *testing.T, f *fixture) {
		slot := bus.NewSlot(f.receiver, "in", "payload", func(m *hostabi.Message) { f.claims.Release(m.Handle) })
		connect(t, f.sig, slot, bus.Options{Depth: 4})
		f.emit(3)
		f.receive()
		if got := f.sig.Stats().Unreleased; got != 3 {
			t.Errorf("failed releases counted: %d, want 3", got)
		}
	})
}

func TestSlot_HoldsTheBlockUntilItReturnsAlsoByPanic(t *testing.T) {
	with(t, func(t *testing.T, f *fixture) {
		slot := bus.NewSlot(f.receiver, "in", "payload", func(m *hostabi.Message) {
			if f.claims.of(m.Handle) != 1 {
				t.Errorf("block %v is not held while the slot runs", m.Handle)
			}
			m.Handle = 0 // the message is the slot's to change
			if m.Sequence == 2 {
				panic("slot")
			}
		})
		connect(t, f.sig, slot, bus.Options{Depth: 4})
		f.emit(3)
		if err := f.to.Run(t.Context()); err == nil {
			t.Error("Run = nil, want the panic")
		}
		if got := f.claims.total(); got != 1 {
			t.Errorf("%d blocks are held after the panic, want the one still queued", got)
		}
		f.to.Close()
		f.claims.expectBalance(t)
	})
}
