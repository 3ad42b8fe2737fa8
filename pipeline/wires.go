package pipeline

import (
	"context"
	"fmt"
	"slices"

	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/pipeline/graph"
)

func (w *runningWire) counters() control.WireStatus {
	sum := w.before()
	sum.Wire, sum.Mode = w.wire.String(), w.wire.Mode.String()
	var last *bus.Signal
	for _, l := range w.links {
		addTo(&sum, l.Stats(), w.wire.Mode != bus.Queue || l.Signal() != last)
		sum.Depth += l.Options().Depth
		last = l.Signal()
	}
	return sum
}

// addTo adds the counters of one connection. In mode queue the parked messages are one number for all of a signal's
// connections.
func addTo(c *control.WireStatus, s bus.ConnectionStats, parked bool) {
	c.Delivered += s.Delivered
	c.Dropped += s.Dropped
	c.Coalesced += s.Coalesced
	c.Blocked += s.Blocked
	c.Queued += s.Queued
	if parked {
		c.Parked += s.Parked
	}
}

// before returns the counters of previous connections, and folds in connections that have delivered everything.
func (l *totals) before() control.WireStatus {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.draining = slices.DeleteFunc(l.draining, func(c *bus.Connection) bool {
		s := c.Stats()
		over := s.Queued == 0 && (s.Parked == 0 || c.Options().Mode == bus.Queue)
		if over {
			addTo(&l.past, s, false)
		}
		return over
	})
	sum := l.past
	for _, c := range l.draining {
		addTo(&sum, c.Stats(), c.Options().Mode != bus.Queue)
	}
	return sum
}

// retire disconnects a connection: pending messages are still delivered.
func (l *totals) retire(c *bus.Connection) {
	c.Disconnect()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.draining = append(l.draining, c)
}

// waiting returns the disconnected connections that may still deliver something.
func (l *totals) waiting() []*bus.Connection {
	l.before()
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.draining)
}

// leads reports whether the connection is from and to the ports of a wire. It is not if an instance was replaced by
// one with other ports of the same names.
func (l *pairing) leads(w *graph.Wire) bool {
	return l.Signal() == l.from.host.Signal(w.Signal) && l.Slot() == l.to.host.BoundSlot(w.Slot)
}

// pairsOf returns the instances that a wire connects: all of one component to all of the other, or each to the one of its number. In mode queue the receiving instances share the messages, and so they do where
// all policies that act get them; else each gets its own.
func pairsOf(w *graph.Wire, members []member) []pairing {
	var list []pairing
	for _, from := range members {
		if from.of.Name != w.From {
			continue
		}
		for _, to := range members {
			if to.of.Name == w.To && (!w.Paired || from.index == to.index) && !apart(w, from.instance, to.instance) {
				list = append(list, pairing{from: from.instance, to: to.instance, share: shareOf(w, &from, &to)})
			}
		}
	}
	return list
}

// shareOf returns which messages of one instance another gets.
func shareOf(w *graph.Wire, from, to *member) bus.Share {
	if !graph.Shared(w, from.of, to.of) {
		return bus.Share{}
	}
	return bus.Share{Of: to.of.Count, Turn: to.index}
}

// connect connects a pair of instances, whose connection is not set yet.
func connect(w *graph.Wire, pair pairing) (pairing, error) {
	from, to := pair.from, pair.to
	o := bus.Options{Mode: w.Mode, Depth: w.Depth, Overflow: w.OnFull, Share: pair.share}
	if o.Mode == bus.Reply {
		o.Peer = to.host.ID // answers go to the requester
	}
	c, err := bus.Connect(from.host.Signal(w.Signal), to.host.BoundSlot(w.Slot), o)
	if err != nil {
		return pairing{}, fmt.Errorf("wire %s: %w", w, err)
	}
	pair.Connection = c
	return pair, nil
}

// drained waits until no message is parked at a connection: it would be overtaken on its replacement.
func drained(ctx context.Context, l pairing) error {
	if l.Stats().Parked == 0 || l.to.host.Receiver.Held() {
		return nil
	}
	for l.Stats().Parked > 0 {
		select {
		case <-l.Unparked():
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-l.to.loop.Gone():
			return ErrEnded
		}
	}
	return nil
}
