package pipeline

import (
	"fmt"
	"slices"

	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/component"
)

// runningWire is a wire with a connection for each pair of instances.
type runningWire struct {
	wire        *Wire
	connections []*bus.Connection
}

// WireCounters are the counters of one wire, over all instances at its ends. A message is counted in exactly one
// of Delivered, Dropped, Coalesced, Queued and Parked.
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

// connect makes the connections of all wires. In mode queue the instances at the receiving end share the
// messages, in all others each gets its own.
func (p *Pipeline) connect(a *assembly) error {
	byName := map[string][]*instance{}
	for _, x := range a.members {
		byName[x.of.Name] = append(byName[x.of.Name], x.instance)
	}
	for i := range a.graph.Wires {
		w := &runningWire{wire: &a.graph.Wires[i]}
		a.wires = append(a.wires, w)
		for _, from := range byName[w.wire.From] {
			for _, to := range byName[w.wire.To] {
				if err := w.connect(from, to); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (w *runningWire) connect(from, to *instance) error {
	o := bus.Options{Mode: w.wire.Mode, Depth: w.wire.Depth, Overflow: w.wire.OnFull}
	if o.Mode == bus.Reply {
		o.Peer = to.host.ID // who asked is who is answered
	}
	c, err := bus.Connect(from.host.Signal(w.wire.Signal), to.host.BoundSlot(w.wire.Slot), o)
	if err != nil {
		return fmt.Errorf("wire %s: %w", w.wire, err)
	}
	w.connections = append(w.connections, c)
	return nil
}

// String names the wire by its ends.
func (w *Wire) String() string {
	return component.Qualified(w.From, w.Signal) + " → " + component.Qualified(w.To, w.Slot)
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
	sum := WireCounters{Wire: w.wire.String()}
	var last *bus.Signal
	for _, c := range w.connections {
		s := c.Stats()
		sum.Delivered += s.Delivered
		sum.Dropped += s.Dropped
		sum.Coalesced += s.Coalesced
		sum.Blocked += s.Blocked
		sum.Queued += s.Queued
		sum.MaxQueued = max(sum.MaxQueued, s.MaxQueued)
		sum.Depth += c.Options().Depth
		if w.wire.Mode != bus.Queue || c.Signal() != last {
			sum.Parked += s.Parked // in mode queue one number for all of a signal's connections
		}
		last = c.Signal()
	}
	return sum
}
