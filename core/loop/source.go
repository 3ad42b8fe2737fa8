package loop

// Source is a place outside the loop that work comes from, such as a ring that another process writes to. A loop
// that has one sleeps there, so that no other goroutine is needed to wake it.
type Source interface {
	// Poll posts the messages that have arrived to the loop, without waiting. The loop calls it often: after each batch.
	Poll()
	// Wait returns when something has arrived, when Nudge was called since Wait last returned, or for no reason. The
	// loop calls it when it has nothing to do.
	Wait()
	// Nudge makes Wait return, the next one if none is under way. Any goroutine may call it, also late: after
	// SetSource has replaced the source.
	Nudge()
}

// SetSource makes s the loop's source; nil means none. It reports whether it did: a loop has one source at a time, so it
// must be set to nil before another one. SetSource nudges a call of Wait in progress on the loop, which then returns.
func (l *Loop) SetSource(s Source) bool {
	if s == nil {
		if old := l.source.Swap(nil); old != nil {
			(*old).Nudge()
		}
		return true
	}
	if !l.source.CompareAndSwap(nil, &s) {
		return false
	}
	l.ringBell() // it may sleep there
	return true
}

// DropSource is SetSource(nil) if s is the loop's source. It reports whether it was.
func (l *Loop) DropSource(s Source) bool {
	now := l.source.Load()
	if now == nil || *now != s || !l.source.CompareAndSwap(now, nil) {
		return false
	}
	s.Nudge()
	return true
}

// HasSource reports whether the loop has a source. Any goroutine.
func (l *Loop) HasSource() bool { return l.source.Load() != nil }

func (l *Loop) poll() {
	if s := l.source.Load(); s != nil {
		(*s).Poll()
	}
}

// idleAt sleeps at a source until something arrives there or is posted. A poster reads the source after it has
// seen the loop asleep: if that is a newer one, SetSource has nudged this one.
func (l *Loop) idleAt(s Source) {
	l.mu.Lock()
	if len(l.data) > 0 || l.attention.Load() {
		l.mu.Unlock()
		return
	}
	l.asleep = true
	l.mu.Unlock()
	s.Wait()
	l.mu.Lock()
	l.asleep = false
	l.mu.Unlock()
}
