package pipeline

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/pipeline/graph"
)

// learnedStep is how often learned checks whether trajectories have been learned from. Only the writer of a block hears that it is
// free: where that is another process, which often frees its blocks itself when it reads an acknowledgement, the host does not.
const learnedStep = 200 * time.Microsecond

// learned waits, in synchronous mode, until a rollout's trajectories have been learned from and the resulting weights
// are emitted. A rollout begins its next trajectories when its blocks come back, and so with the newest weights. A
// successor with separate blocks, as in another process, would not wait for that.
//
// Where a trajectory was lost, the last ones may be too few for a dataset. Then they are learned from together with the successor's.
func (s *replacement) learned(ctx context.Context, o *Outcome) error {
	if !s.old.host.Run.Synchronous || s.old.of.Flow.Envs == 0 || s.old.live.failed() != nil {
		return nil
	}
	left := s.trajectories()
	look := time.NewTicker(learnedStep)
	defer look.Stop()
	still := time.NewTicker(learnedStill)
	defer still.Stop()
	var before movement
	for outstanding(left) {
		select {
		case <-look.C:
		case <-still.C:
			now := s.t.p.running.moves()
			if now == before && !now.learns {
				o.note("%s: what it made last is too little for a dataset, and is learned from with what follows", s.old.name)
				return nil
			}
			before = now
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-s.old.loop.Gone():
			return ErrEnded
		}
	}
	if len(left) > 0 {
		s.t.p.running.catchUp()
	}
	return nil
}

// learnedStill is how long no env step is made and no dataset learned from before the remaining trajectories count as too few for one.
const learnedStill = 5 * time.Second

// movement shows that datasets are on their way.
type movement struct {
	steps, version uint64
	learns         bool // a dataset is learned from
}

func (r *running) moves() movement {
	m := movement{steps: r.stats.Counter("rollout/env_steps").Value(), version: r.PolicyVersion()}
	a := r.now()
	for i := range a.members {
		m.learns = m.learns || outstanding(a.members[i].datasets())
	}
	return m
}

// trajectories returns the arenas of the old instance's trajectories that the new one has not taken.
func (s *replacement) trajectories() (list []*arena.Arena) {
	taken := s.new.host.OwnArenas()
	for name, a := range s.old.host.OwnArenas() {
		if _, ok := a.Schema().(*trajectory.Schema); ok && taken[name] != a {
			list = append(list, a)
		}
	}
	return list
}

// prepareInstances gives the next assembly its members: the instances that stay, and new ones, started and held.
func (t *Transition) prepareInstances(ctx context.Context) error {
	if err := t.plan.fixed(); err != nil {
		return err
	}
	for _, s := range t.plan.assignments {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		x, err := t.fill(ctx, &s)
		if err != nil {
			return err
		}
		t.next.members = append(t.next.members, member{x, s.of, s.index, s.of.InstanceName(s.index)})
	}
	return nil
}

// fill returns the instance of an assignment.
func (t *Transition) fill(ctx context.Context, s *assignment) (*instance, error) {
	switch {
	case s.old == nil:
		x, err := t.make(t.next, s.of, s.index, placement{first: t.p.running.room(s.of.Flow.Envs, nil), task: t.before.task(), published: t.p.running.publishedOf(s.of)})
		if err == nil {
			err = t.inherit(ctx, x, s.of)
		}
		return x, err
	case len(s.why) == 0:
		return s.old.instance, nil
	}
	x, err := t.successor(t.next, s.old, s.of)
	if err != nil {
		return nil, err
	}
	t.swaps = append(t.swaps, &replacement{t: t, of: s.of, old: *s.old, new: x, waits: s.of.Flow.Envs > 0 && t.plan.rewires(s.of.Name)})
	return x, nil
}

// inherit gives a new instance the lasting state of the first running one of its component that has such a state.
func (t *Transition) inherit(ctx context.Context, x *instance, of *graph.Component) error {
	for _, m := range t.before.members {
		if m.of.Name != of.Name {
			continue
		}
		part, ok, err := m.lasting(ctx, nil)
		if err != nil {
			t.p.running.log.Warn("an instance begins without what outlives the episodes of another", "component", x.host.Name, "err", err)
		}
		if ok {
			x.loop.Do(func() { err = x.component.Restore(part) })
			return err
		}
	}
	return nil
}

