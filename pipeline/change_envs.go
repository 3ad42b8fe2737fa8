package pipeline

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/pipeline/loading"
	"github.com/rlhost/rlhost/pipeline/loops"
)

// prepareEnvs makes everything that instances need to change environments.
func (t *Transition) prepareEnvs(ctx context.Context) error {
	for _, m := range t.next.members {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		to := t.next.Envs[m.of.Env]
		if to == nil || m.live.runsAll(to) || m.joining.Load() != nil {
			continue
		}
		runner, ok := m.component.(component.EnvRunner)
		if !ok || runner.EnvName() != m.of.Env {
			continue
		}
		if err := t.prepareEnv(ctx, m, runner, to); err != nil {
			return err
		}
	}
	return nil
}

func (t *Transition) prepareEnv(ctx context.Context, m member, runner component.EnvRunner, to *loading.Env) error {
	s := &envChange{t: t, x: m, from: m.live.runs(), to: to, fromTrial: !m.live.runsAll(m.live.runs()), went: make(chan component.EnvsWent, 1)}
	s.task, s.back = t.tasks()
	c := component.EnvChange{
		Number: t.options.Number, Plugin: to.Plugin, At: t.options.At, KeepState: t.options.KeepState, Envs: t.options.TrialEnvs, Task: s.task, TaskBack: s.back,
		Probation: true, OnFault: func(fault error) bool { return t.state.onFault(m.name, fault) },
		Went: func(w component.EnvsWent) { s.went <- w }, RolledBack: s.rolledBack,
	}
	ctx, cancel := context.WithTimeout(ctx, t.options.Deadline)
	defer cancel()
	var err error
	if s.prepared, err = runner.PrepareEnvs(ctx, c); err != nil {
		return envError(m.name, err)
	}
	m.live.open(to)
	t.envs = append(t.envs, s)
	return nil
}

// tasks returns the tasks of the next environments' episodes, and of the previous ones if they come back: both newer
// than all that run.
func (t *Transition) tasks() (next, back uint16) {
	if t.options.Tasks != nil {
		return t.options.Tasks[0], t.options.Tasks[1]
	}
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

// commitEnvs makes all instances change at their boundaries and waits for them. If one does not, all change back.
func (t *Transition) commitEnvs(ctx context.Context, o *Outcome) error {
	if len(t.envs) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, t.options.Deadline, lateAt(t.options))
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

func lateAt(o TransitionOptions) error {
	return refuse(control.CodeLate, "choose a boundary that comes sooner, such as --at trajectory or step",
		"not all environments came to the boundary %q within %v: the previous version runs everywhere", o.At, o.Deadline)
}

// sendOver tells all instances to change. On each loop no slot runs in between.
func (t *Transition) sendOver(ctx context.Context) error {
	errs := make([]error, len(t.envs))
	var all sync.WaitGroup
	for _, group := range byLoop(t.envs) {
		all.Go(func() {
			err := group[0].s.x.loop.Try(ctx, func() {
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
	s *envChange
}

func byLoop(steps []*envChange) map[*loops.Loop][]placedStep {
	m := map[*loops.Loop][]placedStep{}
	for i, s := range steps {
		m[s.x.loop] = append(m[s.x.loop], placedStep{i, s})
	}
	return m
}

// commit runs on the component's loop. It settles a previous change that is still on probation.
func (s *envChange) commit() error {
	if before := s.x.live.replaceChange(s); before != nil {
		before.settle()
	}
	s.committed.Store(true)
	if err := s.prepared.Commit(); err != nil {
		return envError(s.x.name, err)
	}
	return nil
}

func (s *envChange) wait(ctx context.Context) (component.EnvsWent, error) {
	select {
	case w := <-s.went:
		return w, nil
	case <-ctx.Done():
		return component.EnvsWent{}, context.Cause(ctx)
	case <-s.t.state.broken:
		return component.EnvsWent{}, s.t.state.fault()
	case <-s.x.loop.Gone():
		return component.EnvsWent{}, ErrEnded
	}
}

// cancelEnvs makes every instance that has begun to change go back, and releases the others' preparations.
func (t *Transition) cancelEnvs() error {
	var errs []error
	for _, s := range t.envs {
		s.x.live.between(false)
		if !s.committed.Load() {
			errs = append(errs, s.prepared.Close())
			s.x.live.released(s.to)
			continue
		}
		s.x.loop.Do(s.cancel)
	}
	return errors.Join(errs...)
}

// cancel runs on the component's loop.
func (s *envChange) cancel() {
	if s.over.Swap(true) {
		return
	}
	s.prepared.Cancel()
	s.x.live.back(s)
}

// settle runs on the component's loop.
func (s *envChange) settle() {
	if s.over.Swap(true) {
		return
	}
	s.prepared.Settle()
	s.x.live.keepOnly(s)
	s.x.live.dropChange(s)
}

// rolledBack is EnvChange.RolledBack: the component has changed back by itself.
func (s *envChange) rolledBack(error) {
	if s.over.Swap(true) {
		return
	}
	s.x.live.back(s)
	s.t.tell()
}

// back notes that the instance runs the environments that it had before a change.
func (l *liveness) back(s *envChange) {
	l.released(s.to)
	l.dropChange(s)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.env, l.trial = s.from, s.fromTrial
	if s.task != trajectory.TrialTask {
		l.task = s.back
	}
}

// keepOnly notes that the instance has released all environments except a change's; in a trial the others stay.
func (l *liveness) keepOnly(s *envChange) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.task == trajectory.TrialTask {
		return
	}
	found := false
	l.envsInUse = slices.DeleteFunc(l.envsInUse, func(v *loading.Env) bool {
		gone := v.Name == s.to.Name && (v != s.to || found)
		found = found || v == s.to
		return gone
	})
}

// went notes that all environments have changed.
func (l *liveness) went(s *envChange) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.env, l.trial = s.to, s.task == trajectory.TrialTask
	if !l.trial {
		l.task = s.task
	}
}
