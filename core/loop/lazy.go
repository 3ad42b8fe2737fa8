package loop

import "time"

// Lazy returns a source for the loop of an observer: nothing comes from it, but the loop sleeps on for d when something
// has been posted. Whoever posts then wakes the loop at most once in d, which is what costs most in posting to a loop that
// has little to do; all it has to handle comes d later, and so does its end.
func Lazy(d time.Duration) Source { return &lazy{bell: make(chan struct{}, 1), d: d} }

type lazy struct {
	bell chan struct{}
	d    time.Duration
}

func (z *lazy) Poll() {}

func (z *lazy) Wait() {
	<-z.bell
	time.Sleep(z.d)
}

func (z *lazy) Nudge() {
	select {
	case z.bell <- struct{}{}:
	default:
	}
}
