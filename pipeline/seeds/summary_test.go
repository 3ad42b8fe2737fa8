package seeds

import (
	"math"
	"testing"
)

func TestSummarize_HandWorkedFigures(t *testing.T) {
	t.Parallel()
	one := [][]float64{{1, 2, 3, 4, 100}}
	many := [][]float64{{0, 2}, {10, 20}, {5, 5}}
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"mean of one task", Mean(one), 22},
		{"median of one task's scores", Median(one), 3},
		{"IQM leaves one of five out at each end", IQM(one), 3},
		{"mean of tasks", Mean(many), 7},
		{"median of the tasks' means", Median(many), 5},
		{"IQM over all scores", IQM(many), (2 + 5 + 5 + 10) / 4.},
		{"improvement over itself", Improvement(one, one, Options{Resamples: 10}).Value, 0.5},
		{"always higher", Improvement([][]float64{{2, 3}}, [][]float64{{0, 1, 1}}, Options{Resamples: 10}).Low, 1},
		{"one tie in four pairs", Improvement([][]float64{{1, 3}}, [][]float64{{1, 2}}, Options{Resamples: 10}).Value, 2.5 / 4},
	} {
		if c.got != c.want {
			t.Errorf("%s: %v, want %v", c.name, c.got, c.want)
		}
	}
}

func TestSummarize_IntervalCoversAndRepeats(t *testing.T) {
	t.Parallel()
	x := [][]float64{{475, 500, 500, 498, 490, 500, 420, 500, 500, 480}}
	s, again := Summarize(x, Options{}), Summarize(x, Options{})
	if s != again {
		t.Error("the same options give another summary")
	}
	for name, e := range map[string]Estimate{"mean": s.Mean, "median": s.Median, "iqm": s.IQM} {
		if !(e.Low < e.Value && e.Value < e.High && e.Low > 420 && e.High <= 510) {
			t.Errorf("%s: %+v", name, e)
		}
	}
	if wide, narrow := s.Mean, Summarize(x, Options{Confidence: 0.5}).Mean; narrow.High-narrow.Low >= wide.High-wide.Low {
		t.Errorf("half as much confidence: %+v, not narrower than %+v", narrow, wide)
	}
	if alone := Summarize([][]float64{{7}}, Options{}); alone.Mean != point(7) || alone.Seeds != 1 {
		t.Errorf("one seed: %+v", alone)
	}
	if none := Summarize([][]float64{{}}, Options{}); !math.IsNaN(none.IQM.Value) || none.Seeds != 0 {
		t.Errorf("no seed: %+v", none)
	}
	if p := Improvement(x, nil, Options{}); !math.IsNaN(p.Value) {
		t.Errorf("against nothing: %+v", p)
	}
}
