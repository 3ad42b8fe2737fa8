package stat

import (
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rlhost/rlhost/internal/testkit"
)

func TestCounter_CountsFromManyGoroutines(t *testing.T) {
	var c Counter
	var g Gauge
	var h Histogram
	var wg sync.WaitGroup
	const goroutines, each = 4, 2000
	for range goroutines {
		wg.Go(func() {
			for range each {
				c.Inc()
				c.Add(2)
				g.Add(0.5)
				h.Observe(-3)
			}
		})
	}
	wg.Wait()
	if got, want := c.Value(), uint64(3*goroutines*each); got != want {
		t.Errorf("counter = %d, want %d", got, want)
	}
	if got, want := g.Value(), 0.5*goroutines*each; got != want {
		t.Errorf("gauge = %v, want %v", got, want)
	}
	d := h.Snapshot()
	if d.Count != goroutines*each || d.Mean() != -3 || d.Min != -3 || d.Max != -3 {
		t.Errorf("histogram of -3 = count %d mean %v min %v max %v", d.Count, d.Mean(), d.Min, d.Max)
	}
}

func TestHistogram_BucketsHoldTheirNumbers(t *testing.T) {
	numbers := []float64{0, 1, 1.124, 1.125, 2, 3, 1e-9, 1e9, 1 << 47, math.Ldexp(1, minExponent)}
	for _, v := range numbers {
		for _, v := range []float64{v, -v} {
			low, high := bucketBounds(bucketOf(v))
			if v < low || v > high {
				t.Errorf("bucket of %v is [%v, %v]", v, low, high)
			}
		}
	}
	for b := 1; b < buckets; b++ {
		_, before := bucketBounds(b - 1)
		if low, _ := bucketBounds(b); low < before {
			t.Errorf("bucket %d starts at %v, the one before ends at %v", b, low, before)
		}
	}
}

func TestHistogram_ExtremeNumbersStayInRange(t *testing.T) {
	for _, v := range []float64{math.MaxFloat64, math.SmallestNonzeroFloat64, math.Copysign(0, -1)} {
		for _, v := range []float64{v, -v} {
			var h Histogram
			h.Observe(v)
			d := h.Snapshot()
			if d.Count != 1 || d.Min != v || d.Max != v || d.Quantile(0.5) != v {
				t.Errorf("only %v: count %d, min %v, max %v, median %v", v, d.Count, d.Min, d.Max, d.Quantile(0.5))
			}
		}
	}
}

func TestHistogram_QuantilesAreWithinAnEighth(t *testing.T) {
	random := testkit.Random(t)
	shapes := map[string]func() float64{
		"lag":       func() float64 { return float64(random.IntN(6)) },
		"latency":   func() float64 { return math.Exp(random.NormFloat64()*2 + 10) },
		"returns":   func() float64 { return random.NormFloat64()*200 - 300 },
		"kl":        func() float64 { return random.ExpFloat64() * 1e-3 },
		"one value": func() float64 { return 475 },
	}
	for name, draw := range shapes {
		var h Histogram
		numbers := make([]float64, 5000)
		for i := range numbers {
			numbers[i] = draw()
			h.Observe(numbers[i])
		}
		slices.Sort(numbers)
		d := h.Snapshot()
		for _, q := range []float64{0, 0.01, 0.1, 0.5, 0.9, 0.99, 1} {
			want := numbers[max(int(math.Ceil(q*float64(len(numbers))))-1, 0)]
			if got := d.Quantile(q); math.Abs(got-want) > math.Abs(want)/8+1e-9 {
				t.Errorf("%s: quantile %v = %v, want %v", name, q, got, want)
			}
		}
		if d.Min != numbers[0] || d.Max != numbers[len(numbers)-1] {
			t.Errorf("%s: extremes %v and %v, want %v and %v", name, d.Min, d.Max, numbers[0], numbers[len(numbers)-1])
		}
	}
}

func TestHistogram_InvalidNumbersSpoilNothing(t *testing.T) {
	var h Histogram
	for _, v := range []float64{math.NaN(), 2, math.Inf(1), math.Inf(-1), 4} {
		h.Observe(v)
	}
	d := h.Snapshot()
	if d.Count != 2 || d.Mean() != 3 || d.Max != 4 || d.Min != 2 || d.Invalid != 3 {
		t.Errorf("count %d, mean %v, min %v, max %v, invalid %d", d.Count, d.Mean(), d.Min, d.Max, d.Invalid)
	}
}

