package bus_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/loop"
	"github.com/rlhost/rlhost/hostabi"
)

// successor is a second receiver on the receiving loop, held as one that is being prepared.
func successor(f *fixture) (*loop.Receiver, *inbox) {
	r := f.to.NewReceiver("successor")
	r.Hold()
	return r, newInbox(r)
}

func move(t *testing.T, c *bus.Connection, to *bus.Slot) *bus.Connection {
	t.Helper()
	moved, err := bus.Move(c, to)
	if err != nil {
		t.Fatal(err)
	}
	return moved
}

func TestMove_LeavesWhatIsQueuedAndTakesTheRest(t *testing.T) {
	for _, o := range []bus.Options{{Depth: 3}, {Mode: bus.Queue, Depth: 3}, {Mode: bus.Reply, Depth: 3}} {
		with(t, func(t *testing.T, f *fixture) {
			c := connect(t, f.sig, f.in.Slot, o)
			f.emit(4)
			if !f.sender.Paused() {
				t.Error("the sender is not paused while a message waits for room")
			}
			next, after := successor(f)
			moved := move(t, c, after.Slot)
			if f.sender.Paused() {
				t.Error("the sender is paused although there is room at the new slot")
			}
			f.emit(1)
			f.expect(c, bus.ConnectionStats{Queued: 3, MaxQueued: 3, Blocked: 1})
			f.expect(moved, bus.ConnectionStats{Queued: 2, MaxQueued: 2})
			if moved.Slot() != after.Slot || c.Slot() != f.in.Slot || moved.Options() != c.Options() || moved.Signal() != f.sig {
				t.Error("the new connection is not like the old one")
			}
			if len(f.in.Connections()) != 0 || len(after.Connections()) != 1 || len(f.sig.Connections()) != 1 {
				t.Error("slots or signal have connections that they should not have")
			}
			drained := false
			f.receiver.Behind(func() { drained = true })
			f.receive()
			f.in.expect(t, 1, 2, 3)
			after.expect(t)
			if !drained {
				t.Error("Behind has not found the end of what was queued")
			}
			next.Release()
			synctest.Wait()
			after.expect(t, 4, 5)
			f.claims.expectBalance(t)
		})
	}
}

func TestMove_InModeLatestGivesTheNewestToTheNewSlotToo(t *testing.T) {
	with(t, func(t *testing.T, f *fixture) {
		c := connect(t, f.sig, f.in.Slot, bus.Options{Mode: bus.Latest, Depth: 1})
		f.emit(3)
		next, after := successor(f)
		move(t, c, after.Slot)
		f.receive()
		next.Release()
		synctest.Wait()
		f.in.expect(t, 3)
		after.expect(t, 3)
		f.emit(1)
		synctest.Wait()
		after.expect(t, 3, 4)
		f.claims.expectBalance(t)
	})
}

func TestMove_RefusesWhatIsGoneOrDoesNotFit(t *testing.T) {
	with(t, func(t *testing.T, f *fixture) {
		c := connect(t, f.sig, f.in.Slot, bus.Options{Depth: 3})
		if _, err := bus.Move(c, bus.NewSlot(f.receiver, "in", "other", nil)); err == nil || len(f.sig.Connections()) != 1 {
			t.Errorf("a slot of another payload: %v", err)
		}
		other := bus.NewSignal(f.sender, "other", "other", f.claims)
		if err := bus.MoveSignal(c, other); err == nil || c.Signal() != f.sig {
			t.Errorf("a signal of another payload: %v", err)
		}
		if err := bus.MoveSignal(c, bus.NewSignal(f.sender, "uncounted", "payload", nil)); err == nil {
			t.Error("a signal that does not count blocks was accepted")
		}
		if err := bus.Undo(c); err == nil {
			t.Error("the move of a connection that was not moved was undone")
		}
		moved := move(t, c, f.in.Slot)
		moved.Disconnect()
		for _, gone := range []*bus.Connection{c, moved} {
			if _, err := bus.Move(gone, f.in.Slot); !errors.Is(err, bus.ErrDisconnected) {
				t.Errorf("Move = %v, want ErrDisconnected", err)
			}
			if err := bus.MoveSignal(gone, bus.NewSignal(f.sender, "x", "payload", f.claims)); !errors.Is(err, bus.ErrDisconnected) {
				t.Errorf("MoveSignal = %v, want ErrDisconnected", err)
			}
		}
		if err := bus.Redirect(bus.Way{Connection: c, To: f.in.Slot}); !errors.Is(err, bus.ErrDisconnected) {
			t.Errorf("Redirect of a moved connection = %v, want ErrDisconnected", err)
		}
		way := bus.Way{Connection: moved, To: f.in.Slot}
		if err := bus.Redirect(way, way); err == nil {
			t.Error("a connection was redirected twice at once")
		}
	})
}

