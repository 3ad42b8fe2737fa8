package loop_test

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rlhost/rlhost/core/loop"
	"github.com/rlhost/rlhost/hostabi"
)

func TestReceiverClose_DropsQueuedMessagesAndRefusesLaterOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := loop.New("l")
		r, other := l.NewReceiver("r"), l.NewReceiver("other")
		var g tally
		var j journal
		post := func(n uint32) (data, control bool) {
			m := at(n)
			return r.PostTo(&g, &m), r.ControlTo(&g, &m)
		}
		c := clock{start: time.Now()}
		r.Every(ms, c.tick)
		r.After(2*ms, c.tick)
		other.Post(func(*hostabi.Message) {
			r.Hold()
			r.Control(func(*hostabi.Message) {}, at(0))
			post(1) // control is looked at before the next message
		}, at(0))
		r.Post(j.slot, at(0))               // is kept back
		other.Post(func(*hostabi.Message) { // 1 lies in the backlogs now, or in the batch
			post(2)
			r.Pause()
			r.Close()
			r.Close()
			if data, control := post(3); data || control {
				t.Error("a closed receiver took a message")
			}
			if r.After(ms, c.tick).Stop() {
				t.Error("a closed receiver took a timer")
			}
			r.Resume()
			r.Release()
		}, at(0))
		other.Post(j.slot, at(9))
		begin(t, l)
		time.Sleep(10 * ms)
		synctest.Wait()
		j.expect(t, 9)
		c.expect(t)
		slices.Sort(g.dropped)
		if want := []uint32{1, 1, 2, 2}; !slices.Equal(g.dropped, want) || g.delivered != nil {
			t.Errorf("dropped %v, delivered %v; want %v and none", g.dropped, g.delivered, want)
		}
	})
}

func TestReceiverClose_InItsOwnSlotIsItsLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := loop.New("l")
		r := l.NewReceiver("r")
		var j journal
		for i := range uint32(4) {
			r.Post(func(m *hostabi.Message) {
				if m.T == 1 {
					r.Close()
				}
				j.slot(m)
			}, at(i))
		}
		begin(t, l)
		synctest.Wait()
		j.expect(t, 0, 1)

		r = l.NewReceiver("controlled")
		for i := range uint32(3) {
			r.Control(func(m *hostabi.Message) { r.Close(); j.slot(m) }, at(2+i))
		}
		synctest.Wait()
		j.expect(t, 0, 1, 2)

		r = l.NewReceiver("timed")
		r.Every(ms, func() { r.Close(); j.slot(&hostabi.Message{T: 3}) })
		time.Sleep(10 * ms)
		synctest.Wait()
		j.expect(t, 0, 1, 2, 3)
	})
}

func TestReceiverClose_ElsewhereWaitsForTheSlotThatRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := loop.New("l")
		r := l.NewReceiver("r")
		begin(t, l)
		goOn := make(chan struct{})
		ended, closed := false, false
		r.Post(func(*hostabi.Message) { <-goOn; ended = true }, at(0))
		r.Post(func(*hostabi.Message) { t.Error("a slot ran after the one that Close waited for") }, at(0))
		synctest.Wait()
		go func() {
			r.Close()
			if !ended {
				t.Error("Close returned while a slot ran")
			}
			closed = true
		}()
		synctest.Wait()
		if closed {
			t.Error("Close did not wait")
		}
		close(goOn)
		synctest.Wait()
		if !closed {
			t.Error("Close has not returned")
		}
	})
}

func TestReceiverClose_NeedsNoRunningLoop(t *testing.T) {
	l := loop.New("l")
	var g tally
	filled := func() *loop.Receiver {
		r := l.NewReceiver("r")
		m := at(1)
		r.PostTo(&g, &m)
		r.ControlTo(&g, &m)
		return r
	}
	check := func(when string, want int) {
		t.Helper()
		if len(g.dropped) != want || len(g.delivered) != 0 {
			t.Errorf("%s: dropped %d, delivered %d; want %d dropped", when, len(g.dropped), len(g.delivered), want)
		}
	}
	filled().Close()
	check("before Run", 2)
	l.NewReceiver("fails").Control(func(*hostabi.Message) { panic("slot") }, at(0))
	r := filled()
	var p *loop.PanicError
	if err := l.Run(t.Context()); !errors.As(err, &p) {
		t.Errorf("Run = %v, want a panic", err)
	}
	r.Close()
	check("after a panic", 4)
	r = filled()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	check("after Close of the loop", 6)
	r.Close()
	check("after both", 6)
}

func TestDo_RunsWhileNoSlotDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := loop.New("l")
		r := l.NewReceiver("r")
		var j journal
		note := func(n uint32) func() { return func() { j.slot(&hostabi.Message{T: n}) } }
		l.Do(note(1)) // it is not running
		begin(t, l)
		r.Post(func(*hostabi.Message) {
			l.Do(func() { l.Do(note(2)) }) // at once
			note(3)()
		}, at(0))
		synctest.Wait()
		goOn := make(chan struct{})
		r.Post(func(*hostabi.Message) { <-goOn; note(4)() }, at(0))
		r.Post(j.slot, at(6))
		synctest.Wait()
		go l.Do(note(5))
		synctest.Wait()
		close(goOn)
		synctest.Wait()
		j.expect(t, 1, 2, 3, 4, 5, 6)
	})
}

func TestDo_ThatWaitsForALoopThatPanicsIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := loop.New("l")
		r := l.NewReceiver("r")
		goOn := make(chan struct{})
		r.Post(func(*hostabi.Message) { <-goOn; panic("slot") }, at(0))
		go func() {
			if l.Run(t.Context()) == nil {
				t.Error("Run = nil, want a panic")
			}
		}()
		synctest.Wait()
		n := 0
		go l.Do(func() { n++ })
		synctest.Wait()
		close(goOn)
		synctest.Wait()
		for _, when := range []string{"the panic", "Close"} {
			if n != 1 {
				t.Errorf("after %s: the function was called %d times, want once", when, n)
			}
			l.Close()
		}
	})
}
