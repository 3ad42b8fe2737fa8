package loop_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/rlhost/rlhost/core/loop"
	"github.com/rlhost/rlhost/hostabi"
)

// journal notes the T of each message, in the order in which slots saw them.
type journal struct{ seen []uint32 }

func (j *journal) slot(m *hostabi.Message) { j.seen = append(j.seen, m.T) }

func (j *journal) expect(t *testing.T, want ...uint32) {
	t.Helper()
	if !slices.Equal(j.seen, want) {
		t.Errorf("slots saw %v, want %v", j.seen, want)
	}
}

// begin runs l in the bubble of a synctest and stops it at the end.
func begin(t *testing.T, l *loop.Loop) {
	t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- l.Run(context.WithoutCancel(t.Context())) }() // t.Context ends before the functions of Cleanup run
	t.Cleanup(func() {
		l.Stop()
		if err := <-ended; err != nil {
			t.Errorf("Run = %v, want nil", err)
		}
	})
}

func at(t uint32) hostabi.Message { return hostabi.Message{T: t} }

func TestPost_IsFirstInFirstOut(t *testing.T) {
	l := loop.New("l")
	a, b := l.NewReceiver("a"), l.NewReceiver("b")
	var j journal
	for i := range uint32(5) {
		a.Post(func(m *hostabi.Message) {
			j.slot(m)
			b.Post(j.slot, at(m.T+100))
		}, at(i))
	}
	b.Post(func(*hostabi.Message) { b.Post(func(*hostabi.Message) { l.Stop() }, at(0)) }, at(0))
	if err := l.Run(t.Context()); err != nil {
		t.Errorf("Run = %v", err)
	}
	j.expect(t, 0, 1, 2, 3, 4, 100, 101, 102, 103, 104)
}

func TestPost_FromASlotIsNotRunInline(t *testing.T) {
	l := loop.New("l")
	r := l.NewReceiver("r")
	var j journal
	r.Post(func(*hostabi.Message) {
		r.Post(j.slot, at(2))
		r.Control(j.slot, at(1))
		j.slot(&hostabi.Message{T: 0})
		r.Post(func(*hostabi.Message) { l.Stop() }, at(0))
	}, at(0))
	if err := l.Run(t.Context()); err != nil {
		t.Errorf("Run = %v", err)
	}
	j.expect(t, 0, 1, 2)
}

func TestControl_OvertakesQueuedData(t *testing.T) {
	l := loop.New("l")
	r := l.NewReceiver("r")
	var j journal
	for i := range uint32(1000) {
		r.Post(func(m *hostabi.Message) {
			j.slot(m)
			if m.T == 3 { // the batch is under way
				r.Control(j.slot, at(7000))
				r.Control(func(*hostabi.Message) { l.Stop() }, at(0))
			}
		}, at(i))
	}
	r.Control(j.slot, at(5000))
	if err := l.Run(t.Context()); err != nil {
		t.Errorf("Run = %v", err)
	}
	j.expect(t, 5000, 0, 1, 2, 3, 7000)
}

func TestControl_ThatAnswersItselfLeavesRoomForData(t *testing.T) {
	l := loop.New("l")
	r := l.NewReceiver("r")
	var again func(*hostabi.Message)
	again = func(*hostabi.Message) { r.Control(again, at(0)) }
	again(nil)
	r.Post(func(*hostabi.Message) {}, at(0))
	r.Post(func(*hostabi.Message) { l.Stop() }, at(0))
	if err := l.Run(t.Context()); err != nil { // ends although control never runs dry
		t.Errorf("Run = %v", err)
	}
}

func TestPause_KeepsBackDataOfOneComponentInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := loop.New("l")
		a, b := l.NewReceiver("a"), l.NewReceiver("b")
		begin(t, l)
		var j journal
		a.Pause()
		a.Post(j.slot, at(1))
		b.Post(j.slot, at(50))
		a.Post(j.slot, at(2))
		a.Control(j.slot, at(60))
		b.Post(j.slot, at(51))
		synctest.Wait()
		if got, want := len(j.seen), 3; got != want || slices.Contains(j.seen, 1) {
			t.Errorf("while a is paused slots saw %v, want 50, 51 and 60", j.seen)
		}
		a.Pause() // nests
		a.Resume()
		a.Post(j.slot, at(3))
		synctest.Wait()
		if got, want := len(j.seen), 3; got != want {
			t.Errorf("one Resume of two ended the pause: slots saw %v", j.seen)
		}
		j.seen = nil
		b.Post(func(*hostabi.Message) {
			a.Resume()
			a.Post(j.slot, at(4))
			b.Post(j.slot, at(52))
		}, at(0))
		synctest.Wait()
		j.expect(t, 1, 2, 3, 4, 52)
	})
}

func TestPause_FromItsOwnSlotStopsTheNextMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := loop.New("l")
		r := l.NewReceiver("r")
		var j journal
		for i := range uint32(4) {
			r.Post(func(m *hostabi.Message) {
				j.slot(m)
				if m.T == 1 || m.T == 2 { // 2 is paused again while the backlog runs
					r.Pause()
				}
			}, at(i))
		}
		begin(t, l)
		synctest.Wait()
		j.expect(t, 0, 1)
		r.Resume()
		synctest.Wait()
		j.expect(t, 0, 1, 2)
		r.Post(j.slot, at(4))
		r.Resume()
		synctest.Wait()
		j.expect(t, 0, 1, 2, 3, 4)
	})
}

func TestRun_EndsAsRequested(t *testing.T) {
	fault := errors.New("fault")
	cases := []struct {
		name string
		end  func(l *loop.Loop, r *loop.Receiver, cancel context.CancelCauseFunc)
		want error
		text string
	}{
		{"Stop", func(l *loop.Loop, _ *loop.Receiver, _ context.CancelCauseFunc) { l.Stop() }, nil, ""},
		{"Fail", func(l *loop.Loop, _ *loop.Receiver, _ context.CancelCauseFunc) { l.Fail(fault) }, fault, `loop "l": fault`},
		{"Fail then Stop", func(l *loop.Loop, _ *loop.Receiver, _ context.CancelCauseFunc) { l.Fail(fault); l.Stop() }, fault, ""},
		{"component fails", func(_ *loop.Loop, r *loop.Receiver, _ context.CancelCauseFunc) { r.Fail(fault) }, fault, `loop "l": component "r": fault`},
		{"context", func(_ *loop.Loop, _ *loop.Receiver, cancel context.CancelCauseFunc) { cancel(fault) }, fault, "fault"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			l := loop.New("l")
			r := l.NewReceiver("r")
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			answered := 0
			r.Post(func(*hostabi.Message) {
				r.Control(func(*hostabi.Message) {
					r.Control(func(*hostabi.Message) { answered++ }, at(0))
				}, at(0))
				c.end(l, r, cancel)
			}, at(0))
			err := l.Run(ctx)
			if !errors.Is(err, c.want) || c.text != "" && err.Error() != c.text {
				t.Errorf("Run = %v, want %v %q", err, c.want, c.text)
			}
			if answered != 1 {
				t.Errorf("control messages handled before the end: %d, want 1", answered)
			}
		})
	}
}

func TestRun_RunsAgainAfterItsContextEndedButNotAfterStop(t *testing.T) {
	l := loop.New("l")
	r := l.NewReceiver("r")
	var j journal
	ctx, cancel := context.WithCancel(t.Context())
	r.Post(func(m *hostabi.Message) { j.slot(m); cancel() }, at(1))
	for i := range uint32(3) { // one may be handled before the loop sees the end of ctx
		r.Post(j.slot, at(2+i))
	}
	r.Post(func(m *hostabi.Message) { j.slot(m); l.Stop() }, at(5))
	r.Post(j.slot, at(6))
	for l.Run(ctx) != nil {
		ctx = t.Context()
	}
	if err := l.Run(t.Context()); err != nil {
		t.Errorf("Run after Stop = %v, want nil", err)
	}
	j.expect(t, 1, 2, 3, 4, 5)
}

