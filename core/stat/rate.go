package stat

import "time"

// rateSamples bounds the memory of a Rate: of points that lie close together only the newest is kept.
const rateSamples = 256

// Rate measures how fast a number grows within a time window up to its newest reading. It has no clock: the caller
// gives the time of each reading. It belongs to one goroutine.
type Rate struct {
	spacing time.Duration      // least time from one point to the next but one
	points  [rateSamples]point // ring, in order of time
	first   int
	n       int
}

type point struct {
	at    time.Time
	value float64
}

// NewRate returns a Rate that can look back over windows of up to longest.
func NewRate(longest time.Duration) *Rate {
	const pairs = rateSamples/2 - 2 // enough to reach back over the longest window, with some to spare
	return &Rate{spacing: longest / pairs}
}

// Observe records a reading. Readings come in order of time; one from the past, or a value below the last one
// (the number was reset), forgets all before it.
func (r *Rate) Observe(at time.Time, value float64) {
	if r.n > 0 {
		if last := r.point(r.n - 1); at.Before(last.at) || value < last.value {
			r.n = 0
		}
	}
	// The newest point moves along until it is far enough from the one before to stay.
	if r.n >= 2 && at.Sub(r.point(r.n-2).at) < r.spacing {
		*r.point(r.n - 1) = point{at, value}
		return
	}
	if r.n == rateSamples {
		r.first = (r.first + 1) % rateSamples
		r.n--
	}
	r.n++
	*r.point(r.n - 1) = point{at, value}
}

// PerSecond returns the mean growth per second over the window that ends with the newest reading, or over all
// readings if they do not reach back so far; 0 until two readings differ in time.
func (r *Rate) PerSecond(window time.Duration) float64 {
	if r.n < 2 {
		return 0
	}
	newest := *r.point(r.n - 1)
	start := newest.at.Add(-window)
	k := r.n - 2
	for k > 0 && r.point(k).at.After(start) {
		k--
	}
	from := between(*r.point(k), *r.point(k + 1), start)
	seconds := newest.at.Sub(from.at).Seconds()
	if seconds <= 0 {
		return 0
	}
	return (newest.value - from.value) / seconds
}

// between returns the point at a time on the line from a to b, or a if the time is before it.
func between(a, b point, at time.Time) point {
	if !at.After(a.at) {
		return a
	}
	share := float64(at.Sub(a.at)) / float64(b.at.Sub(a.at))
	return point{at, a.value + share*(b.value-a.value)}
}

// point returns the k-th oldest point.
func (r *Rate) point(k int) *point { return &r.points[(r.first+k)%rateSamples] }
