package loop_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/rlhost/rlhost/core/loop"
	"github.com/rlhost/rlhost/hostabi"
)

func TestHold_KeepsBackBothLanesAndTimersUntilRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := loop.New("l")
		begin(t, l)
		r, other := l.NewReceiver("r"), l.NewReceiver("other")
		r.Hold()
		var j journal
		r.Post(j.slot, at(20))
		r.Every(ms, func() { j.slot(&hostabi.Message{T: 12}) })
		r.Control(j.slot, at(10))
		other.Post(j.slot, at(1))
		r.Post(j.slot, at(21))
		r.Control(j.slot, at(11))
		time.Sleep(5*ms + ms/2)
		synctest.Wait()
		l.Do(func() { j.expect(t, 1) })
		if !r.Held() || r.Paused() || r.Pauses() != 0 {
			t.Errorf("held %v, paused %v", r.Held(), r.Paused())
		}
		other.Post(func(*hostabi.Message) {
			r.Release()
			r.Post(j.slot, at(22))
		}, at(0))
		synctest.Wait()
		l.Do(func() { j.expect(t, 1, 10, 11, 12, 20, 21, 22) })
		time.Sleep(ms)
		synctest.Wait()
		l.Do(func() {
			if r.Held() || len(j.seen) != 8 {
				t.Errorf("after Release the timer fired %d times, want once: %v", len(j.seen)-7, j.seen)
			}
		})
		r.Close()
	})
}

func TestHold_NestsAndCanBeTakenUpAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := loop.New("l")
		begin(t, l)
		r := l.NewReceiver("r")
		r.Release() // of nothing
		synctest.Wait()
		var j journal
		r.Hold()
		r.Hold()
		r.Control(func(m *hostabi.Message) { j.slot(m); r.Hold() }, at(1))
		r.Control(j.slot, at(2))
		r.Post(j.slot, at(3))
		r.Release()
		synctest.Wait()
		j.expect(t)
		r.Release()
		synctest.Wait()
		j.expect(t, 1) // held again by its own slot
		r.Control(j.slot, at(4))
		r.Release()
		synctest.Wait()
		j.expect(t, 1, 2, 4, 3)
	})
}

func TestHold_LeavesPausesAsTheyAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := loop.New("l")
		begin(t, l)
		r := l.NewReceiver("r")
		var j journal
		r.Hold()
		r.Pause()
		r.Pause()
		r.Post(j.slot, at(2))
		r.Control(j.slot, at(1))
		r.Resume()
		if r.Pauses() != 1 {
			t.Errorf("%d pauses, want 1", r.Pauses())
		}
		r.Release()
		synctest.Wait()
		j.expect(t, 1)
		r.Hold()
		r.Resume()
		synctest.Wait()
		j.expect(t, 1)
		r.Release()
		synctest.Wait()
		j.expect(t, 1, 2)
	})
}

func TestHold_EndsWithTheLoop(t *testing.T) {
	l := loop.New("l")
	r := l.NewReceiver("r")
	r.Hold()
	var g tally
	for i := range uint32(3) {
		m := at(i)
		r.PostTo(&g, &m)
		r.ControlTo(&g, &m)
	}
	l.NewReceiver("other").Post(func(*hostabi.Message) { l.Stop() }, at(0))
	if err := l.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	r.Release()
	if len(g.delivered) != 0 || len(g.dropped) != 6 {
		t.Errorf("delivered %v, dropped %v; want all 6 dropped", g.delivered, g.dropped)
	}
}

func TestRequeue_MovesWaitingMessagesInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, far := loop.New("l"), loop.New("far")
		begin(t, l)
		begin(t, far)
		from, near, away, closed := l.NewReceiver("from"), l.NewReceiver("near"), far.NewReceiver("away"), l.NewReceiver("closed")
		closed.Close()
		var toNear, toAway, stays, lost tally
		near.Pause()
		from.Pause()
		post := func(r *loop.Receiver, g *tally, n uint32) {
			m := at(n)
			r.PostTo(g, &m)
		}
		post(near, &toNear, 1)
		for _, g := range []*tally{&toNear, &stays, &toAway, &lost} {
			post(from, g, 2)
			post(from, g, 3)
		}
		synctest.Wait() // they lie in the backlog
		l.Do(func() {
			post(from, &toNear, 4) // posted, and not taken over
			post(from, &stays, 4)
			drop := from.Requeue(func(t loop.Target) *loop.Receiver {
				switch t {
				case &toNear:
					return near
				case &toAway:
					return away
				case &lost:
					return closed
				}
				return nil
			})
			drop()
			post(near, &toNear, 5)
		})
		near.Resume()
		from.Resume()
		synctest.Wait()
		expect := func(name string, got []uint32, want ...uint32) {
			t.Helper()
			j := journal{got}
			t.Log(name)
			j.expect(t, want...)
		}
		expect("near", toNear.delivered, 1, 2, 3, 4, 5)
		expect("away", toAway.delivered, 2, 3)
		expect("stays", stays.delivered, 2, 3, 4)
		expect("refused", lost.dropped, 2, 3)
	})
}
