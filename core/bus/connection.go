package bus

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/rlhost/rlhost/hostabi"
)

// Options configure a connection.
type Options struct {
	Mode     Mode
	Depth    int // messages that may wait for delivery, 1 or more
	Overflow Overflow
	Peer     uint16 // with mode Reply: the component whose requests are answered here
	// Unclaimed is for slots that need only the messages: their blocks are not retained and may be gone. Not with mode
	// Queue, whose connections share pending messages.
	Unclaimed bool
	Share     Share // with mode All
}

// Share is the part of a signal's messages that a connection gets, so that several share them in turn: of each Of messages the one
// whose Sequence is Turn modulo Of. The zero value is all of them.
type Share struct{ Of, Turn int }

// has reports whether a message is in the share.
func (s Share) has(sequence uint64) bool { return s.Of < 2 || sequence%uint64(s.Of) == uint64(s.Turn) }

// ConnectionStats are the counters of a connection. A message that was emitted to it is counted in exactly one
// of Delivered, Dropped, Coalesced, Queued and Parked.
type ConnectionStats struct {
	Delivered uint64 // given to the slot
	Dropped   uint64 // dropped by the overflow policy, DisconnectNow, or a closed loop or receiver
	Coalesced uint64 // replaced by a newer message
	Blocked   uint64 // had to wait for room before they were queued
	Queued    int    // pending for the slot now
	MaxQueued int    // most that were ever pending at once
	Parked    int    // wait for room now, in mode Queue for room at any of the signal's queue connections
}

// outcome is the result of offering a message to a connection.
type outcome uint8

const (
	queued  outcome = iota // queued, or parked until there is room
	full                   // not taken: no room
	dropped                // not taken, and counted as dropped
	refused                // the same, and Emit returns ErrFull
	overrun                // the same, and Emit returns ErrOverrun
	away                   // not taken: disconnected
	dead                   // not taken: the receiving loop or receiver is closed
)

// lost reports whether a connection did not take the message and counts it as dropped.
func (o outcome) lost() bool { return o != queued && o != away }

// line is how many bytes the hardware fetches at once.
const line = 128

// Connection carries messages from one signal to one slot. Both may be changed: see Redirect and MoveSignal.
//
// Messages are queued in the receiving loop's data lane, and the connection only counts them. Where a newer
// message may replace an undelivered one (DropOldest, Coalesce, Latest), they are queued in the connection's
// mailbox instead, and the loop's lane holds an empty message for each.
type Connection struct {
	options Options
	mailbox bool // see above; never changes
	claimed bool // blocks are retained; never changes
	// slot is guarded by mu. Redirect writes it on the loop of the slot's component, where it is read without mu.
	slot *Slot
	// signal and parking are written by MoveSignal with Signal.mu held. parking is where messages wait for room; nil if
	// they never do.
	signal  atomic.Pointer[Signal]
	parking atomic.Pointer[parking]

	blocked atomic.Uint64 // ConnectionStats.Blocked

	_         [line]byte
	mu        sync.Mutex // guards what follows; taken by emitters, and by the receiver for the mailbox
	pushed    uint64     // messages put in the loop's lane, or in the mailbox
	seen      uint64     // value of taken when pushed last ran into the depth
	evicted   uint64     // messages that left the mailbox for a newer one
	coalesced uint64     // evicted because they were replaced
	rejected  uint64     // messages dropped before they were queued
	max       int
	closed    bool // no new message enters
	box       fifo
	last      hostabi.Message // the newest that was offered
	since     uint64          // last.Sequence when a Redirect led to a slot for which nothing waited

	_ [line]byte
	// taken counts the messages that left the lane or the mailbox for the slot; written by the receiving loop.
	taken atomic.Uint64
	// lost counts the taken messages that were dropped instead of delivered; written by the receiving loop, or by
	// the goroutine that empties the mailbox.
	lost atomic.Uint64
	// discard is set by DisconnectNow: what the receiving loop takes is dropped.
	discard atomic.Bool
}

// Connect makes every message of sig that o.Mode selects reach slot. Payload types must be equal. It may be called
// at any time, from any goroutine, also while the loops of both components run; messages emitted before it returns
// may or may not reach the slot. In mode Latest the slot gets the newest message emitted so far at once, if its
// block is still valid.
func Connect(sig *Signal, slot *Slot, o Options) (*Connection, error) {
	if err := check(sig, slot, o); err != nil {
		return nil, err
	}
	if o.Mode == Latest {
		o.Depth, o.Overflow = 1, Coalesce
	}
	c := newConnection(sig, slot, o)
	sig.mu.Lock()
	if err := sig.route(c, nil); err != nil {
		sig.mu.Unlock()
		return nil, err
	}
	slot.add(c)
	var orphans fifo
	if p := c.parking.Load(); p != nil {
		orphans = p.attach(c)
	}
	sig.mu.Unlock()
	c.abandon(&orphans)
	c.beginWithNewest()
	return c, nil
}

