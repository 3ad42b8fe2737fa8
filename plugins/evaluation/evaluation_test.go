package evaluation

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/env"

	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/plugintest"
)

// dice is an actor that depends only on the key of a row: 0 if greedy, else a legal action by chance.
type dice struct {
	rows   int // of the largest call
	greedy int // rows acted on greedily
}

func (a *dice) Load(policy.Weights) error { return nil }
func (a *dice) Close() error              { return nil }

func (a *dice) Act(requests []policy.Request) error {
	rows := 0
	for _, r := range requests {
		rows += r.Len()
		for i := range r.Len() {
			pick := 0
			if r.Greedy {
				a.greedy++
			} else {
				pick = int(3 * policy.Uniform(r.Seed, r.FirstEnv+uint32(i), r.Step, 0))
			}
			for m := r.ActionMask(0); m.Rows > 0 && m.Data[i*m.StrideRow+pick*m.StrideElem] == 0; {
				pick = (pick + 1) % 3
			}
			r.Action[0].Int32()[i], r.LogProb[i], r.Value[i] = int32(pick), 0, 0
		}
	}
	a.rows = max(a.rows, rows)
	return nil
}

// script rewards each action by its number and step, so that a return shows which actions were taken.
func script() plugintest.Script {
	return plugintest.Script{
		Actions: 3, Length: func(int, int) int { return 9 },
		Reward: func(at plugintest.At) float32 { return float32(at.Action) * float32(at.Step+1) },
		Legal:  func(at plugintest.At, action int) bool { return at.Step != 4 || action == 2 },
	}
}

func played(t *testing.T, s plugintest.Script, o Options) (*Result, *dice) {
	t.Helper()
	p, a := plugintest.New(s), &dice{}
	o.Plugin, o.Actor = p, a
	r, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if p.Open() != 0 {
		t.Errorf("%d batches are not closed", p.Open())
	}
	return r, a
}

func TestRun_TheNumberOfEnvironmentsDoesNotMatter(t *testing.T) {
	want, _ := played(t, script(), Options{Episodes: 20, Envs: 1, Seed: 4})
	if len(slices.Compact(slices.Sorted(slices.Values(want.Returns)))) < 5 {
		t.Fatalf("returns %v: want several different ones", want.Returns)
	}
	for _, mode := range []hostabi.Autoreset{hostabi.SameStep, hostabi.NextStep, hostabi.Disabled} {
		for _, envs := range []int{0, 1, 3, 7, 20, 64} {
			s := script()
			s.Autoreset = mode
			got, a := played(t, s, Options{Episodes: 20, Envs: envs, Seed: 4})
			if !slices.Equal(got.Returns, want.Returns) || !slices.Equal(got.Lengths, want.Lengths) {
				t.Errorf("%v, %d at a time: returns %v, want %v", mode, envs, got.Returns, want.Returns)
			}
			if a.rows > max(envs, 1) || a.rows > 20 {
				t.Errorf("%d at a time: %d rows in one call", envs, a.rows)
			}
		}
	}
	if other, _ := played(t, script(), Options{Episodes: 20, Envs: 3, Seed: 5}); slices.Equal(other.Returns, want.Returns) {
		t.Error("seeds 4 and 5 play the same")
	}
}

func TestRun_PlaysExactlyTheEpisodesAskedFor(t *testing.T) {
	for _, episodes := range []int{1, 5, 8, 9} {
		r, _ := played(t, script(), Options{Episodes: episodes, Envs: 4})
		if len(r.Returns) != episodes || len(r.Lengths) != episodes || slices.Min(r.Lengths) != 9 || slices.Max(r.Lengths) != 9 {
			t.Errorf("%d episodes: lengths %v", episodes, r.Lengths)
		}
	}
}

func TestRun_GreedyTakesOneActionAndSaysSo(t *testing.T) {
	r, a := played(t, script(), Options{Episodes: 6, Envs: 2, Greedy: true})
	if !r.Greedy || a.greedy == 0 || slices.Max(r.Returns) != 10 || slices.Min(r.Returns) != 10 {
		t.Errorf("%+v, want a return of 10 of the one forced action, and greedy said", r)
	}
	if sampled, a := played(t, script(), Options{Episodes: 6, Envs: 2}); sampled.Greedy || a.greedy != 0 {
		t.Error("sampled actions are called greedy")
	}
}

