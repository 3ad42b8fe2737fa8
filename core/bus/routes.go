package bus

import (
	"fmt"
	"slices"

	"github.com/rlhost/rlhost/hostabi"
)

// routes is where a signal's messages go. Once stored it is never changed.
type routes struct {
	each  []*Connection
	queue []*Connection
	reply []*Connection // one to a peer; few, so a list is found in sooner than a map
	tap   func(m hostabi.Message) error
}

// with returns the routes plus c.
func (r routes) with(c *Connection) *routes {
	switch c.options.Mode {
	case Queue:
		r.queue = append(slices.Clone(r.queue), c)
	case Reply:
		r.reply = append(slices.Clone(r.reply), c)
	default:
		r.each = append(slices.Clone(r.each), c)
	}
	return &r
}

// replyTo returns the connection that a peer's replies go to, nil if there is none.
func (r *routes) replyTo(peer uint16) *Connection {
	for _, c := range r.reply {
		if c.options.Peer == peer {
			return c
		}
	}
	return nil
}

// without returns the routes except c.
func (r routes) without(c *Connection) *routes {
	other := func(o *Connection) bool { return o == c }
	switch c.options.Mode {
	case Queue:
		r.queue = slices.DeleteFunc(slices.Clone(r.queue), other)
	case Reply:
		r.reply = slices.DeleteFunc(slices.Clone(r.reply), other)
	default:
		r.each = slices.DeleteFunc(slices.Clone(r.each), other)
	}
	return &r
}

// route makes the signal send to c, continuing from's sequence, if from is not nil. The caller must hold mu.
func (s *Signal) route(c *Connection, from *Signal) error {
	r := s.routes.Load()
	if o := c.options; o.Mode == Reply && r.replyTo(o.Peer) != nil {
		return fmt.Errorf("connect signal %q to slot %q: peer %d is already connected", s.name, c.Slot().name, o.Peer)
	}
	if from != nil {
		s.Continue(from)
		c.forget(&from.memory)
	}
	s.routes.Store(r.with(c))
	return nil
}

// unroute keeps the signal from sending to c. The caller must hold mu.
func (s *Signal) unroute(c *Connection) {
	s.routes.Store(s.routes.Load().without(c))
	newest := c.newest()
	s.memory.note(&newest)
}
