package proxy

import (
	"errors"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/link"
	"github.com/rlhost/rlhost/hostabi"
)

// send is the function of every slot: it sends the message to the process, or keeps it for the next one.
func (x *proxy) send(i int, m *hostabi.Message) {
	s := &x.shared.slots[i]
	if m.Handle != 0 {
		x.notice(s, m)
	}
	x.shared.spans.got(&s.carries, m)
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
			x.shared.meters.rejected.Inc()
			x.shared.h.Log.Warn("message not sent", "slot", x.shared.manifest.Slots[i].Name, "block", m.Handle, "err", err)
			return
		}
		if s.latest.Load() {
			x.shared.remember(s, m)
		}
		return
	}
}

// notice remembers where blocks came from, and who asks about blocks on loan.
func (x *proxy) notice(s *slot, m *hostabi.Message) {
	if seen := &s.arenas[m.Handle.Arena()]; !seen.Load() {
		seen.Store(true)
	}
	if !x.shared.onLoan(m.Handle) {
		return
	}
	x.shared.mu.Lock()
	defer x.shared.mu.Unlock()
	if x.session == nil || !x.session.answered(m) {
		x.shared.open[questionOf(m)] = *m
	}
	if len(x.shared.open) > maxOpen {
		x.shared.purgeLocked()
	}
}

// maxOpen is how many requests may be open before requests that no one waits for any more are dropped.
const maxOpen = 1024

// keep keeps a message while there is no link; false means that there is one again.
func (x *proxy) keep(stopped *link.Link, i int, m *hostabi.Message) bool {
	x.shared.mu.Lock()
	defer x.shared.mu.Unlock()
	if x.link.Load() != stopped {
		return false
	}
	p := link.Pending{Port: i, Message: *m}
	if m.Handle != 0 {
		switch err := x.shared.h.Arenas.Retain(m.Handle); {
		case err == nil:
			p.Claimed = true
		case !errors.Is(err, arena.ErrState):
			x.shared.meters.lost.Inc()
			return true
		}
	}
	x.waiting = append(x.waiting, p)
	return true
}
