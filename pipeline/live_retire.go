package pipeline

import (
	"errors"
	"slices"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/pipeline/graph"
)

// retire takes an instance off its loop and stops it. heir is who took its place, if somebody did. The arenas that the
// heir has not taken are removed when their last claim is gone.
func (p *Pipeline) retire(x, heir *instance) error {
	x.live.leave()
	x.host.Receiver.Close()
	err := p.stop(x)
	p.leaveLoop(x.loop)
	var kept map[string]*arena.Arena
	if heir != nil {
		kept = heir.host.OwnArenas()
	}
	p.abandon(x, kept)
	return err
}

// discard takes back an instance that never ran.
func (p *Pipeline) discard(x *instance) error {
	x.host.Receiver.Close()
	err := p.stop(x)
	p.leaveLoop(x.loop)
	p.abandon(x, x.host.Inherited)
	return err
}

// abandon removes the arenas of an instance but those that somebody has taken, at once or when that can be.
func (p *Pipeline) abandon(x *instance, kept map[string]*arena.Arena) {
	if !x.started() {
		return
	}
	p.mu.Lock()
	for name, a := range x.host.OwnArenas() {
		if kept[name] != a {
			p.leftover = append(p.leftover, a)
		}
	}
	p.mu.Unlock()
	p.tidy()
}

// tidy removes arenas that nobody owns and nobody holds any more, and forgets wires that have delivered everything.
func (p *Pipeline) tidy() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.leftover = slices.DeleteFunc(p.leftover, func(a *arena.Arena) bool {
		return !errors.Is(p.arenas.Remove(a.ID()), arena.ErrOpen)
	})
	p.retired = slices.DeleteFunc(p.retired, func(l *ledger) bool { return len(l.waiting()) == 0 })
}

// started reports whether the instance has ports.
func (x *instance) started() bool { return x.bound.Load() }

// finish lets go of what runs no more, once everything has been changed.
func (t *Transition) finish(o *Outcome) {
	t.p.mu.Lock()
	for _, w := range t.before.wires {
		if t.next.wire(w.wire) == nil {
			t.p.retired = append(t.p.retired, w.ledger)
		}
	}
	t.p.mu.Unlock()
	for _, m := range t.plan.ended {
		t.leave(m, o)
	}
	for _, s := range t.swaps {
		if err := t.p.retire(s.old.instance, s.new); err != nil {
			o.note("%v", err)
		}
	}
	t.p.tidy()
}

// takeBack undoes what a commit has changed, in reverse order. The error tells what could not be undone.
func (t *Transition) takeBack() error {
	var errs []error
	for _, undo := range slices.Backward(t.undo) {
		errs = append(errs, undo())
	}
	t.undo = nil
	if len(t.undone) > 0 || len(t.relinked) > 0 {
		again := t.restored()
		t.p.state.Store(again)
		t.p.retap(again) // those that came meanwhile hear instances that are no more
	}
	return errors.Join(errs...)
}

// restored is the assembly of before, with the instances and connections that are in their places now.
func (t *Transition) restored() *assembly {
	a := *t.before
	now := func(x *instance) *instance {
		if heir := t.undone[x]; heir != nil {
			return heir
		}
		return x
	}
	a.members = slices.Clone(a.members)
	a.graph = t.restoredGraph()
	for i := range a.members {
		a.members[i].of = a.graph.Component(a.members[i].of.Name)
		a.members[i].instance = now(a.members[i].instance)
		a.members[i].joining.Store(nil)
	}
	a.wires = slices.Clone(a.wires)
	for i, w := range a.wires {
		again := &runningWire{wire: w.wire, ledger: w.ledger}
		for _, l := range w.links {
			c := l.Connection
			if t.relinked[c] != nil {
				c = t.relinked[c]
			}
			again.links = append(again.links, pairing{c, now(l.from), now(l.to)})
		}
		a.wires[i] = again
	}
	return &a
}

// restoredGraph is the graph of before, with the components of the next one that could not be taken back.
func (t *Transition) restoredGraph() *graph.Graph {
	if len(t.kept) == 0 {
		return t.before.graph
	}
	g := *t.before.graph
	g.Components, g.Policies = slices.Clone(g.Components), slices.Clone(g.Policies)
	for _, s := range t.kept {
		x := g.Component(s.of.Name)
		count := x.Count
		*x = *s.of
		x.Count = count
		if p := g.Policy(s.of.Policy); p != nil {
			*p = *t.next.graph.Policy(s.of.Policy)
		}
	}
	return &g
}
