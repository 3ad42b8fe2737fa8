package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/pipeline/graph"
)

// Prepare prepares a change of the running pipeline to the graph next, from With or Parse. It loads and compiles
// plugins, checks them against the running ones, makes and starts new instances; it blocks until that is done, or ctx
// or the run ends. The running pipeline is not touched.
//
// Errors: Problems for errors in a file, a *ChangeError for an impossible change, ErrNothing, ErrBusy, ErrEnded.
// After an error everything has been released.
func (p *Pipeline) Prepare(ctx context.Context, next *graph.Graph, o TransitionOptions) (*Transition, error) {
	if o.Deadline <= 0 {
		o.Deadline = defaultDeadline
	}
	t := &Transition{p: p, options: o, state: changeState{broken: make(chan struct{})},
		undone: map[*instance]*instance{}, relinked: map[*bus.Connection]*bus.Connection{}}
	ctx, leave, err := p.changes.enter(ctx, t)
	if err != nil {
		return nil, err
	}
	defer leave()
	t.state.know(func() { t.before = p.running.now() })
	if err := t.prepare(ctx, next); err != nil {
		if ended := p.changes.over(); ended != nil {
			err = ended
		}
		return nil, errors.Join(err, t.release())
	}
	return t, nil
}

// GoBack changes a running pipeline to a graph that ran before, environments at their next step. It is no error if that runs already, or if
// the run ends.
func GoBack(ctx context.Context, p *Pipeline, before *graph.Graph) error {
	t, err := p.Prepare(ctx, before, TransitionOptions{At: component.AtStep})
	if err == nil {
		_, err = t.Commit(ctx)
	}
	if err == nil {
		t.Settle()
	}
	if errors.Is(err, ErrNothing) || errors.Is(err, ErrEnded) {
		return nil
	}
	return err
}

func (t *Transition) prepare(ctx context.Context, next *graph.Graph) error {
	plan, err := planOf(t.before, next)
	if err != nil {
		return err
	}
	if elsewhere := t.p.options.Elsewhere; elsewhere != nil {
		if err := elsewhere.Prepare(next); err != nil {
			return err
		}
	}
	t.state.know(func() { t.plan = plan })
	loaded, err := t.p.nextAssembly(ctx, t.before, next)
	if err != nil {
		return err
	}
	t.state.know(func() {
		t.next = loaded
		t.plan.needEnvs(t.next)
	})
	if err := t.prepareInstances(ctx); err != nil {
		return err
	}
	if err := t.prepareEnvs(ctx); err != nil {
		return err
	}
	if len(t.envs) == 0 && t.plan.empty() {
		return ErrNothing
	}
	return context.Cause(ctx)
}

// Changes returns the transition's changes.
func (t *Transition) Changes() []control.Change { return t.plan.changes() }

// Graph returns the graph that runs once the transition is committed.
func (t *Transition) Graph() *graph.Graph { return t.next.graph }

// Plugin returns the newly loaded plugin of an environment, or nil if that does not change. It is valid until the
// transition is closed, or another version of it has been committed and settled.
func (t *Transition) Plugin(env string) env.Plugin {
	v := t.next.Envs[env]
	if v == nil || t.before.Envs[env] == v {
		return nil
	}
	return v.Plugin
}

// Loaded returns what an environment was loaded from, for a recording; see component.Host.Loaded.
func (t *Transition) Loaded(p env.Plugin) []byte { return t.p.envCache.Describe(p) }

// Commit makes the change and returns when it is complete. On an error nothing has changed, and the transition
// is closed: a *ChangeError, ErrEnded, or the cause of ctx's end.
func (t *Transition) Commit(ctx context.Context) (Outcome, error) {
	ctx, leave, err := t.p.changes.join(ctx)
	if err != nil {
		return Outcome{}, err // the end of the run has closed it, or will
	}
	defer leave()
	if err := t.state.advance(prepared, committing); err != nil {
		return Outcome{}, err
	}
	var o Outcome
	commit := func() { o, err = t.commitOrRelease(ctx) }
	t.still = !t.needsSteps()
	if t.still && t.p.pauses.atRest(commit) {
		return o, err
	}
	t.still = false
	defer t.p.pauses.lift()()
	commit()
	return o, err
}

// needsSteps reports whether a change can only be made while environments step: some have to end their episodes, or, in synchronous
// mode, trajectories that a rollout has made have yet to be learned from.
func (t *Transition) needsSteps() bool {
	return len(t.envs) > 0 && (t.options.At == component.AtEpisode || t.options.TrialEnvs > 0) || !t.p.betweenDatasets()
}

