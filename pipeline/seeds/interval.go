package seeds

import (
	"math"
	"slices"
)

// manySeeds is up to how many scores of a task an interval of a mean is by Student's t: a percentile bootstrap of so few is too narrow. "95 %" of
// it cover 0.75, 0.84, 0.90 and 0.92 at 3, 5, 10 and 20 normal scores; t covers 0.95.
const manySeeds = 20

// byT sets the intervals of means where there are few seeds, and the intervals of the median and the interquartile mean of a single task. It
// reports whether an interval is left that needs the bootstrap.
func (s *Summary) byT(scores [][]float64, confidence float64) (left bool) {
	if few := s.Seeds <= manySeeds; few {
		s.Mean.byT(taskVariances(scores), confidence)
	}
	if len(scores) != 1 {
		return true
	}
	s.Median.byOrder(scores[0], confidence)
	if s.Seeds <= manySeeds {
		s.IQM.byT([]part{trimmed(scores[0])}, confidence)
	}
	return s.Seeds > manySeeds
}

// part is a task's share of the squared error of a mean over tasks.
type part struct{ variance, freedom float64 }

// taskVariances returns the squared errors of the tasks' means, as parts of the squared error of the mean over tasks.
func taskVariances(scores [][]float64) (list []part) {
	n := float64(len(taskMeans(scores)))
	for _, task := range scores {
		if len(task) > 1 {
			list = append(list, part{squares(task) / float64(len(task)-1) / float64(len(task)) / (n * n), float64(len(task) - 1)})
		}
	}
	return list
}

// trimmed returns the squared error of a task's interquartile mean (Tukey and McLaughlin 1963): the error of the scores with the trimmed
// ones at each end replaced by the next ones.
func trimmed(scores []float64) part {
	sorted := slices.Sorted(slices.Values(scores))
	n, cut := len(sorted), len(sorted)/4
	for i := range cut {
		sorted[i], sorted[n-1-i] = sorted[cut], sorted[n-1-cut]
	}
	middle := float64(n - 2*cut)
	return part{squares(sorted) / (middle * (middle - 1)), middle - 1}
}

// squares returns the sum of squared deviations from the mean.
func squares(x []float64) (sum float64) {
	m := mean(x)
	for _, v := range x {
		sum += (v - m) * (v - m)
	}
	return sum
}

// byT sets the interval by the squared errors that make up that of the value, with the degrees of freedom of Welch and Satterthwaite.
func (e *Estimate) byT(parts []part, confidence float64) {
	variance, denominator := 0.0, 0.0
	for _, p := range parts {
		if p.freedom >= 1 {
			variance += p.variance
			denominator += p.variance * p.variance / p.freedom
		}
	}
	if !(denominator > 0) {
		return // one score, or all are equal
	}
	half := tQuantile((1+confidence)/2, variance*variance/denominator) * math.Sqrt(variance)
	e.Low, e.High = e.Value-half, e.Value+half
}

// byOrder sets the interval of a median to the innermost two order statistics that cover it, whatever the scores' distribution. Of fewer than six
// scores none do at 95 %.
func (e *Estimate) byOrder(scores []float64, confidence float64) {
	sorted := slices.Sorted(slices.Values(scores))
	n := len(sorted)
	outside, term := 0.0, math.Pow(0.5, float64(n)) // probabilities of a binomial number of n halves
	k := 0
	for ; 2*(outside+term) <= 1-confidence; k++ {
		outside += term
		term *= float64(n-k) / float64(k+1)
	}
	if e.TooFew = k == 0 && n > 1; k > 0 {
		e.Low, e.High = sorted[k-1], sorted[n-k]
	}
}

// tQuantile returns the quantile of Student's t distribution for a probability above a half.
func tQuantile(p, freedom float64) float64 {
	low, high := 0.0, 1.0
	for tBeyond(high, freedom) > 1-p {
		high *= 2
	}
	for range 50 {
		if mid := (low + high) / 2; tBeyond(mid, freedom) > 1-p {
			low = mid
		} else {
			high = mid
		}
	}
	return high
}

// tBeyond returns the probability of a number above t, which is 0 or more.
func tBeyond(t, freedom float64) float64 {
	return incompleteBeta(freedom/(freedom+t*t), freedom/2, 0.5) / 2
}

// incompleteBeta is the regularised incomplete beta function, by its continued fraction (Abramowitz and Stegun, 26.5.8).
func incompleteBeta(x, a, b float64) float64 {
	if x <= 0 || x >= 1 {
		return min(max(x, 0), 1)
	}
	if x > (a+1)/(a+b+2) {
		return 1 - incompleteBeta(1-x, b, a)
	}
	logA, _ := math.Lgamma(a)
	logB, _ := math.Lgamma(b)
	logBoth, _ := math.Lgamma(a + b)
	fraction := 1.0
	for m := 60.0; m >= 1; m-- { // from its end: it converges in far fewer terms
		odd := -(a + m) * (a + b + m) * x / ((a + 2*m) * (a + 2*m + 1))
		even := m * (b - m) * x / ((a + 2*m - 1) * (a + 2*m))
		fraction = 1 + even/(1+odd/fraction)
	}
	first := -(a + b) * x / (a + 1)
	return math.Exp(logBoth-logA-logB+a*math.Log(x)+b*math.Log1p(-x)) / (a * (1 + first/fraction))
}