func TestUndo_GivesBackWhatWaitsInTheOrderOfAllEmissions(t *testing.T) {
	with(t, func(t *testing.T, f *fixture) {
		other := bus.NewSignal(f.sender, "other", "payload", f.claims)
		var got []uint32
		note := func(m *hostabi.Message) { got = append(got, m.T) }
		before := [2]*bus.Slot{bus.NewSlot(f.receiver, "a", "payload", note), bus.NewSlot(f.receiver, "b", "payload", note)}
		old := [2]*bus.Connection{
			connect(t, f.sig, before[0], bus.Options{Depth: 2}), connect(t, other, before[1], bus.Options{Depth: 2}),
		}
		emit := func(from, to uint32) {
			for n := from; n <= to; n++ {
				[]*bus.Signal{f.sig, other}[n%2].Emit(hostabi.Message{T: n, Handle: hostabi.Handle(n)})
			}
		}
		emit(1, 4)
		next, after := successor(f)
		moved := [2]*bus.Connection{move(t, old[0], after.Slot), move(t, old[1], after.Slot)}
		emit(5, 10) // 9 and 10 wait for room
		if err := bus.Undo(old[0], old[1]); err != nil {
			t.Fatal(err)
		}
		if err := bus.Undo(old[0]); err == nil {
			t.Error("a move was undone twice")
		}
		if moved[0].Slot() != before[0] || moved[1].Slot() != before[1] || len(before[0].Connections()) != 1 {
			t.Error("the connections do not lead to the slots of before")
		}
		next.Close()
		emit(11, 12)
		f.receive()
		after.expect(t)
		for i, n := range got {
			if n != uint32(i+1) {
				t.Errorf("slots got %v, want 1 to 12", got)
				break
			}
		}
		if len(got) != 12 || f.sender.Paused() {
			t.Errorf("%d messages, want 12; the sender is paused: %v", len(got), f.sender.Paused())
		}
		f.claims.expectBalance(t)
	})
}

func TestMoveSignal_DeliversFirstWhatWaitsAndCountsOn(t *testing.T) {
	for _, o := range []bus.Options{
		{Depth: 3}, {Mode: bus.Queue, Depth: 3}, {Mode: bus.Reply, Depth: 3}, {Depth: 9, Overflow: bus.DropOldest},
	} {
		with(t, func(t *testing.T, f *fixture) {
			successor := f.from.NewReceiver("successor")
			next := bus.NewSignal(successor, "next", "payload", f.claims)
			c := connect(t, f.sig, f.in.Slot, o)
			f.emit(5)
			waits := f.sender.Paused()
			if err := bus.MoveSignal(c, next); err != nil {
				t.Fatal(err)
			}
			if f.sender.Paused() || successor.Paused() != waits {
				t.Errorf("paused: the predecessor %v, the successor %v; want false and %v", f.sender.Paused(), successor.Paused(), waits)
			}
			for range 2 {
				next.Emit(hostabi.Message{Handle: 6})
			}
			f.emit(1) // reaches nobody
			f.receive()
			f.in.expect(t, 1, 2, 3, 4, 5, 6, 7)
			if successor.Paused() || len(f.sig.Connections()) != 0 || len(next.Connections()) != 1 || c.Signal() != next {
				t.Error("the connection has not gone over")
			}
			if err := bus.MoveSignal(c, next); err != nil {
				t.Errorf("MoveSignal to its own signal = %v", err)
			}
			f.claims.expectBalance(t)
		})
	}
}

func TestMoveSignal_OfAReplyNeedsAFreePeer(t *testing.T) {
	with(t, func(t *testing.T, f *fixture) {
		o := bus.Options{Mode: bus.Reply, Depth: 3, Peer: 2}
		next := bus.NewSignal(f.sender, "next", "payload", f.claims)
		c := connect(t, f.sig, f.in.Slot, o)
		connect(t, next, f.in.Slot, o)
		f.emit(2)
		if err := bus.MoveSignal(c, next); err == nil || c.Signal() != f.sig || next.Stats().Emitted != 0 {
			t.Errorf("MoveSignal = %v", err)
		}
	})
}

func TestReceiverClose_ReleasesBlocksAndLetsTheSenderGoOn(t *testing.T) {
	for _, o := range []bus.Options{
		{Depth: 3}, {Depth: 3, Overflow: bus.DropOldest}, {Mode: bus.Queue, Depth: 3}, {Mode: bus.Latest, Depth: 1},
	} {
		with(t, func(t *testing.T, f *fixture) {
			run(t, f.to)
			f.receiver.Hold()
			c := connect(t, f.sig, f.in.Slot, o)
			f.emit(5)
			synctest.Wait()
			f.receiver.Close()
			f.claims.expectBalance(t)
			if f.sender.Paused() {
				t.Errorf("%+v: the sender waits for a closed receiver", o)
			}
			f.emit(2)
			if s := c.Stats(); s.Dropped+s.Coalesced != 7 || s.Delivered != 0 {
				t.Errorf("%+v: %+v, want all 7 dropped or coalesced", o, s)
			}
			f.in.expect(t)
			f.claims.expectBalance(t)
		})
	}
}
