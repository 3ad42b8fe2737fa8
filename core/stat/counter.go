package stat

import (
	"math"
	"sync/atomic"
)

// cacheLine keeps metrics of different goroutines from slowing each other down.
const cacheLine = 64

// Counter counts up. The zero Counter is ready. All methods may be called from any goroutine.
type Counter struct {
	n atomic.Uint64
	_ [cacheLine - 8]byte
}

// Add adds n.
func (c *Counter) Add(n uint64) { c.n.Add(n) }

// Inc adds one.
func (c *Counter) Inc() { c.n.Add(1) }

// Value returns the count.
func (c *Counter) Value() uint64 { return c.n.Load() }

// Gauge is a number that goes up and down. The zero Gauge is 0. All methods may be called from any goroutine.
type Gauge struct {
	f float
	_ [cacheLine - 8]byte
}

// Set replaces the number.
func (g *Gauge) Set(v float64) { g.f.store(v) }

// Add adds to the number; v may be negative.
func (g *Gauge) Add(v float64) { g.f.add(v) }

// Value returns the number.
func (g *Gauge) Value() float64 { return g.f.load() }

// float is a float64 whose every update is atomic.
type float struct{ bits atomic.Uint64 }

func (f *float) load() float64 { return math.Float64frombits(f.bits.Load()) }

func (f *float) store(v float64) { f.bits.Store(math.Float64bits(v)) }

func (f *float) add(v float64) {
	for {
		old := f.bits.Load()
		if f.bits.CompareAndSwap(old, math.Float64bits(math.Float64frombits(old)+v)) {
			return
		}
	}
}
