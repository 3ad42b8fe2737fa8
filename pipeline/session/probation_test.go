package session

import (
	"testing"
	"testing/synctest"
	"time"
)

// A version that has failed is dealt with however long the change takes that is under way: until then it is watched, and
// status --wait waits.
func TestRollBack_WaitsForWhatIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newUnderWay()
		u.watched = &probation{number: 1}
		long := &work{title: "a long change"}
		if _, err := u.begin(t.Context(), long); err != nil {
			t.Fatal(err)
		}
		over := make(chan struct{})
		go func() {
			defer close(over)
			watcher{&shared{underWay: u}, t.Context()}.rollBack(failure{number: 1})
		}()
		time.Sleep(time.Hour)
		select {
		case <-over:
			t.Error("the failure is given up while a change is under way")
		default:
		}
		u.mu.Lock()
		u.watched = nil // the change has replaced it
		u.mu.Unlock()
		u.finish(long)
		<-over
		if u.current != nil {
			t.Error("a change is still under way")
		}
	})
}
