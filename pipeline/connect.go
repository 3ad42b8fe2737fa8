package pipeline

import (
	"fmt"
	"slices"
	"sync"

	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/pipeline/graph"
)

// runningWire is a wire with a connection for each pair of instances. It is not changed once it runs, but for what
// the ledger keeps.
type runningWire struct {
	wire  *graph.Wire
	links []pairing
	*ledger
}

// pairing is a connection between two instances.
type pairing struct {
	*bus.Connection
	from, to *instance
}

// ledger keeps the counters of connections that a wire had before: all that it ever did stays counted.
type ledger struct {
	mu       sync.Mutex
	past     WireCounters
	draining []*bus.Connection // disconnected, and still delivering
}

// WireCounters are the counters of one wire, over all instances at its ends, also those that have been replaced. A
// message is counted in exactly one of Delivered, Dropped, Coalesced, Queued and Parked.
type WireCounters struct {
	Wire      string // "rollout.trajectories → batcher.on_trajectories"
	Delivered uint64 // given to a slot
	Dropped   uint64 // lost to the overflow policy
	Coalesced uint64 // replaced by a newer message
	Blocked   uint64 // had to wait for room
	Queued    int    // wait for their slot now
	MaxQueued int    // most that ever waited on one connection
	Parked    int    // wait for room now
	Depth     int    // room in total
}

// connect makes the connections of all wires of a pipeline that is being built.
func (p *Pipeline) connect(a *assembly) error {
	for i := range a.graph.Wires {
		w := &runningWire{wire: &a.graph.Wires[i], ledger: &ledger{}}
		a.wires = append(a.wires, w)
		for _, pair := range pairsOf(w.wire, a.members) {
			l, err := connect(w.wire, pair.from, pair.to)
			if err != nil {
				return err
			}
			w.links = append(w.links, l)
		}
	}
	return nil
}

// pairsOf returns the instances that a wire connects. In mode queue those at the receiving end share the messages, in
// all others each gets its own.
func pairsOf(w *graph.Wire, members []member) []pairing {
	var list []pairing
	for _, from := range members {
		if from.of.Name != w.From {
			continue
		}
		for _, to := range members {
			if to.of.Name == w.To {
				list = append(list, pairing{from: from.instance, to: to.instance})
			}
		}
	}
	return list
}

func connect(w *graph.Wire, from, to *instance) (pairing, error) {
	o := bus.Options{Mode: w.Mode, Depth: w.Depth, Overflow: w.OnFull}
	if o.Mode == bus.Reply {
		o.Peer = to.host.ID // who asked is who is answered
	}
	c, err := bus.Connect(from.host.Signal(w.Signal), to.host.BoundSlot(w.Slot), o)
	if err != nil {
		return pairing{}, fmt.Errorf("wire %s: %w", w, err)
	}
	return pairing{c, from, to}, nil
}

// Counters returns the counters of all wires, in the order of the graph. It may be called at any time; after Run
// they are those of its end.
func (p *Pipeline) Counters() []WireCounters {
	if last := p.ending.counters.Load(); last != nil {
		return slices.Clone(*last)
	}
	return p.readCounters()
}

func (p *Pipeline) readCounters() []WireCounters {
	wires := p.now().wires
	list := make([]WireCounters, len(wires))
	for i, w := range wires {
		list[i] = w.counters()
	}
	return list
}

func (w *runningWire) counters() WireCounters {
	sum := w.before()
	sum.Wire = w.wire.String()
	var last *bus.Signal
	for _, l := range w.links {
		sum.add(l.Stats(), w.wire.Mode != bus.Queue || l.Signal() != last)
		sum.Depth += l.Options().Depth
		last = l.Signal()
	}
	return sum
}

// add adds the counters of one connection. In mode queue the parked messages are one number for all of a signal's
// connections.
func (c *WireCounters) add(s bus.ConnectionStats, parked bool) {
	c.Delivered += s.Delivered
	c.Dropped += s.Dropped
	c.Coalesced += s.Coalesced
	c.Blocked += s.Blocked
	c.Queued += s.Queued
	c.MaxQueued = max(c.MaxQueued, s.MaxQueued)
	if parked {
		c.Parked += s.Parked
	}
}

// before returns what connections of before have done, and settles the accounts of those that have nothing left.
func (l *ledger) before() WireCounters {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.draining = slices.DeleteFunc(l.draining, func(c *bus.Connection) bool {
		s := c.Stats()
		over := s.Queued == 0 && (s.Parked == 0 || c.Options().Mode == bus.Queue)
		if over {
			l.past.add(s, false)
		}
		return over
	})
	sum := l.past
	for _, c := range l.draining {
		sum.add(c.Stats(), c.Options().Mode != bus.Queue)
	}
	return sum
}

// retire disconnects a connection: what waits is still delivered.
func (l *ledger) retire(c *bus.Connection) {
	c.Disconnect()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.draining = append(l.draining, c)
}

// waiting returns the disconnected connections that may still deliver something.
func (l *ledger) waiting() []*bus.Connection {
	l.before()
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.draining)
}