func TestRun_StoppedBeforehandHandlesControlOnly(t *testing.T) {
	l := loop.New("l")
	r := l.NewReceiver("r")
	var j journal
	r.Post(j.slot, at(1))
	r.Control(j.slot, at(2))
	l.Stop()
	if err := l.Run(t.Context()); err != nil {
		t.Errorf("Run = %v", err)
	}
	j.expect(t, 2)
}

func TestRun_EndsAlthoughControlNeverRunsDry(t *testing.T) {
	l := loop.New("l")
	r := l.NewReceiver("r")
	var again func(*hostabi.Message)
	again = func(*hostabi.Message) { r.Control(again, at(0)) }
	again(nil)
	l.Stop()
	if err := l.Run(t.Context()); err != nil {
		t.Errorf("Run = %v", err)
	}
}

func TestRun_TurnsAPanicIntoAnErrorThatNamesTheComponent(t *testing.T) {
	fault := errors.New("index out of range")
	l := loop.New("actors")
	r := l.NewReceiver("rollout[3]")
	ran := false
	r.Post(func(*hostabi.Message) {
		r.Control(func(*hostabi.Message) { ran = true }, at(0))
		panic(fault)
	}, at(0))
	for range 2 { // it does not run again
		err := l.Run(t.Context())
		var p *loop.PanicError
		if !errors.As(err, &p) || !errors.Is(err, fault) {
			t.Fatalf("Run = %v, want a PanicError that wraps the fault", err)
		}
		for _, part := range []string{`loop "actors"`, `component "rollout[3]"`, "index out of range", "loop_test.go"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("error %q does not contain %q", err, part)
			}
		}
	}
	if ran {
		t.Error("a slot ran after the panic")
	}
}

func TestRun_ReportsAFailureAndThePanicAfterIt(t *testing.T) {
	fault := errors.New("fault")
	l := loop.New("l")
	r := l.NewReceiver("r")
	r.Post(func(*hostabi.Message) {
		r.Fail(fault)
		panic("and more")
	}, at(0))
	err := l.Run(t.Context())
	var p *loop.PanicError
	if !errors.Is(err, fault) || !errors.As(err, &p) {
		t.Errorf("Run = %v, want both", err)
	}
}

func TestRun_RunsOnceAtATime(t *testing.T) {
	l := loop.New("l")
	r := l.NewReceiver("r")
	r.Post(func(*hostabi.Message) {
		if err := l.Run(t.Context()); !errors.Is(err, loop.ErrRunning) {
			t.Errorf("Run within Run = %v, want ErrRunning", err)
		}
		if err := l.Close(); !errors.Is(err, loop.ErrRunning) {
			t.Errorf("Close within Run = %v, want ErrRunning", err)
		}
		l.Stop()
	}, at(0))
	if err := l.Run(t.Context()); err != nil {
		t.Errorf("Run = %v", err)
	}
}

// tally is a Target that counts.
type tally struct {
	mu                 sync.Mutex
	delivered, dropped []uint32
}

func (g *tally) Deliver(m *hostabi.Message) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.delivered = append(g.delivered, m.T)
}

func (g *tally) Drop(m *hostabi.Message) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.dropped = append(g.dropped, m.T)
}

