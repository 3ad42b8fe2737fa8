package fifo

import "runtime"

// Counters says how often the users of a ring, in all processes, have made system calls for it.
type Counters struct {
	EmptyWaits, FullWaits uint64 // sleeps of consumers, of producers
	EmptyWakes, FullWakes uint64 // calls that woke consumers, producers
}

// Counters returns the system calls made so far, if no process falsified them.
func (h *Header) Counters() Counters {
	return Counters{h.emptyWaits.Load(), h.fullWaits.Load(), h.emptyWakes.Load(), h.fullWakes.Load()}
}

// Bells returns a header's bells: for ends that wait for messages and for ends that wait for room. many says that
// several may wait for the same.
func (h *Header) Bells(many bool) (notEmpty, notFull Bell) {
	var doze *dozers
	if many {
		doze = &dozers{limit: int32(runtime.GOMAXPROCS(0) - 1)}
	}
	return Bell{&h.notEmpty, &h.emptyWaits, &h.emptyWakes, many, doze}, Bell{&h.notFull, &h.fullWaits, &h.fullWakes, many, doze}
}
