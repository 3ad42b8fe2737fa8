package pipeline

import (
	"context"
	"slices"

	"github.com/rlhost/rlhost/core/bus"
)

// rewiring is the change of the connections that one instance sends on.
type rewiring struct {
	t    *Transition
	from *instance
	cut  []rewiredLink
	make []rewiredLink
}

// rewiredLink is a pairing with its wire.
type rewiredLink struct {
	pairing
	wire *runningWire
}

// rewire gives the next assembly its wires: connections that stay, new ones, and replacements where mode, depth or
// policy change. Each instance sends nothing between the end of one connection and the beginning of its
// replacement. Messages for ending instances stay pending there, see leave.
func (t *Transition) rewire(ctx context.Context) error {
	work := map[*instance]*rewiring{}
	kept := map[*bus.Connection]bool{}
	for i := range t.plan.wires {
		w := &t.plan.wires[i]
		next := &runningWire{wire: w.wire, totals: &totals{}}
		if w.old != nil {
			next.totals = w.old.totals
		}
		for _, pair := range pairsOf(next.wire, t.next.members) {
			if old := t.linkOf(w.old, pair); old != nil && w.same && old.share == pair.share && old.leads(w.wire) {
				next.links = append(next.links, *old)
				kept[old.Connection] = true
				continue
			}
			x := workOf(t, work, pair.from)
			x.make = append(x.make, rewiredLink{pair, next})
		}
		t.next.wires = append(t.next.wires, next)
	}
	for _, w := range t.before.wires {
		for _, l := range w.links {
			if !kept[l.Connection] {
				l.from, l.to = t.successorOf(l.from), t.successorOf(l.to)
				x := workOf(t, work, l.from)
				x.cut = append(x.cut, rewiredLink{l, w})
			}
		}
	}
	return t.exchange(ctx, work)
}

func workOf(t *Transition, work map[*instance]*rewiring, from *instance) *rewiring {
	if work[from] == nil {
		work[from] = &rewiring{t: t, from: from}
	}
	return work[from]
}

// exchange makes all exchanges, starting with any that may have to wait for parked messages.
func (t *Transition) exchange(ctx context.Context, work map[*instance]*rewiring) error {
	for _, x := range work {
		for _, l := range x.cut {
			if err := drained(ctx, l.pairing); err != nil {
				return err
			}
		}
	}
	for _, m := range slices.Concat(t.next.members, t.plan.ended) {
		x := work[m.instance]
		if x == nil {
			continue
		}
		var err error
		x.from.loop.Do(func() { err = x.exchange() })
		if err != nil {
			return err
		}
	}
	return nil
}

// exchange runs while no slot of the sending instance does.
func (x *rewiring) exchange() error {
	for _, l := range x.cut {
		l.wire.retire(l.Connection)
		x.t.undo = append(x.t.undo, func() error {
			again, err := connect(l.wire.wire, l.pairing)
			x.t.relinked[l.Connection] = again.Connection
			return err
		})
	}
	for _, l := range x.make {
		made, err := connect(l.wire.wire, l.pairing)
		if err != nil {
			return err
		}
		l.wire.links = append(l.wire.links, made)
		x.t.undo = append(x.t.undo, func() error { l.wire.retire(made.Connection); return nil })
	}
	return nil
}

// successorOf returns the instance that has x's place now.
func (t *Transition) successorOf(x *instance) *instance {
	for _, s := range t.swaps {
		if s.old.instance == x && s.done {
			return s.new
		}
	}
	return x
}

// linkOf returns the running connection of a pair.
func (t *Transition) linkOf(w *runningWire, pair pairing) *pairing {
	if w == nil {
		return nil
	}
	i := slices.IndexFunc(w.links, func(l pairing) bool { return t.successorOf(l.from) == pair.from && t.successorOf(l.to) == pair.to })
	if i < 0 {
		return nil
	}
	return &pairing{w.links[i].Connection, pair.from, pair.to, w.links[i].share}
}
