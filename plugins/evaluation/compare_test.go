package evaluation

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/plugins/plugintest"
)

func compared(t *testing.T, before, after plugintest.Script, o CompareOptions) (Trial, Trial) {
	t.Helper()
	p, q := plugintest.New(before), plugintest.New(after)
	o.Old, o.New, o.Actor = p, q, &dice{}
	a, b, err := Compare(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if p.Open()+q.Open() != 0 {
		t.Errorf("%d batches are not closed", p.Open()+q.Open())
	}
	return a, b
}

func TestCompare_TheSameVersionDoesTheSame(t *testing.T) {
	a, b := compared(t, script(), script(), CompareOptions{Envs: 4, Episodes: 5, Seed: 3})
	if !slices.Equal(a.Returns, b.Returns) || !slices.Equal(a.Lengths, b.Lengths) || len(a.Returns) != 20 {
		t.Errorf("returns %v and %v, want 20 equal ones", a.Returns, b.Returns)
	}
	if a.Steps != 4*5*9 || b.Steps != a.Steps || a.Unfinished != 0 || a.Fault != nil || a.PerSecond <= 0 {
		t.Errorf("%+v, want 180 env steps without a fault", a)
	}
}

// Environments with short episodes play no more of them than the others: else they would dominate the mean.
func TestCompare_EachEnvironmentHasItsQuota(t *testing.T) {
	s := script()
	s.Length = func(env, episode int) int { return 3 + 40*env }
	a, _ := compared(t, s, s, CompareOptions{Envs: 3, Episodes: 4})
	slices.Sort(a.Lengths)
	if want := []int{3, 3, 3, 3, 43, 43, 43, 43, 83, 83, 83, 83}; !slices.Equal(a.Lengths, want) {
		t.Errorf("lengths %v, want %v", a.Lengths, want)
	}
}

// An episode cut off by the ceiling counts with its return so far: leaving it out would favour early ends.
func TestCompare_CountsWhatTheCeilingCutsOff(t *testing.T) {
	long := script()
	long.Length = func(int, int) int { return 1 << 40 }
	a, b := compared(t, script(), long, CompareOptions{Envs: 2, Episodes: 3, Ceiling: 20})
	if a.Steps != 40 || a.Unfinished != 2 || len(a.Returns) != 6 {
		t.Errorf("%+v, want 40 steps in 6 episodes of which 2 are cut off", a)
	}
	if b.Steps != 40 || b.Unfinished != 2 || !slices.Equal(b.Lengths, []int{20, 20}) {
		t.Errorf("%+v, want two episodes of 20 steps, cut off", b)
	}
}

func TestCompare_AFaultEndsOneSideAlone(t *testing.T) {
	for name, cue := range map[string]plugintest.Cue{"trap": plugintest.Trap, "hang": plugintest.Deadline, "NaN": plugintest.NaNObservation, "infinite": plugintest.InfiniteReward} {
		bad := script()
		bad.Cue = func(at plugintest.At) plugintest.Cue {
			if at.Calls == 5 {
				return cue
			}
			return plugintest.Nothing
		}
		a, b := compared(t, script(), bad, CompareOptions{Envs: 2, Episodes: 2})
		if a.Fault != nil || len(a.Returns) != 4 {
			t.Errorf("%s: the old version: %+v", name, a)
		}
		if b.Fault == nil || b.Steps > 10 {
			t.Errorf("%s: the new version: %+v, want its fault", name, b)
		}
	}
}

func TestCompare_SaysHowFarItIs(t *testing.T) {
	s := script()
	s.Length = func(int, int) int { return 200 }
	last, calls := 0.0, 0
	compared(t, s, s, CompareOptions{Envs: 2, Episodes: 3, Progress: func(share float64) {
		if calls++; share < last || share > 1 {
			t.Errorf("%v after %v", share, last)
		}
		last = share
	}})
	if last != 1 || calls < 5 {
		t.Errorf("heard %d times, %v at last", calls, last)
	}
}

func TestCompare_EndsWithItsContextAndRefusesNonsense(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("the client is gone")
	cancel(gone)
	p := plugintest.New(script())
	if _, _, err := Compare(ctx, CompareOptions{Old: p, New: p, Player: Player{Actor: &dice{}}, Envs: 1, Episodes: 1}); !errors.Is(err, gone) {
		t.Errorf("got %v, want why the context ended", err)
	}
	if _, _, err := Compare(t.Context(), CompareOptions{Old: p, New: p, Envs: 0, Episodes: 1}); err == nil || !strings.Contains(err.Error(), "0 environments") {
		t.Errorf("got %v", err)
	}
	if p.Open() != 0 {
		t.Errorf("%d batches are not closed", p.Open())
	}
	if a := (Trial{}); !math.IsNaN(a.Mean()) {
		t.Errorf("the mean of no episode is %v", a.Mean())
	}
}
