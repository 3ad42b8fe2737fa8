package evaluation

import (
	"maps"
	"slices"
	"testing"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/plugintest"
)

// An episode in a world whose agents begin again is over when each has had its first life, and later lives do not count: else it would
// never end, or its return would depend on the others' lives.
func TestRun_AnEpisodeOfAgentsThatRespawnIsTheFirstLifeOfEach(t *testing.T) {
	for _, envs := range []int{1, 3} {
		p := plugintest.NewLives(3, func(agent, life int) int { return []int{2, 5, 3}[agent] + 10*life })
		r, err := Run(t.Context(), Options{Plugin: p, Player: Player{Actor: &dice{}}, Episodes: 6, Envs: envs, MaxSteps: 100})
		if err != nil {
			t.Fatal(err)
		}
		if want := (2. + 5 + 3) / 3; slices.ContainsFunc(r.Returns, func(x float64) bool { return x != want }) || r.Unfinished != 0 {
			t.Errorf("%d at a time: returns %v, want %g each; %d unfinished", envs, r.Returns, want, r.Unfinished)
		}
		if slices.ContainsFunc(r.Lengths, func(n int) bool { return n != 5 }) {
			t.Errorf("%d at a time: lengths %v, want 5 each", envs, r.Lengths)
		}
	}
}

// named are environments whose agents have names of their own.
type named struct{ env.Plugin }

func (p named) Spec() hostabi.EnvSpec {
	s := p.Plugin.Spec()
	s.Groups = []hostabi.Group{{Name: "players", Agents: 3, AgentNames: "ann\nbob\ncat"}}
	return s
}

// Agents with names have their own mean returns, as far as the evaluated player plays them.
func TestRun_AgentsWithNamesHaveTheirOwnMeans(t *testing.T) {
	p := named{plugintest.NewLives(3, func(agent, life int) int { return []int{2, 5, 3}[agent] + 10*life })}
	spec := p.Spec()
	o := Options{Plugin: p, Player: Player{Actor: &dice{}}, Episodes: 6, Envs: 2, MaxSteps: 100}
	r, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := r.AgentMeans(&spec), map[string]float64{"ann": 2, "bob": 5, "cat": 3}; !maps.Equal(got, want) {
		t.Errorf("mean returns %v, want %v", got, want)
	}
	o.Others, o.Plays = []Player{{Actor: &dice{}}}, func(_, agent int) int { return flagged(agent == 1) }
	if r, err = Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if got, want := r.AgentMeans(&spec), map[string]float64{"ann": 2, "cat": 3}; !maps.Equal(got, want) {
		t.Errorf("with another player for bob: mean returns %v, want %v", got, want)
	}
	nameless := plugintest.NewLives(3, func(agent, life int) int { return 2 })
	o.Plugin, o.Others, o.Plays = nameless, nil, nil
	if r, err = Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if spec = nameless.Spec(); r.ByAgent != nil || r.AgentMeans(&spec) != nil {
		t.Errorf("agents without names have the returns %v", r.ByAgent)
	}
}

func flagged(yes bool) int {
	if yes {
		return 1
	}
	return 0
}
