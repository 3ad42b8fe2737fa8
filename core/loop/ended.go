package loop

// Ended reports whether the loop runs no slots any more: it was told to end and Run has returned, or it was closed.
// Later posts are dropped, once it is closed. A loop whose Run ended with its context has not ended: it may run again.
func (l *Loop) Ended() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed || l.stopped.Load() && !l.running.Load()
}