func TestHistogram_EmptyIsZero(t *testing.T) {
	var h Histogram
	d := h.Snapshot()
	if d.Count != 0 || d.Mean() != 0 || d.Quantile(0.5) != 0 || d.Min != 0 || d.Max != 0 {
		t.Errorf("empty histogram = %+v", d)
	}
}

func TestHistogram_DrainClears(t *testing.T) {
	var h Histogram
	h.Observe(-5)
	if d := h.Drain(); d.Count != 1 || d.Min != -5 {
		t.Errorf("first drain: count %d, min %v, want 1 and -5", d.Count, d.Min)
	}
	h.Observe(7)
	if d := h.Drain(); d.Count != 1 || d.Min != 7 || d.Max != 7 || d.Mean() != 7 {
		t.Errorf("second drain: count %d, min %v, max %v, want only 7", d.Count, d.Min, d.Max)
	}
	if d := h.Drain(); d.Count != 0 {
		t.Errorf("third drain: count %d, want 0", d.Count)
	}
}

func TestHistogram_DrainLosesNothing(t *testing.T) {
	var h Histogram
	const total = 20000
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range total {
			h.Observe(1)
		}
	}()
	var got uint64
	for open := true; open; {
		select {
		case <-done:
			open = false
		default:
		}
		d := h.Drain()
		got += d.Count
	}
	if got != total {
		t.Errorf("drained %d numbers, want %d", got, total)
	}
}

func TestRegistry_SameNameIsSameMetric(t *testing.T) {
	r := NewRegistry()
	counter, gauge, histogram := r.Counter("a/n"), r.Gauge("a/n"), r.Histogram("a/n")
	if r.Counter("a/n") != counter || r.Gauge("a/n") != gauge || r.Histogram("a/n") != histogram {
		t.Error("a second request gave another metric")
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 100 {
				r.Counter("a/together").Inc()
				r.Snapshot()
			}
		})
	}
	wg.Wait()
	if got := r.Counter("a/together").Value(); got != 400 {
		t.Errorf("counter = %d, want 400", got)
	}
}

func TestRegistry_SnapshotIsSorted(t *testing.T) {
	r := NewRegistry()
	r.Gauge("learn/kl").Set(0.25)
	r.Histogram("learn/lag").Observe(2)
	r.Histogram("learn/lag").Observe(4)
	r.Histogram("empty").Observe(math.NaN())
	r.Counter("rollout/env_steps").Add(64)
	want := []Sample{
		{"empty_count", 0}, {"empty_invalid", 1},
		{"learn/kl", 0.25},
		{"learn/lag_count", 2}, {"learn/lag_max", 4}, {"learn/lag_mean", 3}, {"learn/lag_min", 2},
		{"learn/lag_p50", 2.25}, {"learn/lag_p90", 4}, {"learn/lag_p99", 4},
		{"rollout/env_steps", 64},
	}
	if got := r.Snapshot(); !slices.Equal(got, want) {
		t.Errorf("snapshot:\n got %v\nwant %v", got, want)
	}
}

func TestUpdate_AllocatesNothing(t *testing.T) {
	r := NewRegistry()
	c, g, h, rate := r.Counter("c"), r.Gauge("g"), r.Histogram("h"), NewRate(time.Minute)
	now := time.Unix(0, 0)
	if n := testing.AllocsPerRun(100, func() {
		c.Add(3)
		g.Set(2)
		g.Add(1)
		h.Observe(2.5)
		now = now.Add(time.Second)
		rate.Observe(now, float64(c.Value()))
		rate.PerSecond(10 * time.Second)
		r.Counter("c").Inc()
	}); n != 0 {
		t.Errorf("updates allocate %v times", n)
	}
}

func BenchmarkCounter(b *testing.B) {
	var c Counter
	for b.Loop() {
		c.Add(3)
	}
}

func BenchmarkHistogram(b *testing.B) {
	var h Histogram
	for b.Loop() {
		h.Observe(2.5)
	}
}
