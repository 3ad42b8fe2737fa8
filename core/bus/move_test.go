package bus_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/hostabi"
)

func TestMoveSignal_RefusesEndedOrUnfitConnections(t *testing.T) {
	with(t, func(t *testing.T, f *fixture) {
		c := connect(t, f.sig, f.in.Slot, bus.Options{Depth: 3})
		for what, to := range map[string]*bus.Signal{
			"another payload":                     bus.NewSignal(f.sender, "other", "other", f.claims),
			"a signal that does not count blocks": bus.NewSignal(f.sender, "uncounted", "payload", nil),
		} {
			if err := bus.MoveSignal(c, to); err == nil || c.Signal() != f.sig {
				t.Errorf("%s: %v", what, err)
			}
		}
		c.Disconnect()
		if err := bus.MoveSignal(c, bus.NewSignal(f.sender, "x", "payload", f.claims)); !errors.Is(err, bus.ErrDisconnected) {
			t.Errorf("MoveSignal = %v, want ErrDisconnected", err)
		}
	})
}

func TestMoveSignal_DeliversWaitingMessagesFirstAndCountsOn(t *testing.T) {
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
			f.emit(1) // without a receiver
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

func TestReceiverClose_ReleasesBlocksAndResumesTheSender(t *testing.T) {
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
