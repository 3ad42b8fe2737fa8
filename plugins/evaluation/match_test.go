package evaluation_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/plugins/builtin"
	"github.com/rlhost/rlhost/plugins/evaluation"
)

// game is a loaded environment with policies for it.
type game struct {
	*testing.T
	plugin env.Plugin
	parts  *graph.Parts
}

func load(t *testing.T, use string) *game {
	t.Helper()
	parts, engines := builtin.New(builtin.Options{})
	t.Cleanup(func() {
		if err := engines.Close(); err != nil {
			t.Error(err)
		}
	})
	table := graph.EnvTable{Source: env.DefaultSource()}
	table.Use = use
	plugin, err := parts.Load(t.Context(), "game", table, ".")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := plugin.Close(); err != nil {
			t.Error(err)
		}
	})
	return &game{t, plugin, parts}
}

// Agents of a group without a player draw their actions at random, the same whatever the other agents do.
func TestEvaluation_AGroupPlaysAgainstChance(t *testing.T) {
	g := load(t, "tag@1")
	hunters, prey := g.of(0, 1), g.of(1, 2)
	run := func(envs int, one evaluation.Player, others ...evaluation.Player) *evaluation.Result {
		t.Helper()
		o := evaluation.Options{Plugin: g.plugin, Player: one, Others: others, Episodes: 24, Envs: envs, Seed: 5}
		if others != nil {
			o.Plays = func(_, agent int) int { return agent / 3 } // three hunters, then the prey
		}
		r, err := evaluation.Run(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	alone := run(8, hunters)
	if again := run(3, hunters); !slices.Equal(alone.Returns, again.Returns) || !slices.Equal(alone.Lengths, again.Lengths) {
		t.Errorf("in batches of 3 the returns are %v, in batches of 8 %v", again.Returns, alone.Returns)
	}
	chased := run(8, prey)
	for i, r := range chased.Returns { // a return follows from its length
		if n := float64(chased.Lengths[i]); math.Abs(r-(0.02*(n-1)-1)) > 1e-5 && math.Abs(r-0.02*n) > 1e-5 {
			t.Errorf("episode %d of %v steps has the return %v of the prey", i, n, r)
		}
	}
	both := run(8, hunters, prey)
	if slices.Equal(both.Returns, alone.Returns) || both.Against == nil {
		t.Errorf("who the prey is changes nothing: %v", both.Returns)
	}
	o := evaluation.Options{Plugin: g.plugin, Player: hunters, Others: []evaluation.Player{prey}, Episodes: 2, Plays: func(int, int) int { return 0 }}
	if _, err := evaluation.Run(t.Context(), o); err == nil {
		t.Error("hunters play the prey")
	}
	if _, err := evaluation.PlayMatch(t.Context(), o); !errors.Is(err, evaluation.ErrOneGroup) {
		t.Errorf("a match of groups: %v", err)
	}
}

// of returns a policy of a group with the initial parameters of a seed.
func (g *game) of(group int, seed uint64) evaluation.Player {
	g.Helper()
	spec := g.plugin.Spec()
	spec = spec.OfGroup(group)
	p := g.playerOf(&spec, seed, "")
	p.Group = group
	return p
}

// player returns a policy with the initial parameters of a seed, whose network a core makes another one.
func (g *game) player(seed uint64, core string) evaluation.Player {
	g.Helper()
	spec := g.plugin.Spec()
	return g.playerOf(&spec, seed, core)
}

func (g *game) playerOf(spec *hostabi.EnvSpec, seed uint64, core string) evaluation.Player {
	g.Helper()
	made, err := g.parts.Policy(func(into any) error {
		p := into.(*builtin.PolicyTable)
		p.Net.Hidden = []int{16}
		if core != "" {
			size := 8
			p.Net.Core = &builtin.Core{Kind: policy.CoreKind(core), Size: &size}
		}
		return nil
	}, spec)
	if err != nil {
		g.Fatal(err)
	}
	d := made.(*policy.Definition)
	actor, err := policy.NewActor(d.Backend, &d.Network, 64*spec.Agents())
	if err != nil {
		g.Fatal(err)
	}
	g.Cleanup(func() {
		if err := actor.Close(); err != nil {
			g.Error(err)
		}
	})
	params := policy.Init(&d.Network, seed)
	for i := range params {
		params[i] *= 4 // so that policies differ
	}
	w := policy.Weights{Params: params, ObsMean: make([]float32, d.Network.Stats()), ObsScale: slices.Repeat([]float32{1}, d.Network.Stats())}
	if err := actor.Load(w); err != nil {
		g.Fatal(err)
	}
	return evaluation.Player{Actor: actor, Network: &d.Network}
}

func (g *game) match(a, b evaluation.Player, o evaluation.Options) evaluation.Match {
	g.Helper()
	o.Plugin, o.Player, o.Others = g.plugin, a, []evaluation.Player{b}
	m, err := evaluation.PlayMatch(g.Context(), o)
	if err != nil {
		g.Fatal(err)
	}
	return m
}

// A match of a policy with itself is drawn, that of B against A is the reverse of A against B, and neither depends on how many
// environments play at a time; of two agents or more, drawn by chance or most probable.
func TestS12_AMatchIsFair(t *testing.T) {
	for _, c := range []struct {
		use, core string
		round     int
	}{{"connectfour@1", "", 2}, {"connectfour@1", "gru", 2}, {"chase@1", "", 8}, {"chase@1", "gru", 8}} {
		g := load(t, c.use)
		a, b := g.player(1, c.core), g.player(2, "")
		for _, greedy := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s %s greedy=%t", c.use, c.core, greedy), func(t *testing.T) {
				g := &game{t, g.plugin, g.parts}
				o := evaluation.Options{Episodes: 47, Envs: 64, Seed: 3, Greedy: greedy, MaxSteps: 200}
				ab := g.match(a, b, o)
				if n := ab.Episodes(); n < 47 || n%c.round != 0 || n >= 47+c.round {
					t.Errorf("%d episodes, want 47 in whole rounds of %d", n, c.round)
				}
				seen := ab // by the other player
				seen.Wins, seen.Losses = ab.Losses, ab.Wins
				if ba := g.match(b, a, o); ba != seen || math.Abs(ba.Score()+ab.Score()-1) > 1e-12 {
					t.Errorf("A against B is %+v, B against A %+v", ab, ba)
				}
				if !greedy && ab.Wins == ab.Losses {
					t.Errorf("%+v: the policies are to differ", ab)
				}
				if own := g.match(a, g.player(1, c.core), o); own.Score() != 0.5 || own.Wins+own.Losses == 0 {
					t.Errorf("A against itself is %+v, want wins and losses that cancel out", own)
				}
				for _, envs := range []int{1, 5, 48} {
					o.Envs = envs
					if got := g.match(a, b, o); got != ab {
						t.Errorf("%d at a time: %+v, want %+v", envs, got, ab)
					}
				}
			})
		}
	}
}

