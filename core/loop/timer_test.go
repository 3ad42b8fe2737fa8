package loop_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rlhost/rlhost/core/loop"
	"github.com/rlhost/rlhost/hostabi"
)

// clock notes when it was called, in milliseconds since it was made.
type clock struct {
	start time.Time
	at    []int
}

func (c *clock) tick() { c.at = append(c.at, int(time.Since(c.start).Milliseconds())) }

func (c *clock) expect(t *testing.T, want ...int) {
	t.Helper()
	synctest.Wait()
	if !slices.Equal(c.at, want) {
		t.Errorf("fired at %v ms, want %v", c.at, want)
	}
}

const ms = time.Millisecond

func TestTimer_AfterFiresOnceAlsoWhilePaused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := loop.New("l")
		r := l.NewReceiver("r")
		r.Pause()
		begin(t, l)
		c := clock{start: time.Now()}
		timer := r.After(30*ms, c.tick)
		l.After(0, c.tick)
		l.After(-5*ms, c.tick)
		time.Sleep(time.Second)
		c.expect(t, 0, 0, 30)
		if timer.Stop() {
			t.Error("Stop of a timer that fired = true")
		}
	})
}

func TestTimer_EveryKeepsInStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := loop.New("l")
		begin(t, l)
		c := clock{start: time.Now()}
		timer := l.Every(100*ms, func() {
			c.tick()
			time.Sleep(3 * ms) // a slow slot delays nothing that follows
		})
		time.Sleep(450 * ms)
		if !timer.Stop() {
			t.Error("Stop = false")
		}
		time.Sleep(time.Second)
		c.expect(t, 100, 200, 300, 400)
	})
}

func TestTimer_EveryDoesNotBurstAfterAStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := loop.New("l")
		r := l.NewReceiver("r")
		begin(t, l)
		c := clock{start: time.Now()}
		timer := l.Every(100*ms, c.tick)
		time.Sleep(50 * ms)
		r.Post(func(*hostabi.Message) { time.Sleep(500 * ms) }, at(0)) // until 550
		time.Sleep(800 * ms)                                           // until 850
		timer.Stop()
		c.expect(t, 550, 600, 700, 800)
	})
}

func TestTimer_StopOnItsLoopHoldsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := loop.New("l")
		r := l.NewReceiver("r")
		begin(t, l)
		c := clock{start: time.Now()}
		var timer *loop.Timer
		r.Post(func(*hostabi.Message) {
			timer = l.Every(ms, c.tick)
			time.Sleep(5 * ms) // due, and queued after this slot
			timer.Stop()
		}, at(0))
		time.Sleep(time.Second)
		c.expect(t)
	})
}

func TestTimer_StopWithinItsOwnCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := loop.New("l")
		begin(t, l)
		c := clock{start: time.Now()}
		var timer *loop.Timer
		l.NewReceiver("r").Post(func(*hostabi.Message) {
			timer = l.Every(10*ms, func() {
				c.tick()
				timer.Stop()
			})
		}, at(0))
		time.Sleep(time.Second)
		c.expect(t, 10)
	})
}

func TestTimer_NoneFiresAfterClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := loop.New("l")
		c := clock{start: time.Now()}
		l.Every(10*ms, c.tick)
		l.After(15*ms, func() { c.tick(); l.Stop() })
		if err := l.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if l.After(ms, c.tick).Stop() {
			t.Error("a closed loop took a timer")
		}
		time.Sleep(time.Second)
		c.expect(t, 10, 15)
	})
}

func TestTimer_DoesNotAllocateWhenItFires(t *testing.T) {
	l := loop.New("l")
	fired, over := make(chan struct{}), make(chan struct{})
	l.Every(100*time.Microsecond, func() {
		select {
		case fired <- struct{}{}:
		case <-over:
		}
	})
	start(t, l)
	t.Cleanup(func() { close(over) })
	for range 10 {
		<-fired
	}
	if n := testing.AllocsPerRun(50, func() { <-fired }); n != 0 {
		t.Errorf("%v allocations for each firing, want 0", n)
	}
}
