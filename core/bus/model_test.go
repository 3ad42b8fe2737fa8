package bus_test

import (
	"fmt"
	"slices"

	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/hostabi"
)

// model is the bus and its one loop again, naively: slices, no locks, nothing in parallel. Bus and loop must be
// indistinguishable from it when everything runs on one loop.
type model struct {
	reactions
	components []*modelComponent
	signals    []*modelSignal
	conns      []*modelConn
	control    []func()
	data       []*modelConn // one entry for each message in the lane
	ready      []*modelComponent
	held       int
}

type modelComponent struct {
	paused, held int
	backlog      []*modelConn
}

func (c *modelComponent) waits() bool { return c.paused > 0 || c.held > 0 }

type modelSignal struct {
	owner                       *modelComponent
	conns                       []*modelConn
	sequence, turn, unconnected int
	newest                      hostabi.Message
	queue                       *modelParking
}

type modelParking struct {
	owner   *modelComponent
	waiting []hostabi.Message
	open    []*modelConn
	active  bool
}

type modelConn struct {
	number          int
	sig             *modelSignal
	to              *modelComponent
	o               bus.Options
	parking         *modelParking
	queue           []hostabi.Message
	closed, discard bool
	stats           bus.ConnectionStats
}

func newModel(g graph) *model {
	w := &model{reactions: reactions{graph: g}}
	for range g.components {
		w.components = append(w.components, &modelComponent{})
	}
	for _, owner := range g.signals {
		c := w.components[owner]
		w.signals = append(w.signals, &modelSignal{owner: c, queue: &modelParking{owner: c}})
	}
	return w
}

// run does one step of the script and everything that follows from it.
func (w *model) run(step func(world)) {
	w.control = append(w.control, func() { step(w) })
	for {
		now := w.control
		w.control = nil
		for _, f := range now {
			f()
		}
		if !w.one() && len(w.control) == 0 {
			return
		}
	}
}

// one handles one data message.
func (w *model) one() bool {
	for len(w.ready) > 0 {
		c := w.ready[0]
		if !c.waits() && len(c.backlog) > 0 {
			next := c.backlog[0]
			c.backlog = c.backlog[1:]
			w.deliver(next)
			return true
		}
		w.ready = w.ready[1:]
	}
	if len(w.data) == 0 {
		return false
	}
	next := w.data[0]
	w.data = w.data[1:]
	if next.to.waits() || len(next.to.backlog) > 0 {
		next.to.backlog = append(next.to.backlog, next)
		return true
	}
	w.deliver(next)
	return true
}

func (w *model) deliver(c *modelConn) {
	if len(c.queue) == 0 {
		return
	}
	m := c.queue[0]
	c.queue = c.queue[1:]
	if c.parking != nil && c.parking.active {
		w.settle(c.parking, c)
	}
	if c.discard {
		c.stats.Dropped++
		w.free(m)
		return
	}
	c.stats.Delivered++
	w.react(w, c.number, m)
	w.free(m)
}

func (w *model) free(m hostabi.Message) {
	if m.Handle != 0 {
		w.held--
	}
}

func (w *model) emit(i int, m hostabi.Message) {
	s := w.signals[i]
	s.sequence++
	m.Sequence = uint64(s.sequence)
	s.newest = m
	reached, failed := false, false
	var queue []*modelConn
	for _, c := range s.conns {
		switch c.o.Mode {
		case bus.Queue:
			queue = append(queue, c)
		case bus.All, bus.Latest:
			reached = true
			failed = !w.offer(c, m) || failed
		}
	}
	if len(queue) > 0 {
		reached = true
		failed = !w.offerQueue(s, queue, m) || failed
	}
	for _, c := range s.conns {
		if c.o.Mode == bus.Reply && c.o.Peer == m.Sender {
			reached = true
			failed = !w.offer(c, m) || failed
		}
	}
	if !reached {
		s.unconnected++
	}
	if failed {
		w.note("signal %d: message %d: full", i, m.Sequence)
	}
}

// offer returns false where Emit has to say that the connection is full.
func (w *model) offer(c *modelConn, m hostabi.Message) bool {
	if c.o.Overflow == bus.Block && c.parking.active {
		w.park(c, m)
		return true
	}
	if w.push(c, m) {
		return true
	}
	switch c.o.Overflow {
	case bus.Block:
		w.park(c, m)
	case bus.DropNewest:
		c.stats.Dropped++
	case bus.DropOldest:
		w.free(c.queue[0])
		w.claim(m)
		c.queue = append(c.queue[1:], m)
		c.stats.Dropped++
	case bus.Coalesce:
		w.free(c.queue[len(c.queue)-1])
		w.claim(m)
		c.queue[len(c.queue)-1] = m
		c.stats.Coalesced++
	case bus.Fail:
		c.stats.Dropped++
		return false
	}
	return true
}

func (w *model) offerQueue(s *modelSignal, queue []*modelConn, m hostabi.Message) bool {
	turn := s.turn
	s.turn++
	for i := range queue {
		c := queue[(turn+i)%len(queue)]
		if c.o.Overflow == bus.Block && s.queue.active {
			w.park(c, m)
			return true
		}
		if w.push(c, m) {
			return true
		}
	}
	return w.offer(queue[turn%len(queue)], m)
}

