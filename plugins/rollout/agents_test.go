package rollout

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/trajectory"
)

// game is two games of two players. The first one ends when the second player wins; in the second one nobody has won when
// both are cut off.
func game(shared bool) *table {
	return newTable(shared,
		row{acts: []byte{1, 0}, worth: []float32{1, 99}},
		row{acts: []byte{0, 1}, worth: []float32{99, 2}},
		row{acts: []byte{1, 0}, worth: []float32{3, 99}, reward: []float32{0, 0.5}}, // for the second player's move before
		row{acts: []byte{0, 1}, worth: []float32{99, 4}, reward: []float32{-1, 1}, terminated: []byte{1, 1}, final: []float32{50, 60}},
		row{acts: []byte{1, 0}, worth: []float32{5, 99}},
		row{acts: []byte{0, 1}, worth: []float32{99, 6}, truncated: []byte{1, 1}, final: []float32{7, 8}},
	)
}

const none = math.MaxFloat64 // of a row that is in no loss

// byHand are the advantages of the rows of the game, by player, with γ = 0.9 and λ = 0.5, where the game is seen to its end.
var byHand = [2][6]float64{
	{0.9*3 - 1 + 0.45*(-1-3), none, -1 - 3, none, 0.9*7 - 5, none},
	{none, 0.5 + 0.9*4 - 2 + 0.45*(1-4), none, 1 - 4, none, 0.9*8 - 6},
}

func TestS21_TheLoserLearnsFromTheMoveThatLetTheOtherWin(t *testing.T) {
	for _, shared := range []bool{true, false} {
		blocks := 0
		r := tableRig(t, game(shared), 6, func(tr trajectory.Trajectory) {
			blocks++
			wantDecisions(t, tr, func(row, player int) float64 { return byHand[player][row] })
		})
		r.MustRun(func() bool { return blocks >= 4 })
		checkGames(t, r)
	}
}

// A decision that has not come to its end where a block ends is in the next block, and the one before it takes its value. None is lost, also
// where games are longer than blocks.
func TestS27_SeamsCutNoDecisionInTwo(t *testing.T) {
	for _, horizon := range []int{1, 2, 5, 7, 64} {
		p, made, decided := game(true), 0, 0
		r := tableRig(t, p, horizon, func(tr trajectory.Trajectory) {
			first := made
			made += horizon
			decided += int(tr.Meta().ValidRows)
			wantDecisions(t, tr, func(row, player int) float64 { return p.advantage(first, row, horizon, player) })
			if open := 2*made - decided; open < 0 || open > 2*2 { // one player each of two environments acts in each row
				t.Errorf("horizon %d: of %d decisions %d are in blocks", horizon, 2*made, decided)
			}
		})
		r.MustRun(func() bool { return made >= 12*horizon && made >= 36 })
		checkGames(t, r)
	}
}

// advantage computes, forward in time, the advantage of an agent's row in a block of so many rows. first is the number in the
// table of the block's first row.
func (p *table) advantage(first, at, rows, agent int) float64 {
	now := func(t int) *row { return &p.rows[(first+t)%len(p.rows)] }
	decided := at
	if now(at).acts[agent] == 0 {
		if decided = p.open(first, agent); at > 0 || decided < 0 {
			return none
		}
		decided -= first
	}
	reward, own := 0.0, float64(p.rows[(first+decided)%len(p.rows)].worth[agent])
	for t := decided; t < rows; t++ {
		r := now(t)
		reward += float64(of(r.reward, agent))
		switch next := now(t + 1); {
		case of(r.terminated, agent) != 0:
			return reward - own
		case of(r.truncated, agent) != 0:
			return reward + 0.9*float64(r.final[agent]) - own
		case next.acts[agent] != 0:
			advantage := reward + 0.9*float64(next.worth[agent]) - own
			wait := t + 1 - decided
			if t+1 < rows && !(p.ends(first+t+1, agent) && t+1+wait > rows) { // else it would be unfinished, had it not ended the game
				if later := p.advantage(first, t+1, rows, agent); later != none {
					advantage += 0.45 * later
				}
			}
			return advantage
		}
	}
	return none
}

// ends reports whether the episode of an agent ends before it decides again.
func (p *table) ends(at, agent int) bool {
	for t := at; ; t++ {
		switch r, next := &p.rows[t%len(p.rows)], &p.rows[(t+1)%len(p.rows)]; {
		case of(r.terminated, agent)|of(r.truncated, agent) != 0:
			return true
		case next.acts[agent] != 0:
			return false
		}
	}
}

