package seeds

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestS30 simulates normal scores: intervals said to cover 95 % do, within the error of so many trials.
func TestS30_IntervalsCoverWhatTheySay(t *testing.T) {
	t.Parallel()
	const trials = 5000
	for _, n := range []int{3, 5, 10, 20} {
		r := rand.New(rand.NewPCG(1, uint64(n)))
		scores, covered := make([]float64, n), map[string]float64{}
		for range trials {
			for i := range scores {
				scores[i] = 100 + r.NormFloat64()
			}
			s := Summarize([][]float64{scores}, Options{})
			for name, e := range map[string]Estimate{"mean": s.Mean, "median": s.Median, "iqm": s.IQM} {
				if e.TooFew != (name == "median" && n < 6) {
					t.Fatalf("the %s of %d scores: %+v", name, n, e)
				}
				if e.Low <= 100 && 100 <= e.High {
					covered[name] += 1. / trials
				}
			}
		}
		t.Logf("%d scores: %v", n, covered)
		least := map[string]float64{"mean": 0.94, "iqm": 0.93, "median": 0.94}
		if n < 6 {
			delete(least, "median")
		}
		for name, least := range least {
			if covered[name] < least {
				t.Errorf("intervals of the %s of %d scores cover %.3f, want %.2f", name, n, covered[name], least)
			}
		}
		if covered["mean"] > 0.96 {
			t.Errorf("intervals of the mean of %d scores cover %.3f: they are too wide", n, covered["mean"])
		}
	}
}

// The mean over tasks has the degrees of freedom of Welch and Satterthwaite.
func TestS30_IntervalsOverTasksCoverWhatTheySay(t *testing.T) {
	t.Parallel()
	const trials = 5000
	r, covered := rand.New(rand.NewPCG(2, 2)), 0.0
	for range trials {
		var tasks [][]float64
		for k, n := range []int{3, 3, 5} {
			var task []float64
			for range n {
				task = append(task, float64(k)+float64(1+k)*r.NormFloat64())
			}
			tasks = append(tasks, task)
		}
		s := Summary{Seeds: 5, Mean: point(Mean(tasks))}
		s.byT(tasks, 0.95)
		if s.Mean.Low <= 1 && 1 <= s.Mean.High {
			covered += 1. / trials
		}
	}
	if covered < 0.94 || covered > 0.975 {
		t.Errorf("intervals of the mean over tasks cover %.3f", covered)
	}
}

func TestTQuantile_IsThatOfTheTables(t *testing.T) {
	t.Parallel()
	for freedom, want := range map[float64]float64{1: 12.7062, 2: 4.30265, 4: 2.77645, 9: 2.26216, 19: 2.09302, 100: 1.98397} {
		if got := tQuantile(0.975, freedom); math.Abs(got-want) > 1e-4*want {
			t.Errorf("t of %g degrees of freedom is %v, want %v", freedom, got, want)
		}
	}
}
