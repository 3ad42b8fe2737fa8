package bus

import (
	"slices"
	"sync"

	"github.com/rlhost/rlhost/core/loop"
	"github.com/rlhost/rlhost/hostabi"
)

// Slot is a function of one component that signals call, one message at a time, on the component's loop.
type Slot struct {
	receiver *loop.Receiver
	name     string
	payload  string
	fn       func(*hostabi.Message)

	mu          sync.Mutex
	connections []*Connection // guarded by mu: without the disconnected
}

// NewSlot returns a slot of r's component. fn's pointer is valid during the call only, and so is the message's
// block unless fn takes a lease. fn must not wait.
func NewSlot(r *loop.Receiver, name, payload string, fn func(*hostabi.Message)) *Slot {
	return &Slot{receiver: r, name: name, payload: payload, fn: fn}
}

// Name returns the slot's name.
func (s *Slot) Name() string { return s.name }

// Payload returns the name of the type of the slot's messages.
func (s *Slot) Payload() string { return s.payload }

// Post queues m for the slot on the control lane, past all connections: for credits and requests. It never
// waits, and no block is retained for it. On a closed loop or receiver it does nothing.
func (s *Slot) Post(m hostabi.Message) { s.receiver.Control(s.fn, m) }

// Run runs the slot's function, on the calling goroutine, which must be its component's loop: for the end of a link to
// another process. m is the function's during the call.
func (s *Slot) Run(m *hostabi.Message) { s.fn(m) }

// Connections returns the slot's current connections.
func (s *Slot) Connections() []*Connection {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.connections)
}

func (s *Slot) add(c *Connection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.connections = append(s.connections, c)
}

func (s *Slot) remove(c *Connection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.connections = slices.DeleteFunc(s.connections, func(o *Connection) bool { return o == c })
}
