package main

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"

	"github.com/rlhost/rlhost/examples/plugins"
	"github.com/rlhost/rlhost/examples/plugins/golden"
	"github.com/rlhost/rlhost/plugins/plugintest"
	"github.com/rlhost/rlhost/sdk"
)

// game is an environment in the plainest Go: one at a time, without ends and without memory of the host's.
type game interface {
	// start begins an episode.
	start(rng *sdk.Rand)
	// play makes a step with the values of all actions.
	play(rng *sdk.Rand, action []float64) sdk.Result
	// see returns the elements of all observations.
	see() []float64
}

// games are the built-in environments that have a game to be compared with.
var games = []struct {
	name  string
	args  map[string]string
	new   func() game
	steps int
}{
	{"bandit@1", nil, func() game { return arms(2) }, 300},
	{"bandit@1", map[string]string{"best": "0"}, func() game { return arms(0) }, 300},
	{"continuous@1", nil, func() game { return &continuous{} }, 600},
	{"memory@1", nil, func() game { return &memory{delay: 8} }, 200},
	{"memory@1", map[string]string{"delay": "0"}, func() game { return &memory{} }, 50},
	{"memory@1", map[string]string{"delay": "33"}, func() game { return &memory{delay: 33} }, 200},
	{"minatar-breakout@1", nil, func() game { return &breakout{sticky: 0.1, limit: 1000} }, 1500},
	{"minatar-breakout@1", map[string]string{"sticky": "1", "max_steps": "5"}, func() game { return &breakout{sticky: 1, limit: 5} }, 100},
	{"minatar-freeway@1", nil, func() game { return &freeway{sticky: 0.1, limit: 2500} }, 3000},
	{"minatar-freeway@1", map[string]string{"sticky": "0.5", "max_steps": "40"}, func() game { return &freeway{sticky: 0.5, limit: 40} }, 300},
	{"password@1", nil, func() game { return &password{word: 22} }, 1000},
	{"password@1", map[string]string{"word": "3"}, func() game { return &password{word: 3} }, 1000},
	{"spaces@1", nil, func() game { return &spaces{} }, 300},
	{"squared@1", nil, func() game { return &squared{targets: 1} }, 1000},
	{"squared@1", map[string]string{"targets": "5"}, func() game { return &squared{targets: 5} }, 1000},
	{"squash@1", nil, func() game { return &squash{limit: 1000} }, 120},
	{"stochastic@1", nil, func() game { return &stochastic{part: 0.75, horizon: 100} }, 1000},
	{"stochastic@1", map[string]string{"part": "0.4", "horizon": "7"}, func() game { return &stochastic{part: 0.4, horizon: 7} }, 100},
	{"tuple@1", nil, func() game { return &tuple{} }, 300},
}

// TestGames_EqualPlainGo plays every game with random actions, in the guest and in Go, and compares all that is written, bit for bit.
func TestGames_EqualPlainGo(t *testing.T) {
	r := newRuntime(t)
	for _, g := range games {
		t.Run(fmt.Sprint(g.name, g.args), func(t *testing.T) {
			p, err := r.Load(t.Context(), g.name, plugins.Builtins()[g.name], env.Source{Name: "game", Args: g.args})
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			if g.args == nil {
				plugintest.TestEnv(t, p, plugintest.Options{Steps: min(g.steps, 300), Seed: 3})
			}
			const envs = 9
			b := newGoldenBatch(t, p, envs)
			b.start(t, gameSeed)
			m := &match{goldenBatch: b, draws: sdk.NewRand(7)}
			for i := range envs {
				m.games, m.rngs = append(m.games, g.new()), append(m.rngs, sdk.NewRand(gameSeed(i)))
			}
			m.begin(t)
			for step := range g.steps {
				m.step(t, step)
			}
		})
	}
}

// gameSeed is the seed of an environment that is compared with plain Go.
func gameSeed(index int) uint64 { return uint64(100 + index) }

// match is a guest with games that draw from the same streams.
type match struct {
	*goldenBatch
	games []game
	rngs  []sdk.Rand
	draws sdk.Rand
}

