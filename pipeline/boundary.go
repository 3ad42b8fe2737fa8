package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/hostabi"
)

// Snapshot returns the state of instances by name. In synchronous mode that is all of them. In asynchronous mode
// only the learner stands still at its boundary, so it is the learner and those that nobody depends on, which
// have no signals. What cannot be saved is missing, and the reasons are joined in the error. It may be called
// during the call that it was given to only: later it returns ErrEnded.
type Snapshot = func() (map[string]component.State, error)

// standing is what boundaries and changes have to exclude each other by: whoever has the token sees all instances
// in their places.
type standing struct {
	token    chan struct{}
	changing atomic.Bool // set by who has the token and replaces instances

	mu    sync.Mutex
	asked []*request // of AtNextBoundary
}

// request is a call of AtNextBoundary.
type request struct {
	fn   func(Snapshot) error
	done chan error // takes one
}

func newStanding() *standing {
	s := &standing{token: make(chan struct{}, 1)}
	s.token <- struct{}{}
	return s
}

// take waits for the token.
func (s *standing) take(ctx context.Context) error {
	select {
	case <-s.token:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// try takes the token if nobody has it.
func (s *standing) try() bool {
	select {
	case <-s.token:
		return true
	default:
		return false
	}
}

func (s *standing) put() { s.token <- struct{}{} }

// reach is Host.Boundary of a learner. In synchronous mode the boundary waits behind the messages that are queued:
// whoever counts datasets and episodes has then counted this one, so that the run ends at the very dataset that
// fulfils a stop rule, and a resumed run counts on from there. Rollouts meanwhile come as far as asking about the
// first row of their next blocks, which no snapshot depends on.
func (p *Pipeline) reach(learner *instance) {
	if !learner.host.Run.Synchronous {
		p.boundary(learner)
		return
	}
	learner.loop.own.Post(func(*hostabi.Message) { p.boundary(learner) }, hostabi.Message{})
}

// boundary ends a dataset. A stop that is asked for meanwhile waits for the next boundary, so that
// AtBoundary always knows when it is called for the last time.
func (p *Pipeline) boundary(learner *instance) {
	p.ending.boundaries.Add(1)
	last := p.Stopping() != ""
	met, err := p.atBoundary(learner)
	if err != nil {
		p.fail(fmt.Errorf("at dataset boundary: %w", err))
		return
	}
	if last && met {
		p.endLoops()
	}
}

// atBoundary calls the owner, and those who have asked. Two learners never wait for each other here: the loop of one
// may be the one that the other's snapshot needs an answer from. Nor does a learner wait for instances that are being
// replaced: this is no boundary to save anything at then, and not the last one.
func (p *Pipeline) atBoundary(learner *instance) (met bool, err error) {
	if !p.standing.try() {
		return !p.standing.changing.Load(), nil
	}
	defer p.standing.put()
	var over atomic.Bool
	defer over.Store(true)
	snapshot := func() (map[string]component.State, error) {
		if over.Load() {
			return nil, ErrEnded
		}
		return p.snapshot(learner)
	}
	if p.options.AtBoundary != nil {
		err = p.options.AtBoundary(snapshot)
	}
	p.standing.answer(snapshot)
	p.tidy()
	return true, err
}

// answer calls those who have asked.
func (s *standing) answer(snapshot Snapshot) {
	s.mu.Lock()
	asked := s.asked
	s.asked = nil
	s.mu.Unlock()
	for _, r := range asked {
		r.answer(snapshot)
	}
}

// answer calls the function; who waits learns of it also if it panics.
func (r *request) answer(snapshot Snapshot) {
	err := ErrEnded
	defer func() { r.done <- err }()
	err = r.fn(snapshot)
}

// AtNextBoundary calls fn at the next dataset boundary at which all instances are in their places, on the learner's
// loop, which waits for it, and returns its error. It blocks until then; ctx and the end of the run, with ErrEnded,
// end that, and fn has not been called then.
func (p *Pipeline) AtNextBoundary(ctx context.Context, fn func(snapshot Snapshot) error) error {
	defer p.lift()()
	r := &request{done: make(chan error, 1)}
	var taken atomic.Bool
	r.fn = func(snapshot Snapshot) error {
		if taken.Swap(true) {
			return nil
		}
		return fn(snapshot)
	}
	p.standing.mu.Lock()
	p.standing.asked = append(p.standing.asked, r)
	p.standing.mu.Unlock()
	var cause error
	select {
	case err := <-r.done:
		return err
	case <-ctx.Done():
		cause = context.Cause(ctx)
	case <-p.life.gone:
		cause = ErrEnded
	}
	if taken.Swap(true) {
		return <-r.done
	}
	p.standing.mu.Lock()
	defer p.standing.mu.Unlock()
	p.standing.asked = slices.DeleteFunc(p.standing.asked, func(o *request) bool { return o == r })
	return cause
}

// snapshot is Snapshot at a learner's boundary.
func (p *Pipeline) snapshot(learner *instance) (map[string]component.State, error) {
	states := map[string]component.State{}
	var errs []error
	a := p.now()
	for _, x := range a.members {
		if !a.run.Synchronous && x.instance != learner && len(x.of.Manifest.Signals) > 0 {
			continue
		}
		state, err := x.snapshot(learner.loop)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", x.name, err))
			continue
		}
		states[x.name] = state
	}
	return states, errors.Join(errs...)
}

// snapshot takes the snapshot of an instance on its own loop; here is the one that this runs on.
func (x *instance) snapshot(here *runningLoop) (state component.State, err error) {
	if err := x.live.unsavable(); err != nil {
		return state, err
	}
	if x.loop == here {
		return x.component.Snapshot()
	}
	if ended := x.loop.do(context.Background(), func() { state, err = x.component.Snapshot() }); ended != nil {
		return component.State{}, ended
	}
	return state, err
}
