package link

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/loop"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/internal/testkit"
)

// stands reports whether the link's own goroutine takes its messages.
func (e *end) stands() bool {
	e.rx.Lock()
	defer e.rx.Unlock()
	return e.pumping
}

func TestStart_ALinkBecomesTheSourceOfALoopThatHasNoneAnyMore(t *testing.T) {
	for _, busy := range []bool{false, true} {
		r := run(t, true, true)
		r.trips(10)
		if !r.host.stands() || !r.plugin.stands() {
			t.Fatal("a loop with another source took the link")
		}
		over := make(chan struct{})
		go func() {
			defer close(over)
			if busy {
				r.trips(5000)
			}
		}()
		r.host.loop.SetSource(nil)
		r.plugin.loop.SetSource(nil)
		testkit.Until(t, "both links become their loops' sources", func() bool { return !r.host.stands() && !r.plugin.stands() })
		<-over
		if !r.host.loop.HasSource() || !r.plugin.loop.HasSource() {
			t.Error("a loop has no source")
		}
		r.trips(100)
	}
}

// A message that comes while a link passes from its goroutine to the loop is neither lost nor overtaken.
func TestStart_NothingIsOvertakenWhileTheLoopTakesOver(t *testing.T) {
	const rounds, each = 50, 200
	p := newPair(t, options{cells: hostabi.LinkCells})
	defer p.close()
	var mu sync.Mutex
	var got []uint32
	p.plugin.config.Deliver = func(_ int, m *hostabi.Message) error {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, m.T)
		return nil
	}
	other := elsewhere(make(chan struct{}, 1))
	p.plugin.loop.SetSource(other)
	defer start(p.plugin)()
	seen := func(n int) bool {
		p.host.Poll() // acknowledgements make room
		mu.Lock()
		defer mu.Unlock()
		return len(got) == n
	}
	for i := range rounds * each {
		p.host.send(t, 0, hostabi.Message{T: uint32(i)})
		if i == rounds*each/2 {
			p.plugin.loop.DropSource(other)
		}
		if i%each == each-1 {
			testkit.Until(t, "messages arrive", func() bool { return seen(i + 1) })
		}
	}
	for i, n := range got {
		if n != uint32(i) {
			t.Fatalf("message %d came in place %d", n, i)
		}
	}
	testkit.Until(t, "the loop takes over", func() bool { return !p.plugin.stands() })
}

// start runs an end and its loop until the function that it returns is called.
func start(e *end) (stop func()) {
	e.Start()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = e.loop.Run(context.Background()) // ends by Stop
	}()
	return func() {
		e.loop.Stop()
		<-ended
		e.Stop()
	}
}

// In whatever state a link is stopped, the loop does not keep it, and another link on the loop continues.
func TestStop_InEveryState(t *testing.T) {
	states := map[string]func(first, second *pair){
		"the source":                     func(first, _ *pair) { first.plugin.Stop() },
		"on its own goroutine":           func(_, second *pair) { second.plugin.Stop() },
		"both, the source first":         func(first, second *pair) { first.plugin.Stop(); second.plugin.Stop() },
		"both, the source last":          func(first, second *pair) { second.plugin.Stop(); first.plugin.Stop() },
		"while it becomes the source":    func(first, second *pair) { together(first.plugin.Stop, second.plugin.Stop) },
		"while messages come":            func(first, second *pair) { together(second.plugin.Stop, func() { chatter(second) }) },
		"while the source gives way":     func(first, second *pair) { together(first.plugin.Stop, func() { chatter(second) }) },
		"while its peer shuts the ring":  func(first, second *pair) { together(second.plugin.Stop, second.toPlugin.Shut) },
		"after its peer's ring was shut": func(first, _ *pair) { first.toPlugin.Shut(); first.plugin.Stop() },
	}
	for name, stop := range states {
		t.Run(name, func(t *testing.T) {
			for range 20 {
				first, second := newPair(t, options{}), newPair(t, options{})
				on := first.plugin.loop
				second.plugin.loop, second.plugin.receiver = on, on.NewReceiver("second")
				second.plugin.config.Receiver = second.plugin.receiver
				ended := make(chan struct{})
				first.plugin.Start()
				second.plugin.Start()
				go func() {
					defer close(ended)
					_ = on.Run(context.Background()) // ends by Stop
				}()
				chatter(first)
				chatter(second)
				stop(first, second)
				alive(t, on)
				for _, p := range []*pair{first, second} {
					p.plugin.Stop()
					p.host.Stop()
				}
				if on.HasSource() {
					t.Fatal("the loop keeps a link that was stopped")
				}
				alive(t, on)
				on.Stop()
				<-ended
				first.close()
				second.close()
			}
		})
	}
}

// together calls functions at the same time.
func together(list ...func()) {
	var all sync.WaitGroup
	for _, fn := range list {
		all.Go(fn)
	}
	all.Wait()
}

// chatter sends a few messages to the plugin.
func chatter(p *pair) {
	for i := range uint32(8) {
		_ = p.host.Send(0, &hostabi.Message{T: i})
	}
}

// alive waits until a loop has handled a message.
func alive(t *testing.T, on *loop.Loop) {
	t.Helper()
	over := make(chan struct{})
	on.NewReceiver("test").Post(func(*hostabi.Message) { close(over) }, hostabi.Message{})
	select {
	case <-over:
	case <-time.After(30 * time.Second):
		t.Fatal("the loop is stuck")
	}
}

func TestHoldBack_KeepsDataBackAndNothingElse(t *testing.T) {
	p := newPair(t, options{})
	defer p.close()
	p.host.HoldBack(true)
	p.host.HoldBack(true)
	if n := p.host.receiver.Pauses(); n != 1 {
		t.Errorf("paused %d times", n)
	}
	p.plugin.send(t, 0, hostabi.Message{T: 1})
	p.host.idle()
	p.plugin.idle()
	if s := p.plugin.Stats(); s.Unacked != 0 {
		t.Errorf("%+v: what the component emits is not acknowledged", s)
	}
	p.host.HoldBack(false)
	if n := p.host.receiver.Pauses(); n != 0 {
		t.Errorf("paused %d times after the end", n)
	}
	p.host.HoldBack(true) // Stop ends it: see close
	if s := p.host.Stats(); s.Pauses != 0 {
		t.Errorf("%+v: it counts as a full window", s)
	}
}
