package pipeline

import (
	"context"
	"errors"
	"fmt"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/pipeline/graph"
)

// swapStep is the replacement of one instance by another with the same name, ID and index.
type swapStep struct {
	t    *Transition
	of   *graph.Component
	old  member
	new  *instance
	done bool // the new one runs
}

// prepareInstances gives the next assembly its members: those that stay, and new ones, started and held.
func (t *Transition) prepareInstances(ctx context.Context) error {
	if err := t.plan.fixed(); err != nil {
		return err
	}
	for _, s := range t.plan.seats {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		x, err := t.fill(&s)
		if err != nil {
			return err
		}
		t.next.members = append(t.next.members, member{x, s.of, s.index, s.of.InstanceName(s.index)})
	}
	return nil
}

// fill returns the instance of a seat.
func (t *Transition) fill(s *seat) (*instance, error) {
	switch {
	case s.old == nil:
		return t.make(t.next, s.of, s.index, place{first: t.room(s.of.Flow.Envs, nil), task: t.before.task()})
	case len(s.why) == 0:
		return s.old.instance, nil
	}
	x, err := t.successor(t.next, s.old, s.of)
	if err != nil {
		return nil, err
	}
	t.swaps = append(t.swaps, &swapStep{t: t, of: s.of, old: *s.old, new: x})
	return x, nil
}

// successor makes an instance to replace another. Its place in the run is the same.
func (t *Transition) successor(a *assembly, old *member, of *graph.Component) (*instance, error) {
	at := place{id: old.host.ID, name: old.host.Name, first: old.host.FirstEnv, task: t.before.task(), inherited: map[string]*arena.Arena{}}
	if of.Flow.Envs > old.instance.envs {
		at.first = t.room(of.Flow.Envs, old.instance)
	}
	for name, a := range old.host.OwnArenas() {
		at.inherited[name] = a
	}
	return t.make(a, of, old.index, at)
}

// make makes and starts an instance for an assembly. It is held: nothing that is for it is handled yet.
func (t *Transition) make(a *assembly, of *graph.Component, index int, at place) (*instance, error) {
	at.held, at.watch, at.begun = true, t, t.p.again()
	x, err := t.p.add(a, of, index, at)
	if err != nil {
		return nil, t.blame(of, err)
	}
	t.made = append(t.made, x)
	if err := t.p.start(x, of); err != nil {
		return nil, t.blame(of, fmt.Errorf("%s: %w", of.InstanceName(index), err))
	}
	return x, nil
}

// blame makes an error of one that came up while an instance was made.
func (t *Transition) blame(of *graph.Component, err error) error {
	var problems graph.Problems
	var refused *ChangeError
	if errors.As(err, &problems) || errors.As(err, &refused) {
		return err
	}
	return &ChangeError{Code: control.CodeFailed, Reason: err.Error(), Err: err}
}

// room returns the lowest index with n free environments behind it, beside all that run and all that are to.
func (t *Transition) room(n int, except *instance) int {
	first := 0
	for moved := true; moved; {
		moved = false
		for _, x := range t.p.instancesAlive() {
			from, to := x.host.FirstEnv, x.host.FirstEnv+x.envs
			if x != except && x.envs > 0 && first < to && from < first+n {
				first, moved = to, true
			}
		}
	}
	return first
}

// task returns the newest task of the environments that run.
func (a *assembly) task() uint16 {
	task, first := uint16(0), true
	for _, m := range a.members {
		m.live.mu.Lock()
		if own := m.live.task; m.live.env != nil && (first || int16(own-task) > 0) { // they begin anew after 65,535
			task, first = own, false
		}
		m.live.mu.Unlock()
	}
	return task
}

// needEnvs adds the instances that use an environment which changes and cannot go over by themselves.
func (p *plan) needEnvs(next *assembly) {
	for i := range p.seats {
		s := &p.seats[i]
		if s.old == nil || len(s.why) > 0 {
			continue
		}
		to := next.plugins[s.of.Env]
		if to == nil || s.old.live.runs() == to {
			continue
		}
		if _, ok := s.old.component.(component.EnvRunner); !ok {
			s.because("other environments")
		}
	}
}

