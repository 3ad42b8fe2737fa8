package proxy

import (
	"fmt"
	"time"

	"github.com/rlhost/rlhost/core/link"
)

// stallWatch finds a process that does nothing while work waits for it.
type stallWatch struct {
	l     *session
	every time.Duration
	limit time.Duration
	last  progress
	since time.Time
}

// progress changes whenever the process does something that the host notices.
type progress struct{ received, acked, heard uint64 }

func newStallWatch(l *session) *stallWatch {
	limit := l.process.Program.Stall
	every := time.Hour
	if limit > 0 {
		every = min(max(limit/8, 10*time.Millisecond), time.Second)
	}
	return &stallWatch{l: l, every: every, limit: limit, since: time.Now()}
}

// check describes the waiting work if nothing has happened for too long, else "".
func (w *stallWatch) check() string {
	s := w.l.link.Stats()
	now := progress{s.Received, s.Acked, w.l.heard.Load()}
	waits := w.waits(&s)
	if now != w.last || waits == "" {
		w.last, w.since = now, time.Now()
		return ""
	}
	if w.limit <= 0 || time.Since(w.since) < w.limit {
		return ""
	}
	if w.l.process.Traced() {
		w.since = time.Now()
		return ""
	}
	return waits
}

// waits describes the work that waits for the process: none while the host itself holds it up.
func (w *stallWatch) waits(s *link.Stats) string {
	own := 0
	if s.Paused {
		own = 1
	}
	switch calls := w.l.calls.Load(); {
	case calls > 0:
		return fmt.Sprintf("%d control calls wait", calls)
	case w.l.atBoundary.Load() || w.l.x.h.Receiver.Pauses() > own || s.Available > 0:
		return ""
	case w.l.requests.waiting() > 0: // at a boundary it cannot answer them
		return fmt.Sprintf("%d requests to it wait", w.l.requests.waiting())
	case s.Unacked > 0:
		return fmt.Sprintf("%d messages wait", s.Unacked)
	case s.Open > 0:
		return fmt.Sprintf("%d requests wait for their answers", s.Open)
	}
	return ""
}