func (m *match) begin(t *testing.T) {
	t.Helper()
	for i, g := range m.games {
		g.start(&m.rngs[i])
		m.compare(t, fmt.Sprintf("environment %d starts", i), row(m.Observations(), i), g.see())
	}
}

func (m *match) step(t *testing.T, step int) {
	t.Helper()
	m.Draw(func(int) uint64 { return m.draws.Next() })
	var results []sdk.Result
	for i, g := range m.games {
		results = append(results, g.play(&m.rngs[i], row(m.Actions(), i)))
	}
	if _, err := m.Step(); err != nil {
		t.Fatal(err)
	}
	for i, g := range m.games {
		what, want := fmt.Sprintf("step %d of environment %d", step, i), results[i]
		got := sdk.Result{Reward: m.Reward()[i], Terminated: m.Terminated()[i] != 0, Truncated: m.Truncated()[i] != 0}
		want.Truncated = want.Truncated && !want.Terminated
		if got != want {
			t.Fatalf("%s is %+v, want %+v", what, got, want)
		}
		if want.Terminated || want.Truncated {
			m.compare(t, what+", its last observation", row(m.Observed(trajectory.Final), i), g.see())
			g.start(&m.rngs[i])
		}
		m.compare(t, what, row(m.Observations(), i), g.see())
	}
}

func (m *match) compare(t *testing.T, what string, got, want []float64) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Fatalf("%s: observed %v, want %v", what, got, want)
	}
}

// row returns the elements that all matrices have for an environment.
func row(list []trajectory.Matrix, env int) (values []float64) {
	for _, m := range list {
		for k := range m.Elems {
			values = append(values, m.Value(env, k))
		}
	}
	return values
}

// TestMinAtar_GuestsPlayTheRecordedGames steps the guests as MinAtar was stepped, and compares every plane.
func TestMinAtar_GuestsPlayTheRecordedGames(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	for _, g := range []struct {
		name     string
		episodes func() ([]golden.BoardEpisode, error)
		saved    func(first []int32) []int32 // the guest's state
		chance   bool                        // the observation after a reward is drawn again
	}{
		{"minatar-breakout@1", golden.MinAtarBreakout, func(first []int32) []int32 {
			row, column := first[1], first[2]
			return append(first, row, column, 0x3ff, 0x3ff, 0x3ff, 0, 0, 0, 5000, 0) // trail, wall, struck, action, steps, limit, sticky
		}, false},
		{"minatar-freeway@1", golden.MinAtarFreeway, func(first []int32) []int32 {
			return slices.Concat(first[:2], []int32{0, 0, 5000, 0}, first[2:])
		}, true},
	} {
		t.Run(g.name, func(t *testing.T) {
			episodes, err := g.episodes()
			if err != nil {
				t.Fatal(err)
			}
			p, err := r.Load(t.Context(), g.name, plugins.Builtins()[g.name], env.Source{Name: "game"})
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			for n, e := range episodes {
				b := newGoldenBatch(t, p, 1)
				saved, err := binary.Append(nil, binary.LittleEndian, g.saved(e.First))
				if err != nil {
					t.Fatal(err)
				}
				if err := b.LoadEnv(0, append(saved, make([]byte, 12)...)); err != nil { // flags and random stream
					t.Fatal(err)
				}
				for i, s := range e.Steps {
					b.act(0, float32(s.Action))
					if _, err := b.Step(); err != nil {
						t.Fatal(err)
					}
					if b.Reward()[0] != float32(s.Reward) || b.Terminated()[0] != s.Terminated {
						t.Fatalf("episode %d step %d: reward %v, terminated %d; MinAtar has %d, %d", n, i, b.Reward()[0], b.Terminated()[0], s.Reward, s.Terminated)
					}
					seen := b.Obs()
					if s.Terminated != 0 {
						seen = b.FinalObs()
					}
					if drawn := g.chance && s.Reward != 0; !drawn && !slices.Equal(seen.Data[:len(s.Cells)], s.Cells) {
						t.Fatalf("episode %d step %d: observed %v, MinAtar has %v", n, i, seen.Data[:len(s.Cells)], s.Cells)
					}
				}
			}
		})
	}
}
