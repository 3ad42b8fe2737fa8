package link

// Stats are the counters of one end, of messages of data.
type Stats struct {
	Sent      uint64 // taken by Send
	Acked     uint64 // that the peer has finished with
	Unacked   int    // that it has not
	Open      int    // requests about blocks on loan that are not answered
	Queued    int    // messages of any kind that wait for room in the ring
	Received  uint64 // taken out of the ring
	Finished  uint64 // that this end has finished with
	Pauses    uint64 // how often a full window has paused the component
	Paused    bool   // a window is full now, or HoldBack is in force
	Available int    // messages of any kind in the ring that this end takes from

	Delivering bool // the link's own goroutine may have taken messages out and not have delivered them yet
}

// Stats returns the counters of now. It may be called from any goroutine until the rings are closed.
func (l *Link) Stats() Stats {
	l.tx.Lock()
	defer l.tx.Unlock()
	s := Stats{
		Sent: l.accepted, Acked: l.acked, Unacked: l.sent.Len(), Open: len(l.requests.open), Queued: l.queue.Len(),
		Received: l.received.Load(), Finished: l.finished.Load(), Pauses: l.windows.pauses, Paused: l.windows.paused,
	}
	if !l.stopped.Load() {
		s.Available = l.config.Transport.Len()
		s.Delivering = l.delivering.Load() // read last: it was set before the ring became empty
	}
	return s
}
