package wrap

import (
	"slices"
	"testing"
)

// The statistics of returns stay where an environment begins again, with seeds after a fault too.
func TestS29_StatisticsSurviveABeginning(t *testing.T) {
	l := &normalizeLayer{gamma: 0.5, each: 2, returns: make([]discounted, 4)}
	for i := range l.returns {
		l.returns[i] = discounted{variance: 1, count: 1e-4}
		l.returns[i].add(float64(3+i), l.gamma)
	}
	want := slices.Clone(l.returns)
	want[2].sum, want[3].sum = 0, 0
	if l.begin(1, 7, true); !slices.Equal(l.returns, want) {
		t.Errorf("statistics became %+v, want %+v", l.returns, want)
	}
}
