package stat

import (
	"math"
	"sync/atomic"
)

// Buckets divide each power of two into eighths, so that a quantile is off by at most an eighth of its value. Buckets cover magnitudes from
// 2^-32 to 2^48: from a tiny KL divergence to three days in nanoseconds. Smaller values count as zero, larger ones fall into the last bucket.
const (
	subBits     = 3
	minExponent = -32
	maxExponent = 48
	magnitudes  = (maxExponent - minExponent) << subBits
	zeroBucket  = magnitudes // negative numbers below it, positive ones above
	buckets     = 2*magnitudes + 1
)

// Histogram keeps the distribution of finite numbers, positive and negative, in fixed buckets (10 KB). The zero
// Histogram is empty and ready. All methods may be called from any goroutine.
type Histogram struct {
	counts  [buckets]atomic.Uint64
	sum     float
	extreme [2]extreme    // of -v, of v: the largest yet
	invalid atomic.Uint64 // NaN and infinite numbers
}

// Observe adds one number. NaN and infinities only count as invalid: they would spoil every mean after them.
func (h *Histogram) Observe(v float64) {
	if v-v != 0 {
		h.invalid.Add(1)
		return
	}
	h.counts[bucketOf(v)].Add(1)
	h.sum.add(v)
	h.extreme[0].raise(-v)
	h.extreme[1].raise(v)
}

// Snapshot returns the distribution so far. Concurrent observations may be partly included.
func (h *Histogram) Snapshot() Distribution {
	return h.read(func(n *atomic.Uint64) uint64 { return n.Load() })
}

// Drain returns the observations since the last Drain, and clears the histogram. A number that arrives meanwhile
// is counted once, here or next time; mean and extremes may include it in the other one.
func (h *Histogram) Drain() Distribution {
	return h.read(func(n *atomic.Uint64) uint64 { return n.Swap(0) })
}

func (h *Histogram) read(take func(*atomic.Uint64) uint64) Distribution {
	d := Distribution{Invalid: take(&h.invalid)}
	d.Sum = math.Float64frombits(take(&h.sum.bits))
	low, high := extremeOf(take(&h.extreme[0].key)), extremeOf(take(&h.extreme[1].key))
	for b := range h.counts {
		if h.counts[b].Load() == 0 {
			continue
		}
		d.counts[b] = take(&h.counts[b])
		d.Count += d.counts[b]
	}
	if d.Count > 0 {
		d.Min, d.Max = -low, high
	}
	return d
}

// Distribution is the content of a histogram at one time.
type Distribution struct {
	Count    uint64  // finite numbers
	Sum      float64 // of them
	Min, Max float64 // of them, exact; 0 if there are none
	Invalid  uint64  // NaN and infinite numbers, in nothing else

	counts [buckets]uint64
}

// Mean returns the mean, exact but for rounding; 0 of nothing.
func (d *Distribution) Mean() float64 {
	if d.Count == 0 {
		return 0
	}
	return d.Sum / float64(d.Count)
}

// Quantile estimates the number that the share q in [0, 1] of all numbers do not exceed, within an eighth of its
// magnitude; 0 of nothing. Quantile(0) is Min and Quantile(1) is Max.
func (d *Distribution) Quantile(q float64) float64 {
	if d.Count == 0 {
		return 0
	}
	rank := q * float64(d.Count)
	if rank <= 0 {
		return d.Min
	}
	below := 0.0
	for b, n := range d.counts {
		if n == 0 {
			continue
		}
		if below+float64(n) >= rank {
			low, high := bucketBounds(b)
			v := low + (high-low)*(rank-below)/float64(n)
			return min(max(v, d.Min), d.Max)
		}
		below += float64(n)
	}
	return d.Max
}

// bucketOf returns the bucket of a finite number. The first bits of a float64 after the sign are its exponent and
// the eighth within it, and they sort as the numbers do.
func bucketOf(v float64) int {
	const shift = 52 - subBits
	magnitude := int(math.Float64bits(v)<<1>>1>>shift) - (minExponent+1023)<<subBits
	if magnitude < 0 {
		return zeroBucket
	}
	magnitude = min(magnitude, magnitudes-1)
	if v < 0 {
		return zeroBucket - 1 - magnitude
	}
	return zeroBucket + 1 + magnitude
}

// bucketBounds returns the numbers between which a bucket lies.
func bucketBounds(b int) (low, high float64) {
	if b == zeroBucket {
		return 0, 0
	}
	if b < zeroBucket {
		low, high = bucketBounds(2*zeroBucket - b)
		return -high, -low
	}
	m := b - zeroBucket - 1
	edge := func(m int) float64 {
		return math.Ldexp(1+float64(m&(1<<subBits-1))/(1<<subBits), m>>subBits+minExponent)
	}
	return edge(m), edge(m + 1)
}

// extreme is the largest of the numbers it was given. Its key sorts as they do, and 0 is below all of them, so
// that the zero extreme has seen nothing.
type extreme struct{ key atomic.Uint64 }

func (e *extreme) raise(v float64) {
	key := math.Float64bits(v)
	if key>>63 != 0 {
		key = ^key
	} else {
		key |= 1 << 63
	}
	for {
		old := e.key.Load()
		if old >= key || e.key.CompareAndSwap(old, key) {
			return
		}
	}
}

func extremeOf(key uint64) float64 {
	if key>>63 != 0 {
		return math.Float64frombits(key &^ (1 << 63))
	}
	return math.Float64frombits(^key)
}