func newConnection(sig *Signal, slot *Slot, o Options) *Connection {
	c := &Connection{slot: slot, options: o, claimed: sig.retainer != nil && !o.Unclaimed}
	c.mailbox = o.Overflow == DropOldest || o.Overflow == Coalesce
	c.signal.Store(sig)
	switch {
	case o.Mode == Queue:
		c.parking.Store(&sig.queue)
	case o.Overflow == Block:
		c.parking.Store(&parking{owner: sig.owner})
	}
	return c
}

func check(sig *Signal, slot *Slot, o Options) error {
	fail := func(format string, args ...any) error {
		return fmt.Errorf("connect signal %q to slot %q: %w", sig.name, slot.name, fmt.Errorf(format, args...))
	}
	if sig.payload != slot.payload {
		return fail("payload types differ: %q and %q", sig.payload, slot.payload)
	}
	if int(o.Mode) >= len(modes) {
		return fail("unknown %v", o.Mode)
	}
	if int(o.Overflow) >= len(overflows) {
		return fail("unknown %v", o.Overflow)
	}
	if o.Mode == Queue && o.Unclaimed {
		return fail("messages of a queue cannot be unclaimed")
	}
	if s := o.Share; s != (Share{}) && (o.Mode != All || s.Turn < 0 || s.Turn >= s.Of) {
		return fail("turn %d of %d with mode %v", s.Turn, s.Of, o.Mode)
	}
	if o.Depth < 1 {
		return fail("depth is %d, must be 1 or more", o.Depth)
	}
	return nil
}

// Signal returns the signal that the connection comes from; after MoveSignal, the new one.
func (c *Connection) Signal() *Signal { return c.signal.Load() }

// Slot returns the slot that the connection goes to.
func (c *Connection) Slot() *Slot {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.slot
}

// Options returns the options given to Connect, for mode Latest with the depth and policy that it implies.
func (c *Connection) Options() Options { return c.options }

// Disconnect ends the connection: once it has returned, no new message enters. Pending messages are still
// delivered, including parked ones. It may be called at any time, from any goroutine, and more than once.
func (c *Connection) Disconnect() { c.disconnect(false) }

// DisconnectNow is Disconnect, but pending messages are dropped, counted and their blocks released: at once
// if they are parked or in a mailbox, else when the receiving loop reaches them or is closed.
func (c *Connection) DisconnectNow() { c.disconnect(true) }

func (c *Connection) disconnect(now bool) {
	sig := c.lockSignal()
	sig.unroute(c)
	var emptied fifo
	c.mu.Lock()
	c.closed = true
	if now {
		c.discard.Store(true)
		emptied, c.box = c.box, fifo{}
		if c.mailbox {
			c.taken.Add(uint64(emptied.Len()))
		}
	}
	c.slot.remove(c)
	c.mu.Unlock()
	sig.mu.Unlock()
	for emptied.Len() > 0 {
		c.lose(emptied.Pop().Handle)
	}
	if p := c.parking.Load(); p != nil {
		p.detach(c, now)
	}
}

// lockSignal locks and returns the connection's signal.
func (c *Connection) lockSignal() *Signal {
	for {
		s := c.signal.Load()
		s.mu.Lock()
		if c.signal.Load() == s {
			return s
		}
		s.mu.Unlock()
	}
}

