package pipeline

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/hostabi"
)

// ErrEnded is returned by Run if the pipeline has run before, and by a snapshot that came too late.
var ErrEnded = errors.New("the run has ended")

// ending is how a run ends.
type ending struct {
	started    atomic.Bool
	boundaries atomic.Uint64                  // so far
	counters   atomic.Pointer[[]WireCounters] // as they were when the loops had ended
	inBoundary sync.Mutex                     // held while AtBoundary runs

	mu     sync.Mutex
	reason component.StopReason
	err    error
	graces []*time.Timer // end the run without a boundary
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
	if wall := p.run.Stop.Wall; wall > 0 {
		defer time.AfterFunc(wall, func() { p.Stop(component.StopWall) }).Stop()
	}
	err := p.runLoops(context.WithoutCancel(ctx))
	p.ending.counters.Store(new(p.readCounters()))
	reason, failure := p.ending.settle()
	return reason, errors.Join(failure, err, p.release())
}

// settle stops the timers and returns how the run ended.
func (e *ending) settle() (component.StopReason, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, t := range e.graces {
		t.Stop()
	}
	return e.reason, e.err
}

// runLoops runs every loop on a goroutine of its own until all have ended. The first that fails ends the others.
func (p *Pipeline) runLoops(ctx context.Context) error {
	errs := make([]error, len(p.loops))
	var all sync.WaitGroup
	for i, l := range p.loops {
		all.Go(func() {
			defer close(l.ended)
			if errs[i] = l.Run(ctx); errs[i] != nil {
				p.endLoops()
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

func (p *Pipeline) endLoops() {
	for _, l := range p.loops {
		l.Stop()
	}
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

// reach is Host.Boundary of a learner. In synchronous mode the boundary waits behind the messages that are queued:
// whoever counts datasets and episodes has then counted this one, so that the run ends at the very dataset that
// fulfils a stop rule, and a resumed run counts on from there. Rollouts meanwhile come as far as asking about the
// first row of their next blocks, which no snapshot depends on.
func (p *Pipeline) reach(learner *instance) {
	if !p.run.Synchronous {
		p.boundary(learner)
		return
	}
	learner.host.Receiver.Post(func(*hostabi.Message) { p.boundary(learner) }, hostabi.Message{})
}

// boundary ends a dataset. A stop that is asked for meanwhile waits for the next boundary, so that
// AtBoundary always knows when it is called for the last time.
func (p *Pipeline) boundary(learner *instance) {
	p.ending.boundaries.Add(1)
	last := p.Stopping() != ""
	if err := p.atBoundary(learner); err != nil {
		p.fail(fmt.Errorf("at dataset boundary: %w", err))
		return
	}
	if last {
		p.endLoops()
	}
}

// atBoundary calls the owner. Two learners never wait for each other here: the loop of one may be the one that
// the other's snapshot needs an answer from.
func (p *Pipeline) atBoundary(learner *instance) error {
	if p.options.AtBoundary == nil || !p.ending.inBoundary.TryLock() {
		return nil
	}
	defer p.ending.inBoundary.Unlock()
	var over atomic.Bool
	defer over.Store(true)
	return p.options.AtBoundary(func() (map[string]component.State, error) {
		if over.Load() {
			return nil, ErrEnded
		}
		return p.snapshot(learner)
	})
}

// snapshot returns the state of instances by name. In synchronous mode that is all of them. In asynchronous mode
// only the learner stands still at its boundary, so it is the learner and those that nobody depends on, which
// have no signals. What cannot be saved is missing, and the reasons are joined in the error.
func (p *Pipeline) snapshot(learner *instance) (map[string]component.State, error) {
	states := map[string]component.State{}
	var errs []error
	for _, x := range p.instances {
		if !p.run.Synchronous && x != learner && len(x.of.Manifest.Signals) > 0 {
			continue
		}
		state, err := p.snapshotOf(x, learner.loop)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", x.host.Name, err))
			continue
		}
		states[x.host.Name] = state
	}
	return states, errors.Join(errs...)
}

// snapshotOf takes the snapshot of an instance on its own loop; here is the one that this runs on.
func (p *Pipeline) snapshotOf(x *instance, here *runningLoop) (component.State, error) {
	if x.loop == here {
		return x.component.Snapshot()
	}
	type answer struct {
		state component.State
		err   error
	}
	answers := make(chan answer, 1)
	x.host.Receiver.Control(func(*hostabi.Message) {
		state, err := x.component.Snapshot()
		answers <- answer{state, err}
	}, hostabi.Message{})
	select {
	case a := <-answers:
		return a.state, a.err
	case <-x.loop.ended:
	}
	select { // it may have answered last thing
	case a := <-answers:
		return a.state, a.err
	default:
		return component.State{}, ErrEnded
	}
}
