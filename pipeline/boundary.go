package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/loop"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/pipeline/loops"
)

// reach is Host.Boundary of a learner. Of several learners in asynchronous mode only the leading one makes boundaries.
//
// In synchronous mode a boundary comes when all learners have learned from a dataset; see round. It waits for the queued messages: components
// that count datasets and episodes have then counted this one, so that the run ends at the very dataset that fulfils a stop rule, and a resumed
// run continues from there. Rollouts meanwhile get as far as the request for the first row of their next blocks, which no snapshot depends on.
func (p *Pipeline) reach(learner *instance) {
	if !learner.host.Run.Synchronous {
		if a := p.running.now(); a.leads(learner) {
			p.boundary(learner)
		}
		return
	}
	if !p.round.ends(learner) {
		return
	}
	learner.loop.Own.Post(func(*hostabi.Message) { p.boundary(learner) }, hostabi.Message{})
}

// endWait ends the wait of learners for others that cannot learn any more, because a process has died with their trajectories.
func (p *Pipeline) endWait() {
	learner := p.round.stalled()
	if learner == nil {
		return
	}
	learner.loop.Own.Post(func(*hostabi.Message) {
		if p.round.over() {
			p.boundary(learner)
		}
	}, hostabi.Message{})
}

// leads reports whether a learner is the leading one: that of the leading policy, or any where that has none.
func (a *assembly) leads(learner *instance) bool {
	learners := a.learners()
	if len(learners) < 2 {
		return true
	}
	at := slices.IndexFunc(learners, func(m *member) bool { return m.of.Policy == a.run.Policy })
	return at < 0 || learners[at].name == learner.host.Name
}

// boundary ends a dataset. A stop requested meanwhile waits for the next boundary, so that AtBoundary always
// knows when it is called for the last time.
func (p *Pipeline) boundary(learner *instance) {
	if p.ending.cutting.Load() {
		return // the run ends without it
	}
	for _, x := range p.running.now().members {
		if c, ok := x.component.(component.Recovering); ok {
			x.unlessStopped(c.SaveState)
		}
	}
	last := p.Stopping() != ""
	met, err := p.atBoundary(learner, last)
	if err != nil {
		p.fail(fmt.Errorf("at dataset boundary: %w", err))
		return
	}
	switch {
	case last && met:
		p.endLoops()
	case last && learner.host.Run.Synchronous:
		p.waitAtBoundary(learner)
	}
}

// waitAtBoundary keeps a synchronous run at its last boundary while a change that is under way gives up, and makes the boundary then.
// Learners, components with environments and components that answer their requests take no messages meanwhile: else the next blocks' first actions
// would be on their way, which a saved state does not have. They do after half the grace, because the change may need them to.
func (p *Pipeline) waitAtBoundary(learner *instance) {
	if p.ending.standing.Swap(true) {
		return
	}
	var paused []*loop.Receiver
	for _, x := range p.running.instancesAlive() {
		if x == learner || x.envs > 0 || learns(&x.of.Manifest) || answers(&x.of.Manifest) {
			x.host.Receiver.Pause()
			paused = append(paused, x.host.Receiver)
		}
	}
	goOn := func() {
		for _, r := range paused {
			r.Resume()
		}
	}
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), p.options.Grace/2)
		defer cancel()
		late := p.boundaries.take(ctx)
		if late == nil {
			p.boundaries.put()
		}
		x := p.running.now().inPlaceOf(learner)
		x.loop.Own.Control(func(*hostabi.Message) {
			defer goOn()
			p.ending.standing.Store(false)
			if late == nil && !p.running.now().acted() {
				p.boundary(x)
			} // else the next one is the last
		}, hostabi.Message{})
	}()
}

// acted reports whether answers are on their way to components with environments, because what answers them was replaced: such components
// cannot be saved.
func (a *assembly) acted() bool {
	for i := range a.members {
		m := &a.members[i]
		if m.envs > 0 && m.answersQueued() > 0 {
			return true
		}
	}
	return false
}

// inPlaceOf returns the instance that runs where another one has run.
func (a *assembly) inPlaceOf(x *instance) *instance {
	for _, m := range a.members {
		if m.name == x.host.Name {
			return m.instance
		}
	}
	return x
}

// atBoundary calls the owner and the pending requests. Two learners never wait for each other here: one's snapshot may
// need an answer from the other's loop, so in asynchronous mode only the leading one comes here. Nor does a learner wait
// for instances that are being replaced: such a boundary is not one to save at, and not the last one; see waitAtBoundary.
func (p *Pipeline) atBoundary(learner *instance, last bool) (met bool, err error) {
	if !p.boundaries.try() {
		return !p.boundaries.changing.Load(), nil
	}
	defer p.boundaries.put()
	var over atomic.Bool
	defer over.Store(true)
	snapshot := func() (map[string]component.State, error) {
		if over.Load() {
			return nil, ErrEnded
		}
		return p.snapshot(context.Background(), learner.loop, learner, p.running.now().run.Synchronous)
	}
	if p.options.AtBoundary != nil {
		err = p.options.AtBoundary(snapshot)
	}
	p.boundaries.answer(snapshot)
	p.running.tidy()
	if last && err == nil {
		p.ending.final.Store(true)
	}
	return true, err
}

