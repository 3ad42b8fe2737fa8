package evaluation

import (
	"fmt"
	"slices"
	"testing"

	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/gpu/cpu"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/policy/head"
	"github.com/rlhost/rlhost/gpu/policy/layer"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/plugintest"
)

// keeping is a network for scripted environments that keeps a state.
func keeping() *policy.Network {
	return &policy.Network{Format: policy.Format, Inputs: []policy.Input{{Path: "obs", Shape: []int{plugintest.ObsElems}}}, Chunk: 20,
		Nodes: []policy.Node{{Name: "core", In: []string{"obs"}, GRU: &layer.GRU{Size: 6}},
			{Name: "actor", In: []string{"core"}, Dense: &layer.Dense{Out: 3, Gain: 2}}, {Name: "critic", In: []string{"core"}, Dense: &layer.Dense{Out: 1}}},
		Policy: []policy.Dist{{Action: "action", From: "actor", Categorical: &head.Categorical{N: 3}}},
		Values: []policy.ValueHead{{Name: "value", From: "critic"}}}
}

// keeper acts with such a network, and compares the state given for each row with the one that it left after the previous row.
type keeper struct {
	policy.Actor
	left  map[float32][]float32 // by environment
	wrong []string
	later int // rows that are not the first of an episode
}

func newKeeper(t *testing.T) *keeper {
	t.Helper()
	a, err := policy.NewActor(cpu.New(), keeping(), 64)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := a.Load(policy.Weights{Params: policy.Init(keeping(), 3)}); err != nil {
		t.Fatal(err)
	}
	return &keeper{Actor: a, left: map[float32][]float32{}}
}

func (a *keeper) Act(requests []policy.Request) error {
	for i := range requests {
		r := &requests[i]
		for row := range r.Len() {
			obs, given := of(&r.Obs[0], row), of(&r.State, row)
			env, step, age := obs[plugintest.ObsEnv], obs[plugintest.ObsStep], r.Age[row]
			if (age > 0) != (step > 0) || step > 0 && !slices.Equal(given, a.left[env]) {
				a.wrong = append(a.wrong, fmt.Sprintf("environment %v at step %v: age %d, state %v, want %v", env, step, age, given, a.left[env]))
			}
			if step > 0 {
				a.later++
			}
		}
	}
	err := a.Actor.Act(requests)
	for i := range requests {
		r := &requests[i]
		for row := range r.Len() {
			a.left[of(&r.Obs[0], row)[plugintest.ObsEnv]] = slices.Clone(of(&r.StateOut, row))
		}
	}
	return err
}

// of returns a row of a matrix whose elements lie side by side.
func of(m *trajectory.Matrix, row int) []float32 { return m.Float32()[row*m.StrideRow/4:][:m.Elems] }

// The state is zero where an evaluation episode begins, and goes with it from there, however it ends.
func TestS19EvaluationKeepsTheStateOfEachEpisode(t *testing.T) {
	s := script()
	s.Length = func(env, _ int) int { return 30 + 25*(env%3) } // longer than the driver's block, some of them
	for _, o := range []Options{{Greedy: true}, {}, {MaxSteps: 37}} {
		for _, mode := range []hostabi.Autoreset{hostabi.SameStep, hostabi.NextStep, hostabi.Disabled} {
			s.Autoreset = mode
			a := newKeeper(t)
			o.Plugin, o.Actor, o.Network, o.Episodes, o.Envs = plugintest.New(s), a, keeping(), 10, 4
			if _, err := Run(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			if len(a.wrong) > 0 || a.later < 10*29 {
				t.Errorf("%v, %d rows behind first ones: %v", mode, a.later, a.wrong[:min(3, len(a.wrong))])
			}
		}
	}
}

// How many environments play at once changes nothing of an episode, nor does the loss of some of them.
func TestS19ParallelEpisodesShareNoState(t *testing.T) {
	s := script()
	s.Length = func(int, int) int { return 45 }
	s.Observe = func(_ plugintest.At, obs *[plugintest.ObsElems]float32) { obs[plugintest.ObsEnv] = 0 }
	play := func(envs int) *Result {
		r, err := Run(t.Context(), Options{Plugin: plugintest.New(s), Player: Player{Actor: newKeeper(t).Actor, Network: keeping()}, Episodes: 9, Envs: envs, Seed: 4})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	want := play(1)
	if len(slices.Compact(slices.Sorted(slices.Values(want.Returns)))) < 5 {
		t.Fatalf("returns %v: want several different ones", want.Returns)
	}
	for _, envs := range []int{2, 4, 9} {
		if got := play(envs); !slices.Equal(got.Returns, want.Returns) {
			t.Errorf("%d at a time: returns %v, want %v", envs, got.Returns, want.Returns)
		}
	}
	o := Options{Player: Player{Actor: newKeeper(t).Actor, Network: keeping()}, Episodes: 9, Envs: 4, Seed: 4,
		Plugin: mortal{plugintest.New(s), func(call int) bool { return call == 20 || call == 70 }}}
	if got, err := Run(t.Context(), o); err != nil || !slices.Equal(got.Returns, want.Returns) {
		t.Errorf("with losses: %v, returns %v, want %v", err, got, want.Returns)
	}
}

// The versions of a trial keep their states apart.
func TestS19TrialKeepsTheStateOfEachVersion(t *testing.T) {
	s := script()
	s.Length = func(env, episode int) int { return 30 + 7*env + episode }
	o := CompareOptions{Old: plugintest.New(s), New: plugintest.New(s), Player: Player{Actor: newKeeper(t).Actor, Network: keeping()}, Envs: 3, Episodes: 4, Seed: 5}
	before, after, err := Compare(t.Context(), o)
	if err != nil || before.Fault != nil || after.Fault != nil {
		t.Fatal(err, before.Fault, after.Fault)
	}
	if !slices.Equal(before.Returns, after.Returns) || len(slices.Compact(slices.Sorted(slices.Values(before.Returns)))) < 5 {
		t.Errorf("returns %v and %v, want those of the same version to be equal", before.Returns, after.Returns)
	}
}
