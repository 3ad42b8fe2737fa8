package pipeline

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/control"
)

// ending is how a run ends.
type ending struct {
	stop       func(component.StopReason) // Pipeline.Stop
	started    atomic.Bool
	cutting    atomic.Bool                          // the run is ended without a boundary
	stoodStill atomic.Pointer[string]               // why the run had stalled when it was cut
	standing   atomic.Bool                          // the run waits at its last boundary until a change has been abandoned
	final      atomic.Bool                          // its last boundary has been
	counters   atomic.Pointer[[]control.WireStatus] // as they were when the loops had ended

	mu      sync.Mutex
	reason  component.StopReason
	err     error
	hurried bool          // an interrupt does not wait for learners that are at work
	leaving bool          // loops that work on a message will be left running
	graces  []*time.Timer // end the run without a boundary
	began   time.Time
	wall    *time.Timer // ends the run when its time is over
}

// state returns how the run ended, or nothing.
func (e *ending) state() control.State {
	if e.counters.Load() == nil {
		return ""
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.err != nil || e.reason == "":
		return control.Failed
	case e.reason == component.StopInterrupted:
		return control.Interrupted
	}
	return control.Completed
}

// begin starts the clock of the run.
func (e *ending) begin(wall time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.began = time.Now()
	e.limit(wall)
}

// limit sets the wall time after which the run ends. The caller must hold mu.
func (e *ending) limit(wall time.Duration) {
	if e.wall != nil {
		e.wall.Stop()
		e.wall = nil
	}
	if wall > 0 && !e.began.IsZero() {
		e.wall = time.AfterFunc(wall-time.Since(e.began), func() { e.stop(component.StopWallTime) })
	}
}

// settle stops the timers and returns how the run ended.
func (e *ending) settle() (component.StopReason, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, t := range e.graces {
		t.Stop()
	}
	if e.wall != nil {
		e.wall.Stop()
	}
	return e.reason, e.err
}