// open returns the row before which an agent that does not act in it has decided and waits; -1 if it does not.
func (p *table) open(first, agent int) int {
	for t := first - 1; t >= 0; t-- {
		switch r := &p.rows[t%len(p.rows)]; {
		case of(r.terminated, agent)|of(r.truncated, agent) != 0:
			return -1
		case r.acts[agent] != 0:
			return t
		}
	}
	return -1
}

// wantDecisions compares the rows of a block of two environments with two players each.
func wantDecisions(t *testing.T, tr trajectory.Trajectory, want func(row, player int) float64) {
	t.Helper()
	got, valid, rows := advantages(t, tr), tr.Bytes(trajectory.Valid), 0
	for i := range valid {
		row, player := i/4, i%2
		switch want := want(row, player); {
		case (valid[i] != 0) != (want != none):
			t.Errorf("row %d of player %d: valid is %d, want advantage %v", row, player, valid[i], want)
		case want != none && math.Abs(float64(got[i])-want) > 1e-5:
			t.Errorf("row %d of player %d: advantage %v, want %v", row, player, got[i], want)
		}
		rows += int(valid[i])
	}
	if tr.Meta().ValidRows != uint32(rows) {
		t.Errorf("%d valid rows, %d are said", rows, tr.Meta().ValidRows)
	}
}

// checkGames checks the announced episodes of two players in two environments.
func checkGames(t *testing.T, r *rig) {
	t.Helper()
	type end struct {
		ret        float32
		length     uint32
		terminated bool
	}
	want := map[uint16][]end{0: {{-1, 2, true}, {0, 1, false}}, 1: {{1.5, 2, true}, {0, 1, false}}}
	seen := map[[2]int]int{}
	for _, e := range r.episodes {
		who := [2]int{int(e.Env), int(e.Agent)}
		if got, next := (end{e.Return, e.Length, e.Terminated}), want[e.Agent][seen[who]%2]; got != next {
			t.Errorf("episode %d of environment %d's player %d is %+v, want %+v", seen[who], e.Env, e.Agent, got, next)
		}
		seen[who]++
	}
	if len(seen) != 4 || len(r.episodes) < 16 {
		t.Errorf("%d episodes of %d players, want at least 16 of 4", len(r.episodes), len(seen))
	}
	for player, name := range []string{"ann", "bob"} {
		sum, n := 0.0, uint64(0)
		for _, e := range r.episodes {
			if int(e.Agent) == player {
				sum, n = sum+float64(e.Return), n+1
			}
		}
		if got := r.Host.Stats.Histogram("env/return/" + name).Snapshot(); got.Count != n || math.Abs(got.Sum-sum) > 1e-4 {
			t.Errorf("%s has %d returns with the sum %v, want %d with %v", name, got.Count, got.Sum, n, sum)
		}
	}
	total, length := r.Host.Stats.Histogram("env/environment_return"), r.Host.Stats.Histogram("env/environment_length")
	if got, n := total.Snapshot(), length.Snapshot().Count; got.Count < 8 || got.Count != n {
		t.Errorf("%d returns and %d lengths of environments", got.Count, n)
	}
}

func TestS21_AnAgentThatIsOutEndsByItsOwnFlagAndItsEnvironmentWithTheLast(t *testing.T) {
	p := newTable(false,
		row{acts: []byte{1, 1}, worth: []float32{1, 2}, reward: []float32{-1, 1}, terminated: []byte{1, 0}},
		row{acts: []byte{0, 1}, worth: []float32{99, 3}, reward: []float32{0, 1}},
		row{acts: []byte{0, 1}, worth: []float32{99, 4}, reward: []float32{0, 1}, truncated: []byte{0, 1}, final: []float32{0, 5}},
	)
	var got []float64
	r := tableRig(t, p, 3, func(tr trajectory.Trajectory) {
		if got != nil {
			return
		}
		for i, a := range advantages(t, tr) {
			if tr.Bytes(trajectory.Valid)[i] == 0 {
				got = append(got, none)
			} else {
				got = append(got, math.Round(float64(a)*1e4)/1e4)
			}
		}
	})
	r.MustRun(func() bool { return len(r.episodes) >= 8 })
	last := 1 + 0.9*5 - 4
	middle := 1 + 0.9*4 - 3 + 0.45*last
	first := 1 + 0.9*3 - 2 + 0.45*middle
	r4 := func(x float64) float64 { return math.Round(x*1e4) / 1e4 }
	want := []float64{-2, r4(first), -2, r4(first), none, r4(middle), none, r4(middle), none, r4(last), none, r4(last)}
	if !slices.Equal(got, want) {
		t.Errorf("advantages %v, want %v", got, want)
	}
	for _, e := range r.episodes {
		if want := []float32{-1, 3}[e.Agent]; e.Return != want {
			t.Errorf("episode %+v, want a return of %v", e, want)
		}
	}
}

