package bus_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/loop"
	"github.com/rlhost/rlhost/hostabi"
)

// inbox is a slot that notes the sequence numbers it got.
type inbox struct {
	got []uint64
	*bus.Slot
}

func newInbox(r *loop.Receiver) *inbox {
	i := &inbox{}
	i.Slot = bus.NewSlot(r, "in", "payload", func(m *hostabi.Message) { i.got = append(i.got, m.Sequence) })
	return i
}

func (i *inbox) expect(t *testing.T, want ...uint64) {
	t.Helper()
	if !slices.Equal(i.got, want) {
		t.Errorf("slot got messages %v, want %v", i.got, want)
	}
}

func connect(t testing.TB, sig *bus.Signal, slot *bus.Slot, o bus.Options) *bus.Connection {
	t.Helper()
	c, err := bus.Connect(sig, slot, o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// fixture is one sender and one receiver, each on its own loop. The receiver's loop does not run until receive.
type fixture struct {
	t        *testing.T
	from, to *loop.Loop
	sender   *loop.Receiver
	receiver *loop.Receiver
	claims   *claims
	sig      *bus.Signal
	in       *inbox
	next     hostabi.Handle
	lost     []hostabi.Handle // blocks that the signal reported lost
}

// with runs a test of a fixture in a bubble.
func with(t *testing.T, test func(t *testing.T, f *fixture)) {
	synctest.Test(t, func(t *testing.T) {
		f := &fixture{t: t, from: loop.New("from"), to: loop.New("to"), claims: newClaims()}
		f.sender, f.receiver = f.from.NewReceiver("sender"), f.to.NewReceiver("receiver")
		f.sig = bus.NewSignal(f.sender, "out", "payload", f.claims)
		f.in = newInbox(f.receiver)
		f.sig.OnLoss(func(h hostabi.Handle) { f.lost = append(f.lost, h) })
		run(t, f.from)
		test(t, f)
		synctest.Wait()
	})
}

// receive lets the receiving loop run and waits until all is quiet.
func (f *fixture) receive() {
	run(f.t, f.to)
	synctest.Wait()
}

// emit sends n messages with blocks 1, 2, ... and returns the last error.
func (f *fixture) emit(n int) (err error) {
	for range n {
		f.next++
		if e := f.sig.Emit(hostabi.Message{Handle: f.next}); e != nil {
			err = e
		}
	}
	return err
}

func (f *fixture) expect(c *bus.Connection, want bus.ConnectionStats) {
	f.t.Helper()
	if got := c.Stats(); got != want {
		f.t.Errorf("stats %+v, want %+v", got, want)
	}
}

// expectLost compares the blocks that the signal reported lost.
func (f *fixture) expectLost(want ...hostabi.Handle) {
	f.t.Helper()
	if !slices.Equal(f.lost, want) {
		f.t.Errorf("told of the loss of blocks %v, want %v", f.lost, want)
	}
}

func TestEmit_FansOutInOrder(t *testing.T) {
	with(t, func(t *testing.T, f *fixture) {
		second := newInbox(f.to.NewReceiver("second"))
		connect(t, f.sig, f.in.Slot, bus.Options{Depth: 8})
		connect(t, f.sig, second.Slot, bus.Options{Depth: 8, Overflow: bus.DropOldest})
		f.emit(5)
		f.receive()
		f.in.expect(t, 1, 2, 3, 4, 5)
		second.expect(t, 1, 2, 3, 4, 5)
		f.claims.expectBalance(t)
	})
}

func TestEmit_WithoutConnectionIsCounted(t *testing.T) {
	with(t, func(t *testing.T, f *fixture) {
		connect(t, f.sig, f.in.Slot, bus.Options{Mode: bus.Reply, Depth: 1, Peer: 3})
		if err := f.emit(2); err != nil {
			t.Errorf("Emit = %v", err)
		}
		if got, want := f.sig.Stats(), (bus.SignalStats{Emitted: 2, Unconnected: 2}); got != want {
			t.Errorf("stats %+v, want %+v", got, want)
		}
		f.expectLost(1, 2)
		f.claims.expectBalance(t)
	})
}

func TestQueue_GivesEachMessageToOneSlotInTurn(t *testing.T) {
	with(t, func(t *testing.T, f *fixture) {
		second := newInbox(f.to.NewReceiver("second"))
		connect(t, f.sig, f.in.Slot, bus.Options{Mode: bus.Queue, Depth: 8})
		connect(t, f.sig, second.Slot, bus.Options{Mode: bus.Queue, Depth: 8})
		f.emit(6)
		f.receive()
		f.in.expect(t, 1, 3, 5)
		second.expect(t, 2, 4, 6)
		f.claims.expectBalance(t)
	})
}

func TestShare_GivesEachOfSomeSlotsItsTurnAndOthersAll(t *testing.T) {
	with(t, func(t *testing.T, f *fixture) {
		second, third := newInbox(f.to.NewReceiver("second")), newInbox(f.to.NewReceiver("third"))
		connect(t, f.sig, f.in.Slot, bus.Options{Depth: 8, Share: bus.Share{Of: 2}})
		connect(t, f.sig, second.Slot, bus.Options{Depth: 8, Share: bus.Share{Of: 2, Turn: 1}})
		connect(t, f.sig, third.Slot, bus.Options{Depth: 8})
		if n := f.sig.Receivers(); n != 2 {
			t.Errorf("a message gets to %d slots, want 2", n)
		}
		f.emit(5)
		f.receive()
		f.in.expect(t, 2, 4)
		second.expect(t, 1, 3, 5)
		third.expect(t, 1, 2, 3, 4, 5)
		f.claims.expectBalance(t)
	})
}

func TestQueue_PrefersASlotWithRoom(t *testing.T) {
	with(t, func(t *testing.T, f *fixture) {
		slow := f.to.NewReceiver("slow")
		slow.Pause()
		second := newInbox(slow)
		c := connect(t, f.sig, second.Slot, bus.Options{Mode: bus.Queue, Depth: 1})
		connect(t, f.sig, f.in.Slot, bus.Options{Mode: bus.Queue, Depth: 8})
		f.emit(5)
		f.receive()
		f.in.expect(t, 2, 3, 4, 5)
		f.expect(c, bus.ConnectionStats{Queued: 1, MaxQueued: 1})
		slow.Resume()
		synctest.Wait()
		second.expect(t, 1)
	})
}

func TestQueue_SendsWaitingMessagesToTheFirstSlotWithRoom(t *testing.T) {
	with(t, func(t *testing.T, f *fixture) {
		slow := f.to.NewReceiver("slow")
		slow.Pause()
		second := newInbox(slow)
		connect(t, f.sig, second.Slot, bus.Options{Mode: bus.Queue, Depth: 1})
		c := connect(t, f.sig, f.in.Slot, bus.Options{Mode: bus.Queue, Depth: 1})
		f.emit(5)
		f.expect(c, bus.ConnectionStats{Queued: 1, MaxQueued: 1, Blocked: 1, Parked: 3})
		f.receive()
		f.in.expect(t, 2, 3, 4, 5)
		slow.Resume()
	})
}

func TestLatest_KeepsOnlyTheNewestAndReleasesTheOthers(t *testing.T) {
	with(t, func(t *testing.T, f *fixture) {
		c := connect(t, f.sig, f.in.Slot, bus.Options{Mode: bus.Latest, Depth: 1})
		f.emit(5)
		if f.claims.total() != 1 || f.claims.of(5) != 1 {
			t.Errorf("%d blocks are held, want block 5 alone", f.claims.total())
		}
		f.expect(c, bus.ConnectionStats{Coalesced: 4, Queued: 1, MaxQueued: 1})
		f.receive()
		f.in.expect(t, 5)
		f.emit(1)
		synctest.Wait()
		f.in.expect(t, 5, 6)
		f.claims.expectBalance(t)
	})
}

func TestReply_ReachesTheRequesterOnly(t *testing.T) {
	with(t, func(t *testing.T, f *fixture) {
		other := newInbox(f.to.NewReceiver("other"))
		connect(t, f.sig, f.in.Slot, bus.Options{Mode: bus.Reply, Depth: 4, Peer: 3})
		connect(t, f.sig, other.Slot, bus.Options{Mode: bus.Reply, Depth: 4, Peer: 4})
		for _, peer := range []uint16{4, 3, 3, 5} {
			f.sig.Emit(hostabi.Message{Sender: peer})
		}
		f.receive()
		f.in.expect(t, 2, 3)
		other.expect(t, 1)
		if _, err := bus.Connect(f.sig, f.in.Slot, bus.Options{Mode: bus.Reply, Depth: 1, Peer: 4}); err == nil {
			t.Error("a second connection for peer 4 was accepted")
		}
	})
}

func TestOverflow_IsCountedExactly(t *testing.T) {
	stats := func(s bus.ConnectionStats) bus.ConnectionStats {
		s.Queued, s.MaxQueued = 3, 3
		return s
	}
	cases := []struct {
		overflow bus.Overflow
		full     bus.ConnectionStats
		got      []uint64
		lost     []hostabi.Handle
		err      error
	}{
		{bus.Block, stats(bus.ConnectionStats{Blocked: 4, Parked: 4}), []uint64{1, 2, 3, 4, 5, 6, 7}, nil, nil},
		{bus.DropNewest, stats(bus.ConnectionStats{Dropped: 4}), []uint64{1, 2, 3}, []hostabi.Handle{4, 5, 6, 7}, nil},
		{bus.DropOldest, stats(bus.ConnectionStats{Dropped: 4}), []uint64{5, 6, 7}, []hostabi.Handle{1, 2, 3, 4}, nil},
		{bus.Coalesce, stats(bus.ConnectionStats{Coalesced: 4}), []uint64{1, 2, 7}, []hostabi.Handle{3, 4, 5, 6}, nil},
		{bus.Fail, stats(bus.ConnectionStats{Dropped: 4}), []uint64{1, 2, 3}, []hostabi.Handle{4, 5, 6, 7}, bus.ErrFull},
	}
	for _, c := range cases {
		t.Run(c.overflow.String(), func(t *testing.T) {
			with(t, func(t *testing.T, f *fixture) {
				conn := connect(t, f.sig, f.in.Slot, bus.Options{Depth: 3, Overflow: c.overflow})
				if err := f.emit(7); !errors.Is(err, c.err) {
					t.Errorf("Emit = %v, want %v", err, c.err)
				}
				f.expect(conn, c.full)
				f.expectLost(c.lost...)
				if got, want := f.claims.total(), 3+c.full.Parked; got != want {
					t.Errorf("%d blocks are held, want %d", got, want)
				}
				f.receive()
				f.in.expect(t, c.got...)
				f.claims.expectBalance(t)
				after := c.full
				after.Delivered, after.Queued, after.Parked = uint64(len(c.got)), 0, 0
				f.expect(conn, after)
			})
		})
	}
}

func TestBlock_PausesTheSendersDataNotItsControl(t *testing.T) {
	with(t, func(t *testing.T, f *fixture) {
		c := connect(t, f.sig, f.in.Slot, bus.Options{Depth: 2})
		work := func(*hostabi.Message) { f.emit(2) }
		for range 5 {
			f.sender.Post(work, hostabi.Message{})
		}
		answered := 0
		control := bus.NewSlot(f.sender, "control", "payload", func(*hostabi.Message) { answered++ })
		synctest.Wait()
		if !f.sender.Paused() {
			t.Error("the sender is not paused")
		}
		f.expect(c, bus.ConnectionStats{Queued: 2, MaxQueued: 2, Blocked: 2, Parked: 2})
		control.Post(hostabi.Message{})
		synctest.Wait()
		if answered != 1 {
			t.Errorf("control messages answered while paused: %d, want 1", answered)
		}
		f.receive()
		f.in.expect(t, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
		if f.sender.Paused() {
			t.Error("the sender is still paused")
		}
		f.claims.expectBalance(t)
	})
}

func TestBlock_ResumesTheSenderWhenHalfIsFree(t *testing.T) {
	with(t, func(t *testing.T, f *fixture) {
		step := make(chan struct{})
		slot := bus.NewSlot(f.receiver, "in", "payload", func(*hostabi.Message) { <-step })
		c := connect(t, f.sig, slot, bus.Options{Depth: 4})
		f.emit(6)
		f.receive()                                              // works on 1; 2 to 5 are queued, 6 waits
		for i, paused := range []bool{true, true, true, false} { // 6 enters as the slot takes 2
			if got := f.sender.Paused(); got != paused {
				t.Errorf("after %d messages the sender is paused: %v, want %v", i, got, paused)
			}
			select {
			case <-c.Unparked():
				if i == 0 {
					t.Error("Unparked while a message waits")
				}
			default:
				if i > 0 {
					t.Errorf("after %d messages none waits, and Unparked does not say so", i)
				}
			}
			step <- struct{}{}
			synctest.Wait()
		}
		close(step)
	})
}

func TestBlock_TellsASlotThatNeverStopsEmitting(t *testing.T) {
	with(t, func(t *testing.T, f *fixture) {
		c := connect(t, f.sig, f.in.Slot, bus.Options{Depth: 1})
		sent := 0
		for f.emit(1) == nil {
			sent++
		}
		if err := f.emit(1); !errors.Is(err, bus.ErrOverrun) || errors.Is(err, bus.ErrFull) {
			t.Errorf("Emit = %v, want ErrOverrun", err)
		}
		f.expect(c, bus.ConnectionStats{Dropped: 2, Queued: 1, MaxQueued: 1, Blocked: uint64(sent - 1), Parked: sent - 1})
		f.receive()
		if got := len(f.in.got); got != sent {
			t.Errorf("%d messages delivered, want %d", got, sent)
		}
		f.claims.expectBalance(t)
	})
}

func TestBlock_OfTwoLoopsOnEachOtherLeavesControl(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var loops, answers [2]int
		var ends [2]*loop.Receiver
		var signals [2]*bus.Signal
		var controls [2]*bus.Slot
		for i := range ends {
			l := loop.New(fmt.Sprint(i))
			ends[i] = l.NewReceiver("end")
			signals[i] = bus.NewSignal(ends[i], "out", "payload", nil)
			controls[i] = bus.NewSlot(ends[i], "control", "payload", func(*hostabi.Message) { answers[i]++ })
			run(t, l)
		}
		for i := range ends {
			echo := bus.NewSlot(ends[i], "in", "payload", func(*hostabi.Message) {
				loops[i]++
				for range 3 { // more than came in: both run full
					signals[i].Emit(hostabi.Message{})
				}
			})
			connect(t, signals[1-i], echo, bus.Options{Depth: 2})
		}
		signals[0].Emit(hostabi.Message{})
		synctest.Wait()
		if !ends[0].Paused() || !ends[1].Paused() {
			t.Fatalf("paused: %v and %v, want both", ends[0].Paused(), ends[1].Paused())
		}
		for i := range controls {
			controls[i].Post(hostabi.Message{})
		}
		synctest.Wait()
		if answers != [2]int{1, 1} {
			t.Errorf("control messages answered: %v, want one each", answers)
		}
	})
}

func TestSlotPost_OvertakesAFullDataLane(t *testing.T) {
	with(t, func(t *testing.T, f *fixture) {
		connect(t, f.sig, f.in.Slot, bus.Options{Depth: 100, Overflow: bus.Fail})
		f.emit(100)
		f.in.Post(hostabi.Message{Sequence: 7000})
		f.receive()
		if len(f.in.got) != 101 || f.in.got[0] != 7000 {
			t.Errorf("slot got %v, want 7000 first", f.in.got)
		}
	})
}

func TestConnect_ChecksItsArguments(t *testing.T) {
	l := loop.New("l")
	r := l.NewReceiver("r")
	sig := bus.NewSignal(r, "rollout[0].full", "trajectory", nil)
	slot := bus.NewSlot(r, "learner.weights", "weights", nil)
	fits := bus.NewSlot(r, "batcher.blocks", "trajectory", nil)
	cases := []struct {
		name string
		slot *bus.Slot
		o    bus.Options
		want string
	}{
		{"payload", slot, bus.Options{Depth: 1},
			`connect signal "rollout[0].full" to slot "learner.weights": payload types differ: "trajectory" and "weights"`},
		{"depth", fits, bus.Options{}, "depth is 0, must be 1 or more"},
		{"mode", fits, bus.Options{Depth: 1, Mode: 9}, "unknown mode(9)"},
		{"overflow", fits, bus.Options{Depth: 1, Overflow: 9}, "unknown overflow(9)"},
		{"share", fits, bus.Options{Depth: 1, Mode: bus.Queue, Share: bus.Share{Of: 2}}, "turn 0 of 2 with mode queue"},
		{"turn", fits, bus.Options{Depth: 1, Share: bus.Share{Of: 2, Turn: 2}}, "turn 2 of 2 with mode all"},
	}
	for _, c := range cases {
		if _, err := bus.Connect(sig, c.slot, c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: Connect = %v, want %q", c.name, err, c.want)
		}
	}
	if n := len(sig.Connections()); n != 0 {
		t.Errorf("the signal has %d connections, want 0", n)
	}
}

func TestNames_RoundTrip(t *testing.T) {
	for _, name := range []string{"all", "queue", "latest", "reply"} {
		if m, err := bus.ParseMode(name); err != nil || m.String() != name {
			t.Errorf("ParseMode(%q) = %v, %v", name, m, err)
		}
	}
	for _, name := range []string{"block", "drop_newest", "drop_oldest", "coalesce", "fail"} {
		if o, err := bus.ParseOverflow(name); err != nil || o.String() != name {
			t.Errorf("ParseOverflow(%q) = %v, %v", name, o, err)
		}
	}
	want := `unknown mode "fifo": want one of all, queue, latest, reply`
	if _, err := bus.ParseMode("fifo"); err == nil || err.Error() != want {
		t.Errorf("ParseMode = %v, want %s", err, want)
	}
}

func TestAccessors(t *testing.T) {
	r := loop.New("l").NewReceiver("r")
	sig := bus.NewSignal(r, "out", "p", nil)
	slot := bus.NewSlot(r, "in", "p", nil)
	c := connect(t, sig, slot, bus.Options{Mode: bus.Latest, Depth: 9, Overflow: bus.Fail})
	if sig.Name() != "out" || sig.Payload() != "p" || slot.Name() != "in" || slot.Payload() != "p" {
		t.Errorf("names %q %q %q %q", sig.Name(), sig.Payload(), slot.Name(), slot.Payload())
	}
	if c.Signal() != sig || c.Slot() != slot || !slices.Equal(sig.Connections(), []*bus.Connection{c}) {
		t.Error("the connection does not know its ends")
	}
	if got, want := c.Options(), (bus.Options{Mode: bus.Latest, Depth: 1, Overflow: bus.Coalesce}); got != want {
		t.Errorf("options %+v, want %+v", got, want)
	}
}

func TestEmit_FromATimerWhilePausedIsKeptInOrder(t *testing.T) {
	with(t, func(t *testing.T, f *fixture) {
		connect(t, f.sig, f.in.Slot, bus.Options{Depth: 1})
		timer := f.sender.Every(time.Millisecond, func() { f.emit(1) })
		time.Sleep(5500 * time.Microsecond)
		timer.Stop()
		f.receive()
		f.in.expect(t, 1, 2, 3, 4, 5)
	})
}
