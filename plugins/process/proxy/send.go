package proxy

import (
	"errors"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/link"
	"github.com/rlhost/rlhost/hostabi"
)

// send is what every slot does: it gives the message to the process, or keeps it for the next one.
func (x *proxy) send(i int, m *hostabi.Message) {
	s := &x.slots[i]
	if m.Handle != 0 {
		x.notice(s, m)
	}
	for {
		l := x.link.Load()
		err := l.Send(i, m)
		if errors.Is(err, link.ErrStopped) {
			if !x.keep(l, i, m) {
				continue
			}
			err = nil
		}
		if err != nil {
			x.meters.rejected.Inc()
			x.h.Log.Warn("message not sent", "slot", x.manifest.Slots[i].Name, "block", m.Handle, "err", err)
			return
		}
		if s.latest.Load() {
			x.remember(s, m)
		}
		return
	}
}

// notice remembers where blocks came from, and who asks about those on loan.
func (x *proxy) notice(s *slot, m *hostabi.Message) {
	if seen := &s.arenas[m.Handle.Arena()]; !seen.Load() {
		seen.Store(true)
	}
	if !x.onLoan(m.Handle) {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.session == nil || !x.session.answered(m) {
		x.open[questionOf(m)] = *m
	}
	if len(x.open) > maxOpen {
		x.purgeLocked()
	}
}

// maxOpen is how many requests may be open before it is looked which of them nobody waits for any more.
const maxOpen = 1024

// purge forgets requests about blocks that are no longer on loan: whoever asked does not wait any more.
func (x *proxy) purge() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.purgeLocked()
}

func (x *proxy) purgeLocked() {
	for q := range x.open {
		if !x.onLoan(q.block) {
			delete(x.open, q)
		}
	}
}

func questionOf(m *hostabi.Message) question { return question{m.Handle, m.T, m.Sender} }

// onLoan reports whether somebody has the block on loan.
func (x *proxy) onLoan(h hostabi.Handle) bool {
	a, err := x.h.Arenas.Of(h)
	if err != nil {
		return false
	}
	_, err = a.Loaned(h)
	return err == nil
}

// keep keeps a message while there is no link; false means that there is one again.
func (x *proxy) keep(stopped *link.Link, i int, m *hostabi.Message) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.link.Load() != stopped {
		return false
	}
	p := link.Pending{Port: i, Message: *m}
	if m.Handle != 0 {
		switch err := x.h.Arenas.Retain(m.Handle); {
		case err == nil:
			p.Claimed = true
		case !errors.Is(err, arena.ErrState):
			x.meters.lost.Inc()
			return true
		}
	}
	x.waiting = append(x.waiting, p)
	return true
}

// remember keeps the newest message of a slot and a claim on its block, for the next process.
func (x *proxy) remember(s *slot, m *hostabi.Message) {
	if m.Handle != 0 && x.h.Arenas.Retain(m.Handle) != nil {
		return
	}
	s.mu.Lock()
	old := s.newest
	s.newest = *m
	s.newest.Sequence = max(m.Sequence, 1)
	s.mu.Unlock()
	x.release(old.Handle)
}

// forget gives up what remember keeps.
func (x *proxy) forget() {
	for i := range x.slots {
		s := &x.slots[i]
		s.mu.Lock()
		old := s.newest.Handle
		s.newest = hostabi.Message{}
		s.mu.Unlock()
		x.release(old)
	}
}

// release gives a claim of the proxy back.
func (x *proxy) release(h hostabi.Handle) {
	if h == 0 {
		return
	}
	if err := x.h.Arenas.Release(h); err != nil {
		x.h.Log.Error("claim of the proxy", "block", h, "err", err)
	}
}

// limit is how many messages of a slot the process may have in hand: as many as wait in connections, and the one
// that it works on.
func (x *proxy) limit(i int) int {
	s := &x.slots[i]
	n, latest := 1, false
	for _, c := range s.bound.Connections() {
		o := c.Options()
		n += o.Depth
		latest = latest || o.Mode == bus.Latest
	}
	s.latest.Store(latest)
	return min(n, hostabi.LinkWindow)
}