// commit brings the old instance to rest and hands its place over to the new one. On an error the old one goes on.
func (s *swapStep) commit(ctx context.Context, o *Outcome) error {
	ctx, cancel := context.WithTimeoutCause(ctx, s.t.options.Deadline, refuse(control.CodeLate, "",
		"%s did not come to rest within %v; it goes on as before", s.old.name, s.t.options.Deadline))
	defer cancel()
	if err := s.old.rest(ctx); err != nil {
		return err
	}
	err := s.learned(ctx)
	s.t.p.stepsOfOthers() // while nobody learns: the successor may count
	if err == nil {
		err = s.handOver(o)
	}
	if err != nil {
		s.old.goOn()
		return err
	}
	s.done = true
	o.Replaced = append(o.Replaced, s.old.name)
	return nil
}

// rest brings an instance to rest and holds it: nothing of it runs any more, and what is for it waits. On an error it
// goes on as if nothing had been asked. One that has failed is held already.
func (x *instance) rest(ctx context.Context) error {
	if x.live.failed() != nil {
		return nil
	}
	r := x.host.Receiver
	rested := make(chan struct{})
	pauser, ok := x.component.(component.Pauser)
	err := x.loop.do(ctx, func() {
		if !ok {
			r.Hold()
			close(rested)
			return
		}
		pauser.Pause(func() {
			r.Hold()
			close(rested)
		})
	})
	if err != nil {
		return err
	}
	select {
	case <-rested:
		return nil
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-x.loop.ended:
		err = ErrEnded
	}
	x.loop.Do(func() {
		select {
		case <-rested:
			r.Release()
		default:
		}
		if ok {
			pauser.Resume()
		}
	})
	return err
}

// goOn ends the rest of an instance.
func (x *instance) goOn() {
	if x.live.failed() != nil {
		return
	}
	x.loop.Do(func() {
		if pauser, ok := x.component.(component.Pauser); ok {
			pauser.Resume()
		}
	})
	x.host.Receiver.Release()
}

// handOver gives the new instance what the old one has. Both are held, so that the pieces may run on two loops one
// after the other; where both are on one loop they run together, and its other components see none of them.
func (s *swapStep) handOver(o *Outcome) (err error) {
	all := func() { err = s.handPieces(o) }
	if s.old.loop == s.new.loop {
		s.old.loop.Do(all)
	} else {
		all()
	}
	return err
}

func (s *swapStep) handPieces(o *Outcome) error {
	state, err := s.save(o)
	if err != nil {
		return err
	}
	if err := s.restore(state); err != nil {
		return err
	}
	if err := s.new.live.failed(); err != nil {
		return s.t.fault()
	}
	s.new.host.Published = max(s.new.host.Published, s.old.published())
	waiting := s.reconnect()
	s.new.loop.Do(func() {
		s.new.host.TakeOver()
		s.t.p.feed(s.new, waiting)
	})
	s.old.live.leave()
	s.new.live.remember(s.t, state)
	s.new.host.Receiver.Release()
	return nil
}

// save returns the state of the old instance, of a failed one that which it was made with. nil is none.
func (s *swapStep) save(o *Outcome) (state *component.State, err error) {
	if why := s.unfit(); why != "" {
		o.note("%s begins new episodes: %s", s.old.name, why)
		return nil, nil
	}
	if s.old.live.failed() != nil {
		s.old.live.mu.Lock()
		defer s.old.live.mu.Unlock()
		if s.old.live.state == nil {
			o.note("%s starts without a state: none was saved before the failure", s.old.name)
		}
		return s.old.live.state, nil
	}
	var saved component.State
	s.old.loop.Do(func() { saved, err = s.old.component.Snapshot() })
	switch {
	case errors.Is(err, component.ErrNoSnapshot):
		o.note("%s starts without the state of its predecessor: %v", s.old.name, err)
		return nil, nil
	case err != nil:
		return nil, &ChangeError{Code: control.CodeFailed, Err: err, Reason: fmt.Sprintf("%s runs on, for it cannot be saved: %v", s.old.name, err)}
	}
	return &saved, nil
}

