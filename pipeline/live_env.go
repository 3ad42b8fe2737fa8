package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/core/trajectory"
)

// envStep is the change of the environments of one instance.
type envStep struct {
	t        *Transition
	x        member
	from, to *volume
	// fromTrial: of what ran before some environments were on trial.
	fromTrial bool
	task      uint16 // of the new environments' episodes
	back      uint16 // of the old ones', if they come back
	prepared  component.PreparedEnvs
	went      chan component.EnvsWent // takes one

	committed atomic.Bool // Commit has been called
	over      atomic.Bool // cancelled, settled, or the component has gone back by itself: nothing more is to be done
}

// prepareEnvs makes everything that instances need to go over to other environments.
func (t *Transition) prepareEnvs(ctx context.Context) error {
	for _, m := range t.next.members {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		to := t.next.plugins[m.of.Env]
		if to == nil || m.live.runsAll(to) || m.joining.Load() != nil {
			continue
		}
		runner, ok := m.component.(component.EnvRunner)
		if !ok || runner.EnvName() != m.of.Env {
			continue
		}
		if err := t.prepareEnv(m, runner, to); err != nil {
			return err
		}
	}
	return nil
}

func (t *Transition) prepareEnv(m member, runner component.EnvRunner, to *volume) error {
	s := &envStep{t: t, x: m, from: m.live.runs(), to: to, fromTrial: !m.live.runsAll(m.live.runs()), went: make(chan component.EnvsWent, 1)}
	s.task, s.back = t.tasks()
	c := component.EnvChange{
		Plugin: to.plugin, At: t.options.At, KeepState: t.options.KeepState, Envs: t.options.TrialEnvs, Task: s.task, TaskBack: s.back,
		Probation: true, Falls: func(fault error) bool { return t.falls(m.name, fault) },
		Went: func(w component.EnvsWent) { s.went <- w }, Fell: s.fell,
	}
	var err error
	if s.prepared, err = runner.PrepareEnvs(c); err != nil {
		return envError(m.name, err)
	}
	m.live.open(to)
	t.envs = append(t.envs, s)
	return nil
}

// tasks returns the tasks of the next environments' episodes, and of those before if they come back: both newer than
// all that run.
func (t *Transition) tasks() (next, back uint16) {
	now := t.before.task()
	back = (now + 2) % trajectory.TrialTask
	switch {
	case t.options.TrialEnvs > 0:
		return trajectory.TrialTask, back
	case t.options.KeepState:
		return now, back
	}
	return (now + 1) % trajectory.TrialTask, back
}

// commitEnvs makes all instances go over at their boundaries and waits for them. If one does not, all go back.
func (t *Transition) commitEnvs(ctx context.Context, o *Outcome) error {
	if len(t.envs) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, t.options.Deadline, t.late())
	defer cancel()
	for _, s := range t.envs {
		s.x.live.between(true)
	}
	if err := t.sendOver(ctx); err != nil {
		return err
	}
	for _, s := range t.envs {
		w, err := s.wait(ctx)
		if err != nil {
			return err
		}
		o.add(w)
	}
	for _, s := range t.envs {
		s.x.live.between(false)
	}
	return nil
}

func (t *Transition) late() error {
	return refuse(control.CodeLate, "choose a boundary that comes sooner, such as --at trajectory or step",
		"not all environments came to the boundary %q within %v: the previous version runs everywhere", t.options.At, t.options.Deadline)
}