func (t *Transition) commitOrRelease(ctx context.Context) (o Outcome, err error) {
	if err = t.commit(ctx, &o); err == nil {
		return o, nil
	}
	if ended := t.p.changes.over(); ended != nil {
		err = ended
	}
	return Outcome{}, errors.Join(err, t.release())
}

// commit makes the changes one after the other, and reverts them if one fails.
func (t *Transition) commit(ctx context.Context, o *Outcome) error {
	if err := t.state.fault(); err != nil {
		return err
	}
	ctx, stop := t.state.whileSound(ctx)
	defer stop()
	if t.plan.structural() {
		s := t.p.boundaries
		if err := t.takeBoundaries(ctx); err != nil {
			return err
		}
		s.changing.Store(true)
		resume := t.p.round.suspend()
		defer func() {
			resume()
			s.changing.Store(false)
			s.put()
		}()
	}
	for _, step := range []func(context.Context, *Outcome) error{t.commitFailed, t.commitEnvs, t.commitSwaps, t.commitGraph} {
		if err := step(ctx, o); err != nil {
			return errors.Join(err, t.takeBack())
		}
	}
	if err := t.p.changes.over(); err != nil {
		return errors.Join(err, t.takeBack())
	}
	if !t.options.Probation {
		if err := t.state.confirm(); err != nil {
			return errors.Join(err, t.takeBack())
		}
	}
	o.EnvStep = t.p.running.stats.Counter("rollout/env_steps").Value()
	t.install(o)
	return nil
}

// takeBoundaries waits for the boundary that is under way, if one is. That may wait for the state of a process that hangs: where the change is
// forced, the boundary does without the states of what the change removes.
func (t *Transition) takeBoundaries(ctx context.Context) error {
	if t.options.Force > 0 {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		removed := slices.Clone(t.plan.ended)
		for _, s := range t.swaps {
			removed = append(removed, s.old)
		}
		go giveUpStates(ctx, removed, t.options.Force)
	}
	return t.p.boundaries.take(ctx)
}

// giveUpStates ends, at every interval until ctx ends, what waits for states of instances that a forced change removes.
func giveUpStates(ctx context.Context, removed []member, every time.Duration) {
	again := time.NewTicker(every)
	defer again.Stop()
	for {
		select {
		case <-again.C:
		case <-ctx.Done():
			return
		}
		for _, m := range removed {
			if c, remote := m.component.(component.Remote); remote && !m.learns() {
				c.GiveUp(fmt.Errorf("%s is taken away by force", m.name))
			}
		}
	}
}

// commitFailed replaces failed instances before anything else: others need their answers before they can pause.
func (t *Transition) commitFailed(ctx context.Context, o *Outcome) error {
	return t.replace(ctx, o, func(s *replacement) bool { return s.old.live.failed() != nil })
}

func (t *Transition) commitSwaps(ctx context.Context, o *Outcome) error {
	return t.replace(ctx, o, func(s *replacement) bool { return !s.done })
}

func (t *Transition) replace(ctx context.Context, o *Outcome, due func(*replacement) bool) error {
	for _, s := range t.swaps {
		if !due(s) {
			continue
		}
		if err := s.commit(ctx, o); err != nil {
			return err
		}
		t.undo = append(t.undo, s.undo)
	}
	return nil
}

// commitGraph changes instances and wires.
func (t *Transition) commitGraph(ctx context.Context, o *Outcome) error {
	if err := t.haltEnded(ctx, o); err != nil {
		return err
	}
	continueVersions(t)
	ctx, cancel := context.WithTimeoutCause(ctx, t.options.Deadline, refuse(control.CodeLate, "",
		"messages still wait for room on wires that are to change after %v", t.options.Deadline))
	defer cancel()
	if err := t.rewire(ctx); err != nil {
		return err
	}
	return t.state.fault()
}

// install makes the next assembly the running one.
func (t *Transition) install(o *Outcome) {
	p := t.p
	p.running.mu.Lock()
	for name, v := range t.before.Envs {
		if t.next.Envs[name] != v {
			p.previous[name] = v
		}
	}
	p.running.mu.Unlock()
	for _, s := range t.envs {
		s.x.live.went(s)
	}
	p.running.state.Store(t.next)
	if t.options.Made != nil {
		t.options.Made()
	}
	p.running.place(t.next)
	p.still.excuse()
	p.taps.follow(t.next)
	p.running.stats.Gauge("rollout/envs").Set(float64(t.next.envs()))
	swapped := map[*instance]bool{}
	for _, s := range t.swaps {
		swapped[s.new] = !s.waits
	}
	for _, x := range t.made {
		x.joining.Store(nil)
		if !swapped[x] {
			t.begins(x)
		}
	}
	if t.next.run != t.before.run {
		p.ending.mu.Lock()
		p.ending.limit(t.next.run.Stop.WallTime)
		p.ending.mu.Unlock()
	}
	if t.still {
		p.pauses.wish(t.next.members, true)
	}
	t.finish(o)
	t.undo = nil
	ends := t.state.complete()
	t.next.tell(p.options.Elsewhere)
	t.leaveElsewhere()
	p.changes.finish(t)
	if t.options.Probation {
		t.tell()
	} else {
		t.settle()
	}
	if ends != "" {
		p.Stop(ends)
	}
}