func TestRollout_EnvironmentInWhichNobodyActsIsNamed(t *testing.T) {
	p := newTable(true, row{acts: []byte{1, 0}}, row{acts: []byte{0, 0}})
	for range 2 * trajectory.MaxIdle {
		p.rows = append(p.rows, p.rows[1])
	}
	r := tableRig(t, p, 64, nil)
	r.c.config.MaxRestarts = 0
	if err := r.RunUntil(func() bool { return false }); err == nil || !strings.Contains(err.Error(), "env 0") ||
		!strings.Contains(err.Error(), "no agent has acted in 1000 steps") {
		t.Errorf("an environment without anybody who acts: %v", err)
	}
}

func TestRollout_ActivityIsZeroOrOne(t *testing.T) {
	r := tableRig(t, newTable(true, row{acts: []byte{1, 1}}, row{acts: []byte{1, 2}}), 4, nil)
	r.c.config.MaxRestarts = 0
	if err := r.RunUntil(func() bool { return false }); err == nil || !strings.Contains(err.Error(), "agent 1 (bob): ") ||
		!strings.Contains(err.Error(), "active is 2, want 0 or 1") {
		t.Errorf("an activity of 2: %v", err)
	}
}

func TestRollout_FramesOfAgentsThatTakeTurnsAreRefused(t *testing.T) {
	p := game(true)
	if _, err := trajectory.NewSchema(p.spec, trajectory.Shape{Steps: 4, Envs: 2, Memory: trajectory.Memory{Past: 3}}); !errors.Is(err, trajectory.ErrShape) ||
		!strings.Contains(err.Error(), "agents that do not always act") {
		t.Errorf("frames of agents that take turns: %v", err)
	}
}

func TestS21_AgentsContinueInEnvironmentsThatTakeOverTheirState(t *testing.T) {
	for _, at := range []component.Boundary{component.AtStep, component.AtTrajectory} {
		p, made := game(true), 0
		r := tableRig(t, p, 5, func(tr trajectory.Trajectory) {
			first := made
			made += 5
			wantDecisions(t, tr, func(row, player int) float64 { return p.advantage(first, row, 5, player) })
		})
		for range 20 {
			if went := swap(t, r, component.EnvChange{Plugin: game(true), At: at, KeepState: true}); went.Truncated != 0 {
				t.Errorf("%v: a change that keeps episodes went %+v", at, went)
			}
			until := made + 5
			r.MustRun(func() bool { return made >= until })
		}
		checkGames(t, r)
	}
}

// A change that does not keep state ends episodes before a row. An agent that was to act in the row gets its observation as
// the last one. The last action of any other agent is in no loss, because its consequences are unknown.
func TestS21_AChangeEndsTheEpisodesOfAgents(t *testing.T) {
	var got [][]float64
	blocks := 0
	r := tableRig(t, game(true), 6, func(tr trajectory.Trajectory) {
		blocks++
		if got != nil || !slices.Contains(tr.Bytes(trajectory.Truncated)[:4], 1) {
			return
		}
		advantage := advantages(t, tr)
		for row := range 6 {
			decided := []float64{none, none}
			for player := range decided {
				if i := 4*row + player; tr.Bytes(trajectory.Valid)[i] != 0 {
					decided[player] = math.Round(float64(advantage[i])*1e4) / 1e4
				}
			}
			got = append(got, decided)
		}
	})
	judge := r.judge
	prepared, err := r.c.PrepareEnvs(t.Context(), component.EnvChange{Plugin: game(true), At: component.AtStep})
	if err != nil {
		t.Fatal(err)
	}
	committed := false
	r.judge = func(tr trajectory.Trajectory, q trajectory.ActRequest) {
		judge(tr, q)
		if q.T == 1 && blocks == 1 && !committed {
			committed = true
			if err := prepared.Commit(); err != nil {
				t.Error(err)
			}
		}
	}
	r.MustRun(func() bool { return got != nil && blocks >= 6 })
	prepared.Settle()
	want := [][]float64{{0.9*3 - 1, none}, {none, none}}
	for row := range 4 {
		want = append(want, []float64{byHand[0][row], byHand[1][row]})
	}
	for row := range want {
		for player, want := range want[row] {
			if row == 3 && player == 1 {
				want = 0.5 + 0.9*4 - 2 // what follows would be unfinished, had it not ended the game
			}
			if math.Abs(got[row][player]-want) > 1e-3 {
				t.Errorf("row %d, player %d: advantage %v, want %v", row, player, got[row][player], want)
			}
		}
	}
	checkGames(t, r)
}