func TestClose_DropsEverythingStillQueued(t *testing.T) {
	l := loop.New("l")
	a, b := l.NewReceiver("a"), l.NewReceiver("b")
	var g tally
	post := func(r *loop.Receiver, first, n uint32) {
		for i := range n {
			m := at(first + i)
			if !r.PostTo(&g, &m) {
				t.Errorf("PostTo refused %d", m.T)
			}
		}
	}
	b.Pause()
	post(b, 10, 3) // will lie in the backlog
	post(a, 0, 2)
	a.Post(func(*hostabi.Message) { l.Stop() }, at(0))
	post(a, 20, 3) // in the batch
	if err := l.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	post(a, 30, 2) // after the end
	m := at(40)
	a.ControlTo(&g, &m)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	slices.Sort(g.dropped)
	if want := []uint32{10, 11, 12, 20, 21, 22, 30, 31, 40}; !slices.Equal(g.dropped, want) {
		t.Errorf("dropped %v, want %v", g.dropped, want)
	}
	if want := []uint32{0, 1}; !slices.Equal(g.delivered, want) {
		t.Errorf("delivered %v, want %v", g.delivered, want)
	}
	if a.PostTo(&g, &m) || a.ControlTo(&g, &m) {
		t.Error("a closed loop took a message")
	}
	b.Resume()
	if err := l.Run(t.Context()); !errors.Is(err, loop.ErrClosed) {
		t.Errorf("Run after Close = %v, want ErrClosed", err)
	}
}

func TestClose_AfterAPanicDropsTheRest(t *testing.T) {
	l := loop.New("l")
	r := l.NewReceiver("r")
	var g tally
	r.Control(func(*hostabi.Message) { panic("stop") }, at(0))
	for i := range uint32(4) {
		m := at(i)
		r.PostTo(&g, &m)
		r.ControlTo(&g, &m)
	}
	if err := l.Run(t.Context()); err == nil {
		t.Error("Run = nil, want the panic")
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if len(g.dropped) != 8 || len(g.delivered) != 0 {
		t.Errorf("dropped %v, delivered %v; want all 8 dropped", g.dropped, g.delivered)
	}
}

func TestPost_FromManyGoroutinesLosesNothingUnderPauses(t *testing.T) {
	const posters, each = 8, 2000
	l := loop.New("l")
	var receivers []*loop.Receiver
	next := make([]uint32, posters) // of the loop's goroutine
	left := posters * each
	for i := range 3 {
		receivers = append(receivers, l.NewReceiver(fmt.Sprint(i)))
	}
	slot := func(m *hostabi.Message) {
		if next[m.Split] != m.T {
			t.Errorf("poster %d: message %d came when %d was due", m.Split, m.T, next[m.Split])
		}
		next[m.Split] = m.T + 1
		if left--; left == 0 {
			l.Stop()
		}
	}
	var wg sync.WaitGroup
	for p := range posters {
		r := receivers[p%len(receivers)]
		wg.Go(func() {
			for i := range uint32(each) {
				if i%64 == 0 {
					r.Pause()
				}
				r.Post(slot, hostabi.Message{Split: uint32(p), T: i})
				if i%64 == 40 {
					r.Resume()
				}
			}
			for i := each - each%64; i < each; i++ { // the last round may have paused without resuming
				if i%64 == 0 && i+40 >= each {
					r.Resume()
				}
			}
		})
	}
	if err := l.Run(t.Context()); err != nil {
		t.Errorf("Run = %v", err)
	}
	wg.Wait()
	if left != 0 {
		t.Errorf("%d messages lost", left)
	}
}

func TestPost_DoesNotAllocate(t *testing.T) {
	l := loop.New("l")
	r, other := l.NewReceiver("r"), l.NewReceiver("other")
	start(t, l)
	slot, wait := barrier(1)
	resumed := func(*hostabi.Message) { other.Resume() }
	cases := []struct {
		name string
		op   func()
	}{
		{"Post", func() { r.Post(slot, at(1)); wait() }},
		{"Control", func() { r.Control(slot, at(1)); wait() }},
		{"Pause and Resume", func() {
			other.Pause()
			other.Post(slot, at(1))
			r.Post(resumed, at(0))
			wait()
		}},
	}
	for _, c := range cases {
		for range 100 {
			c.op()
		}
		if n := testing.AllocsPerRun(200, c.op); n != 0 {
			t.Errorf("%s: %v allocations, want 0", c.name, n)
		}
	}
}
