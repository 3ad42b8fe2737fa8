package main

import (
	"fmt"
	"slices"
	"testing"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"

	"github.com/rlhost/rlhost/examples/plugins"
	"github.com/rlhost/rlhost/plugins/plugintest"
	"github.com/rlhost/rlhost/sdk"
)

// party is a game of several agents; its methods return values by agent.
type party interface {
	start(rng *sdk.Rand)
	// play makes a step. over says that it has ended the environment's episode.
	play(rng *sdk.Rand, action []int32) (results []sdk.Result, over bool)
	see() [][]float64
	acts() []byte
	// legal returns the mask of all agents; nil if there is none.
	legal() []byte
}

// TestParties_EqualPlainGo is TestGames_EqualPlainGo for environments of several agents.
func TestParties_EqualPlainGo(t *testing.T) {
	r := newRuntime(t)
	for _, g := range []struct {
		name  string
		args  map[string]string
		new   func() party
		steps int
	}{
		{"chase@1", nil, func() party { return &chase{size: 7} }, 300},
		{"chase@1", map[string]string{"size": "4"}, func() party { return &chase{size: 4} }, 300},
		{"connectfour@1", nil, func() party { return &connectFour{} }, 500},
		{"snake@1", nil, func() party { return &snakes{} }, 700},
		{"tag@1", nil, func() party { return &tag{size: 9} }, 300},
		{"tag@1", map[string]string{"size": "6"}, func() party { return &tag{size: 6} }, 300},
	} {
		t.Run(fmt.Sprint(g.name, g.args), func(t *testing.T) {
			p, err := r.Load(t.Context(), g.name, plugins.Builtins()[g.name], env.Source{Name: "party", Args: g.args})
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			plugintest.TestEnv(t, p, plugintest.Options{Seed: 3})
			const envs = 5
			b := newGoldenBatch(t, p, envs)
			b.start(t, gameSeed)
			m := &meeting{goldenBatch: b, draws: sdk.NewRand(7)}
			for i := range envs {
				m.parties, m.rngs = append(m.parties, g.new()), append(m.rngs, sdk.NewRand(gameSeed(i)))
				m.parties[i].start(&m.rngs[i])
				m.compare(t, fmt.Sprintf("environment %d starts", i), i)
			}
			for step := range g.steps {
				m.step(t, step)
			}
			if m.ends < 3*envs {
				t.Errorf("%d episodes of environments have ended, want several of each", m.ends)
			}
		})
	}
}

// meeting is a guest with parties that draw from the same streams.
type meeting struct {
	*goldenBatch
	parties []party
	rngs    []sdk.Rand
	draws   sdk.Rand
	ends    int
}

func (m *meeting) step(t *testing.T, step int) {
	t.Helper()
	m.Draw(func(int) uint64 { return m.draws.Next() })
	tr, now := m.Acting()
	action := slices.Clone(m.Action())
	for at := range action { // each agent's is that of its group
		for k := range tr.Rows(nil, trajectory.Action, now) {
			if c := trajectory.Action.At(k); tr.Schema.Holds(c, at) {
				action[at] = tr.Row(c, now).Int32()[at]
			}
		}
	}
	each := len(action) / len(m.parties)
	if _, err := m.Step(); err != nil {
		t.Fatal(err)
	}
	for i, p := range m.parties {
		results, over := p.play(&m.rngs[i], action[i*each:(i+1)*each])
		for k, want := range results {
			at := i*each + k
			what := fmt.Sprintf("step %d of environment %d, agent %d", step, i, k)
			got := sdk.Result{Reward: m.Reward()[at], Terminated: m.Terminated()[at] != 0, Truncated: m.Truncated()[at] != 0}
			want.Truncated = want.Truncated && !want.Terminated
			if got != want {
				t.Fatalf("%s is %+v, want %+v", what, got, want)
			}
			if final := m.seen(trajectory.FinalObs, 0, at); (want.Terminated || want.Truncated) && !slices.Equal(final, p.see()[k]) {
				t.Fatalf("%s: last observed %v, want %v", what, final, p.see()[k])
			}
		}
		if over {
			m.ends++
			p.start(&m.rngs[i])
		}
		m.compare(t, fmt.Sprintf("step %d of environment %d", step, i), i)
	}
}

// compare compares the agents' observations, whether they act, and their legal actions.
func (m *meeting) compare(t *testing.T, what string, env int) {
	t.Helper()
	p, each := m.parties[env], len(m.parties[env].acts())
	tr, last := m.Stepped()
	now := last + 1
	for k, want := range p.see() {
		if got := m.seen(trajectory.Obs, now, env*each+k); !slices.Equal(got, want) {
			t.Fatalf("%s: agent %d observes %v, want %v", what, k, got, want)
		}
	}
	if acts := tr.Acts(now); acts != nil && !slices.Equal(acts[env*each:(env+1)*each], p.acts()) {
		t.Fatalf("%s: %v act, want %v", what, acts[env*each:(env+1)*each], p.acts())
	}
	var legal []byte
	if tr.Schema.Has(trajectory.Mask) {
		mask := tr.Row(trajectory.Mask, now)
		for at := env * each; at < (env+1)*each; at++ {
			for i := range mask.Elems {
				legal = append(legal, byte(mask.Value(at, i)))
			}
		}
	}
	if !slices.Equal(legal, p.legal()) {
		t.Fatalf("%s: the mask is %v, want %v", what, legal, p.legal())
	}
}

