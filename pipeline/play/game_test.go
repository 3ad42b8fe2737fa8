package play_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/pipeline/play"
	"github.com/rlhost/rlhost/plugins/evaluation"
	"github.com/rlhost/rlhost/plugins/plugintest"
)

// newGame plays a script and notes the actions that it gets.
func newGame(t *testing.T, s plugintest.Script, o play.Options) (g *play.Game, taken *[]string) {
	t.Helper()
	taken = new([]string)
	s.Reward = func(at plugintest.At) float32 {
		*taken = append(*taken, fmt.Sprint(at.Actions))
		return float32(at.Step + 1)
	}
	g, err := play.New(plugintest.New(s), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	return g, taken
}

func step(t *testing.T, g *play.Game, times int) {
	t.Helper()
	for range times {
		if err := g.Step(); err != nil {
			t.Fatal(err)
		}
	}
}

// Whatever the actions are made of, a person's arrive as they were chosen.
func TestGame_TakesWhatThePersonChooses(t *testing.T) {
	for name, spaces := range plugintest.Spaces() {
		g, taken := newGame(t, plugintest.Script{Spaces: spaces}, play.Options{Seed: 1})
		g.By = play.Person
		var chosen, tooHigh []float64
		for _, a := range g.Actions() {
			for e := range a.Elems(hostabi.MaxTensorElems) {
				low, high := a.Bounds(e)
				switch {
				case a.Discrete():
					chosen = append(chosen, float64(int(a.Start)+a.Count(e)-1))
					tooHigh = append(tooHigh, float64(int(a.Start)+a.Count(e)))
				case a.Flags&hostabi.TensorNoHigh != 0:
					chosen, tooHigh = append(chosen, 7), append(tooHigh, float64(low)-1)
				default:
					chosen, tooHigh = append(chosen, float64(high)), append(tooHigh, float64(high)+0.5)
				}
			}
		}
		if err := g.Choose(tooHigh); !errors.Is(err, play.ErrChoice) {
			t.Errorf("%s: %v is chosen: %v", name, tooHigh, err)
		}
		if err := g.Choose(chosen[1:]); !errors.Is(err, play.ErrChoice) {
			t.Errorf("%s: too few numbers are chosen: %v", name, err)
		}
		if err := g.Choose(chosen); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		step(t, g, 1)
		if want := fmt.Sprint(chosen); (*taken)[0] != want {
			t.Errorf("%s: it takes %s, want %s", name, (*taken)[0], want)
		}
		for key, action := range play.DefaultKeys(g) {
			if err := g.Choose(action); err != nil {
				t.Errorf("%s: the key %s: %v", name, key, err)
			}
		}
	}
}

// A game that goes back repeats the same actions, and what was undone can be done again; another choice replaces the rest.
func TestGame_GoesBackByPlayingAgain(t *testing.T) {
	g, taken := newGame(t, plugintest.Script{Actions: 9}, play.Options{Seed: 3})
	step(t, g, 6)
	was := slices.Clone(*taken)
	*taken = nil
	if err := g.Back(4); err != nil {
		t.Fatal(err)
	}
	if g.Steps() != 2 || g.Return != 3 || !slices.Equal(*taken, was[:2]) {
		t.Errorf("after going back there are %d steps, return %v and actions %v of %v", g.Steps(), g.Return, *taken, was)
	}
	*taken = nil
	if err := g.Back(-9); err != nil {
		t.Fatal(err)
	}
	if g.Steps() != 6 || !slices.Equal(*taken, was) {
		t.Errorf("after going forward there are %d steps, and actions %v, want %v", g.Steps(), *taken, was)
	}
	if err := g.Back(99); err != nil || g.Steps() != 0 {
		t.Errorf("%v, %d steps, want the beginning", err, g.Steps())
	}
	*taken, g.By = nil, play.Person
	if err := g.Choose([]float64{8}); err != nil {
		t.Fatal(err)
	}
	step(t, g, 1)
	if err := errors.Join(g.Back(0), g.Back(-9)); err != nil || g.Steps() != 1 || (*taken)[0] != "[8]" {
		t.Errorf("%v: the old future is still there: %d steps, %v", err, g.Steps(), *taken)
	}
}

// Episodes end, their last step is seen, and the next one begins with the next step. They are the same for the same seed.
func TestGame_EpisodesFollowOneAnother(t *testing.T) {
	for _, mode := range []hostabi.Autoreset{hostabi.Disabled, hostabi.SameStep, hostabi.NextStep} {
		s := plugintest.Script{Actions: 9, Autoreset: mode, Length: func(int, int) int { return 3 }, Ends: func(_, _ int) plugintest.End { return plugintest.Truncates }}
		g, taken := newGame(t, s, play.Options{Seed: 5})
		step(t, g, 3)
		if !g.Over || g.Ended != "truncated" || g.Return != 6 || g.Episode != 0 {
			t.Errorf("%v: over %t, ended %q, return %v, episode %d", mode, g.Over, g.Ended, g.Return, g.Episode)
		}
		step(t, g, 1)
		if g.Over || g.Steps() != 0 || g.Episode != 1 {
			t.Errorf("%v: over %t, %d steps, episode %d", mode, g.Over, g.Steps(), g.Episode)
		}
		step(t, g, 3)
		again, same := newGame(t, s, play.Options{Seed: 5})
		step(t, again, 7)
		if !slices.Equal(*taken, *same) || len(*taken) != 6 {
			t.Errorf("%v: %v and %v", mode, *taken, *same)
		}
	}
}

// A choice that the mask forbids changes nothing, and the episode continues with a legal one.
func TestGame_RefusesWhatIsNotLegal(t *testing.T) {
	g, taken := newGame(t, plugintest.Script{Actions: 3, Legal: func(_ plugintest.At, value int) bool { return value == 2 }}, play.Options{Seed: 1})
	g.By = play.Person
	for _, choice := range []float64{0, 1} {
		if err := errors.Join(g.Choose([]float64{choice}), g.Step()); !errors.Is(err, play.ErrChoice) || g.Steps() != 0 {
			t.Errorf("%v: %v after %d steps", choice, err, g.Steps())
		}
	}
	if err := errors.Join(g.Choose([]float64{2}), g.Step()); err != nil || len(*taken) != 1 {
		t.Errorf("%v: %v", err, *taken)
	}
}

// counting is a policy whose action is how often it has acted in the episode.
type counting struct{ acted, begun int }

func (c *counting) Begin() { c.acted, c.begun = 0, c.begun+1 }

func (c *counting) Act(o evaluation.Observation) ([]evaluation.Elements, error) {
	if got := int(o.Tensors[0].F32[plugintest.ObsStep]); got != c.acted {
		return nil, fmt.Errorf("it sees step %d, want %d", got, c.acted)
	}
	c.acted++
	return []evaluation.Elements{{I32: []int32{int32(c.acted)}}}, nil
}

// A person takes over from a policy and gives back: the policy has seen the whole episode, also after going back.
func TestGame_APersonTakesOverFromAPolicy(t *testing.T) {
	policy := &counting{}
	g, taken := newGame(t, plugintest.Script{Actions: 9}, play.Options{Seed: 1, Seats: []play.Seat{policy}})
	g.By = play.Policy
	step(t, g, 2)
	g.By = play.Person
	step(t, g, 2)
	g.By = play.Policy
	step(t, g, 1)
	if want := []string{"[1]", "[2]", "[0]", "[0]", "[5]"}; !slices.Equal(*taken, want) {
		t.Errorf("%v, want %v", *taken, want)
	}
	if err := g.Back(2); err != nil {
		t.Fatal(err)
	}
	step(t, g, 1)
	if last := (*taken)[len(*taken)-1]; last != "[4]" || policy.begun != 2 {
		t.Errorf("after going back the policy takes %s, want [4]; it has begun %d times", last, policy.begun)
	}
}

func TestKeys_AreListed(t *testing.T) {
	g, _ := newGame(t, plugintest.Script{Actions: 3}, play.Options{})
	if got, want := play.DefaultKeys(g).String(), "0–2 left=0 right=2"; got != want {
		t.Errorf("the keys are %q, want %q", got, want)
	}
}

func TestNew_RefusesAnAgentThatIsNotThere(t *testing.T) {
	_, err := play.New(plugintest.New(plugintest.Script{}), play.Options{Agent: 1})
	if err == nil || !strings.Contains(err.Error(), "agent 1: scripted@1 has 1, from 0 on") {
		t.Error(err)
	}
}
