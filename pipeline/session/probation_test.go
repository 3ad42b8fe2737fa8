package session

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// A version that has failed is dealt with however long the change takes that is under way: until then it is watched, and
// status --wait waits.
func TestFallBack_WaitsForWhatIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &Commands{ended: make(chan struct{}), changed: make(chan struct{}), watched: &probation{number: 1}}
		j.life, j.close = context.WithCancel(t.Context())
		defer j.close()
		_, w, err := j.begin(t.Context(), "a long change")
		if err != nil {
			t.Fatal(err)
		}
		over := make(chan struct{})
		go func() {
			defer close(over)
			j.fallBack(fall{number: 1})
		}()
		time.Sleep(time.Hour)
		select {
		case <-over:
			t.Error("the fall is given up while a change is under way")
		default:
		}
		j.mu.Lock()
		j.watched = nil // the change has replaced it
		j.mu.Unlock()
		j.finish(w)
		<-over
		if j.current != nil {
			t.Error("a change is still under way")
		}
	})
}
