package seeds

import "math"

// Improvement estimates the probability that a run of x scores higher than one of y, averaged over tasks: the share of
// pairs of their seeds in which x is higher, ties counted half (Mann and Whitney's U over the number of pairs). It is NaN
// unless both have the same number of tasks and at least one score of each.
func Improvement(x, y [][]float64, o Options) Estimate {
	e := point(improvement(x, y))
	if math.IsNaN(e.Value) {
		return e
	}
	o = o.withDefaults(count(x) * count(y))
	resampled := make([]float64, o.Resamples)
	ofX, ofY := newResampler(x, o.Seed), newResampler(y, o.Seed+1)
	for i := range resampled {
		resampled[i] = improvement(ofX(), ofY())
	}
	e.within(resampled, o.Confidence)
	return e
}

func improvement(x, y [][]float64) float64 {
	if len(x) != len(y) || len(x) == 0 {
		return math.NaN()
	}
	sum := 0.0
	for i := range x {
		sum += wins(x[i], y[i])
	}
	return sum / float64(len(x))
}

// wins returns the share of pairs in which a score of x is higher than one of y.
func wins(x, y []float64) float64 {
	won := 0.0
	for _, a := range x {
		for _, b := range y {
			switch {
			case a > b:
				won++
			case a == b:
				won += 0.5
			}
		}
	}
	return won / float64(len(x)*len(y))
}
