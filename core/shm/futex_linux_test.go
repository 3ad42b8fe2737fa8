package shm

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"
)

// wordIn returns the first word of a segment.
func wordIn(s *Segment) *atomic.Uint32 { return (*atomic.Uint32)(unsafe.Pointer(&s.Bytes()[0])) }

func TestWait_ReturnsWhenTheWordDiffers(t *testing.T) {
	var word atomic.Uint32
	Wait(&word, 1, -1)
	Wait(&word, 0, 0)
	Wait(&word, 0, time.Millisecond)
}

func TestWake_WakesThroughAnotherMapping(t *testing.T) {
	s := create(t, PageSize())
	defer s.Close()
	other, err := Open(again(t, s.FD()), ReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	const sleepers = 3
	woken := make(chan struct{})
	for range sleepers {
		go func() {
			for wordIn(s).Load() == 0 {
				Wait(wordIn(s), 0, -1)
			}
			woken <- struct{}{}
		}()
	}
	for WakeSome(wordIn(other), 1) == 0 { // wakes for no reason; the sleeper goes back
		runtime.Gosched()
	}
	wordIn(other).Store(1)
	Wake(wordIn(other))
	for range sleepers {
		<-woken
	}
	if n := WakeSome(wordIn(other), 5); n != 0 {
		t.Errorf("WakeSome with nobody there = %d", n)
	}
}

func TestWait_DoesNotHoldUpTheGarbageCollector(t *testing.T) {
	var word atomic.Uint32
	woken := make(chan struct{})
	asleep := make(chan struct{})
	go func() {
		close(asleep)
		for word.Load() == 0 {
			Wait(&word, 0, -1)
		}
		close(woken)
	}()
	<-asleep
	for range 3 {
		runtime.GC() // hangs if the runtime considers the sleeper a running goroutine
	}
	word.Store(1)
	for WakeSome(&word, 1) == 0 {
		select {
		case <-woken:
			return
		default:
			runtime.Gosched()
		}
	}
	<-woken
}

func TestWaitAndWake_AllocateNothing(t *testing.T) {
	word := new(atomic.Uint32)
	if n := testing.AllocsPerRun(100, func() {
		Wait(word, 0, time.Microsecond)
		Wake(word)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
