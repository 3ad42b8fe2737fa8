package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/hostabi"
)

// cutTime bounds how long a run that is cut waits for the state of its learner: for the minibatch that it is at.
const cutTime = 10 * time.Second

// errCut is why the state of a run that was cut is not exact.
var errCut = errors.New("cut within a dataset, because the run's end came before that of the dataset")

// Stop asks the run to end at its next dataset boundary; only the first reason counts. Where no boundary comes within BuildOptions.Grace it
// is cut: its learners abandon their current dataset, AtBoundary is called with their state as it is, and the run ends. A rule on returns
// or env steps, which only learning fulfils, waits for learners that are at work. It may be called from any goroutine, also before Run.
func (p *Pipeline) Stop(reason component.StopReason) {
	e := &p.ending
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.reason != "" {
		if reason == component.StopInterrupted && !e.hurried {
			e.hurried = true
			p.cutAfter(reason)
		}
		return
	}
	e.reason, e.hurried = reason, reason == component.StopInterrupted
	p.changes.end(ErrEnded)
	p.pauses.resumeForGood()
	p.cutAfter(reason)
}

// cutAfter cuts the run when the grace is over. The caller must hold the lock of ending.
func (p *Pipeline) cutAfter(reason component.StopReason) {
	e := &p.ending
	e.graces = append(e.graces, time.AfterFunc(p.options.Grace, func() {
		if reason == component.StopWallTime || reason == component.StopInterrupted {
			p.cut()
			return
		}
		p.running.whenIdle(func() {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.graces = append(e.graces, time.AfterFunc(p.options.Grace, p.cut))
		})
	}))
}

// whenIdle calls fn once no learner is at a dataset.
func (r *running) whenIdle(fn func()) {
	learners := r.now().learners()
	var next func(i int)
	next = func(i int) {
		if i == len(learners) {
			fn()
			return
		}
		learners[i].loop.Own.Control(func(*hostabi.Message) { next(i + 1) }, hostabi.Message{})
	}
	next(0)
}

// cut ends the run without a dataset boundary, once.
func (p *Pipeline) cut() {
	if p.ending.cutting.Swap(true) {
		return
	}
	cause := p.watch.snapshot(time.Now()).Cause()
	p.ending.stoodStill.Store(&cause)
	ctx, cancel := context.WithTimeoutCause(context.Background(), cutTime, errors.New("it is still at one message"))
	defer cancel()
	learners := p.running.now().learners()
	p.running.cutAll()
	defer p.endLoops()
	if err := p.boundaries.take(ctx); err != nil { // a boundary or a change may be under way
		p.running.log.Warn("the run ends without its newest state", "error", err)
		return
	}
	defer p.boundaries.put()
	if p.ending.final.Load() {
		return
	}
	for i := range learners {
		if p.running.now().leads(learners[i].instance) {
			p.saveCut(ctx, learners[i])
			return
		}
	}
}

// cutAll makes all components abandon their current work.
func (r *running) cutAll() {
	for _, m := range r.now().members {
		if c, ok := m.component.(component.Cuttable); ok {
			m.unlessStopped(c.Cut)
		}
	}
}

// Times that loops which have been ended may take for the message that they are at: until it is cut, and from then on.
const (
	endWithin   = time.Second
	leaveWithin = 400 * time.Millisecond
)

// hurry makes the run end even if ended loops still work on a message: first that work is cut, and then the loops are left running.
func (p *Pipeline) hurry() {
	e := &p.ending
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.leaving {
		return
	}
	e.leaving = true
	within := endWithin
	if e.cutting.Load() {
		within = 0
	}
	e.graces = append(e.graces, time.AfterFunc(within, func() {
		p.running.cutAll()
		e.mu.Lock()
		defer e.mu.Unlock()
		e.graces = append(e.graces, time.AfterFunc(leaveWithin, p.running.loops.Abandon))
	}))
}

// LeftBehind returns the names of the instances whose loop was still working on a message when the run had ended. They are stopped, and
// the arenas closed, once the loop has ended.
func (p *Pipeline) LeftBehind() (names []string) {
	left := p.running.loops.Left()
	for _, x := range p.running.instancesAlive() {
		if slices.Contains(left, x.loop) {
			names = append(names, x.host.Name)
		}
	}
	return names
}

// StoodStill returns why a run that was cut had stalled; empty if it had not, or reached a boundary. Any goroutine.
func (p *Pipeline) StoodStill() string {
	if cause := p.ending.stoodStill.Load(); cause != nil {
		return *cause
	}
	return ""
}

// How long a run that is cut waits for a loop that works on a message of another component than its learner: until the learner is saved
// without that loop, and then for the loop's other components.
const (
	busyWithin  = 200 * time.Millisecond
	apartWithin = 100 * time.Millisecond
)

// saveCut calls AtBoundary for a run that is cut: on the loop of its leading learner, or off it while the loop works on a message of
// another component.
func (p *Pipeline) saveCut(ctx context.Context, learner *member) {
	if p.options.AtBoundary == nil {
		return
	}
	var err error
	onLoop := func() {
		err = p.options.AtBoundary(func() (map[string]component.State, error) {
			states, missing := p.snapshot(ctx, learner.loop, learner.instance, false)
			return states, errors.Join(errCut, missing)
		})
	}
	within, cancel := context.WithTimeout(ctx, busyWithin)
	defer cancel()
	late := learner.loop.Try(within, onLoop)
	if late != nil {
		if state, busy := learner.snapshotApart(late); busy == nil {
			late, err = nil, p.saveApart(ctx, learner, state)
		} else {
			late = learner.loop.Try(ctx, onLoop)
		}
	}
	switch {
	case late != nil:
		p.running.log.Warn("the run ends without its newest state", "component", learner.name, "error", late)
	case err != nil:
		p.fail(fmt.Errorf("at the end of the run: %w", err))
	}
}

// saveApart calls AtBoundary off the loop of the leading learner, with the learner's state.
func (p *Pipeline) saveApart(ctx context.Context, learner *member, state component.State) error {
	ctx, cancel := context.WithTimeoutCause(ctx, apartWithin, errors.New("its loop is at a message of another component"))
	defer cancel()
	return p.options.AtBoundary(func() (map[string]component.State, error) {
		states, missing := p.snapshot(ctx, nil, learner.instance, false)
		states[learner.name] = state
		return states, errors.Join(errCut, missing)
	})
}
