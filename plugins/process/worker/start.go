package worker

import (
	"time"

	"github.com/rlhost/rlhost/hostabi"
)

// Handing a wait to another goroutine costs two switches, which is more than it gains with fast environments. So the
// caller waits itself until so many steps in a row have taken longer than long. On a busy machine any step may take long, but not
// all of them. While the caller waits no other split runs, so that steps which take much longer than a switch count as several. The other goroutine
// takes the time, too, and the caller waits itself again after a step that was fast.
const (
	long       = 200 * time.Microsecond
	inARow     = 32
	muchLonger = 2 * time.Millisecond
	several    = inARow / 4
)

// StartStep begins a step; see env.Starter.
func (e *batch) StartStep(t int, ready func()) (over bool, err error) {
	if err := e.beginStep(t); err != nil {
		return true, err
	}
	e.began = time.Now()
	if e.slow < inARow {
		defer e.gate.Leave()
		err := e.collect(hostabi.ExportStep)
		e.took(time.Since(e.began))
		return true, err
	}
	if e.waits == nil {
		e.waits, e.waited = make(chan func(), 1), make(chan time.Duration, 1)
		e.waiter.Go(e.wait)
	}
	e.waits <- ready
	return false, nil
}

// took notes how long a step has taken.
func (e *batch) took(d time.Duration) {
	switch {
	case d < long:
		e.slow = 0
	case d < muchLonger:
		e.slow++
	default:
		e.slow += several
	}
}

// wait waits for the processes' answers in the place of the caller, which takes them.
func (e *batch) wait() {
	for ready := range e.waits {
		for _, w := range e.workers {
			if !w.gone.Load() {
				w.p.Transport.Wait(max(time.Until(e.until), 0)) // a process that dies ends it
			}
		}
		e.waited <- time.Since(e.began)
		ready()
	}
}

// FinishStep ends a step that was begun; see env.Starter.
func (e *batch) FinishStep() error {
	e.took(<-e.waited)
	defer e.gate.Leave()
	return e.collect(hostabi.ExportStep)
}
