package component

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestRestarts_AreForgottenAfterTheirWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r Restarts
		for range 3 {
			r.Count()
			time.Sleep(time.Minute)
		}
		if r.Within(0) != 3 || r.All() != 3 {
			t.Errorf("without a window %d of %d count, want all 3", r.Within(0), r.All())
		}
		if got := r.Within(150 * time.Second); got != 2 {
			t.Errorf("%d restarts within two and a half minutes, want 2", got)
		}
		time.Sleep(time.Hour)
		if got := r.Within(150 * time.Second); got != 0 || r.Within(0) != 3 {
			t.Errorf("an hour later %d count within the window, %d in all; want 0 and 3", got, r.Within(0))
		}
	})
}

func TestRestarts_OfASavedStateCountWithoutAWindow(t *testing.T) {
	var r Restarts
	r.Restore(4)
	r.Count()
	if r.Within(0) != 5 || r.Within(time.Hour) != 1 {
		t.Errorf("%d in all and %d within an hour, want 5 and 1", r.Within(0), r.Within(time.Hour))
	}
}
