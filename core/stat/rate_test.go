package stat

import (
	"math"
	"testing"
	"time"

	"github.com/rlhost/rlhost/internal/testkit"
)

// feed gives r a reading every step, growing as perSecond says for each second since the start.
func feed(r *Rate, from, to float64, step time.Duration, value, perSecond float64) float64 {
	start := time.Unix(1000, 0)
	at := func(s float64) time.Time { return start.Add(time.Duration(s * float64(time.Second))) }
	for s := from; s < to; s += step.Seconds() {
		r.Observe(at(s), value)
		value += perSecond * step.Seconds()
	}
	r.Observe(at(to), value)
	return value
}

func near(got, want float64) bool { return math.Abs(got-want) <= 1e-6*math.Abs(want)+1e-9 }

func TestRate_IsTheMeanOverEachWindow(t *testing.T) {
	for _, step := range []time.Duration{time.Millisecond, 70 * time.Millisecond, time.Second} {
		r := NewRate(time.Minute)
		value := feed(r, 0, 100, step, 0, 1000)
		feed(r, 100, 110, step, value, 7000)
		if got := r.PerSecond(10 * time.Second); math.Abs(got-7000) > 60 {
			t.Errorf("step %v: over 10 s = %v, want 7000", step, got)
		}
		if got := r.PerSecond(time.Minute); math.Abs(got-2000) > 60 {
			t.Errorf("step %v: over 60 s = %v, want 2000", step, got)
		}
	}
}

func TestRate_ShortHistoryIsUsedWhole(t *testing.T) {
	r := NewRate(time.Minute)
	if got := r.PerSecond(time.Minute); got != 0 {
		t.Errorf("without readings = %v, want 0", got)
	}
	start := time.Unix(5, 0)
	r.Observe(start, 100)
	r.Observe(start, 150)
	if got := r.PerSecond(time.Minute); got != 0 {
		t.Errorf("two readings at one time = %v, want 0", got)
	}
	r.Observe(start.Add(2*time.Second), 300)
	if got := r.PerSecond(time.Minute); !near(got, 100) {
		t.Errorf("after 2 s = %v, want 100", got)
	}
	if got := r.PerSecond(0); got != 0 {
		t.Errorf("over no time = %v, want 0", got)
	}
}

func TestRate_SparseReadingsAreInterpolated(t *testing.T) {
	r := NewRate(time.Minute)
	start := time.Unix(5, 0)
	r.Observe(start, 0)
	r.Observe(start.Add(30*time.Second), 3000)
	r.Observe(start.Add(60*time.Second), 9000)
	if got := r.PerSecond(40 * time.Second); !near(got, (9000.-2000)/40) {
		t.Errorf("over 40 s = %v, want 175", got)
	}
}

func TestRate_StandingStillIsZero(t *testing.T) {
	r := NewRate(time.Minute)
	value := feed(r, 0, 20, 100*time.Millisecond, 0, 50)
	feed(r, 20, 40, 100*time.Millisecond, value, 0)
	if got := r.PerSecond(10 * time.Second); got != 0 {
		t.Errorf("10 s without growth = %v, want 0", got)
	}
}

func TestRate_ResetAndPastForgetHistory(t *testing.T) {
	r := NewRate(time.Minute)
	feed(r, 0, 20, time.Second, 0, 50)
	start := time.Unix(2000, 0)
	r.Observe(start, 5) // lower: the counter was reset
	r.Observe(start.Add(time.Second), 15)
	if got := r.PerSecond(time.Minute); !near(got, 10) {
		t.Errorf("after a reset = %v, want 10", got)
	}
	r.Observe(start.Add(-time.Hour), 20)
	r.Observe(start.Add(-time.Hour+time.Second), 23)
	if got := r.PerSecond(time.Minute); !near(got, 3) {
		t.Errorf("after a step back in time = %v, want 3", got)
	}
}

func TestRate_IrregularReadingsOfSteadyGrowthAgree(t *testing.T) {
	random := testkit.Random(t)
	r := NewRate(10 * time.Second)
	at := time.Unix(0, 0)
	for range 20000 {
		at = at.Add(time.Duration(random.IntN(int(50 * time.Millisecond))))
		r.Observe(at, float64(at.UnixNano())*1e-9*123)
		if random.IntN(50) != 0 || r.n < 3 {
			continue
		}
		window := time.Duration(1 + random.IntN(int(10*time.Second)))
		if got := r.PerSecond(window); math.Abs(got-123) > 0.01 {
			t.Fatalf("over %v = %v, want 123", window, got)
		}
	}
}
