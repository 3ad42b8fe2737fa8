package loop_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/rlhost/rlhost/core/loop"
	"github.com/rlhost/rlhost/hostabi"
)

// inbox is a source made of a channel.
type inbox struct {
	r      *loop.Receiver
	slot   func(*hostabi.Message)
	arrive chan uint32
	next   []uint32
	nudge  chan struct{}
	polls  atomic.Int64
	waits  atomic.Int64
	nudges atomic.Int64
}

func newInbox(r *loop.Receiver, slot func(*hostabi.Message)) *inbox {
	return &inbox{r: r, slot: slot, arrive: make(chan uint32, 100), nudge: make(chan struct{}, 1)}
}

func (s *inbox) Poll() {
	s.polls.Add(1)
	for {
		select {
		case n := <-s.arrive:
			s.next = append(s.next, n)
		default:
			for _, n := range s.next {
				s.r.Post(s.slot, at(n))
			}
			s.next = s.next[:0]
			return
		}
	}
}

func (s *inbox) Wait() {
	s.waits.Add(1)
	select {
	case n := <-s.arrive:
		s.next = append(s.next, n)
	case <-s.nudge:
	}
}

func (s *inbox) Nudge() {
	s.nudges.Add(1)
	select {
	case s.nudge <- struct{}{}:
	default:
	}
}

func TestSource_WakesTheLoopAndIsWokenByPosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := loop.New("l")
		r := l.NewReceiver("r")
		var j journal
		s := newInbox(r, j.slot)
		if !l.SetSource(s) {
			t.Fatal("a new loop has a source")
		}
		begin(t, l)
		synctest.Wait()
		s.arrive <- 1
		synctest.Wait()
		r.Post(j.slot, at(2))
		synctest.Wait()
		r.Control(j.slot, at(3))
		synctest.Wait()
		for i := range uint32(10) {
			s.arrive <- 4 + i
		}
		synctest.Wait()
		j.expect(t, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13)
		if n := s.nudges.Load(); n != 2 {
			t.Errorf("%d nudges, want one for each post", n)
		}
	})
}

func TestSource_IsPolledByALoopThatIsNeverIdle(t *testing.T) {
	l := loop.New("l")
	r := l.NewReceiver("r")
	s := newInbox(r, func(*hostabi.Message) { l.Stop() })
	l.SetSource(s)
	s.arrive <- 1
	var again func(*hostabi.Message)
	again = func(*hostabi.Message) { r.Post(again, at(0)) }
	r.Post(again, at(0))
	if err := l.Run(t.Context()); err != nil || s.waits.Load() != 0 {
		t.Errorf("Run = %v after %d waits", err, s.waits.Load())
	}
}

func TestSource_ALoopHasOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := loop.New("l")
		r := l.NewReceiver("r")
		var j journal
		first, second := newInbox(r, j.slot), newInbox(r, j.slot)
		begin(t, l)
		synctest.Wait() // it sleeps without a source
		if !l.SetSource(first) || l.SetSource(second) {
			t.Error("a second source was taken")
		}
		synctest.Wait() // it sleeps at the first
		first.arrive <- 1
		synctest.Wait()
		l.SetSource(nil)
		synctest.Wait() // it sleeps without one again
		waits := first.waits.Load()
		r.Post(j.slot, at(2))
		synctest.Wait()
		if !l.SetSource(second) {
			t.Error("no source was taken after the first had gone")
		}
		second.arrive <- 3
		synctest.Wait()
		j.expect(t, 1, 2, 3)
		if first.waits.Load() != waits {
			t.Error("the loop went back to a source that is gone")
		}
	})
}

func TestSource_IsDroppedByWhoItIs(t *testing.T) {
	l := loop.New("l")
	r := l.NewReceiver("r")
	first, second := newInbox(r, nil), newInbox(r, nil)
	if l.HasSource() || l.DropSource(first) {
		t.Error("a new loop has a source")
	}
	l.SetSource(first)
	if l.DropSource(second) || !l.HasSource() || first.nudges.Load() != 0 {
		t.Error("another one took it away")
	}
	if !l.DropSource(first) || l.HasSource() || first.nudges.Load() != 1 {
		t.Error("it is still there, or sleeps on")
	}
}

func TestSource_EndOfContextWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := loop.New("l")
		l.SetSource(newInbox(l.NewReceiver("r"), func(*hostabi.Message) {}))
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- l.Run(ctx) }()
		synctest.Wait()
		stop()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("Run = %v", err)
		}
	})
}
