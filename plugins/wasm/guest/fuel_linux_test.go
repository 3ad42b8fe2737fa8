package guest

import (
	"runtime"
	"testing"
	"time"
)

// What counts against a call's limit is the processor time of its thread; where that is not known, a bounded part of the clock's.
func TestFuel_CountsProcessorTime(t *testing.T) {
	last := moment{at: time.Second, thread: 7, had: time.Minute}
	for _, c := range []struct {
		what string
		now  moment
		want time.Duration
	}{
		{"a busy machine", moment{at: 2 * time.Second, thread: 7, had: time.Minute + time.Millisecond}, time.Millisecond},
		{"a machine of its own", moment{at: time.Second + time.Millisecond, thread: 7, had: time.Minute + 2*time.Millisecond}, time.Millisecond},
		{"another thread", moment{at: 2 * time.Second, thread: 8, had: time.Hour}, mostCounted},
		{"no processor time", moment{at: time.Second + time.Millisecond}, time.Millisecond},
	} {
		if got := c.now.since(&last); got != c.want {
			t.Errorf("%s: %v counts, want %v", c.what, got, c.want)
		}
	}
}

// The time of a sleeping thread does not pass, the time of a computing thread does.
func TestFuel_ThreadTime(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	began, first := threadTime()
	time.Sleep(20 * time.Millisecond)
	if thread, had := threadTime(); thread != began || had-first > 10*time.Millisecond {
		t.Errorf("thread %d had %v in its sleep of 20 ms", thread, had-first)
	}
	for end := time.Now().Add(10 * time.Second); ; {
		if _, had := threadTime(); had-first > 20*time.Millisecond {
			return
		}
		if time.Now().After(end) {
			t.Fatal("the thread has had no 20 ms in 10 s of computing")
		}
	}
}
