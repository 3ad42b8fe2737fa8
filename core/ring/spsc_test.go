package ring

import (
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/shm"
	"github.com/rlhost/rlhost/hostabi"
)

// heapSPSC returns both ends of a ring in memory that the race detector sees.
func heapSPSC(t testing.TB, cells int) (producer, consumer *SPSC) {
	t.Helper()
	g := geometryOf(cells)
	seg, err := shm.Heap(g.total())
	if err != nil {
		t.Fatal(err)
	}
	format(seg, g)
	return newSPSC(seg, g), newSPSC(seg, g)
}

func TestSPSC_ArriveInOrderThroughAnotherMapping(t *testing.T) {
	out, err := New("test", 8)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	in, err := Open(openAgain(t, out.FD()))
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	var sent, got uint64
	rng := rand.New(rand.NewPCG(1, 2))
	for range 10_000 {
		batch := make([]hostabi.Message, rng.IntN(10))
		for i := range batch {
			batch[i].Sequence = sent + uint64(i)
		}
		sent += uint64(out.Put(batch))
		if sent-got > 8 || in.Len() != int(sent-got) {
			t.Fatalf("Len() = %d after %d puts and %d gets", in.Len(), sent, got)
		}
		taken := batch[:cap(batch)]
		for _, m := range taken[:in.Get(taken)] {
			if m.Sequence != got {
				t.Fatalf("message %d has sequence %d", got, m.Sequence)
			}
			got++
		}
	}
	if sent < 10_000 {
		t.Errorf("%d messages passed, want more", sent)
	}
}

func TestSPSC_TwoGoroutinesPassEverything(t *testing.T) {
	const total = 100_000
	out, in := heapSPSC(t, 64)
	var wg sync.WaitGroup
	wg.Go(func() {
		batch := make([]hostabi.Message, 7)
		for sent := uint64(0); sent < total; {
			for i := range batch {
				batch[i].Sequence = sent + uint64(i)
			}
			n := out.Put(batch[:min(uint64(len(batch)), total-sent)])
			sent += uint64(n)
			if n == 0 {
				out.WaitRoom(time.Second)
			}
		}
		out.Shut()
	})
	next := uint64(0)
	buf := make([]hostabi.Message, 5)
	for {
		n := in.Get(buf)
		for _, m := range buf[:n] {
			if m.Sequence != next {
				t.Fatalf("got message %d, want %d", m.Sequence, next)
			}
			next++
		}
		if n == 0 && !in.Wait(time.Second) && in.IsShut() {
			break
		}
	}
	wg.Wait()
	if next != total {
		t.Errorf("%d messages arrived, want %d", next, total)
	}
}

func TestSPSC_NudgeEndsWait(t *testing.T) {
	_, in := heapSPSC(t, 4)
	in.Nudge()
	if in.Wait(-1) {
		t.Error("Wait after Nudge reports messages in an empty ring")
	}
	waiting := make(chan bool)
	go func() {
		waiting <- in.Wait(-1)
	}()
	for in.h.emptyWaits.Load() == 0 { // until it sleeps
		runtime.Gosched()
	}
	in.Nudge()
	if <-waiting {
		t.Error("a nudged Wait reports messages in an empty ring")
	}
}

func TestSPSC_ShutWakesBothEndsAndKeepsMessages(t *testing.T) {
	out, in := heapSPSC(t, 2)
	if n := out.Put(make([]hostabi.Message, 3)); n != 2 {
		t.Fatalf("Put of 3 into 2 cells = %d", n)
	}
	waiting := make(chan bool)
	go func() { waiting <- out.WaitRoom(-1) }()
	for out.h.fullWaits.Load() == 0 {
		runtime.Gosched()
	}
	in.Shut()
	if <-waiting {
		t.Error("WaitRoom of a full ring that was shut reports room")
	}
	buf := make([]hostabi.Message, 4)
	if n := in.Get(buf); n != 2 {
		t.Errorf("Get after Shut = %d, want 2", n)
	}
	if n := out.Put(buf[:1]); n != 0 || !out.IsShut() {
		t.Errorf("Put after Shut = %d, shut %v", n, out.IsShut())
	}
	if in.Wait(-1) {
		t.Error("Wait on a shut, empty ring reports messages")
	}
}

func TestOpen_RefusesOtherFiles(t *testing.T) {
	q, err := createSegment("queue", geometry{kind: hostabi.RingQueue, cells: 2, cellBytes: 32, payload: 8})
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	if _, err := Open(openAgain(t, q.FD())); !errors.Is(err, ErrLayout) {
		t.Errorf("Open of a queue = %v, want ErrLayout", err)
	}
	seg, err := shm.Create("zero", 1)
	if err != nil {
		t.Fatal(err)
	}
	defer seg.Close()
	if _, err := Open(openAgain(t, seg.FD())); !errors.Is(err, ErrLayout) {
		t.Errorf("Open of zeros = %v, want ErrLayout", err)
	}
	for _, cells := range []int{-2, 0, 1, 3, hostabi.MaxRingCells * 2} {
		if _, err := New("bad", cells); err == nil {
			t.Errorf("New with %d cells succeeded", cells)
		}
	}
}
