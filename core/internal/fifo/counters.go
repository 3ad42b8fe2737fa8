package fifo

// Counters says how often the users of a ring, in all processes, have made system calls for it.
type Counters struct {
	EmptyWaits, FullWaits uint64 // sleeps of consumers, of producers
	EmptyWakes, FullWakes uint64 // calls that woke consumers, producers
}

// Counters returns the system calls made so far, if no process falsified them.
func (h *Header) Counters() Counters {
	return Counters{h.emptyWaits.Load(), h.fullWaits.Load(), h.emptyWakes.Load(), h.fullWakes.Load()}
}

// Bells returns a header's bells: for the end that waits for messages and for the end that waits for room.
func (h *Header) Bells() (notEmpty, notFull Bell) {
	return Bell{&h.notEmpty, &h.emptyWaits, &h.emptyWakes}, Bell{&h.notFull, &h.fullWaits, &h.fullWakes}
}