// seen returns an agent's observation, or its last one, from the tensors that it has.
func (m *meeting) seen(kind trajectory.Column, t, at int) []float64 {
	tr, _ := m.Stepped()
	var own []trajectory.Matrix
	for k, column := range tr.Rows(nil, kind, t) {
		if tr.Schema.Holds(kind.At(k), at) {
			own = append(own, column)
		}
	}
	return row(own, at)
}

// cell is a place on a board.
type cell struct{ x, y int }

// chase is four hunters and, at the end, their prey.
type chase struct {
	size, steps int
	at          [5]cell
}

func (c *chase) start(rng *sdk.Rand) {
	for k := range c.at {
		c.at[k].x = int(rng.Below(uint32(c.size)))
		c.at[k].y = int(rng.Below(uint32(c.size)))
	}
	c.steps = 0
}

func (c *chase) move(k int, where int32) {
	way := []cell{{0, 0}, {1, 0}, {-1, 0}, {0, 1}, {0, -1}}[where]
	c.at[k] = cell{(c.at[k].x + way.x + c.size) % c.size, (c.at[k].y + way.y + c.size) % c.size}
}

func (c *chase) play(rng *sdk.Rand, action []int32) (results []sdk.Result, over bool) {
	for k, where := range action {
		c.move(k, where)
	}
	if c.steps++; c.steps%2 != 0 {
		c.move(4, 1+int32(rng.Below(4)))
	}
	over = c.steps == 50
	for k := range action {
		r := sdk.Result{Truncated: over}
		if c.at[k] == c.at[4] {
			r.Reward = 1
		}
		results = append(results, r)
	}
	return results, over
}

func (c *chase) see() (seen [][]float64) {
	far := func(a, b int) float64 {
		half := c.size / 2
		return float64(float32((b-a+c.size+half)%c.size-half) / float32(half))
	}
	for k, me := range c.at[:4] {
		prey, next := c.at[4], c.at[(k+1)%4]
		seen = append(seen, []float64{far(me.x, prey.x), far(me.y, prey.y), far(me.x, next.x), far(me.y, next.y)})
	}
	return seen
}

func (c *chase) acts() []byte  { return []byte{1, 1, 1, 1} }
func (c *chase) legal() []byte { return nil }

// tag is three hunters and, at the end, their prey.
type tag struct {
	size, steps int
	at          [4]cell
}

func (g *tag) start(rng *sdk.Rand) {
	for k := range g.at {
		g.at[k].x = int(rng.Below(uint32(g.size)))
		g.at[k].y = int(rng.Below(uint32(g.size)))
	}
	g.steps = 0
}

func (g *tag) play(_ *sdk.Rand, action []int32) (results []sdk.Result, over bool) {
	for k, where := range action {
		way := []cell{{0, 0}, {1, 0}, {-1, 0}, {0, 1}, {0, -1}, {2, 0}, {-2, 0}, {0, 2}, {0, -2}}[where]
		g.at[k] = cell{(g.at[k].x + way.x + g.size) % g.size, (g.at[k].y + way.y + g.size) % g.size}
	}
	caught := slices.Contains(g.at[:3], g.at[3])
	g.steps++
	one := sdk.Result{Terminated: caught, Truncated: g.steps == 50}
	for k := range 3 {
		if one.Reward = 0; caught {
			one.Reward = 0.5
		}
		if g.at[k] == g.at[3] {
			one.Reward = 1
		}
		results = append(results, one)
	}
	if one.Reward = 0.02; caught {
		one.Reward = -1
	}
	return append(results, one), one.Terminated || one.Truncated
}

func (g *tag) see() (seen [][]float64) {
	far := func(a, b int) float64 {
		half := g.size / 2
		return float64(float32((b-a+g.size+half)%g.size-half) / float32(half))
	}
	prey, all := g.at[3], []float64{}
	for k, me := range g.at[:3] {
		next := g.at[(k+1)%3]
		seen = append(seen, []float64{far(me.x, prey.x), far(me.y, prey.y), far(me.x, next.x), far(me.y, next.y)})
		all = append(all, far(prey.x, me.x), far(prey.y, me.y))
	}
	return append(seen, all)
}

func (g *tag) acts() []byte  { return []byte{1, 1, 1, 1} }
func (g *tag) legal() []byte { return nil }

// connectFour has, by column from below, whose stones there are.
type connectFour struct {
	columns [7][]int
	turn    int
}

func (c *connectFour) start(rng *sdk.Rand) { *c = connectFour{turn: int(rng.Below(2))} }

// has reports whether a player has a stone there.
func (c *connectFour) has(player int, p cell) bool {
	return p.x >= 0 && p.x < 7 && p.y >= 0 && p.y < len(c.columns[p.x]) && c.columns[p.x][p.y] == player
}

