// Package simnet is virtual time and a network in it that cuts, drops, doubles and reorders, for tests of protocols that have no clock of their
// own. A test of an hour takes milliseconds, and a seed repeats it.
package simnet

import (
	"container/heap"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"
)

// Time runs functions in the order of their times. The zero value is at 0.
type Time struct {
	Now   time.Duration
	count int
	due   events
}

// After calls fn once d has passed.
func (t *Time) After(d time.Duration, fn func()) {
	t.count++
	heap.Push(&t.due, event{t.Now + d, t.count, fn})
}

// Every calls fn each d, beginning now.
func (t *Time) Every(d time.Duration, fn func()) {
	fn()
	t.After(d, func() { t.Every(d, fn) })
}

// Pass lets d pass.
func (t *Time) Pass(d time.Duration) {
	end := t.Now + d
	for len(t.due) > 0 && t.due[0].at <= end {
		e := heap.Pop(&t.due).(event)
		t.Now = e.at
		e.fn()
	}
	t.Now = end
}

type event struct {
	at    time.Duration
	count int // events of one time run in the order in which they were added
	fn    func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].count < e[j].count
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }

// Push is heap.Interface's.
func (e *events) Push(x any) { *e = append(*e, x.(event)) }

// Pop is heap.Interface's.
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

// Process is a process that may be stopped, so that what arrives waits for it, and killed.
type Process struct {
	Stops   int  // it runs while there are none
	Dead    bool // it has been killed
	waiting []func()
}

// Do calls fn, now or when the process runs again, and never where it is dead by then.
func (p *Process) Do(fn func()) {
	switch {
	case p.Dead:
	case p.Stops > 0:
		p.waiting = append(p.waiting, fn)
	default:
		fn()
	}
}

// Stop stops the process for d.
func (p *Process) Stop(t *Time, d time.Duration) {
	p.Stops++
	t.After(d, func() {
		if p.Stops--; p.Stops > 0 {
			return
		}
		waiting := p.waiting
		p.waiting = nil
		for _, fn := range waiting {
			p.Do(fn)
		}
	})
}

// Way is one direction between two hosts.
type Way struct {
	Cuts         int // nothing passes while there are any
	Drop, Double float64
	Jitter       time.Duration // 0 keeps messages in order

	Hurt time.Duration // when a message was last dropped or late
	last time.Duration // arrival of the last message
}

// Send calls arrive when a message has passed: never, once or twice.
func (w *Way) Send(t *Time, r *rand.Rand, arrive func()) {
	if w.Cuts > 0 || r.Float64() < w.Drop {
		w.Hurt = t.Now
		return
	}
	copies := 1
	if r.Float64() < w.Double {
		copies = 2
	}
	for range copies {
		at := t.Now + time.Duration(1000+r.IntN(3000))*time.Microsecond
		if w.Jitter > 0 {
			w.Hurt = t.Now
			at += time.Duration(r.Int64N(int64(w.Jitter)))
		} else {
			at = max(at, w.last)
		}
		w.last = max(w.last, at)
		t.After(at-t.Now, arrive)
	}
}

// Hurting is a fault of ways.
type Hurting uint8

// Faults of ways.
const (
	Cut Hurting = iota
	Drop
	Double
	Reorder
	hurtings
)

// AnyHurting returns one of the faults of ways.
func AnyHurting(r *rand.Rand) Hurting { return Hurting(r.IntN(int(hurtings))) }

// Hurt does harm to ways for d: all at once, so that a host or a server is away.
func Hurt(t *Time, h Hurting, d time.Duration, ways ...*Way) {
	for _, w := range ways {
		w.change(h, 1)
	}
	t.After(d, func() {
		for _, w := range ways {
			w.change(h, -1)
			w.Hurt = t.Now
		}
	})
}

func (w *Way) change(h Hurting, by int) {
	switch h {
	case Cut:
		w.Cuts += by
	case Drop:
		w.Drop += .3 * float64(by)
	case Double:
		w.Double += .3 * float64(by)
	case Reorder:
		w.Jitter += 300 * time.Millisecond * time.Duration(by)
	}
}

// Seeds calls test with seeds, and with how often each is to do harm: each times at most, RLHOST_FAULTS times in all, 20,000 times without that.
// RLHOST_SEED is the first seed.
func Seeds(t *testing.T, each int, test func(seed uint64, n int)) {
	t.Helper()
	all, _ := strconv.Atoi(os.Getenv("RLHOST_FAULTS"))
	if all == 0 {
		all = 20_000
	}
	first, err := strconv.ParseUint(os.Getenv("RLHOST_SEED"), 10, 64)
	if err != nil {
		first = rand.Uint64N(1e9)
	}
	for i := range max(1, all/each) {
		seed := first + uint64(i)
		t.Logf("seed %d", seed)
		test(seed, min(all, each))
	}
}
