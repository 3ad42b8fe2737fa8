package bus_test

import (
	"runtime"
	"testing"

	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/hostabi"
)

// version is memory that a slot of the test below keeps alive: if something remembered old connections, it would show.
type version struct{ bytes [8 << 10]byte }

func (v *version) slot(*hostabi.Message) { v.bytes[0]++ }

func TestRedirect_LeavesNothingOfThousandsOfPredecessors(t *testing.T) {
	crew := newCrew(t, 1)
	l := crew.loops[0]
	claims := newClaims()
	sig := bus.NewSignal(nil, "out", "payload", claims)
	r := l.NewReceiver("version")
	c := connect(t, sig, bus.NewSlot(r, "in", "payload", (&version{}).slot), bus.Options{Depth: 2})
	round := func(n int) (heap uint64) {
		for range n {
			for range 5 {
				sig.Emit(hostabi.Message{Handle: 1})
			}
			next := l.NewReceiver("version")
			next.Hold()
			slot := bus.NewSlot(next, "in", "payload", (&version{}).slot)
			if err := bus.Redirect(bus.Way{Connection: c, To: slot}); err != nil {
				t.Fatal(err)
			}
			out := bus.NewSignal(nil, "out", "payload", claims)
			if err := bus.MoveSignal(c, out); err != nil {
				t.Fatal(err)
			}
			next.Release()
			r.Close()
			r, sig = next, out
		}
		runtime.GC()
		var s runtime.MemStats
		runtime.ReadMemStats(&s)
		return s.HeapAlloc
	}
	before := round(100)
	many := 3000
	if testing.Short() {
		many = 1000
	}
	if after := round(many); after > before+1<<20 {
		t.Errorf("heap %d → %d bytes", before, after)
	}
	if got := sig.Stats().Emitted; got != uint64(100+many)*5 {
		t.Errorf("the sequence has come to %d, want %d", got, (100+many)*5)
	}
	c.Disconnect()
	crew.end(t)
	claims.expectBalance(t)
}
