package bus

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/rlhost/rlhost/core/loop"
	"github.com/rlhost/rlhost/hostabi"
)

// ErrFull is returned by Emit when a connection with overflow policy Fail had no room.
var ErrFull = errors.New("connection is full")

// ErrOverrun is returned by Emit when a component keeps emitting to a full Block connection although its data lane
// is paused, and parkingLimit messages wait already. The message is dropped.
var ErrOverrun = errors.New("too many messages wait for a full connection")

// Retainer counts the claims on blocks. The bus calls Retain once for each queued delivery of a message that
// carries a handle, and Release once when that delivery has ended, from any goroutine and with no lock held.
type Retainer interface {
	Retain(h hostabi.Handle) error
	Release(h hostabi.Handle) error
}

// Signal is a named output of one component. Its methods may be called from any goroutine; normally Emit is
// called from slots of the owner.
type Signal struct {
	owner    *loop.Receiver // whose data lane is paused; nil if none
	name     string
	payload  string
	retainer Retainer // nil if handles are not counted
	onLoss   func(h hostabi.Handle)
	onEmit   func(m hostabi.Message) error
	sender   uint16 // of messages that name none

	sequence   atomic.Uint64 // messages emitted
	unreleased atomic.Uint64 // calls of Release that returned an error
	turn       atomic.Uint32 // round robin over the queue connections

	mu     sync.Mutex             // serialises changes of routes
	routes atomic.Pointer[routes] // never changed once stored
	queue  parking                // of the queue connections together
	memory memory                 // newest message that no connection remembers
}

// SignalStats are the counters of a signal.
type SignalStats struct {
	Emitted     uint64 // calls of Emit, continuing the predecessor's after Continue
	Unconnected uint64 // messages emitted without a connection
	Unreleased  uint64 // blocks whose release failed: each is a fault of the code that counts claims
}

// NewSignal returns an unconnected signal of owner's component. payload names the type of its messages. owner may
// be nil for an emitter that is no component: nothing is paused then. r may be nil: handles are not counted then.
func NewSignal(owner *loop.Receiver, name, payload string, r Retainer) *Signal {
	s := &Signal{owner: owner, name: name, payload: payload, retainer: r}
	s.queue.owner = owner
	s.routes.Store(&routes{})
	return s
}

// Name returns the signal's name.
func (s *Signal) Name() string { return s.name }

// Payload returns the name of the type of the signal's messages.
func (s *Signal) Payload() string { return s.payload }

// Stats returns the signal's counters.
func (s *Signal) Stats() SignalStats {
	return SignalStats{
		Emitted:     s.sequence.Load(),
		Unconnected: s.memory.countUnconnected(),
		Unreleased:  s.unreleased.Load(),
	}
}

// OnEmit makes fn get each message before any receiver does; its block is valid during the call. If fn returns an error, the message reaches no
// receiver and Emit returns the error. fn is called on the goroutine that emits, with no lock held. Call OnEmit before the signal emits.
func (s *Signal) OnEmit(fn func(m hostabi.Message) error) { s.onEmit = fn }

// From makes id the Sender of messages that name none. Call it before the signal emits.
func (s *Signal) From(id uint16) { s.sender = id }

// OnLoss makes fn get the block of each message that a connection which claims blocks counts as Dropped or Coalesced, and that of
// each Unconnected one: during the call it is valid. fn is called on any goroutine, with no lock held. Call OnLoss before the
// signal is connected or emits.
func (s *Signal) OnLoss(fn func(h hostabi.Handle)) { s.onLoss = fn }

// Connections returns the signal's current connections.
func (s *Signal) Connections() []*Connection {
	r := s.routes.Load()
	return slices.Concat(r.each, r.queue, r.reply)
}

// Receivers returns how many slots get a message that is emitted now, replies not counted. Each connection counts once; all
// connections in mode Queue count as one, and so do connections that share messages.
func (s *Signal) Receivers() (n int) {
	r := s.routes.Load()
	for _, c := range r.each {
		if c.options.Share.Turn == 0 {
			n++
		}
	}
	return n + min(len(r.queue), 1)
}

// Emit sends m to the connected slots, with Sequence set to the count of this signal's messages, from 1. It
// neither waits nor runs a slot, and allocates only while queues grow. Without a connection the message is
// counted and dropped.
//
// m.Handle, if not 0, must stay valid during the call. Errors: ErrFull (a Fail connection had no room),
// ErrOverrun, or what Retainer.Retain returned; the other connections got the message.
func (s *Signal) Emit(m hostabi.Message) error {
	_, err := s.send(&m)
	return err
}