// won reports whether four of a player's stones lie in a row.
func (c *connectFour) won(player int) bool {
	for x := range 7 {
		for y := range 6 {
			for _, way := range []cell{{1, 0}, {0, 1}, {1, 1}, {1, -1}} {
				n := 0
				for n < 4 && c.has(player, cell{x + n*way.x, y + n*way.y}) {
					n++
				}
				if n == 4 {
					return true
				}
			}
		}
	}
	return false
}

func (c *connectFour) play(_ *sdk.Rand, action []int32) (results []sdk.Result, over bool) {
	me, stones := c.turn, 0
	c.columns[action[me]] = append(c.columns[action[me]], me) // masks leave no full one
	for _, column := range c.columns {
		stones += len(column)
	}
	won := c.won(me)
	over = won || stones == 42
	results = []sdk.Result{{Terminated: over}, {Terminated: over}}
	if won {
		results[me].Reward, results[1-me].Reward = 1, -1
	}
	c.turn = 1 - me
	return results, over
}

func (c *connectFour) see() (seen [][]float64) {
	for me := range 2 {
		var cells []float64
		for _, player := range []int{me, 1 - me} {
			for y := range 6 {
				for x := range 7 {
					cells = append(cells, one(c.has(player, cell{x, y})))
				}
			}
		}
		seen = append(seen, cells)
	}
	return seen
}

// one returns 1 for true.
func one(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

func (c *connectFour) acts() []byte {
	acts := []byte{0, 0}
	acts[c.turn] = 1
	return acts
}

func (c *connectFour) legal() (mask []byte) {
	for player := range 2 {
		for _, column := range c.columns {
			mask = append(mask, byte(one(player != c.turn || len(column) < 6))) // all 1 of who does not act
		}
	}
	return mask
}

// snakes are eight bodies, each from head to tail; a dead snake has none.
type snakes struct {
	bodies [8][]cell
	ways   [8]int
	food   map[cell]bool
	steps  int
}

// taken reports whether a cell is in a body, or outside of the board.
func (s *snakes) taken(p cell) bool {
	return p.x < 0 || p.y < 0 || p.x >= 16 || p.y >= 16 || slices.ContainsFunc(s.bodies[:], func(body []cell) bool { return slices.Contains(body, p) })
}

func (s *snakes) free(rng *sdk.Rand) cell {
	for {
		p := cell{int(rng.Below(16)), 0}
		p.y = int(rng.Below(16))
		if !s.taken(p) && !s.food[p] {
			return p
		}
	}
}

func (s *snakes) start(rng *sdk.Rand) {
	*s = snakes{food: map[cell]bool{}}
	for k := range s.bodies {
		s.bodies[k] = []cell{s.free(rng)}
		s.ways[k] = int(rng.Below(4))
	}
	for range 8 {
		s.food[s.free(rng)] = true
	}
}

// ways from a snake's head: up, right, down, left.
var compass = []cell{{0, -1}, {1, 0}, {0, 1}, {-1, 0}}

func (s *snakes) play(rng *sdk.Rand, action []int32) (results []sdk.Result, over bool) {
	s.steps++
	over = true
	for k, turn := range action {
		r := sdk.Result{}
		if len(s.bodies[k]) > 0 {
			r.Reward = s.advance(rng, k, int(turn))
			r.Terminated, r.Truncated = len(s.bodies[k]) == 0, s.steps >= 200
		}
		over = over && (len(s.bodies[k]) == 0 || r.Truncated)
		results = append(results, r)
	}
	return results, over
}

// advance moves a snake and returns its reward.
func (s *snakes) advance(rng *sdk.Rand, k, turn int) float32 {
	s.ways[k] = (s.ways[k] + turn + 3) % 4
	body, way := s.bodies[k], compass[s.ways[k]]
	to := cell{body[0].x + way.x, body[0].y + way.y}
	if s.taken(to) {
		s.bodies[k] = nil
		return -1
	}
	if !s.food[to] || len(body) == 16 {
		body = body[:len(body)-1]
	}
	s.bodies[k] = append([]cell{to}, body...)
	if !s.food[to] {
		return 0
	}
	delete(s.food, to)
	s.food[s.free(rng)] = true
	return 1
}

func (s *snakes) see() (seen [][]float64) {
	for k, body := range s.bodies {
		planes := make([]float64, 2*7*7)
		ahead, right := compass[s.ways[k]], compass[(s.ways[k]+1)%4]
		for i := range 49 * min(len(body), 1) {
			forward, side := 3-i/7, i%7-3
			p := cell{body[0].x + forward*ahead.x + side*right.x, body[0].y + forward*ahead.y + side*right.y}
			planes[i], planes[49+i] = one(s.food[p]), one(s.taken(p))
		}
		seen = append(seen, planes)
	}
	return seen
}

func (s *snakes) acts() (acts []byte) {
	for _, body := range s.bodies {
		acts = append(acts, byte(one(len(body) > 0)))
	}
	return acts
}

func (s *snakes) legal() []byte { return nil }