// In a game of win and loss one player gets what the other loses, whichever of them moves first.
func TestRun_TwoPoliciesPlayTheirOwnAgents(t *testing.T) {
	g := load(t, "connectfour@1")
	o := evaluation.Options{Plugin: g.plugin, Player: g.player(1, ""), Others: []evaluation.Player{g.player(2, "")}, Episodes: 40, Envs: 16, Seed: 9}
	results := map[bool]*evaluation.Result{}
	for _, second := range []bool{false, true} {
		o.Plays = func(_, agent int) int {
			if (agent == 1) == second {
				return 0
			}
			return 1
		}
		r, err := evaluation.Run(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		for i := range r.Returns {
			if r.Returns[i] != -r.Against[i] || math.Abs(r.Returns[i]) > 1 {
				t.Errorf("episode %d: %g against %g", i, r.Returns[i], r.Against[i])
			}
		}
		results[second] = r
	}
	if slices.Equal(results[false].Returns, results[true].Returns) {
		t.Error("it does not matter who plays which agent")
	}
	// The same policy on both sides is one policy that plays all.
	o.Others = []evaluation.Player{g.player(1, "")}
	both, err := evaluation.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	o.Others = nil
	alone, err := evaluation.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(both.Lengths, alone.Lengths) {
		t.Errorf("two of the same policy play episodes of %v steps, one for both agents of %v", both.Lengths, alone.Lengths)
	}
}

func TestPlayMatch_RefusesWhatIsNone(t *testing.T) {
	g := load(t, "cartpole@1")
	a := g.player(1, "")
	o := evaluation.Options{Plugin: g.plugin, Player: a, Others: []evaluation.Player{a}, Episodes: 2}
	if _, err := evaluation.PlayMatch(t.Context(), o); !errors.Is(err, evaluation.ErrOneAgent) {
		t.Errorf("an environment of one agent: %v", err)
	}
	four := load(t, "connectfour@1")
	o.Plugin, o.Player, o.Others = four.plugin, four.player(1, ""), nil
	if _, err := evaluation.PlayMatch(t.Context(), o); err == nil {
		t.Error("a match of one player was played")
	}
}

// remembering acts as another actor does in an environment whose agents take turns, and checks that an agent's state is the one left where it
// acted last. It identifies agents by their random keys.
type remembering struct {
	policy.Actor
	mu     sync.Mutex
	states map[[2]uint64][2][]float32 // by agent of an episode and its step: before and after it
	wrong  []string
	moved  int
}

func (a *remembering) Act(requests []policy.Request) error {
	if err := a.Actor.Act(requests); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range requests {
		r := &requests[i]
		for row := range r.Len() {
			state := func(m *trajectory.Matrix) []float32 { return slices.Clone(m.Float32()[row*m.StrideRow/4:][:m.Elems]) }
			a.states[[2]uint64{uint64(r.Env(row)), r.Step}] = [2][]float32{state(&r.State), state(&r.StateOut)}
		}
	}
	return nil
}

// look compares the states of each agent's steps with the states of the steps before: one of the two agents has moved, in turns.
func (a *remembering) look() {
	for at, now := range a.states {
		before, known := a.states[[2]uint64{at[0], at[1] - 1}]
		if at[1] < 2 || !known { // before its first move an agent has no state
			continue
		}
		stood, moved := slices.Equal(now[0], before[0]), slices.Equal(now[0], before[1])
		other := a.states[[2]uint64{at[0] ^ 1, at[1]}]
		otherBefore := a.states[[2]uint64{at[0] ^ 1, at[1] - 1}]
		otherStood := slices.Equal(other[0], otherBefore[0])
		if stood == moved || stood == otherStood {
			a.wrong = append(a.wrong, fmt.Sprintf("agent %d of episode %d in step %d: it stood still: %t, it moved: %t, the other stood still: %t",
				at[0]%2, at[0]/2, at[1], stood, moved, otherStood))
		}
		if moved {
			a.moved++
		}
	}
}

// A policy's state of an agent does not change in evaluations, matches and trials while the other is to move.
func TestS19_EvaluationsKeepTheStateOfAgentsInTurns(t *testing.T) {
	for _, core := range []string{"gru", "lstm"} {
		g := load(t, "connectfour@1")
		watched := func() (evaluation.Player, *remembering) {
			p := g.player(1, core)
			a := &remembering{Actor: p.Actor, states: map[[2]uint64][2][]float32{}}
			p.Actor = a
			return p, a
		}
		check := func(what string, a *remembering) {
			t.Helper()
			if a.look(); len(a.wrong) > 0 || a.moved < 100 {
				t.Errorf("%s in %s: %d moves, %v", core, what, a.moved, a.wrong[:min(3, len(a.wrong))])
			}
		}
		p, a := watched()
		if _, err := evaluation.Run(t.Context(), evaluation.Options{Plugin: g.plugin, Player: p, Episodes: 20, Envs: 7, Seed: 2}); err != nil {
			t.Fatal(err)
		}
		check("an evaluation", a)
		p, a = watched()
		trial := func(envs int) []float64 {
			before, after, err := evaluation.Compare(t.Context(), evaluation.CompareOptions{Old: g.plugin, New: g.plugin, Player: p, Envs: envs, Episodes: 12 / envs, Seed: 5})
			if err != nil || before.Fault != nil || after.Fault != nil {
				t.Fatal(err, before.Fault, after.Fault)
			}
			if !slices.Equal(before.Lengths, after.Lengths) || len(slices.Compact(slices.Sorted(slices.Values(before.Lengths)))) < 4 {
				t.Errorf("%s: episodes of %v and %v steps, want those of the same version to be equal", core, before.Lengths, after.Lengths)
			}
			return before.Returns
		}
		want := trial(3)
		check("a trial", a)
		if got := trial(4); !slices.Equal(got, want) {
			t.Errorf("%s: in trials of 3 environments returns of %v, of 4 %v", core, want, got)
		}
	}
}