// successor makes an instance to replace another. Its place in the run is the same.
func (t *Transition) successor(a *assembly, old *member, of *graph.Component) (*instance, error) {
	at := placement{id: old.host.ID, name: old.host.Name, first: old.host.FirstEnv, task: t.before.task(), inherited: map[string]*arena.Arena{},
		abrupt: old.host.Abrupt || old.live.failed() != nil || t.options.Force > 0}
	if of.Flow.Envs > old.instance.envs {
		at.first = t.p.running.room(of.Flow.Envs, old.instance)
	}
	for name, a := range old.host.OwnArenas() {
		at.inherited[name] = a
	}
	return t.make(a, of, old.index, at)
}

// make makes and starts an instance for an assembly. It is held: no message for it is handled yet.
func (t *Transition) make(a *assembly, of *graph.Component, index int, at placement) (*instance, error) {
	at.held, at.watches, at.begun = true, append(t.watching(of.Name), t), t.p.running.again()
	x, err := t.p.add(a, of, index, at)
	if err != nil {
		return nil, startError(err)
	}
	t.made = append(t.made, x)
	if err := t.p.start(x, of); err != nil {
		return nil, startError(fmt.Errorf("%s: %w", of.InstanceName(index), err))
	}
	return x, nil
}

// watching returns the changes whose new versions of a component are watched: an instance made of it now, for another reason, is on
// probation for them too.
func (t *Transition) watching(name string) (list []probation) {
	for _, m := range t.before.members {
		if m.of.Name != name {
			continue
		}
		for _, by := range m.live.proves() {
			if !slices.Contains(list, by) {
				list = append(list, by)
			}
		}
	}
	return list
}

// startError turns an error from making an instance into a ChangeError, unless it is one or is the file's.
func startError(err error) error {
	var problems graph.Problems
	var refused *ChangeError
	if errors.As(err, &problems) || errors.As(err, &refused) {
		return err
	}
	var coded *table.Error
	if errors.As(err, &coded) && coded.Code != "" {
		return &ChangeError{Code: control.Code(coded.Code), Reason: err.Error(), Help: coded.Help, Err: err}
	}
	return &ChangeError{Code: control.CodeFailed, Reason: err.Error(), Err: err}
}

// needEnvs adds the instances that use a changing environment and cannot change to another by themselves.
func (p *plan) needEnvs(next *assembly) {
	for i := range p.assignments {
		s := &p.assignments[i]
		if s.old == nil || len(s.why) > 0 {
			continue
		}
		to := next.Envs[s.of.Env]
		if to == nil || s.old.live.runs() == to {
			continue
		}
		if _, ok := s.old.component.(component.EnvRunner); !ok && !s.old.still() {
			s.because("other environments")
		}
	}
}

// commit pauses the old instance and replaces it by the new one. On an error the old one continues.
func (s *replacement) commit(ctx context.Context, o *Outcome) error {
	forced, err := s.t.halt(ctx, s.old, o)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.t.options.Deadline, refuse(control.CodeLate, "",
		"what %s has made was not learned from within %v; it goes on as before", s.old.name, s.t.options.Deadline))
	defer cancel()
	if s.forced = forced; !forced { // else its process ends once nothing can go wrong with its successor
		s.old.ended(ctx)
	}
	err = s.learned(ctx, o)
	if err == nil {
		err = s.handOver(o)
	}
	if err != nil {
		s.t.resume(s.old.instance, forced)
		return err
	}
	s.done = true
	o.Replaced = append(o.Replaced, s.old.name)
	return nil
}

// endTime is how long a failed instance's process may take to end. Its unfinished messages are known only then.
const endTime = 5 * time.Second

// ended waits until the process of a failed instance has ended.
func (m *member) ended(ctx context.Context) {
	if m.live.failed() != nil {
		m.until(ctx, func() bool { p := m.process(); return p.State == "" || p.State == component.ProcessFailed })
	}
}

// answered waits for the pending answers of a held instance of this process: until then others write into its blocks, which are loaned
// again once it has left.
func (m *member) answered(ctx context.Context) {
	if _, ok := m.component.(component.Asking); ok && m.process().State == "" {
		m.until(ctx, func() bool { return m.waitsFor() <= 0 })
	}
}

// until waits for an event of other goroutines, at most endTime.
func (m *member) until(ctx context.Context, happened func() bool) {
	ctx, cancel := context.WithTimeout(ctx, endTime)
	defer cancel()
	lookUntil(ctx, m.loop.Gone(), happened)
}