// unfit tells why the new instance cannot go on with the episodes of the old one; empty if it can.
func (s *swapStep) unfit() string {
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
	}
	return ""
}

func (s *swapStep) restore(state *component.State) (err error) {
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

// published returns the newest policy version that an instance has published.
func (x *instance) published() uint64 {
	newest := x.host.Published
	for _, port := range x.component.Manifest().Signals {
		if m, ok := x.host.Signal(port.Name).Newest(); ok && port.Payload == weightsPayload {
			newest = max(newest, m.PolicyVersion)
		}
	}
	return newest
}

// weightsPayload is what signals carry whose messages publish a policy version.
const weightsPayload = "weights"

// reconnect leads all connections of the old instance to and from the new one, and returns what the old one has not
// begun with. Signals and slots of both are of one kind, so what could fail has been checked.
func (s *swapStep) reconnect() (waiting []component.Waiting) {
	s.old.loop.Do(func() {
		err := errors.Join(bus.Redirect(s.ways()...), s.moveSignals())
		if err != nil {
			s.t.p.fail(fmt.Errorf("replace %s: %w", s.old.name, err))
		}
		if pauser, ok := s.old.component.(component.Pauser); ok && s.old.live.failed() == nil {
			waiting = pauser.Waiting()
		}
	})
	return waiting
}

// ways leads everything that comes for the old instance to the new one, also what still waits on connections that are
// no more. Slots that the new one does not have, or for something else, are left out: no wire leads there.
func (s *swapStep) ways() (ways []bus.Way) {
	draining := s.t.p.draining()
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

// moveSignals makes the new instance send where the old one did, on signals that both have. A connection that is no more
// by then was of a tap: those end at any time, and nothing is left to move.
func (s *swapStep) moveSignals() error {
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

// feed runs the slots of an instance for messages that another one had taken. It runs on the instance's loop.
func (p *Pipeline) feed(x *instance, waiting []component.Waiting) {
	for i := range waiting {
		w := &waiting[i]
		if slot := x.host.BoundSlot(w.Slot); slot != nil {
			slot.Run(&w.Message)
		}
		p.unclaim(w)
	}
}

// unclaim releases what goes with a message.
func (p *Pipeline) unclaim(w *component.Waiting) {
	if !w.Claimed {
		return
	}
	if err := p.arenas.Release(w.Message.Handle); err != nil {
		p.log.Warn("release of a block that was handed over", "block", w.Message.Handle, "err", err)
	}
}

// undo makes the version of before again, from the state that this one has, and gives it the place. If that cannot be
// done, this one keeps it, so that the run goes on; the error says so. One that has failed cannot.
func (s *swapStep) undo() error {
	now := member{s.new, s.of, s.old.index, s.old.name}
	x, err := s.t.successor(s.t.before, &now, s.old.of)
	if err == nil {
		back := &swapStep{t: s.t, of: s.old.of, old: now, new: x}
		err = back.commit(context.Background(), &Outcome{})
	}
	if err == nil {
		s.t.undone[s.old.instance] = x
		return nil
	}
	s.t.undone[s.old.instance] = s.new
	if fault := s.new.live.failed(); fault != nil {
		err = fmt.Errorf("%s has failed and cannot be replaced: %w: %w", s.old.name, fault, err)
		s.t.p.fail(err)
		return err
	}
	s.t.kept = append(s.t.kept, s)
	return fmt.Errorf("the new version of %s runs on, because the previous one could not be brought back: %w", s.old.name, err)
}
