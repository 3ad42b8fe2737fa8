package worker

import (
	"time"

	"github.com/rlhost/rlhost/hostabi"
)

// Handing a wait to another goroutine costs two switches, which is more than it gains with fast environments. So the
// caller waits itself until so many steps in a row have taken longer than long, and does so again every now and then
// to see whether they still do. On a busy machine any step may take long, but not all of them.
const (
	long     = 200 * time.Microsecond
	inARow   = 32
	tryAgain = 64
)

// StartStep begins a step; see env.Starter.
func (e *batch) StartStep(t int, ready func()) (over bool, err error) {
	if err := e.beginStep(t); err != nil {
		return true, err
	}
	if e.slow < inARow || (e.slow-inARow)%tryAgain == tryAgain-1 {
		defer e.gate.Leave()
		return true, e.timed()
	}
	e.slow++
	if e.waits == nil {
		e.waits, e.waited = make(chan func(), 1), make(chan struct{}, 1)
		e.waiter.Go(e.wait)
	}
	e.waits <- ready
	return false, nil
}

// timed collects the answers to a step and takes the time.
func (e *batch) timed() error {
	began := time.Now()
	err := e.collect(hostabi.ExportStep)
	if e.slow++; time.Since(began) < long {
		e.slow = 0
	}
	return err
}

// wait waits for the processes' answers in the place of the caller, which takes them.
func (e *batch) wait() {
	for ready := range e.waits {
		for _, w := range e.workers {
			if !w.gone.Load() {
				w.p.Transport.Wait(max(time.Until(e.until), 0)) // a process that dies ends it
			}
		}
		e.waited <- struct{}{}
		ready()
	}
}

// FinishStep ends a step that was begun; see env.Starter.
func (e *batch) FinishStep() error {
	<-e.waited
	defer e.gate.Leave()
	return e.collect(hostabi.ExportStep)
}
