package search

import (
	"math"
	"testing"
)

// searched returns the history of a search of one rung, with the values of a function.
func searched(t *testing.T, trials int, goal string, score func(p Point) float64) *History {
	t.Helper()
	c := Default()
	c.Space = map[string]Dim{"a.rate": bounds(1e-4, 1e-1, "log"), "b.size": {Choices: []any{int64(1), int64(2), int64(3)}}, "c.kind": {Choices: []any{"x", "y"}}, "d.none": bounds(0, 1, "")}
	c.Trials, c.EnvSteps, c.Confirm.Top, c.Sampler, c.Goal = trials, 1000, 0, Random, goal
	if err := c.Complete(3); err != nil {
		t.Fatal(err)
	}
	p, err := NewPlan(&c, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	h := NewHistory(&c)
	play(t, p, h, func(trial int, _ uint64, _ uint64) (float64, error) { return score(h.Trials[trial].Set), nil }, 1, first)
	return h
}

func TestInfluences_FindTheKeysThatMatter(t *testing.T) {
	t.Parallel()
	for goal, sign := range map[string]float64{"max": 1, "min": -1} {
		h := searched(t, 200, goal, func(p Point) float64 {
			return sign * (-4*math.Log10(p["a.rate"].(float64)) + map[string]float64{"x": 0, "y": 3}[p["c.kind"].(string)])
		})
		list, n := h.Influences()
		if n != 200 || len(list) != 4 {
			t.Fatalf("%s: %d keys of %d trials", goal, len(list), n)
		}
		if a := list[0]; a.Key != "a.rate" || a.Share < 0.7 || a.Trend == nil || *a.Trend > -0.8 {
			t.Errorf("%s: first is %+v", goal, a)
		}
		if c := list[1]; c.Key != "c.kind" || c.Share < 0.05 || c.Share > 0.4 || c.Trend != nil {
			t.Errorf("%s: second is %+v", goal, c)
		}
		for _, x := range list[2:] {
			if x.Share > 0.05 || math.Abs(*x.Trend) > 0.2 {
				t.Errorf("%s: %+v has nothing to do with the values", goal, x)
			}
		}
	}
}

// A key whose middle is best has a share and no trend.
func TestInfluences_SeeWhatIsNotMonotone(t *testing.T) {
	t.Parallel()
	h := searched(t, 100, "max", func(p Point) float64 { return -math.Abs(p["d.none"].(float64) - 0.5) })
	list, _ := h.Influences()
	if d := list[0]; d.Key != "d.none" || d.Share < 0.6 || math.Abs(*d.Trend) > 0.3 {
		t.Errorf("first is %+v", d)
	}
}

func TestInfluences_AreNothingForFewOrEqualTrials(t *testing.T) {
	t.Parallel()
	if list, n := searched(t, 9, "max", func(p Point) float64 { return p["d.none"].(float64) }).Influences(); list != nil || n != 9 {
		t.Errorf("of 9 trials: %v", list)
	}
	list, _ := searched(t, 30, "max", func(Point) float64 { return 7 }).Influences()
	for _, x := range list {
		if x.Share != 0 || x.Trend != nil && *x.Trend != 0 {
			t.Errorf("all trials are the same, and %+v", x)
		}
	}
}
