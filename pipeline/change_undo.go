package pipeline

import (
	"errors"
	"slices"

	"github.com/rlhost/rlhost/pipeline/graph"
)

// takeBack reverts the changes of a commit, in reverse order. The error lists the ones that could not be reverted.
func (t *Transition) takeBack() error {
	var errs []error
	for _, undo := range slices.Backward(t.undo) {
		errs = append(errs, undo())
	}
	t.undo = nil
	if len(t.undone) > 0 || len(t.relinked) > 0 {
		again := t.restored()
		t.p.running.state.Store(again)
		again.tell(t.p.options.Elsewhere)
		t.p.running.place(again)
		t.p.taps.follow(again) // new taps listen to instances that have ended
	}
	return errors.Join(errs...)
}

// restored is the previous assembly, with the current instances and connections.
func (t *Transition) restored() *assembly {
	a := *t.before
	now := func(x *instance) *instance {
		if successor := t.undone[x]; successor != nil {
			return successor
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
		again := &runningWire{wire: w.wire, totals: w.totals}
		for _, l := range w.links {
			c := l.Connection
			if t.relinked[c] != nil {
				c = t.relinked[c]
			}
			again.links = append(again.links, pairing{c, now(l.from), now(l.to), l.share})
		}
		a.wires[i] = again
	}
	return &a
}

// restoredGraph returns the previous graph with those components of the next one that could not be reverted.
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
