package bus

import (
	"slices"
	"sync"

	"github.com/rlhost/rlhost/hostabi"
)

// memory holds the newest message noted, without a claim on its block.
//
// Each connection remembers the newest message that was offered to it, under the lock that an emitter holds anyway; a
// separate lock of the signal would make an Emit a fifth slower (BenchmarkEmit_ToAnotherLoop). The signal remembers
// messages emitted without a connection, and the newest one of each connection that has ended.
type memory struct {
	mu          sync.Mutex
	newest      hostabi.Message // Sequence 0 if there is none
	unconnected uint64          // messages emitted without a connection
}

func (y *memory) noteUnconnected(m *hostabi.Message) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.unconnected++
	y.remember(m)
}

func (y *memory) countUnconnected() uint64 {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.unconnected
}

func (y *memory) note(m *hostabi.Message) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.remember(m)
}

// remember is note for callers that hold mu.
func (y *memory) remember(m *hostabi.Message) {
	if m.Sequence > y.newest.Sequence {
		y.newest = *m
	}
}

// Newest returns the newest message that was emitted, if there was one. Its block is not retained: to read it, take a
// lease, which fails when the block has been reused. A signal that has only a Tap remembers nothing.
func (s *Signal) Newest() (hostabi.Message, bool) {
	s.memory.mu.Lock()
	newest := s.memory.newest
	s.memory.mu.Unlock()
	for _, c := range s.Connections() {
		if m := c.newest(); m.Sequence > newest.Sequence {
			newest = m
		}
	}
	return newest, newest.Sequence > 0
}

func (c *Connection) newest() hostabi.Message {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last
}

// forget clears the connection's newest message, for another signal.
func (c *Connection) forget(into *memory) {
	c.mu.Lock()
	newest := c.last
	c.last, c.since = hostabi.Message{}, 0
	c.mu.Unlock()
	into.note(&newest)
}

// note remembers a message that is parked.
func (c *Connection) note(m *hostabi.Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m.Sequence > c.last.Sequence {
		c.last = *m
	}
}

// Continue makes s continue from's sequence and newest message, unless s is further. Call it before s emits, when
// from's component no longer emits.
func (s *Signal) Continue(from *Signal) {
	own, _ := s.Newest()
	if newest, _ := from.Newest(); newest.Sequence > own.Sequence {
		s.memory.note(&newest)
	}
	for {
		own, other := s.sequence.Load(), from.sequence.Load()
		if own >= other || s.sequence.CompareAndSwap(own, other) {
			break
		}
	}
	s.turn.Store(from.turn.Load())
}

// meanwhile gives m to the connections of mode Latest that were made since the routes were read: they may have looked
// for the newest message before m was remembered.
func (s *Signal) meanwhile(before *routes, m *hostabi.Message) {
	for _, c := range s.routes.Load().each {
		if c.options.Mode == Latest && !slices.Contains(before.each, c) {
			c.begin(m)
		}
	}
}

// beginWithNewest gives a new connection of mode Latest the newest previous message.
func (c *Connection) beginWithNewest() {
	if c.options.Mode != Latest {
		return
	}
	if newest, ok := c.Signal().Newest(); ok {
		c.begin(&newest)
	}
}

// begin gives a connection of mode Latest a message that was emitted before it existed, unless it got a newer one.
func (c *Connection) begin(m *hostabi.Message) {
	if c.retain(m.Handle) != nil {
		return
	}
	var old hostabi.Handle
	c.mu.Lock()
	enters := !c.closed && m.Sequence > c.last.Sequence
	switch {
	case enters && c.box.Len() > 0:
		old = c.coalesce(m)
		c.last = *m
	case enters:
		c.last = *m
		if c.enqueue(m) != queued {
			c.rejected++
			old = m.Handle
		}
	}
	c.mu.Unlock()
	if !enters {
		c.release(m.Handle)
	}
	c.drop(old)
}
