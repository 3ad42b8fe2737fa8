package loop

import (
	"runtime"

	"github.com/rlhost/rlhost/hostabi"
)

// Do calls fn while no slot of the loop runs, and returns when fn has: at once when called on the loop, or while it is not running; else as
// soon as the current slot has ended. fn may touch the state of the loop's components. It is called also on a closed loop, and after a panic.
func (l *Loop) Do(fn func()) {
	if l.runner.Load() == goroutine() {
		fn()
		return
	}
	select {
	case <-l.own:
		l.doHere(fn)
		return
	default:
	}
	e := &errand{fn: fn, over: make(chan struct{})}
	l.postControl(l.self, e, &hostabi.Message{})
	select {
	case <-e.over:
	case <-l.own: // the loop ended without it, or was closed
		l.doHere(e.run)
	}
}

// doHere runs fn while holding the token.
func (l *Loop) doHere(fn func()) {
	l.runner.Store(goroutine())
	defer l.leave()
	fn()
}

// enter makes the calling goroutine the loop's owner.
func (l *Loop) enter() {
	<-l.own
	l.runner.Store(goroutine())
}

func (l *Loop) leave() {
	l.runner.Store(0)
	l.own <- struct{}{}
}

// errand is the control message of a Do. Its fields are the loop's owner's.
type errand struct {
	fn   func()
	over chan struct{}
}

func (e *errand) Deliver(*hostabi.Message) { e.run() }

// Drop runs it as well, since the loop's owner drops.
func (e *errand) Drop(*hostabi.Message) { e.run() }

func (e *errand) run() {
	fn := e.fn
	if fn == nil {
		return // the loop ended without it, and runs again
	}
	e.fn = nil
	defer close(e.over)
	fn()
}

// goroutine returns the number of the calling goroutine, which a stack trace begins with: "goroutine 7 [running]". It
// takes about a microsecond; nothing cheaper distinguishes a slot that closes its own receiver from another goroutine,
// which must wait for that slot.
func goroutine() uint64 {
	var text [40]byte
	runtime.Stack(text[:], false)
	n := uint64(0)
	for _, digit := range text[len("goroutine "):] {
		if digit < '0' || digit > '9' {
			break
		}
		n = n*10 + uint64(digit-'0')
	}
	return n
}
