package stat

import (
	"errors"
	"fmt"
	"math"
)

// ErrBuckets is wrapped by Merge for numbers that no histogram can have.
var ErrBuckets = errors.New("buckets not accepted")

// maxMerged bounds the numbers that one Merge adds, so that a count from outside cannot make a histogram overflow.
const maxMerged = 1 << 48

// Buckets is a Distribution in a form to be sent to another process: the buckets that are not empty, in order.
type Buckets struct {
	Sum, Min, Max float64
	Invalid       uint64
	Index         []int    // of the bucket
	Count         []uint64 // numbers in it
}

// Buckets returns the distribution for another process.
func (d *Distribution) Buckets() Buckets {
	b := Buckets{Sum: d.Sum, Min: d.Min, Max: d.Max, Invalid: d.Invalid}
	for i, n := range d.counts {
		if n > 0 {
			b.Index, b.Count = append(b.Index, i), append(b.Count, n)
		}
	}
	return b
}

// Merge adds another process's observations. It takes all of it or, with an error that wraps ErrBuckets, nothing.
func (h *Histogram) Merge(b Buckets) error {
	if err := b.check(); err != nil {
		return err
	}
	for i, n := range b.Count {
		h.counts[b.Index[i]].Add(n)
	}
	h.invalid.Add(b.Invalid)
	if len(b.Count) > 0 {
		h.sum.add(b.Sum)
		h.extreme[0].raise(-b.Min)
		h.extreme[1].raise(b.Max)
	}
	return nil
}

func (b *Buckets) check() error {
	if len(b.Index) != len(b.Count) {
		return fmt.Errorf("%w: %d buckets with %d counts", ErrBuckets, len(b.Index), len(b.Count))
	}
	total, last := b.Invalid, -1
	for i, n := range b.Count {
		if b.Index[i] <= last || b.Index[i] >= buckets {
			return fmt.Errorf("%w: bucket %d after %d", ErrBuckets, b.Index[i], last)
		}
		last = b.Index[i]
		if n > maxMerged || total > maxMerged-n {
			return fmt.Errorf("%w: more than %d numbers", ErrBuckets, uint64(maxMerged))
		}
		total += n
	}
	if total > maxMerged {
		return fmt.Errorf("%w: more than %d numbers", ErrBuckets, uint64(maxMerged))
	}
	for _, v := range [...]float64{b.Sum, b.Min, b.Max} {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("%w: sum or extremes are not finite", ErrBuckets)
		}
	}
	if b.Min > b.Max {
		return fmt.Errorf("%w: from %g to %g", ErrBuckets, b.Min, b.Max)
	}
	return nil
}