func (w *model) claim(m hostabi.Message) {
	if m.Handle != 0 {
		w.held++
	}
}

func (w *model) push(c *modelConn, m hostabi.Message) bool {
	if len(c.queue) >= c.o.Depth {
		return false
	}
	w.claim(m)
	c.queue = append(c.queue, m)
	c.stats.MaxQueued = max(c.stats.MaxQueued, len(c.queue))
	w.data = append(w.data, c)
	return true
}

func (w *model) park(c *modelConn, m hostabi.Message) {
	p := c.parking
	w.claim(m)
	p.waiting = append(p.waiting, m)
	if !p.active {
		p.active = true
		p.owner.paused++
	}
	w.settle(p, c)
	if len(p.waiting) > 0 {
		c.stats.Blocked++
	}
}

func (w *model) settle(p *modelParking, last *modelConn) {
	for len(p.waiting) > 0 && w.letIn(p) {
	}
	if len(p.open) == 0 {
		for _, m := range p.waiting {
			last.stats.Dropped++
			w.free(m)
		}
		p.waiting = nil
	}
	if len(p.waiting) > 0 || !p.active {
		return
	}
	free := false
	var open []*modelConn
	for _, c := range p.open {
		if !c.closed {
			open = append(open, c)
			free = free || len(c.queue) <= c.o.Depth/2
		}
	}
	p.open = open
	if free || len(open) == 0 {
		p.active = false
		w.unpause(p.owner)
	}
}

func (w *model) letIn(p *modelParking) bool {
	for _, c := range p.open {
		if w.push(c, p.waiting[0]) {
			w.free(p.waiting[0]) // held twice now
			p.waiting = p.waiting[1:]
			return true
		}
	}
	return false
}

func (w *model) unpause(c *modelComponent) {
	c.paused--
	if c.paused == 0 {
		w.control = append(w.control, func() { w.resumed(c) })
	}
}

func (w *model) resumed(c *modelComponent) {
	if !slices.Contains(w.ready, c) && len(c.backlog) > 0 && c.held == 0 {
		w.ready = append(w.ready, c)
	}
}

func (w *model) pause(c int)  { w.components[c].paused++ }
func (w *model) resume(c int) { w.unpause(w.components[c]) }

func (w *model) connect(sig, to int, o bus.Options) {
	s := w.signals[sig]
	if o.Mode == bus.Latest {
		o.Depth, o.Overflow = 1, bus.Coalesce
	}
	c := &modelConn{number: len(w.conns), sig: s, to: w.components[to], o: o}
	for _, other := range s.conns {
		if o.Mode == bus.Reply && other.o.Mode == bus.Reply && other.o.Peer == o.Peer {
			return
		}
	}
	switch {
	case o.Mode == bus.Queue:
		c.parking = s.queue
	case o.Overflow == bus.Block:
		c.parking = &modelParking{owner: s.owner}
	}
	w.conns = append(w.conns, c)
	s.conns = append(s.conns, c)
	if p := c.parking; p != nil {
		p.open = append(without(p.open, func(o *modelConn) bool { return o.closed }), c)
		w.settle(p, c)
	}
	w.begin(c)
}

func (w *model) begin(c *modelConn) {
	if c.o.Mode == bus.Latest && c.sig.newest.Sequence > 0 {
		w.push(c, c.sig.newest)
	}
}

func (w *model) disconnect(i int, now bool) {
	c := w.conns[i]
	c.sig.conns = without(c.sig.conns, func(o *modelConn) bool { return o == c })
	c.closed = true
	if now {
		c.discard = true
		if c.o.Overflow == bus.DropOldest || c.o.Overflow == bus.Coalesce { // not in the loop's lane
			for _, m := range c.queue {
				c.stats.Dropped++
				w.free(m)
			}
			c.queue = nil
		}
	}
	if p := c.parking; p != nil {
		if now || len(p.open) > 1 || len(p.waiting) == 0 {
			p.open = without(p.open, func(o *modelConn) bool { return o == c })
		}
		w.settle(p, c)
	}
}

func without(conns []*modelConn, gone func(*modelConn) bool) []*modelConn {
	var kept []*modelConn
	for _, c := range conns {
		if !gone(c) {
			kept = append(kept, c)
		}
	}
	return kept
}

// state returns the model's visible state.
func (w *model) state() []string {
	var lines []string
	for i, c := range w.conns {
		s := c.stats
		s.Queued = len(c.queue)
		if c.parking != nil {
			s.Parked = len(c.parking.waiting)
		}
		lines = append(lines, fmt.Sprintf("connection %d: %+v", i, s))
	}
	for i, s := range w.signals {
		lines = append(lines, fmt.Sprintf("signal %d: emitted %d unconnected %d connections %d newest %d", i,
			s.sequence, s.unconnected, len(s.conns), s.newest.Sequence))
	}
	for i, c := range w.components {
		lines = append(lines, fmt.Sprintf("component %d: paused %v", i, c.paused > 0))
	}
	return append(lines, fmt.Sprintf("held %d", w.held))
}
