package ring

// Counters says how often the users of a ring, in all processes, have made system calls for it.
type Counters struct {
	EmptyWaits, FullWaits uint64 // sleeps of consumers, of producers
	EmptyWakes, FullWakes uint64 // calls that woke consumers, producers
}

func (h *header) counters() Counters {
	return Counters{h.emptyWaits.Load(), h.fullWaits.Load(), h.emptyWakes.Load(), h.fullWakes.Load()}
}

// Counters returns the system calls made for the ring so far, if every process told the truth.
func (r *Messages) Counters() Counters { return r.h.counters() }

// Counters returns the system calls made for the queue so far, if every process told the truth.
func (q *Queue) Counters() Counters { return q.h.counters() }