// finish releases replaced parts, once everything has been changed.
func (t *Transition) finish(o *Outcome) {
	t.p.running.mu.Lock()
	for _, w := range t.before.wires {
		if t.next.wire(w.wire) == nil {
			t.p.running.retired = append(t.p.running.retired, w.totals)
		}
	}
	t.p.running.mu.Unlock()
	for _, m := range t.plan.ended {
		t.leave(m, o)
	}
	for _, s := range t.swaps {
		if err := t.retire(s.old.instance, s.new); err != nil {
			o.note("%v", err)
		}
	}
	t.p.running.tidy()
}

// Settle ends the probation: the previous version is released. Its plugin stays loaded, for a rollback. It must be
// called once for each successful Commit; a later one that changes the same things settles as well. false means that
// a new version has already failed: then nothing has been settled, and RolledBack is called, or was.
func (t *Transition) Settle() bool {
	_, leave, err := t.p.changes.join(t.p.changes.ctx)
	if err != nil {
		return true // the end of the run releases everything
	}
	defer leave()
	return t.settle()
}

func (t *Transition) settle() bool {
	if t.state.confirm() != nil {
		return false
	}
	if t.state.advance(committed, settled) != nil {
		return true // it was before
	}
	for _, s := range t.envs {
		s.x.loop.Do(s.settle)
	}
	for _, x := range t.p.running.instancesAlive() { // its instances, and their successors by later changes
		x.live.settle(t)
	}
	if err := t.p.collect(); err != nil {
		t.p.running.log.Warn("closing what ran before", "err", err)
	}
	return true
}

// Close abandons a change that was not committed, and releases its preparations.
func (t *Transition) Close() error {
	_, leave, err := t.p.changes.join(t.p.changes.ctx)
	if err != nil {
		return nil // the end of the run closes it
	}
	defer leave()
	return t.giveUp()
}

func (t *Transition) giveUp() error {
	if t.state.advance(prepared, closed) != nil {
		return nil
	}
	return t.release()
}

// release releases the preparations of a change that will not happen.
func (t *Transition) release() error {
	t.state.close()
	errs := []error{t.cancelEnvs()}
	members := map[*instance]bool{}
	for _, m := range t.p.running.now().members {
		members[m.instance] = true
	}
	successors := map[*instance]*instance{} // of instances that ran meanwhile
	for _, s := range t.swaps {
		if s.done {
			successors[s.old.instance], successors[s.new] = s.new, t.undone[s.old.instance]
		}
	}
	for _, x := range t.made {
		if members[x] {
			x.live.settle(t)
		} else if successor := successors[x]; successor != nil {
			errs = append(errs, t.retire(x, successor))
		} else {
			errs = append(errs, t.discard(x))
		}
	}
	for _, s := range t.swaps {
		if s.done && !members[s.old.instance] {
			errs = append(errs, t.retire(s.old.instance, s.new))
		}
	}
	t.leaveElsewhere()
	t.p.changes.finish(t)
	return errors.Join(append(errs, t.p.collect())...)
}

// leaveElsewhere tells Elsewhere that the change is over.
func (t *Transition) leaveElsewhere() {
	if elsewhere := t.p.options.Elsewhere; elsewhere != nil {
		elsewhere.Release()
	}
}

// TakeBack makes the environments of a committed change on probation be the previous ones again, as the fault of a new one does. Then it is for the
// caller to return to the previous graph, by another Prepare and Commit.
func (t *Transition) TakeBack() {
	for _, s := range t.envs {
		s.x.loop.Do(s.cancel)
	}
}

// retire ends an instance of the run; see running.
func (t *Transition) retire(x, successor *instance) error {
	t.p.pauses.leaves(x)
	return t.p.running.retire(x, successor)
}

// discard ends an instance that never ran.
func (t *Transition) discard(x *instance) error {
	t.p.pauses.leaves(x)
	return t.p.running.discard(x)
}
