package loop

import (
	"sync"
	"time"

	"github.com/rlhost/rlhost/hostabi"
)

// Timer calls a function on a loop, on the control lane: a paused component's timers fire.
type Timer struct {
	r     *Receiver
	fn    func()
	every time.Duration // 0 for a timer that fires once

	mu      sync.Mutex
	timer   *time.Timer
	next    time.Time // when it is due
	stopped bool
}

// After calls fn on the loop once, d from now. A panic in it is the loop's, not a component's: see
// Receiver.After.
func (l *Loop) After(d time.Duration, fn func()) *Timer { return l.self.After(d, fn) }

// Every calls fn on the loop each d; see Receiver.Every.
func (l *Loop) Every(d time.Duration, fn func()) *Timer { return l.self.Every(d, fn) }

// After calls fn once on the component's loop, d from now.
func (r *Receiver) After(d time.Duration, fn func()) *Timer {
	return (&Timer{r: r, fn: fn}).start(max(d, 0))
}

// Every calls fn on the component's loop each d (at least a nanosecond), first d from now. Calls that could not be
// made in time are skipped, never made up for: after a stall the timer fires once and keeps its rhythm.
func (r *Receiver) Every(d time.Duration, fn func()) *Timer {
	d = max(d, 1)
	return (&Timer{r: r, fn: fn, every: d}).start(d)
}

// Stop keeps the timer from firing again and reports whether it might have. When called on the timer's own
// loop, fn is not called after it; from another goroutine, a call that is under way ends by itself.
func (t *Timer) Stop() bool {
	t.mu.Lock()
	pending := !t.stopped
	t.stopped = true
	if t.timer != nil { // else start has not come so far, and will see it
		t.timer.Stop()
	}
	t.mu.Unlock()
	if pending {
		t.forget(t.r.loop)
	}
	return pending
}

func (t *Timer) start(d time.Duration) *Timer {
	open := t.register(t.r.loop)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopped = t.stopped || !open
	if t.stopped {
		return t
	}
	t.next = time.Now().Add(d)
	t.timer = time.AfterFunc(d, t.expire)
	return t
}

func (t *Timer) expire() { t.r.ControlTo((*firing)(t), &hostabi.Message{}) }

// firing is the control message of a timer that is due. There is at most one of each timer, because the next
// is armed only when this one has been handled.
type firing Timer

func (f *firing) Deliver(*hostabi.Message) {
	t := (*Timer)(f)
	if t.fired() {
		t.fn()
		t.rearm()
	}
}

func (f *firing) Drop(*hostabi.Message) {}

// fired reports whether to call fn; a timer that fires once is then done.
func (t *Timer) fired() bool {
	t.mu.Lock()
	call := !t.stopped
	last := call && t.every == 0
	if last {
		t.stopped = true
	}
	t.mu.Unlock()
	if last {
		t.forget(t.r.loop)
	}
	return call
}

func (t *Timer) rearm() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stopped {
		return
	}
	now := time.Now()
	t.next = t.next.Add(t.every)
	if late := now.Sub(t.next); late >= 0 {
		t.next = t.next.Add((late/t.every + 1) * t.every)
	}
	t.timer.Reset(t.next.Sub(now))
}

// register notes a timer so that Close can stop it, and reports whether loop and receiver are open.
func (t *Timer) register(l *Loop) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || t.r.closed {
		return false
	}
	l.timers[t] = struct{}{}
	return true
}

func (t *Timer) forget(l *Loop) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.timers, t)
}