// AtNextBoundary calls fn at the next dataset boundary at which no instance is being replaced, on the learner's loop, which
// waits for it, and returns its error. It blocks until then; ctx and the end of the run, with ErrEnded, end that, and fn has
// not been called then. A run of which every instance is paused is at a boundary, because its learners are: it stays paused.
func (p *Pipeline) AtNextBoundary(ctx context.Context, fn func(snapshot Snapshot) error) error {
	var err error
	if p.pauses.atRest(func() { err = p.saveAtRest(ctx, fn) }) {
		return err
	}
	defer p.pauses.lift()()
	r := &request{done: make(chan error, 1)}
	var taken atomic.Bool
	r.fn = func(snapshot Snapshot) error {
		if taken.Swap(true) {
			return nil
		}
		return fn(snapshot)
	}
	p.boundaries.mu.Lock()
	p.boundaries.asked = append(p.boundaries.asked, r)
	p.boundaries.mu.Unlock()
	var cause error
	select {
	case err := <-r.done:
		return err
	case <-ctx.Done():
		cause = context.Cause(ctx)
	case <-p.changes.gone:
		cause = ErrEnded
	}
	if taken.Swap(true) {
		return <-r.done
	}
	p.boundaries.mu.Lock()
	defer p.boundaries.mu.Unlock()
	p.boundaries.asked = slices.DeleteFunc(p.boundaries.asked, func(o *request) bool { return o == r })
	return cause
}

// snapshot is Snapshot on the loop here, or on none: of all instances, or of the ones that an asynchronous run saves.
func (p *Pipeline) snapshot(ctx context.Context, here *loops.Loop, learner *instance, all bool) (map[string]component.State, error) {
	states := map[string]component.State{}
	var errs []error
	a := p.running.now()
	late := false // one has not answered in time, and the others are not waited for
	for _, x := range a.members {
		whole := all || x.instance == learner || x.publishes() || len(x.of.Manifest.Signals) == 0
		if whole {
			state, err := x.snapshot(ctx, here)
			if err != nil && p.ending.cutting.Load() { // the cut came meanwhile, and the state may be an earlier one
				errs = append(errs, fmt.Errorf("%s: %w", x.name, errCut))
				state, err = x.snapshotApart(err)
			}
			if err == nil {
				states[x.name] = state
				continue
			}
			errs = append(errs, fmt.Errorf("%s: %w", x.name, err))
		}
		if late {
			continue
		}
		part, ok, err := x.lasting(ctx, here)
		if ok {
			states[x.name] = part
		}
		if late = err != nil; late {
			errs = append(errs, fmt.Errorf("%s: %w", x.name, err))
		}
	}
	return states, errors.Join(errs...)
}

// errWithin is why the state of a paused synchronous run is not exact.
var errWithin = errors.New("paused within a dataset: resume the run and save it then, for all of it")

// betweenDatasets reports whether nothing is under way that a synchronous run has yet to learn from, as far as that is for this host to say.
func (p *Pipeline) betweenDatasets() bool {
	a := p.running.now()
	elsewhere := slices.ContainsFunc(a.learners(), func(m *member) bool { return m.still() })
	return !a.run.Synchronous || elsewhere || p.Steps().UnderWay == 0 && !p.round.waiting()
}

// saveAtRest calls fn for a paused run, on the loop of its leading learner.
func (p *Pipeline) saveAtRest(ctx context.Context, fn func(Snapshot) error) error {
	if err := p.boundaries.take(ctx); err != nil {
		return err
	}
	defer p.boundaries.put()
	a := p.running.now()
	learners := a.learners()
	i := slices.IndexFunc(learners, func(m *member) bool { return a.leads(m.instance) })
	if i < 0 {
		return ErrEnded
	}
	var err error
	late := learners[i].loop.Try(ctx, func() {
		var within error
		if !p.betweenDatasets() {
			within = errWithin
		}
		over := false
		defer func() { over = true }()
		err = fn(func() (map[string]component.State, error) {
			if over {
				return nil, ErrEnded
			}
			states, missing := p.snapshot(ctx, learners[i].loop, learners[i].instance, a.run.Synchronous)
			return states, errors.Join(within, missing)
		})
	})
	return errors.Join(late, err)
}
