package loop

// Ended reports that the loop will run no more slots: it was stopped and Run has returned, or it was closed. Later
// posts are dropped, once it is closed. A loop whose Run ended with its context has not ended: it may run again.
func (l *Loop) Ended() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed || l.stopped.Load() && !l.running.Load()
}
