package loop_test

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/loop"
	"github.com/rlhost/rlhost/hostabi"
)

const hammerers = 3

// place is a receiver that goroutines post to while others hold, pause and close it.
type place struct {
	t      *testing.T
	r      *loop.Receiver
	total  *atomic.Int64 // delivered and dropped, of all places
	closed atomic.Bool   // Close has returned
	last   [2][hammerers]uint32
}

func (p *place) Deliver(m *hostabi.Message) {
	if p.closed.Load() {
		p.t.Error("a slot ran after Close had returned")
	}
	if last := &p.last[m.Kind][m.Split]; m.T <= *last {
		p.t.Errorf("lane %d, goroutine %d: message %d came after %d", m.Kind, m.Split, m.T, *last)
	} else {
		*last = m.T
	}
	p.total.Add(1)
}

func (p *place) Drop(*hostabi.Message) { p.total.Add(1) }

// use posts on both lanes and does everything else to the place, and returns how many posts were taken.
func (p *place) use(random *rand.Rand, who, round uint32) (taken int64) {
	holds, pauses := 0, 0
	for i := range uint32(random.IntN(60)) {
		m := hostabi.Message{Split: who, T: round<<8 | i + 1}
		switch random.IntN(9) {
		case 0:
			p.r.Hold()
			holds++
		case 1:
			p.r.Pause()
			pauses++
		case 2:
			p.r.After(time.Duration(random.IntN(3))*time.Microsecond, func() {
				if p.closed.Load() {
					p.t.Error("a timer fired after Close had returned")
				}
			})
		case 3, 4:
			m.Kind = 1
			if p.r.ControlTo(p, &m) {
				taken++
			}
		case 5:
			p.r.Loop().Do(func() { p.last[0][who] = max(p.last[0][who], 0) }) // a race if a slot ran
		default:
			if p.r.PostTo(p, &m) {
				taken++
			}
		}
	}
	for range holds {
		p.r.Release()
	}
	for range pauses {
		p.r.Resume()
	}
	return taken
}

// Goroutines post to receivers on two loops while others close them: each message is delivered or dropped once, in
// order, and nothing runs after Close.
func TestReceivers_ComeAndGoWhileOthersPost(t *testing.T) {
	const rounds = 300
	seed := rand.Uint64()
	loops := []*loop.Loop{loop.New("a"), loop.New("b")}
	var running, using sync.WaitGroup
	for _, l := range loops {
		running.Go(func() {
			if err := l.Run(context.Background()); err != nil {
				t.Errorf("Run = %v", err)
			}
		})
	}
	var total, taken atomic.Int64
	var now [2]atomic.Pointer[place]
	renew := func(i int) *place {
		return now[i].Swap(&place{t: t, r: loops[i].NewReceiver("place"), total: &total})
	}
	renew(0)
	renew(1)
	for who := range uint32(hammerers) {
		using.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(who)))
			for round := range uint32(rounds) {
				i := random.IntN(2)
				p := now[i].Load()
				taken.Add(p.use(random, who, round))
				if random.IntN(8) == 0 {
					old := renew(i)
					if random.IntN(2) == 0 {
						old.r.Close()
						old.closed.Store(true)
					} else {
						old.r.Control(func(*hostabi.Message) { old.r.Close(); old.closed.Store(true) }, hostabi.Message{})
					}
				}
				runtime.Gosched()
			}
		})
	}
	using.Wait()
	for _, l := range loops {
		l.Stop()
	}
	running.Wait()
	for _, l := range loops {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	if got, want := total.Load(), taken.Load(); got != want {
		t.Errorf("%d messages were delivered or dropped, want the %d that were taken", got, want)
	}
	if t.Failed() {
		t.Logf("seed %d", seed)
	}
}