// sendOver tells all instances to go over; those on one loop with nothing between them.
func (t *Transition) sendOver(ctx context.Context) error {
	errs := make([]error, len(t.envs))
	var all sync.WaitGroup
	for _, group := range byLoop(t.envs) {
		all.Go(func() {
			err := group[0].s.x.loop.do(ctx, func() {
				for _, g := range group {
					errs[g.i] = g.s.commit()
				}
			})
			if err != nil {
				errs[group[0].i] = err
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

type placedStep struct {
	i int
	s *envStep
}

func byLoop(steps []*envStep) map[*runningLoop][]placedStep {
	m := map[*runningLoop][]placedStep{}
	for i, s := range steps {
		m[s.x.loop] = append(m[s.x.loop], placedStep{i, s})
	}
	return m
}

// commit runs on the component's loop. A change before this one that is still on probation is settled by it.
func (s *envStep) commit() error {
	if before := s.x.live.replaceChange(s); before != nil {
		before.settle()
	}
	s.committed.Store(true)
	if err := s.prepared.Commit(); err != nil {
		return envError(s.x.name, err)
	}
	return nil
}

func (s *envStep) wait(ctx context.Context) (component.EnvsWent, error) {
	select {
	case w := <-s.went:
		return w, nil
	case <-ctx.Done():
		return component.EnvsWent{}, context.Cause(ctx)
	case <-s.t.broken:
		return component.EnvsWent{}, s.t.fault()
	case <-s.x.loop.ended:
		return component.EnvsWent{}, ErrEnded
	}
}

// envError says why environments cannot take the place of others.
func envError(name string, err error) error {
	var spaces *component.SpacesError
	if errors.As(err, &spaces) {
		return spacesError(spaces)
	}
	return &ChangeError{Code: control.CodeFailed, Reason: fmt.Sprintf("%s: %v", name, err), Err: err}
}

// spacesError shows both specifications side by side.
func spacesError(e *component.SpacesError) error {
	return &ChangeError{Code: control.CodeSpaces, Err: e, Reason: e.Error() + "\n" + strings.TrimSuffix(e.Table(), "\n"),
		Help: "a policy is made for its spaces: start a new run"}
}

// cancelEnvs makes every instance go back that has been told to go over, and releases the others' preparations.
func (t *Transition) cancelEnvs() error {
	var errs []error
	for _, s := range t.envs {
		s.x.live.between(false)
		if !s.committed.Load() {
			errs = append(errs, s.prepared.Close())
			s.x.live.let(s.to)
			continue
		}
		s.x.loop.Do(s.cancel)
	}
	return errors.Join(errs...)
}

// cancel runs on the component's loop.
func (s *envStep) cancel() {
	if s.over.Swap(true) {
		return
	}
	s.prepared.Cancel()
	s.x.live.back(s)
}

// settle runs on the component's loop.
func (s *envStep) settle() {
	if s.over.Swap(true) {
		return
	}
	s.prepared.Settle()
	s.x.live.keepOnly(s)
	s.x.live.dropChange(s)
}

// fell is EnvChange.Fell: the component has gone back by itself.
func (s *envStep) fell(error) {
	if s.over.Swap(true) {
		return
	}
	s.x.live.back(s)
	s.t.tell()
}

// back notes that the instance runs the environments of before a change.
func (l *liveness) back(s *envStep) {
	l.let(s.to)
	l.dropChange(s)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.env, l.trial = s.from, s.fromTrial
	if s.task != trajectory.TrialTask {
		l.task = s.back
	}
}

// open notes a plugin that the instance is about to use.
func (l *liveness) open(v *volume) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.volumes = append(l.volumes, v)
}

// let notes that the instance has let go of what it was to use.
func (l *liveness) let(gone *volume) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.volumes, gone); i >= 0 {
		l.volumes = slices.Delete(l.volumes, i, i+1)
	}
}

// keepOnly notes that the instance has let go of all environments but those of a change; next to a trial the others
// stay.
func (l *liveness) keepOnly(s *envStep) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.task == trajectory.TrialTask {
		return
	}
	found := false
	l.volumes = slices.DeleteFunc(l.volumes, func(v *volume) bool {
		gone := v.env == s.to.env && (v != s.to || found)
		found = found || v == s.to
		return gone
	})
}

// went notes that all environments have gone over.
func (l *liveness) went(s *envStep) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.env, l.trial = s.to, s.task == trajectory.TrialTask
	if !l.trial {
		l.task = s.task
	}
}

// between notes whether environments are on their way from one version to the other, so that there is no state to save.
func (l *liveness) between(yes bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.going = yes
}

// unsavable returns why no snapshot of the instance is to be taken now, or nil.
func (l *liveness) unsavable() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.fault != nil:
		return fmt.Errorf("%w: it has failed: %w", component.ErrNoSnapshot, l.fault)
	case l.going:
		return fmt.Errorf("%w: its environments are being replaced", component.ErrNoSnapshot)
	}
	return nil
}

// runsAll reports whether all environments of the instance are of a plugin.
func (l *liveness) runsAll(v *volume) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.env == v && !l.trial
}

// replaceChange makes s the change that can be taken back, and returns the one before.
func (l *liveness) replaceChange(s *envStep) *envStep {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.change
	l.change = s
	return before
}

func (l *liveness) dropChange(s *envStep) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.change == s {
		l.change = nil
	}
}
