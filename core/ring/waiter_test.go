package ring

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

func TestAWaiterSleepsAfterItsYieldsHaveLasted(t *testing.T) {
	if runtime.NumCPU() == 1 {
		t.Skip("one processor: waiters do not yield")
	}
	var word atomic.Uint32
	w := newWaiter(&bell{word: &word})
	away := func(succeeds bool) func() bool { // others have the processor for some time
		return func() bool {
			for began := time.Now(); time.Since(began) <= overtaken; {
			}
			return succeeds
		}
	}
	now := func() bool { return true }
	for i, c := range []struct {
		attempt   func() bool
		skip, row int
	}{
		{away(true), minSkip, 2 * minSkip},
		{now, 0, minSkip}, // within the microsecond of a spin that is cut short
		{away(false), minSkip, 2 * minSkip},
	} {
		w.spinFrom(time.Now(), c.attempt)
		if w.skip != c.skip || w.row != c.row {
			t.Errorf("after wait %d %d waits go without a spin, and %d after the next row: want %d and %d", i+1, w.skip, w.row, c.skip, c.row)
		}
		w.skip = 0
	}
}
