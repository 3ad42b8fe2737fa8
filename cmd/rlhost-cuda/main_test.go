package main

import (
	"runtime"
	"testing"
)

func TestLeaveProcessors_NeverTakesMore(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for had, want := range map[int]int{1: 1, threads: threads, 64: threads} {
		runtime.GOMAXPROCS(had)
		leaveProcessors()
		if got := runtime.GOMAXPROCS(0); got != want {
			t.Errorf("of %d processors it takes %d, want %d", had, got, want)
		}
	}
}
