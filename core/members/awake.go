package members

import "time"

// Awake measures the time in which this process and the server that it talks to were both awake: a lease may end by that time alone. The zero
// value counts nothing; Gap must be set.
type Awake struct {
	// Gap is the longest time between two pulses that counts. One that is longer says that something slept, and counts as nothing.
	Gap time.Duration

	last, total time.Duration
	begun       bool
}

// Pulse says that an answer of the server has arrived now, and returns the time awake. The question is to be asked some times in each Gap.
func (a *Awake) Pulse(now time.Duration) time.Duration {
	if since := now - a.last; a.begun && since <= a.Gap {
		a.total += since
	}
	a.last, a.begun = now, true
	return a.total
}

// Total returns the time awake until the last pulse.
func (a *Awake) Total() time.Duration { return a.total }
