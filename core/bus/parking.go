package bus

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/rlhost/rlhost/core/internal/grow"
	"github.com/rlhost/rlhost/core/loop"
	"github.com/rlhost/rlhost/hostabi"
)

// parkingLimit is how many messages may wait for room: later messages of the slot that ran into a full connection,
// and messages of control slots and timers while the component's data lane is paused.
const parkingLimit = 1 << 16

// fifo holds messages; Block and the depths bound it.
type fifo = grow.FIFO[hostabi.Message]

// parking holds messages while connections with overflow policy Block are full. Each connection has its own,
// except that all queue connections of a signal share one, so that the first with room takes the oldest.
//
// While it is active, the owner's data lane is paused and emitters go through it. It stays active until nothing
// waits and a connection is at most half full: then the owner runs in bursts, not once per message.
//
// A receiver takes a message and then looks at active; an emitter sets active and then looks for room. So one of
// them sees the other, and no message is left waiting while there is room.
type parking struct {
	owner  *loop.Receiver
	active atomic.Bool // written under mu

	mu      sync.Mutex
	waiting fifo
	open    []*Connection // may take messages; after Disconnect only the last one, while messages wait
	emptied chan struct{} // closed once no message waits; nil while no caller waits for that
}

// add queues m at a connection with room, or parks it. c is the connection whose turn it was.
func (p *parking) add(c *Connection, m *hostabi.Message) outcome {
	p.mu.Lock()
	if !slices.ContainsFunc(p.open, (*Connection).isOpen) {
		p.mu.Unlock()
		return away
	}
	if p.waiting.Len() >= parkingLimit {
		p.mu.Unlock()
		c.reject(1)
		return overrun
	}
	c.note(m)
	*p.waiting.Push() = *m
	p.activate()
	orphans := p.settle()
	if p.waiting.Len() > 0 {
		c.blocked.Add(1)
	}
	p.mu.Unlock()
	c.abandon(&orphans)
	return queued
}

// activate pauses the owner. The caller must hold mu.
func (p *parking) activate() {
	if p.active.Load() {
		return
	}
	p.active.Store(true)
	if p.owner != nil {
		p.owner.Pause()
	}
}

// admit queues pending messages after c got room.
func (p *parking) admit(c *Connection) {
	p.mu.Lock()
	orphans := p.settle()
	p.mu.Unlock()
	c.abandon(&orphans)
}

// attach adds a connection and queues pending messages. It returns the messages that the caller must abandon.
func (p *parking) attach(c *Connection) fifo {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open = append(slices.DeleteFunc(p.open, (*Connection).isClosed), c)
	return p.settle()
}

// detach removes a closed connection. If it is the last one and messages wait, it still delivers them, unless
// now is set: then they are dropped.
func (p *parking) detach(c *Connection, now bool) {
	p.mu.Lock()
	if now || len(p.open) > 1 || p.waiting.Len() == 0 {
		p.open = slices.DeleteFunc(p.open, func(o *Connection) bool { return o == c })
	}
	orphans := p.settle()
	p.mu.Unlock()
	c.abandon(&orphans)
}

// whenEmpty returns a channel that is closed once no message waits.
func (p *parking) whenEmpty() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.emptied == nil {
		p.emptied = make(chan struct{})
	}
	emptied := p.emptied
	p.tellEmpty()
	return emptied
}

// tellEmpty wakes the callers that wait until no message waits. The caller must hold mu.
func (p *parking) tellEmpty() {
	if p.emptied != nil && p.waiting.Len() == 0 {
		close(p.emptied)
		p.emptied = nil
	}
}

func (p *parking) len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.waiting.Len()
}

// settle queues what there is room for, and resumes the owner when it may continue. It returns the messages
// that no connection is left to take. The caller must hold mu.
func (p *parking) settle() (orphans fifo) {
	for p.waiting.Len() > 0 && p.letIn() {
	}
	if len(p.open) == 0 {
		orphans, p.waiting = p.waiting, fifo{}
	}
	p.tellEmpty()
	if p.waiting.Len() > 0 || !p.active.Load() {
		return orphans
	}
	p.open = slices.DeleteFunc(p.open, (*Connection).isClosed) // it stayed for pending messages
	if len(p.open) == 0 || slices.ContainsFunc(p.open, (*Connection).isHalfFree) {
		p.active.Store(false)
		if p.owner != nil {
			p.owner.Resume()
		}
	}
	return orphans
}

// letIn queues the oldest pending message at the first connection with room.
func (p *parking) letIn() bool {
	for i := 0; i < len(p.open); {
		switch p.open[i].push(p.waiting.At(0), true) {
		case queued:
			p.waiting.Pop()
			return true
		case dead:
			p.open = slices.Delete(p.open, i, i+1)
		default:
			i++
		}
	}
	return false
}

// abandon drops pending messages that no connection is left to take.
func (c *Connection) abandon(orphans *fifo) {
	if orphans.Len() == 0 {
		return
	}
	c.reject(orphans.Len())
	for orphans.Len() > 0 {
		c.drop(orphans.Pop().Handle)
	}
}

func (c *Connection) isClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

func (c *Connection) isOpen() bool { return !c.isClosed() }

func (c *Connection) isHalfFree() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pushed-c.evicted-c.taken.Load() <= uint64(c.options.Depth)/2
}
