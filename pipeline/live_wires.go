package pipeline

import (
	"context"
	"slices"
	"time"

	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/pipeline/graph"
)

// exchange is what becomes of the connections that one instance sends on.
type exchange struct {
	from *instance
	cut  []wireLink
	make []wireLink
}

// wireLink is a pairing with its wire.
type wireLink struct {
	pairing
	wire *runningWire
}

// rewire gives the next assembly its wires: connections that stay, new ones, and others in the place of those whose
// mode, depth or policy changes. Each instance sends nothing between the end of one connection and the beginning of
// the other. What is on its way to instances that end waits there, see leave.
func (t *Transition) rewire(ctx context.Context) error {
	work := map[*instance]*exchange{}
	kept := map[*bus.Connection]bool{}
	for i := range t.plan.wires {
		w := &t.plan.wires[i]
		next := &runningWire{wire: w.wire, ledger: &ledger{}}
		if w.old != nil {
			next.ledger = w.old.ledger
		}
		for _, pair := range pairsOf(next.wire, t.next.members) {
			if old := t.linkOf(w.old, pair); old != nil && w.same && old.leads(w.wire) {
				next.links = append(next.links, *old)
				kept[old.Connection] = true
				continue
			}
			x := workOf(work, pair.from)
			x.make = append(x.make, wireLink{pair, next})
		}
		t.next.wires = append(t.next.wires, next)
	}
	for _, w := range t.before.wires {
		for _, l := range w.links {
			if !kept[l.Connection] {
				l.from, l.to = t.heirOf(l.from), t.heirOf(l.to)
				x := workOf(work, l.from)
				x.cut = append(x.cut, wireLink{l, w})
			}
		}
	}
	return t.exchange(ctx, work)
}

func workOf(work map[*instance]*exchange, from *instance) *exchange {
	if work[from] == nil {
		work[from] = &exchange{from: from}
	}
	return work[from]
}

// exchange makes all exchanges, those that may have to wait for messages that are parked first.
func (t *Transition) exchange(ctx context.Context, work map[*instance]*exchange) error {
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
		x.from.loop.Do(func() { err = t.exchangeOne(x) })
		if err != nil {
			return err
		}
	}
	return nil
}

// exchangeOne runs while no slot of the sending instance does.
func (t *Transition) exchangeOne(x *exchange) error {
	for _, l := range x.cut {
		l.wire.retire(l.Connection)
		t.undo = append(t.undo, func() error {
			again, err := connect(l.wire.wire, l.from, l.to)
			t.relinked[l.Connection] = again.Connection
			return err
		})
	}
	for _, l := range x.make {
		made, err := connect(l.wire.wire, l.from, l.to)
		if err != nil {
			return err
		}
		l.wire.links = append(l.wire.links, made)
		t.undo = append(t.undo, func() error { l.wire.retire(made.Connection); return nil })
	}
	return nil
}

// heirOf returns who has the place of an instance now.
func (t *Transition) heirOf(x *instance) *instance {
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
	i := slices.IndexFunc(w.links, func(l pairing) bool { return t.heirOf(l.from) == pair.from && t.heirOf(l.to) == pair.to })
	if i < 0 {
		return nil
	}
	return &pairing{w.links[i].Connection, pair.from, pair.to}
}

// leads reports whether the connection is from and to the ports of a wire. It is not where an instance was replaced by
// one with other ports of those names.
func (l *pairing) leads(w *graph.Wire) bool {
	return l.Signal() == l.from.host.Signal(w.Signal) && l.Slot() == l.to.host.BoundSlot(w.Slot)
}

// parkedEvery is how often drained looks. Nothing tells that the last parked message has been let in, and a wire that
// is changed while its receiver is behind is rare.
const parkedEvery = 2 * time.Millisecond

// drained waits until no message is parked at a connection: it would be overtaken on one that takes its place.
func drained(ctx context.Context, l pairing) error {
	if l.Stats().Parked == 0 || l.to.host.Receiver.Held() {
		return nil
	}
	tick := time.NewTicker(parkedEvery)
	defer tick.Stop()
	for l.Stats().Parked > 0 {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-l.to.loop.ended:
			return ErrEnded
		}
	}
	return nil
}