// Offer is Emit, and reports whether all connected slots get the message, at once or when they have room; false too if
// there is no connection.
func (s *Signal) Offer(m hostabi.Message) (taken bool, err error) { return s.send(&m) }

func (s *Signal) send(m *hostabi.Message) (taken bool, err error) {
	if m.Sender == 0 {
		m.Sender = s.sender
	}
	if s.onEmit != nil {
		if err := s.onEmit(*m); err != nil {
			return false, fmt.Errorf("signal %q: %w", s.name, err)
		}
	}
	m.Sequence = s.sequence.Add(1)
	r := s.routes.Load()
	reached, missed := false, false
	var failed error
	for _, c := range r.each {
		if !c.options.Share.has(m.Sequence) {
			continue
		}
		o, err := c.emit(m)
		reached, missed = reached || o != away, missed || o.lost()
		failed = firstError(failed, err)
	}
	if len(r.queue) > 0 {
		o, err := s.emitQueue(r, m)
		reached, missed = reached || o != away, missed || o.lost()
		failed = firstError(failed, err)
	}
	if c := r.replyTo(m.Sender); c != nil {
		o, err := c.emit(m)
		reached, missed = reached || o != away, missed || o.lost()
		failed = firstError(failed, err)
	}
	if r.tap != nil {
		reached = true
		failed = firstError(failed, r.tap(*m))
	}
	if !reached {
		s.tellLoss(m.Handle)
		s.memory.noteUnconnected(m)
	}
	if s.routes.Load() != r {
		s.meanwhile(r, m)
	}
	return reached && !missed && failed == nil, failed
}

// Tap makes fn get every message, in addition to the connections: by value, on the goroutine that emits it and
// before Emit returns, with its error. It is for the end of a link to another process, which claims the block
// itself and never waits; nil means none.
func (s *Signal) Tap(fn func(m hostabi.Message) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := *s.routes.Load()
	r.tap = fn
	s.routes.Store(&r)
}

func firstError(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

func firstOf(a, b *Connection) *Connection {
	if a != nil {
		return a
	}
	return b
}

// emitQueue gives m to one of the queue connections. If all are disconnected meanwhile, it looks again.
func (s *Signal) emitQueue(r *routes, m *hostabi.Message) (outcome, error) {
	if err := s.retain(m.Handle); err != nil {
		return dropped, err
	}
	o := away
	turn := s.turn.Add(1) - 1
	for len(r.queue) > 0 {
		if o = s.offerInTurn(r.queue, turn, m); o != away {
			break
		}
		before := r
		if r = s.routes.Load(); r == before {
			break
		}
	}
	if o == queued {
		return o, nil
	}
	if o.lost() {
		s.tellLoss(m.Handle)
	}
	s.release(m.Handle)
	return o, s.failure(o)
}

// offerInTurn queues m at the first connection with room, from the one whose turn it is; else the first full
// one decides the outcome.
func (s *Signal) offerInTurn(queue []*Connection, turn uint32, m *hostabi.Message) outcome {
	n := uint32(len(queue))
	var decides, gone *Connection
	for i := range n {
		c := queue[(turn+i)%n]
		if c.options.Overflow == Block && c.parking.Load().active.Load() { // of another signal, while MoveSignal moves c
			if o := c.offer(m); o != away { // pending messages go first
				return o
			}
			continue
		}
		switch c.push(m, false) {
		case queued:
			return queued
		case full:
			decides = firstOf(decides, c)
		case dead:
			gone = firstOf(gone, c)
		}
	}
	if decides = firstOf(decides, gone); decides == nil {
		return away
	}
	return decides.offer(m)
}

// failure turns an outcome other than queued into Emit's error.
func (s *Signal) failure(o outcome) error {
	switch o {
	case refused:
		return fmt.Errorf("signal %q: %w", s.name, ErrFull)
	case overrun:
		return fmt.Errorf("signal %q: %w", s.name, ErrOverrun)
	}
	return nil
}

func (s *Signal) tellLoss(h hostabi.Handle) {
	if h != 0 && s.onLoss != nil {
		s.onLoss(h)
	}
}

func (s *Signal) retain(h hostabi.Handle) error {
	if h == 0 || s.retainer == nil {
		return nil
	}
	if err := s.retainer.Retain(h); err != nil {
		return fmt.Errorf("signal %q: retain %v: %w", s.name, h, err)
	}
	return nil
}

func (s *Signal) release(h hostabi.Handle) {
	if h == 0 || s.retainer == nil {
		return
	}
	if s.retainer.Release(h) != nil {
		s.unreleased.Add(1)
	}
}