// Stats returns the connection's counters, each exact, and consistent with each other while nothing moves.
func (c *Connection) Stats() ConnectionStats {
	parked := 0
	if p := c.parking.Load(); p != nil {
		parked = p.len()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	lost := c.lost.Load()
	taken := c.taken.Load()
	return ConnectionStats{
		Delivered: taken - min(lost, taken),
		Dropped:   c.rejected + (c.evicted - c.coalesced) + lost,
		Coalesced: c.coalesced,
		Blocked:   c.blocked.Load(),
		Queued:    int(c.pushed - c.evicted - taken),
		MaxQueued: c.max,
		Parked:    parked,
	}
}

// Unparked returns a channel that is closed as soon as no message waits for room, which is at once if none does. A
// connection that has been moved to another signal since may have parked messages again: look at Stats.
func (c *Connection) Unparked() <-chan struct{} {
	if p := c.parking.Load(); p != nil {
		return p.whenEmpty()
	}
	none := make(chan struct{})
	close(none)
	return none
}

// emit sends m on this connection alone.
func (c *Connection) emit(m *hostabi.Message) (outcome, error) {
	if err := c.retain(m.Handle); err != nil {
		return dropped, err
	}
	o := c.offer(m)
	if o == queued {
		return o, nil
	}
	if o.lost() {
		c.drop(m.Handle)
	} else {
		c.release(m.Handle)
	}
	return o, c.signal.Load().failure(o)
}

// offer queues m or applies the overflow policy. It returns neither full nor dead.
func (c *Connection) offer(m *hostabi.Message) outcome {
	if c.mailbox {
		return c.replace(m)
	}
	blocks := c.options.Overflow == Block
	if blocks && c.parking.Load().active.Load() {
		return c.park(m) // after the pending ones
	}
	o := c.push(m, false)
	switch {
	case o == queued:
		return o
	case o == full && blocks:
		return c.park(m)
	}
	return c.overflow(o)
}

// park lets m wait for room.
func (c *Connection) park(m *hostabi.Message) outcome {
	for {
		p := c.parking.Load()
		if o := p.add(c, m); o != away || c.parking.Load() == p {
			return o
		}
	}
}

// overflow counts a message that push did not take.
func (c *Connection) overflow(o outcome) outcome {
	if o == queued || o == away {
		return o
	}
	c.reject(1)
	if o == full && c.options.Overflow == Fail {
		return refused
	}
	return dropped
}

func (c *Connection) reject(n int) {
	c.mu.Lock()
	c.rejected += uint64(n)
	c.mu.Unlock()
}

// push queues m if there is room. parked is true for messages that were emitted before a disconnection.
func (c *Connection) push(m *hostabi.Message, parked bool) outcome {
	c.mu.Lock()
	if c.closed && !parked {
		c.mu.Unlock()
		return away
	}
	if m.Sequence > c.last.Sequence {
		c.last = *m
	}
	if c.pushed-c.evicted-c.seen >= uint64(c.options.Depth) {
		c.seen = c.taken.Load()
		if c.pushed-c.evicted-c.seen >= uint64(c.options.Depth) {
			c.mu.Unlock()
			return full
		}
	}
	o := c.enqueue(m)
	c.mu.Unlock()
	return o
}

// enqueue, with mu held and room made, queues m.
func (c *Connection) enqueue(m *hostabi.Message) outcome {
	if c.mailbox {
		*c.box.Push() = *m
		m = &hostabi.Message{}
	}
	if !c.slot.receiver.PostTo((*delivery)(c), m) {
		if c.mailbox {
			c.box.Unpush()
		}
		return dead
	}
	c.pushed++
	if n := c.pushed - c.evicted - c.seen; n > uint64(c.max) {
		// seen may be old: look before the maximum is raised. The receiver's line is read no more often.
		c.seen = c.taken.Load()
		c.max = max(c.max, int(c.pushed-c.evicted-c.seen))
	}
	return queued
}

// replace queues m in the mailbox; when that is full, an undelivered message is evicted. In mode Latest m itself is if
// a newer one was emitted at the same time and came first.
func (c *Connection) replace(m *hostabi.Message) outcome {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return away
	}
	var old hostabi.Handle
	o := queued
	switch {
	case c.options.Mode == Latest && m.Sequence <= c.last.Sequence:
		old = m.Handle
		c.evict()
		c.coalesced++
	case c.box.Len() < c.options.Depth:
		o = c.enqueue(m)
	case c.options.Overflow == DropOldest:
		old = c.box.Pop().Handle
		*c.box.Push() = *m
		c.evict()
	default:
		old = c.coalesce(m)
	}
	if m.Sequence > c.last.Sequence {
		c.last = *m
	}
	c.mu.Unlock()
	c.drop(old)
	return c.overflow(o)
}

// coalesce puts m in place of the newest message in the mailbox and returns that message's block. The caller
// must hold mu.
func (c *Connection) coalesce(m *hostabi.Message) (old hostabi.Handle) {
	newest := c.box.Newest()
	old = newest.Handle
	*newest = *m
	c.evict()
	c.coalesced++
	return old
}

// evict counts a message that was queued at the cost of another. The caller must hold mu.
func (c *Connection) evict() {
	c.pushed++
	c.evicted++
}

// lose drops a message that was taken.
func (c *Connection) lose(h hostabi.Handle) {
	c.lost.Add(1)
	c.drop(h)
}

// drop releases the block of a message that is counted as dropped or coalesced.
func (c *Connection) drop(h hostabi.Handle) {
	if c.claimed {
		s := c.signal.Load()
		s.tellLoss(h)
		s.release(h)
	}
}

// retain claims a block for one delivery, unless the connection's messages are unclaimed.
func (c *Connection) retain(h hostabi.Handle) error {
	if !c.claimed {
		return nil
	}
	return c.signal.Load().retain(h)
}

func (c *Connection) release(h hostabi.Handle) {
	if c.claimed {
		c.signal.Load().release(h)
	}
}
