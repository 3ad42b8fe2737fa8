package evaluation

import (
	"slices"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/plugins/plugintest"
)

// noting is an actor that notes its inputs and actions.
type noting struct {
	policy.Actor
	obs     [][]float32
	actions []int32
}

func (a *noting) Act(requests []policy.Request) error {
	err := a.Actor.Act(requests)
	for i := range requests {
		a.obs = append(a.obs, slices.Clone(of(&requests[i].Obs[0], 0)))
		a.actions = append(a.actions, requests[i].Action[0].Int32()[0])
	}
	return err
}

// A seat acts as an evaluation does that plays the same episodes one at a time: with the same state of the core, and by the same draws.
func TestSeat_ActsAsAnEvaluationDoes(t *testing.T) {
	s := script()
	s.Length = func(int, int) int { return 45 } // longer than the driver's block
	for _, greedy := range []bool{true, false} {
		played := &noting{Actor: newKeeper(t).Actor}
		_, err := Run(t.Context(), Options{Plugin: plugintest.New(s), Player: Player{Actor: played, Network: keeping()}, Episodes: 3, Envs: 1, Seed: 4, Greedy: greedy})
		if err != nil {
			t.Fatal(err)
		}
		seat, err := NewSeat(Player{Actor: newKeeper(t).Actor, Network: keeping()}, plugintest.New(s).Spec(), 4, greedy)
		if err != nil {
			t.Fatal(err)
		}
		for k, obs := range played.obs {
			if obs[plugintest.ObsStep] == 0 {
				seat.Begin()
			}
			o := Observation{Tensors: []Elements{{F32: obs}}}
			if obs[plugintest.ObsStep] == 4 { // see script
				o.Masks = [][]uint8{{0, 0, 1}}
			}
			actions, err := seat.Act(o)
			if err != nil {
				t.Fatal(err)
			}
			if got := actions[0].I32[0]; got != played.actions[k] {
				t.Fatalf("greedy %t, step %d: action %d, the evaluation's is %d", greedy, k, got, played.actions[k])
			}
		}
		if n := len(slices.Compact(slices.Sorted(slices.Values(played.actions)))); len(played.obs) != 135 || n < 2 {
			t.Errorf("greedy %t: %d steps with %d different actions", greedy, len(played.obs), n)
		}
		if err := seat.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A wrong observation is refused, and the seat continues.
func TestSeat_RefusesWrongObservations(t *testing.T) {
	s := script()
	s.Legal = func(_ plugintest.At, value int) bool { return value > 0 }
	seat, err := NewSeat(Player{Actor: newKeeper(t).Actor, Network: keeping()}, plugintest.New(s).Spec(), 1, false)
	if err != nil {
		t.Fatal(err)
	}
	defer seat.Close()
	obs := make([]float32, plugintest.ObsElems)
	for _, c := range []struct {
		given Observation
		want  string
	}{
		{Observation{}, "0 tensors are given, scripted@1 observes 1"},
		{Observation{Tensors: []Elements{{F32: obs[1:]}}}, "elements of f32 are given, it has"},
		{Observation{Tensors: []Elements{{I32: make([]int32, len(obs))}}}, "elements of i32 are given, it has"},
		{Observation{Tensors: []Elements{{F32: obs}}, Masks: [][]uint8{{1}}}, "the mask of action 0 has 1 values, want 3"},
	} {
		if _, err := seat.Act(c.given); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.given, err, c.want)
		}
	}
	if n := seat.play.episode[0]; n != -1 {
		t.Errorf("episode %d has begun with what was refused", n)
	}
	for range 40 {
		actions, err := seat.Act(Observation{Tensors: []Elements{{F32: obs}}, Masks: [][]uint8{{0, 0, 1}}})
		if err != nil || actions[0].I32[0] != 2 {
			t.Fatalf("%v, %v, want the one action that is legal", actions, err)
		}
	}
}
