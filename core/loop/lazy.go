package loop

import "time"

// Lazy returns a source for the loop of an observer: nothing comes from it, but the loop sleeps on for d after a post.
// Posts then wake the loop at most once in d, which is the main cost of posting to a mostly idle loop; messages are
// handled up to d later, and so is its end.
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
