package seeds

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/rlhost/rlhost/core/control/text"
)

// Options say how intervals are estimated. The zero value is 95 %, and rliable's default number of resamples.
type Options struct {
	Resamples  int     // of the bootstrap; 0 = 50,000, fewer where there are more than 400 scores
	Confidence float64 // that an interval covers, between 0 and 1; 0 = 0.95
	Seed       uint64  // of the resamples: the same seed gives the same intervals
}

// manyDraws bounds the scores that a bootstrap draws by default: with many scores fewer resamples say as much.
const manyDraws = 20_000_000

func (o Options) withDefaults(scores int) Options {
	if o.Resamples == 0 {
		o.Resamples = min(50_000, max(manyDraws/max(scores, 1), 1000))
	}
	if o.Confidence == 0 {
		o.Confidence = 0.95
	}
	return o
}

// Estimate is a figure and its interval. With one score a task, or too few, the interval is the figure alone.
type Estimate struct {
	Value  float64 `json:"value"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
	TooFew bool    `json:"too_few,omitempty"` // seeds for an interval
}

// Interval is the interval as text.
func (e Estimate) Interval() string {
	if e.TooFew {
		return "too few seeds"
	}
	return text.Returns(e.Low) + " to " + text.Returns(e.High)
}

// Summary holds the aggregates of the scores of some tasks.
type Summary struct {
	Seeds  int      `json:"seeds"` // scores of the task that has most
	Mean   Estimate `json:"mean"`
	Median Estimate `json:"median"` // of the tasks' means over their seeds; with one task, of its scores
	IQM    Estimate `json:"iqm"`    // interquartile mean of all scores
}

// Summarize aggregates scores[task][seed]. Tasks may differ in their number of seeds; without any score all figures are
// NaN. Intervals of the mean, and of one task's interquartile mean, are Student's t up to 20 seeds; that of one task's median is of its order
// statistics. All others are percentiles of a bootstrap, 24 bytes a resample.
func Summarize(scores [][]float64, o Options) Summary {
	o = o.withDefaults(count(scores))
	s := Summary{Mean: point(Mean(scores)), Median: point(Median(scores)), IQM: point(IQM(scores))}
	for _, task := range scores {
		s.Seeds = max(s.Seeds, len(task))
	}
	if count(scores) == 0 {
		return s
	}
	few := s
	if !few.byT(scores, o.Confidence) {
		return few
	}
	s.bootstrap(scores, o)
	if s.Seeds <= manySeeds {
		s.Mean = few.Mean
	}
	if len(scores) == 1 {
		s.Median = few.Median
	}
	return s
}

// bootstrap sets all intervals to percentiles of resampled figures.
func (s *Summary) bootstrap(scores [][]float64, o Options) {
	means, medians, iqms := make([]float64, o.Resamples), make([]float64, o.Resamples), make([]float64, o.Resamples)
	resample := newResampler(scores, o.Seed)
	for i := range o.Resamples {
		drawn := resample()
		means[i], medians[i] = Mean(drawn), Median(drawn)
		iqms[i] = IQM(drawn)
	}
	s.Mean.within(means, o.Confidence)
	s.Median.within(medians, o.Confidence)
	s.IQM.within(iqms, o.Confidence)
}

func point(v float64) Estimate { return Estimate{Value: v, Low: v, High: v} }

// within sets the interval to the percentiles of the resampled figures, which it sorts.
func (e *Estimate) within(resampled []float64, confidence float64) {
	slices.Sort(resampled)
	e.Low, e.High = percentile(resampled, (1-confidence)/2), percentile(resampled, (1+confidence)/2)
}

// percentile interpolates linearly between the two nearest of some sorted numbers, as NumPy does by default.
func percentile(sorted []float64, p float64) float64 {
	at := p * float64(len(sorted)-1)
	i := int(at)
	if i+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[i] + (at-float64(i))*(sorted[i+1]-sorted[i])
}

// Mean returns the mean over tasks of their means over seeds. Tasks without scores do not count.
func Mean(scores [][]float64) float64 { return mean(taskMeans(scores)) }

// IQM returns the mean of the middle half of all scores: a quarter of them, rounded down, is left out at each end.
func IQM(scores [][]float64) float64 {
	all := slices.Concat(scores...)
	slices.Sort(all)
	cut := len(all) / 4
	return mean(all[cut : len(all)-cut])
}

// Median returns the median over tasks of their means over seeds, or with a single task the median of its scores: its mean
// has no median.
func Median(scores [][]float64) float64 {
	if len(scores) == 1 {
		return median(slices.Clone(scores[0]))
	}
	return median(taskMeans(scores))
}

func taskMeans(scores [][]float64) []float64 {
	means := make([]float64, 0, len(scores))
	for _, task := range scores {
		if len(task) > 0 {
			means = append(means, mean(task))
		}
	}
	return means
}

// mean returns NaN of nothing.
func mean(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}

// median sorts x. It returns NaN of nothing.
func median(x []float64) float64 {
	slices.Sort(x)
	n := len(x)
	switch {
	case n == 0:
		return math.NaN()
	case n%2 == 0:
		return (x[n/2-1] + x[n/2]) / 2
	}
	return x[n/2]
}

func count(scores [][]float64) int {
	n := 0
	for _, task := range scores {
		n += len(task)
	}
	return n
}

// newResampler returns a function that draws as many scores of each task as it has, with replacement. The result is valid until the next call.
func newResampler(scores [][]float64, seed uint64) func() [][]float64 {
	r := rand.New(rand.NewPCG(seed, bootstrapStream))
	drawn := make([][]float64, len(scores))
	for i, task := range scores {
		drawn[i] = make([]float64, len(task))
	}
	return func() [][]float64 {
		for i, task := range scores {
			for j := range drawn[i] {
				drawn[i][j] = task[r.IntN(len(task))]
			}
		}
		return drawn
	}
}

// bootstrapStream keeps the resamples apart from other random numbers of the same seed.
const bootstrapStream = 0x9E3779B97F4A7C15