// lookUntil looks again and again until something has happened, ctx ends, or gone is closed.
func lookUntil(ctx context.Context, gone <-chan struct{}, happened func() bool) {
	look := time.NewTicker(learnedStep)
	defer look.Stop()
	for !happened() {
		select {
		case <-look.C:
		case <-ctx.Done():
			return
		case <-gone:
			return
		}
	}
}

// waitsFor returns how many answers a held instance has asked for that have not come.
func (m *member) waitsFor() (n int) {
	for _, o := range m.owed() {
		n += max(1, len(strings.Fields(o.Policies)))
	}
	return n - m.answersQueued()
}

// answersQueued returns how many answers wait to be taken by an instance.
func (m *member) answersQueued() (n int) {
	for _, port := range m.of.Manifest.Slots {
		if !component.PayloadOf(port.Payload).Answers {
			continue
		}
		slot := m.host.BoundSlot(port.Name)
		if slot == nil {
			continue
		}
		for _, c := range slot.Connections() {
			stats := c.Stats()
			n += stats.Queued + stats.Parked
		}
	}
	return n
}

// dismiss ends the process of an instance that is taken away as it was, which does not answer.
func (m *member) dismiss() {
	if c, ok := m.component.(component.Remote); ok {
		c.Dismiss(m.live.failed())
		m.ended(context.Background())
	}
}

// handOver gives the new instance the old one's state, messages and arenas. Both are held, so that the steps may run
// on two loops one after the other; where both are on one loop they run together, unseen by its other components.
func (s *replacement) handOver(o *Outcome) (err error) {
	all := func() { err = s.handPieces(o) }
	if s.old.loop == s.new.loop {
		s.old.loop.Do(all)
	} else {
		all()
	}
	return err
}

func (s *replacement) handPieces(o *Outcome) error {
	state, err := s.save(o)
	if err != nil {
		return err
	}
	if err := s.restore(state); err != nil {
		return err
	}
	if err := s.new.live.failed(); err != nil {
		return s.t.state.fault()
	}
	s.new.host.Published = max(s.new.host.Published, s.old.published())
	s.new.host.Abrupt = s.new.host.Abrupt || s.old.live.failed() != nil
	s.new.handed.Store(s.old.handed.Load())
	if s.forced {
		s.old.dismiss()
	}
	waiting := s.reconnect()
	s.old.live.goesBack(waiting)
	s.new.loop.Do(func() {
		s.new.host.TakeOver()
		s.t.p.running.feed(s.new, waiting)
	})
	s.old.live.leave()
	if by, _ := s.new.live.watched(); s.t.options.Probation || len(by) > 1 {
		s.new.live.remember(state, s.new.host.Keeps())
	}
	if !s.waits {
		s.t.begins(s.new)
	}
	return nil
}

// begins lets a new instance run, or stay paused in a paused run.
func (t *Transition) begins(x *instance) {
	if t.still {
		t.p.pauses.joins(x)
	}
	x.host.Receiver.Release()
}

// save returns the state of the old instance, or, if it has failed on probation or cannot be saved and is removed by force, the state
// that it began with; nil if there is none.
func (s *replacement) save(o *Outcome) (state *component.State, err error) {
	if why := s.unfit(); why != "" {
		o.note("%s begins new episodes: %s", s.old.name, why)
		return s.lasting(), nil
	}
	if s.old.live.failed() != nil {
		state = s.old.live.began()
		if state == nil {
			o.note("%s starts without a state: none was saved before the failure", s.old.name)
		}
		return state, nil
	}
	var saved component.State
	s.old.loop.Do(func() { saved, err = s.old.component.Snapshot() })
	switch {
	case errors.Is(err, component.ErrNoSnapshot):
		o.note("%s starts without the state of its predecessor: %v", s.old.name, err)
		return s.lasting(), nil
	case err != nil && s.t.options.Force > 0 && !s.old.learns():
		o.note("%s: its state is lost, for it cannot be saved: %v", s.old.name, err)
		return s.old.live.began(), nil
	case err != nil:
		return nil, &ChangeError{Code: control.CodeFailed, Err: err, Reason: fmt.Sprintf("%s runs on, for it cannot be saved: %v", s.old.name, err)}
	}
	return &saved, nil
}

// lasting returns the state that outlives the episodes of the old instance, for a new one that takes it; nil if there is none.
func (s *replacement) lasting() (state *component.State) {
	from, lasts := s.old.component.(component.Lasting)
	if _, takes := s.new.component.(component.Lasting); !lasts || !takes {
		return nil
	}
	s.old.loop.Do(func() {
		if part, ok := from.Lasting(); ok {
			state = &part
		}
	})
	return state
}

