package pipeline

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/control"
)

// Settle ends the probation: the previous version lets go of what it holds. Its plugin stays loaded, for a way back.
// It is to be called once for each Commit that succeeded; a later one that changes the same things settles as well.
// false means that a new version has failed before: then nothing has been settled, and Fell is called, or was.
func (t *Transition) Settle() bool {
	_, leave, err := t.p.life.join(t.p.life.ctx)
	if err != nil {
		return true // the end of the run lets go of everything
	}
	defer leave()
	return t.settle()
}

func (t *Transition) settle() bool {
	if t.trust() != nil {
		return false
	}
	if t.advance(committed, settled) != nil {
		return true // it was before
	}
	for _, s := range t.envs {
		s.x.loop.Do(s.settle)
	}
	for _, x := range t.made {
		x.live.settle(t)
	}
	if err := t.p.collect(); err != nil {
		t.p.log.Warn("closing what ran before", "err", err)
	}
	return true
}

// settle ends the probation of an instance.
func (l *liveness) settle(t *Transition) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.watch == t {
		l.watch, l.state = nil, nil
	}
}

// Close gives up a change that was not committed, and releases what was made for it.
func (t *Transition) Close() error {
	_, leave, err := t.p.life.join(t.p.life.ctx)
	if err != nil {
		return nil // the end of the run closes it
	}
	defer leave()
	return t.giveUp()
}

func (t *Transition) giveUp() error {
	if t.advance(prepared, closed) != nil {
		return nil
	}
	return t.release()
}

// release takes back what was made for a change that will not be.
func (t *Transition) release() error {
	t.mu.Lock()
	t.stage = closed
	t.mu.Unlock()
	errs := []error{t.cancelEnvs()}
	members := map[*instance]bool{}
	for _, m := range t.p.now().members {
		members[m.instance] = true
	}
	heirs := map[*instance]*instance{} // of those that ran meanwhile
	for _, s := range t.swaps {
		if s.done {
			heirs[s.old.instance], heirs[s.new] = s.new, t.undone[s.old.instance]
		}
	}
	for _, x := range t.made {
		if members[x] {
			x.live.settle(t)
		} else if heir := heirs[x]; heir != nil {
			errs = append(errs, t.p.retire(x, heir))
		} else {
			errs = append(errs, t.p.discard(x))
		}
	}
	for _, s := range t.swaps {
		if s.done && !members[s.old.instance] {
			errs = append(errs, t.p.retire(s.old.instance, s.new))
		}
	}
	t.p.life.finish(t)
	return errors.Join(append(errs, t.p.collect())...)
}

// falls notes a fault of a new version, and reports whether the one before takes its place for it: everywhere, or,
// once new versions are trusted, nowhere. Commit gives up at such a fault.
func (t *Transition) falls(name string, fault error) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err == nil && !t.trusted {
		t.faulty, t.err = name, fault
		close(t.broken)
	}
	return t.err != nil
}

// trust makes faults from here on those of any component. The error is that of one before.
func (t *Transition) trust() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.trusted = t.err == nil
	return t.failure()
}

// fault returns why the change cannot be completed.
func (t *Transition) fault() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.failure()
}

// failure is fault for who has the lock.
func (t *Transition) failure() error {
	if t.err == nil {
		return nil
	}
	return &ChangeError{Code: control.CodeFell, Err: t.err,
		Reason: fmt.Sprintf("%s failed while it took over: %v; the previous version runs", t.faulty, t.err)}
}

// tell calls Fell once, if the change is complete and a new version has failed.
func (t *Transition) tell() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err == nil || t.told || t.stage != committed {
		return
	}
	_, leave, err := t.p.life.join(t.p.life.ctx)
	if err != nil {
		return
	}
	t.told = true
	name, fault := t.faulty, t.err
	go func() {
		defer leave()
		for _, s := range t.envs {
			s.x.loop.Do(s.cancel)
		}
		if t.options.Fell != nil {
			t.options.Fell(name, fault)
		}
	}()
}