// An episode that does not end is cut off, and counts with its return so far.
func TestS17EvaluationEndsWhateverEpisodesDo(t *testing.T) {
	s := script()
	s.Length = func(env, episode int) int {
		if env == 1 {
			return 1 << 40
		}
		return 9
	}
	for _, mode := range []hostabi.Autoreset{hostabi.SameStep, hostabi.NextStep, hostabi.Disabled} {
		s.Autoreset = mode
		r, _ := played(t, s, Options{Episodes: 6, Envs: 2, MaxSteps: 20, Greedy: true})
		slices.Sort(r.Lengths)
		if r.Unfinished != 2 || !slices.Equal(r.Lengths, []int{9, 9, 9, 9, 20, 20}) {
			t.Errorf("%v: %d unfinished, lengths %v; want 2 of 20 env steps", mode, r.Unfinished, r.Lengths)
		}
	}
}

func TestRun_TakesNoMoreEnvironmentsThanThereMayBe(t *testing.T) {
	s := script()
	s.MaxEnvs = 2
	if _, a := played(t, s, Options{Episodes: 8, Envs: 5}); a.rows != 2 {
		t.Errorf("%d rows in one call, want 2", a.rows)
	}
}

func TestRun_EndsWithItsContextAndWithFaults(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p := plugintest.New(script())
	if _, err := Run(ctx, Options{Plugin: p, Player: Player{Actor: &dice{}}, Episodes: 1}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	if _, err := Run(t.Context(), Options{Plugin: p, Player: Player{Actor: &dice{}}}); err == nil || !strings.Contains(err.Error(), "0 episodes") {
		t.Errorf("no episodes: %v", err)
	}
	s := script()
	s.Cue = func(at plugintest.At) plugintest.Cue {
		if at.Calls == 3 {
			return plugintest.Trap
		}
		return plugintest.Nothing
	}
	trapping := plugintest.New(s)
	_, err := Run(t.Context(), Options{Plugin: trapping, Player: Player{Actor: &dice{}}, Episodes: 1})
	var f *env.Fault
	if !errors.As(err, &f) || !strings.Contains(err.Error(), "evaluation env 0: trap in rl_step at step 3") {
		t.Errorf("got %v, want the trap", err)
	}
	if p.Open()+trapping.Open() != 0 {
		t.Errorf("%d batches are not closed", p.Open()+trapping.Open())
	}
}

func TestResult_Statistics(t *testing.T) {
	r := Result{Returns: []float64{1, 3, 5}, Lengths: []int{2, 4, 9}}
	if r.Mean() != 3 || math.Abs(r.Std()-math.Sqrt(8./3)) > 1e-12 || r.MeanLength() != 5 {
		t.Errorf("mean %v, std %v, length %v; want 3, 1.63, 5", r.Mean(), r.Std(), r.MeanLength())
	}
}

// An evaluation whose time is over has whole rounds alone: of the next one the short episodes would count and the long ones not.
func TestRun_ThatIsCutHasWholeRounds(t *testing.T) {
	p := &play{episode: make([]int, 3), result: Result{Returns: make([]float64, 12), Lengths: make([]int, 12), Against: make([]float64, 12), Unfinished: 3}}
	p.over, p.givenUp = make([]bool, 12), make([]bool, 12)
	for _, e := range []int{0, 1, 2, 3, 4, 5, 6, 8, 9} { // 7 continues
		p.over[e] = true
	}
	p.givenUp[2], p.givenUp[6], p.givenUp[8] = true, true, true
	p.cut()
	if r := &p.result; !r.Cut || len(r.Returns) != 6 || len(r.Lengths) != 6 || len(r.Against) != 6 || r.Unfinished != 1 {
		t.Errorf("%+v, want two rounds of three, with one episode given up", r)
	}
	if r, _ := played(t, script(), Options{Episodes: 5, Envs: 2, Until: time.Now()}); !r.Cut || len(r.Returns) != 0 {
		t.Errorf("%+v, want nothing where there was no time", r)
	}
	done := 0
	if r, _ := played(t, script(), Options{Episodes: 5, Envs: 2, Until: time.Now().Add(time.Hour), Done: func() { done++ }}); r.Cut || len(r.Returns) != 5 || done != 5 {
		t.Errorf("%+v after %d calls of Done, want all five", r, done)
	}
}
