package stat

import (
	"errors"
	"math"
	"reflect"
	"testing"
)

func TestMerge_AddsUpToWhatOneHistogramHolds(t *testing.T) {
	var one, far, near Histogram
	for i := range 1000 {
		v := math.Sin(float64(i)) * float64(i*i)
		one.Observe(v)
		if i%3 == 0 {
			far.Observe(v)
		} else {
			near.Observe(v)
		}
	}
	far.Observe(math.NaN())
	one.Observe(math.Inf(1))
	d := far.Drain()
	if err := near.Merge(d.Buckets()); err != nil {
		t.Fatal(err)
	}
	got, want := near.Snapshot(), one.Snapshot()
	if math.Abs(got.Sum-want.Sum) > 1e-6*math.Abs(want.Sum) {
		t.Errorf("sum %v, want %v", got.Sum, want.Sum)
	}
	got.Sum = want.Sum
	if !reflect.DeepEqual(got, want) {
		t.Errorf("merged: %d numbers from %v to %v, want %d from %v to %v", got.Count, got.Min, got.Max, want.Count, want.Min, want.Max)
	}
	empty := far.Drain()
	if b := empty.Buckets(); len(b.Index) != 0 || near.Merge(b) != nil {
		t.Errorf("an empty distribution has %+v", b)
	}
}

func TestMerge_RefusesInvalidBuckets(t *testing.T) {
	ok := Buckets{Sum: 3, Min: 1, Max: 2, Index: []int{700, 800}, Count: []uint64{1, 1}}
	for name, change := range map[string]func(*Buckets){
		"a count too few":       func(b *Buckets) { b.Count = b.Count[:1] },
		"a bucket below 0":      func(b *Buckets) { b.Index = []int{-1, 800} },
		"a bucket beyond":       func(b *Buckets) { b.Index = []int{700, buckets} },
		"the same bucket twice": func(b *Buckets) { b.Index = []int{700, 700} },
		"too many numbers":      func(b *Buckets) { b.Count = []uint64{1, math.MaxUint64} },
		"too many invalid":      func(b *Buckets) { b.Invalid = math.MaxUint64 },
		"a sum that is none":    func(b *Buckets) { b.Sum = math.NaN() },
		"an infinite extreme":   func(b *Buckets) { b.Max = math.Inf(1) },
		"extremes in disorder":  func(b *Buckets) { b.Min = 3 },
	} {
		b := ok
		change(&b)
		var h Histogram
		if err := h.Merge(b); !errors.Is(err, ErrBuckets) {
			t.Errorf("%s: %v, want ErrBuckets", name, err)
		}
		if h.Snapshot() != (Distribution{}) {
			t.Errorf("%s: the histogram has changed", name)
		}
	}
	var h Histogram
	if err := h.Merge(ok); err != nil {
		t.Error(err)
	}
}