// unfit returns why the new instance cannot continue the episodes of the old one; empty if it can.
func (s *replacement) unfit() string {
	was, is := s.old.of.Flow, s.of.Flow
	switch {
	case is.Envs == 0:
		return ""
	case s.old.live.runs() != s.new.live.runs():
		return "its environments are others"
	case was.Envs != is.Envs:
		return fmt.Sprintf("it has %d environments, not %d", is.Envs, was.Envs)
	case was.Splits != is.Splits:
		return fmt.Sprintf("they are in %d splits, not %d", is.Splits, was.Splits)
	case !maps.Equal(was.Policies, is.Policies) || !maps.Equal(was.Opponents, is.Opponents):
		return "other policies act"
	}
	return ""
}

func (s *replacement) restore(state *component.State) (err error) {
	if state == nil {
		return nil
	}
	s.new.loop.Do(func() { err = s.new.component.Restore(*state) })
	if err != nil {
		return &ChangeError{Code: control.CodeFailed, Err: err, Reason: fmt.Sprintf(
			"%s: the new version does not take the state of the old one, which runs on: %v", s.old.name, err)}
	}
	return nil
}

// reconnect leads all connections of the old instance to and from the new one, and returns the messages that the
// old one has not begun with. Both have the same kind's signals and slots, so possible errors have been checked.
func (s *replacement) reconnect() (waiting []component.Waiting) {
	s.old.loop.Do(func() {
		err := errors.Join(bus.Redirect(s.ways()...), s.moveSignals())
		if err != nil {
			s.t.p.fail(fmt.Errorf("replace %s: %w", s.old.name, err))
		}
		if s.old.live.failed() != nil {
			waiting = s.unanswered()
		} else if pauser, ok := s.old.component.(component.Pauser); ok {
			waiting = pauser.Waiting()
		}
	})
	return waiting
}

// ways leads all messages for the old instance to the new one, also messages pending on disconnected connections.
// Slots that the new one lacks, or that have another payload, are left out: no wire leads there.
func (s *replacement) ways() (ways []bus.Way) {
	draining := s.t.p.running.draining()
	for _, port := range s.old.component.Manifest().Slots {
		slot, to := s.old.host.BoundSlot(port.Name), s.new.host.BoundSlot(port.Name)
		if to == nil || to.Payload() != slot.Payload() {
			continue
		}
		for _, c := range slot.Connections() {
			ways = append(ways, bus.Way{Connection: c, To: to})
		}
		for _, c := range draining {
			if c.Slot() == slot {
				ways = append(ways, bus.Way{Connection: c, To: to})
			}
		}
	}
	return ways
}

// moveSignals makes the new instance send where the old one did, on signals that both have. A connection that has ended
// by then was a tap's, which ends at any time, and nothing is left to move.
func (s *replacement) moveSignals() error {
	manifest := s.new.component.Manifest()
	var errs []error
	for _, port := range s.old.component.Manifest().Signals {
		if i, ok := manifest.Signal(port.Name); !ok || manifest.Signals[i].Payload != port.Payload || manifest.Signals[i].OnLoan != port.OnLoan {
			continue
		}
		from, to := s.old.host.Signal(port.Name), s.new.host.Signal(port.Name)
		to.Continue(from)
		for _, c := range from.Connections() {
			if err := bus.MoveSignal(c, to); !errors.Is(err, bus.ErrDisconnected) {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}

// undo makes the previous version again, from the current one's state, and puts it back. If that fails, the current
// one stays, so that the run continues; the error says so. A version that has failed cannot stay.
func (s *replacement) undo() error {
	now := member{s.new, s.of, s.old.index, s.old.name}
	x, err := s.t.successor(s.t.before, &now, s.old.of)
	if err == nil {
		back := &replacement{t: s.t, of: s.old.of, old: now, new: x}
		err = back.commit(context.Background(), &Outcome{})
	}
	if err == nil {
		s.t.undone[s.old.instance] = x
		return nil
	}
	s.t.undone[s.old.instance] = s.new
	if s.waits {
		s.t.begins(s.new)
	}
	if fault := s.new.live.failed(); fault != nil {
		err = fmt.Errorf("%s has failed and cannot be replaced: %w: %w", s.old.name, fault, err)
		s.t.p.fail(err)
		return err
	}
	s.t.kept = append(s.t.kept, s)
	return fmt.Errorf("the new version of %s runs on, because the previous one could not be brought back: %w", s.old.name, err)
}
