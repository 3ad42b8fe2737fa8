package pipeline

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rlhost/rlhost/core/component"
)

// ErrEnded is returned by Run if the pipeline has run before, and by a snapshot that came too late.
var ErrEnded = errors.New("the run has ended")

// ending is how a run ends.
type ending struct {
	started    atomic.Bool
	boundaries atomic.Uint64                  // so far
	counters   atomic.Pointer[[]WireCounters] // as they were when the loops had ended

	mu     sync.Mutex
	reason component.StopReason
	err    error
	graces []*time.Timer // end the run without a boundary
	began  time.Time
	wall   *time.Timer // ends the run when its time is over
}

// Run runs the pipeline until a stop rule, an error, or the end of ctx, and stops it: components, connections and
// arenas are gone when it returns, plugins stay until Close. It returns why the run ended, or the errors that
// ended it; what leaked is an error too.
//
// When ctx ends the run goes on to its next dataset boundary, so that it ends in a state that can be saved, but
// no longer than BuildOptions.Grace. A pipeline runs once.
func (p *Pipeline) Run(ctx context.Context) (component.StopReason, error) {
	if p.ending.started.Swap(true) {
		return "", ErrEnded
	}
	defer context.AfterFunc(ctx, func() { p.Stop(component.StopInterrupted) })()
	p.ending.begin(p)
	conclude := p.observe()
	err := p.runLoops(context.WithoutCancel(ctx))
	p.life.end(ErrEnded)
	conclude()
	p.ending.counters.Store(new(p.readCounters()))
	reason, failure := p.ending.settle()
	return reason, errors.Join(failure, err, p.release())
}

// begin starts the clock of the run.
func (e *ending) begin(p *Pipeline) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.began = time.Now()
	e.limit(p, p.now().run.Stop.Wall)
}

// limit sets the wall time after which the run ends. The caller holds mu.
func (e *ending) limit(p *Pipeline, wall time.Duration) {
	if e.wall != nil {
		e.wall.Stop()
		e.wall = nil
	}
	if wall > 0 && !e.began.IsZero() {
		e.wall = time.AfterFunc(wall-time.Since(e.began), func() { p.Stop(component.StopWall) })
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

// Stop asks the run to end at its next dataset boundary; only the first reason counts. Where no boundary comes
// within BuildOptions.Grace, an interrupted run ends at once, and so does one that has never had a boundary. It
// may be called from any goroutine, also before Run.
func (p *Pipeline) Stop(reason component.StopReason) {
	e := &p.ending
	e.mu.Lock()
	defer e.mu.Unlock()
	interrupted := reason == component.StopInterrupted
	if e.reason != "" && !interrupted {
		return
	}
	if e.reason == "" {
		e.reason = reason
		p.life.end(ErrEnded)
		p.letGo()
	}
	e.graces = append(e.graces, time.AfterFunc(p.options.Grace, func() {
		if interrupted || e.boundaries.Load() == 0 {
			p.endLoops()
		}
	}))
}

// Stopping returns why the run is about to end, or nothing if it is not.
func (p *Pipeline) Stopping() component.StopReason {
	p.ending.mu.Lock()
	defer p.ending.mu.Unlock()
	return p.ending.reason
}

// fail ends the run with an error; the first counts.
func (p *Pipeline) fail(err error) {
	p.ending.mu.Lock()
	if p.ending.err == nil {
		p.ending.err = err
	}
	p.ending.mu.Unlock()
	p.endLoops()
}