// stopFor is Host.Stop. One who is to take another's place may find that the run is to end, as by a rule that it brings:
// then that change is made first.
func (p *Pipeline) stopFor(x *instance, reason component.StopReason) {
	if t, _ := x.live.watched(); t == nil || !t.waits(reason) {
		p.Stop(reason)
	}
}

// waits reports whether the run is to end once the change has been made, if it is.
func (t *Transition) waits(reason component.StopReason) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stage > committing {
		return false
	}
	t.ends = cmp.Or(t.ends, reason)
	return true
}

// failed is Host.Failed.
func (p *Pipeline) failed(x *instance, err error) bool {
	t, gone := x.live.watched()
	if gone {
		p.log.Warn("an instance that was replaced failed", "component", x.host.Name, "err", err)
		return true
	}
	if t == nil || p.life.over() != nil || !t.falls(x.host.Name, err) {
		return false
	}
	x.stand(err)
	t.tell()
	return true
}

// watched returns on whose probation the instance is, and whether it has nothing to do with the run any more.
func (l *liveness) watched() (by *Transition, gone bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.watch, l.gone
}

// stand makes an instance that has failed stand still.
func (x *instance) stand(fault error) {
	x.live.mu.Lock()
	defer x.live.mu.Unlock()
	if x.live.fault == nil {
		x.live.fault = fault
		x.host.Receiver.Hold()
	}
}

// leave notes that the instance has nothing to do with the run any more.
func (l *liveness) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gone = true
}

// failed returns why the instance failed, if that was dealt with.
func (l *liveness) failed() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fault
}

// remember keeps the state that an instance began with during its probation.
func (l *liveness) remember(t *Transition, state *component.State) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t.options.Probation {
		l.state = state
	}
}

// install makes the next assembly the one that runs.
func (t *Transition) install(o *Outcome) {
	p := t.p
	p.mu.Lock()
	for name, v := range t.before.plugins {
		if t.next.plugins[name] != v {
			p.previous[name] = v
		}
	}
	p.mu.Unlock()
	for _, s := range t.envs {
		s.x.live.went(s)
	}
	p.state.Store(t.next)
	p.retap(t.next)
	p.stats.Gauge("rollout/envs").Set(float64(t.next.envs()))
	swapped := map[*instance]bool{}
	for _, s := range t.swaps {
		swapped[s.new] = true
	}
	for _, x := range t.made {
		x.joining.Store(nil)
		if !swapped[x] {
			x.host.Receiver.Release()
		}
	}
	if t.next.run != t.before.run {
		p.ending.mu.Lock()
		p.ending.limit(p, t.next.run.Stop.Wall)
		p.ending.mu.Unlock()
	}
	t.finish(o)
	t.undo = nil
	t.mu.Lock()
	t.stage = committed
	ends := t.ends
	t.mu.Unlock()
	p.life.finish(t)
	if t.options.Probation {
		t.tell()
	} else {
		t.settle()
	}
	if ends != "" {
		p.Stop(ends)
	}
}

// collect closes plugins that nobody uses and nobody is to go back to.
func (p *Pipeline) collect() error {
	p.tidy()
	wanted := map[*volume]bool{}
	note := func(a *assembly) {
		if a != nil && a.loaded != nil {
			for _, v := range a.plugins {
				wanted[v] = true
			}
		}
	}
	note(p.now())
	p.life.mu.Lock()
	t := p.life.change
	p.life.mu.Unlock()
	if t != nil {
		t.mu.Lock()
		loading := t.next == nil
		note(t.before)
		note(t.next)
		t.mu.Unlock()
		if loading {
			return nil // it may have found or loaded any; what is left over goes when it is over
		}
	}
	p.mu.Lock()
	for _, v := range p.previous {
		wanted[v] = true
	}
	p.mu.Unlock()
	alive := p.instancesAlive()
	err := p.library.keep(func(v *volume) bool {
		if wanted[v] {
			return true
		}
		for _, x := range alive {
			if x.live.holds(v) {
				return true
			}
		}
		return false
	})
	if err != nil {
		return fmt.Errorf("close plugins: %w", err)
	}
	return nil
}
