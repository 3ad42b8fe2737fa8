package loop

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/rlhost/rlhost/hostabi"
)

// weight is a component's memory in the test below: if the loop kept some, it would show.
type weight struct {
	r     *Receiver
	bytes [16 << 10]byte
}

func (w *weight) slot(*hostabi.Message) { w.bytes[0]++ }

// fill gives a receiver timers and backlogs of both lanes, in all places where a loop has them.
func (w *weight) fill() {
	w.r.Every(time.Hour, func() { w.slot(nil) })
	w.r.After(time.Hour, func() { w.slot(nil) })
	w.r.Hold()
	w.r.Pause()
	for range 5 {
		w.r.Post(w.slot, hostabi.Message{})
		w.r.Control(w.slot, hostabi.Message{})
	}
}

func TestReceiverClose_LeavesNothingOfTenThousandReceivers(t *testing.T) {
	l := New("l")
	stays := l.NewReceiver("stays")
	ended := make(chan error, 1)
	go func() { ended <- l.Run(context.Background()) }()
	sync := func() { l.Do(func() {}) }
	round := func(n int) {
		for i := range n {
			w := &weight{r: l.NewReceiver("comes and goes")}
			w.fill()
			if i%2 == 0 {
				sync() // its posts are in the backlogs
				w.fill()
			}
			if i%3 == 0 {
				stays.Control(func(*hostabi.Message) { w.r.Close() }, hostabi.Message{})
				sync()
			} else {
				w.r.Close()
			}
		}
		sync()
		runtime.GC()
	}
	used := func() (heap uint64, goroutines int) {
		var s runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&s)
		return s.HeapAlloc, runtime.NumGoroutine()
	}
	round(100)
	before, goroutines := used()
	many := 10_000
	if testing.Short() {
		many = 2000
	}
	round(many)
	after, n := used()
	if after > before+1<<20 || n > goroutines {
		t.Errorf("heap %d → %d bytes, goroutines %d → %d", before, after, goroutines, n)
	}
	l.Do(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if len(l.timers)+len(l.holding)+len(l.ready)+len(l.data)+len(l.control) != 0 {
			t.Errorf("left: %d timers, %d holding, %d ready, %d data, %d control",
				len(l.timers), len(l.holding), len(l.ready), len(l.data), len(l.control))
		}
		if most := max(cap(l.holding), cap(l.ready), cap(l.data), cap(l.control), cap(l.batch), cap(l.urgent)); most > 1024 {
			t.Errorf("a list has grown to %d", most)
		}
	})
	l.Stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
