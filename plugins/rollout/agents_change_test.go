package rollout

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/trajectory"
)

// oneGame is a version of the first game of game, over and over: its first game is like all others.
func oneGame(version int, shared bool) *table {
	p := game(shared)
	p.rows = p.rows[:4]
	p.hash = strings.Repeat(fmt.Sprintf("%016x", version), 4)
	return p
}

// apartGame is a game whose first agent is out before the second.
func apartGame(version int) *table {
	p := newTable(false,
		row{acts: []byte{1, 1}, worth: []float32{1, 2}, reward: []float32{-1, 1}, terminated: []byte{1, 0}},
		row{acts: []byte{0, 1}, worth: []float32{99, 3}, reward: []float32{0, 1}},
		row{acts: []byte{0, 1}, worth: []float32{99, 4}, reward: []float32{0, 1}, truncated: []byte{0, 1}, final: []float32{0, 5}},
	)
	p.hash = strings.Repeat(fmt.Sprintf("%016x", version), 4)
	return p
}

// watch collects observations of a rollout of two environments of two agents.
type watch struct {
	*rig
	rows   []string    // all that is learned from in a row, and all that the learning depends on
	by     [2][]uint64 // by environment, the version that made its rows
	blocks int
}

func watched(t *testing.T, p *table, horizon int) *watch {
	w := &watch{}
	w.rig = tableRig(t, p, horizon, func(tr trajectory.Trajectory) {
		w.blocks++
		advantage := advantages(t, tr)
		for row := range horizon {
			at := row * 4
			w.rows = append(w.rows, fmt.Sprint(tr.Row(trajectory.Obs, row).Float32(), tr.Acts(row), tr.Row(trajectory.Reward, row).Float32(),
				tr.Row(trajectory.Terminated, row).Data, tr.Row(trajectory.Truncated, row).Data, tr.Row(trajectory.Valid, row).Data, advantage[at:at+4]))
			for env := range w.by {
				made := tr.Row(trajectory.PluginVersion, row)
				if a, b := made.Bits(2*env, 0), made.Bits(2*env+1, 0); a != b {
					t.Errorf("row %d: agents of environment %d are of versions %d and %d", row, env, a, b)
				}
				w.by[env] = append(w.by[env], made.Bits(2*env, 0))
			}
		}
	})
	return w
}

func (w *watch) more(blocks int) {
	until := w.blocks + blocks
	w.MustRun(func() bool { return w.blocks >= until })
}

// Environments with agents go over as others do, each when its episode ends, while the others run. Both versions play the same, so
// each row is as without the change, and is made by the version that its game began with.
func TestS13_AgentsGoOverWhenTheirEnvironmentsEpisodesEnd(t *testing.T) {
	for name, version := range map[string]func(int) *table{
		"flags of all": func(v int) *table { return oneGame(v, true) }, "flags of each": func(v int) *table { return oneGame(v, false) }, "apart": apartGame,
	} {
		for _, horizon := range []int{3, 5, 8} {
			t.Run(fmt.Sprintf("%s/%d", name, horizon), func(t *testing.T) {
				plain := watched(t, version(1), horizon)
				w := watched(t, version(1), horizon)
				w.more(2)
				for next := 2; next <= 6; next++ {
					if went := swap(t, w.rig, component.EnvChange{Plugin: version(next), At: component.AtEpisode}); went.Truncated != 0 || went.Envs != 2 {
						t.Errorf("change to version %d went %+v", next, went)
					}
					w.more(3)
				}
				plain.more(w.blocks)
				for i, row := range w.rows {
					if row != plain.rows[i] {
						t.Fatalf("row %d is %s, without a change %s", i, row, plain.rows[i])
					}
				}
				length := len(version(1).rows)
				for env, by := range w.by {
					if last := by[len(by)-1]; last != 6 || !slices.IsSorted(by) {
						t.Errorf("environment %d is played by %v", env, by)
					}
					for i := 1; i < len(by); i++ {
						if by[i] != by[i-1] && i%length != 0 {
							t.Errorf("environment %d changes its version in row %d of a game", env, i%length)
						}
					}
				}
				if length := w.Host.Stats.Histogram("env/environment_length").Snapshot(); length.Sum != float64(length.Count)*float64(len(version(1).rows)) {
					t.Errorf("%d episodes of environments have %v rows", length.Count, length.Sum)
				}
			})
		}
	}
}

// A trial plays in some environments next to the others, and goes back.
func TestS13_AgentsAreTriedNextToOthers(t *testing.T) {
	w := watched(t, oneGame(1, true), 5)
	w.more(2)
	prepared, err := w.c.PrepareEnvs(t.Context(), component.EnvChange{Plugin: oneGame(2, true), Envs: 1, Task: trajectory.TrialTask})
	if err != nil {
		t.Fatal(err)
	}
	if err := prepared.Commit(); err != nil {
		t.Fatal(err)
	}
	w.MustRun(func() bool { return slices.Contains(w.by[0], 2) })
	w.more(4)
	tried := 0
	for _, e := range w.episodes {
		if e.Task == trajectory.TrialTask {
			tried++
			if e.Env != 0 {
				t.Errorf("an episode of environment %d is on trial: %+v", e.Env, e)
			}
		}
	}
	if tried < 4 || slices.Contains(w.by[1], 2) {
		t.Errorf("%d episodes on trial; environment 1 is played by %v", tried, w.by[1])
	}
	prepared.Cancel()
	w.more(4)
	if last := w.by[0][len(w.by[0])-1]; last != 1 {
		t.Errorf("after the trial environment 0 is played by version %d", last)
	}
	w.episodes = nil
	w.more(8)
	for _, e := range w.episodes {
		if e.Task == trajectory.TrialTask || e.Return != []float32{-1, 1.5}[e.Agent] {
			t.Errorf("after the trial an episode is %+v", e)
		}
	}
}

// Environments that fail next to others lose their own episodes alone, or are taken back if they are on probation.
func TestS2_AgentsFailNextToOthers(t *testing.T) {
	for _, probation := range []bool{false, true} {
		t.Run(fmt.Sprintf("probation=%t", probation), func(t *testing.T) {
			w := watched(t, oneGame(1, true), 5)
			w.more(2)
			faulty, back := oneGame(2, true), false
			faulty.faulty = 3
			o := component.EnvChange{Plugin: faulty, At: component.AtEpisode, Probation: probation, RolledBack: func(error) { back = true }}
			prepared, err := w.c.PrepareEnvs(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			if err := prepared.Commit(); err != nil {
				t.Fatal(err)
			}
			w.more(12)
			last := [2]uint64{w.by[0][len(w.by[0])-1], w.by[1][len(w.by[1])-1]}
			if want := uint64(2); !probation && last != [2]uint64{want, want} || probation && (last != [2]uint64{1, 1} || !back) {
				t.Errorf("environments are played by %v, taken back: %t", last, back)
			}
			w.episodes = nil
			w.more(8)
			for _, e := range w.episodes {
				if e.Return != []float32{-1, 1.5}[e.Agent] {
					t.Errorf("afterwards an episode is %+v", e)
				}
			}
			if len(w.episodes) < 16 {
				t.Errorf("%d episodes in 8 blocks", len(w.episodes))
			}
		})
	}
}

// Players are drawn the same side by side and alone.
func TestPolicies_AreDrawnSideBySide(t *testing.T) {
	var want []byte
	for _, change := range []bool{false, true} {
		var by []byte
		r := policiesRig(t, oneGame(1, true), twoGames(2, 1, map[string]string{"*/*": "main"}, map[string]float64{"past": 0.5}), func(tr trajectory.Trajectory) {
			by = append(by, tr.Bytes(trajectory.Policy)[:6*4]...)
		})
		r.MustRun(func() bool { return len(by) >= 5*24 })
		if change {
			prepared, err := r.c.PrepareEnvs(t.Context(), component.EnvChange{Plugin: oneGame(2, true), Envs: 1})
			if err != nil {
				t.Fatal(err)
			}
			if err := prepared.Commit(); err != nil {
				t.Fatal(err)
			}
		}
		r.MustRun(func() bool { return len(by) >= 30*24 })
		if !change {
			want = by[:30*24]
		} else if !bytes.Equal(by[:30*24], want) {
			t.Errorf("beside others agents are played by\n%v, alone by\n%v", by[:30*24], want)
		}
	}
}

// Side by side a step allocates nothing for agents either.
func TestStep_AgentsSideBySideAllocateNothing(t *testing.T) {
	r := tableRig(t, oneGame(1, true), 1000, nil)
	prepared, err := r.c.PrepareEnvs(t.Context(), component.EnvChange{Plugin: oneGame(2, true), Envs: 1})
	if err != nil {
		t.Fatal(err)
	}
	r.MustRun(func() bool { return len(r.asked) > 3 })
	if err := prepared.Commit(); err != nil {
		t.Fatal(err)
	}
	s := r.c.splits[0]
	r.MustRun(func() bool { return s.versions != nil && s.t > 10 })
	r.silent = true
	r.MustSettle()
	m := trajectory.ActRequest{Block: s.loan.Handle()}.Message()
	n := testing.AllocsPerRun(500, func() {
		m.T = uint32(s.t)
		r.c.onActions(&m)
		r.asked = r.asked[:0]
	})
	if n != 0 || s.t < 500 {
		t.Errorf("%v allocations a step after %d steps, want 0", n, s.t)
	}
	if err := r.c.Stop(); err != nil {
		t.Error(err)
	}
}

// A time limit ends the episodes of all agents that run, with their observation then as the last one. The
// environments begin again, alone and next to others.
func TestS21_TheLimitEndsTheEpisodesOfAllAgents(t *testing.T) {
	endless := func(version int) *table {
		p := newTable(true,
			row{acts: []byte{1, 0}, worth: []float32{1, 99}},
			row{acts: []byte{0, 1}, worth: []float32{99, 2}},
			row{acts: []byte{1, 0}, worth: []float32{3, 99}, reward: []float32{0, 0.5}},
			row{acts: []byte{0, 1}, worth: []float32{50, 60}},
		)
		p.hash = strings.Repeat(fmt.Sprintf("%016x", version), 4)
		return p
	}
	last := 0.9*50 - 3
	want := [2][3]float64{{0.9*3 - 1 + 0.45*last, none, last}, {none, 0.5 + 0.9*60 - 2, none}}
	blocks := 0
	r := tableRig(t, limited(t, endless(1), 3), 6, func(tr trajectory.Trajectory) {
		blocks++
		wantDecisions(t, tr, func(row, player int) float64 {
			if row == 3 && player == 0 {
				return 0.9*3 - 1 // what follows would be unfinished, had the limit not ended the game
			}
			return want[player][row%3]
		})
	})
	r.MustRun(func() bool { return blocks >= 3 })
	prepared, err := r.c.PrepareEnvs(t.Context(), component.EnvChange{Plugin: limited(t, endless(2), 3), Envs: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := prepared.Commit(); err != nil {
		t.Fatal(err)
	}
	r.MustRun(func() bool { return blocks >= 6 })
	if went := swap(t, r, component.EnvChange{Plugin: limited(t, endless(3), 3), At: component.AtEpisode}); went.Truncated != 0 {
		t.Errorf("at the ends of episodes a change went %+v", went)
	}
	r.MustRun(func() bool { return blocks >= 12 })
	for _, e := range r.episodes {
		if e.Terminated || e.Length != []uint32{2, 1}[e.Agent] || e.Return != []float32{0, 0.5}[e.Agent] {
			t.Errorf("an episode is %+v", e)
		}
	}
	if n := len(r.episodes); n < 12*2*4 {
		t.Errorf("%d episodes in 12 blocks", n)
	}
	if d := r.Host.Stats.Histogram("env/environment_length").Snapshot(); d.Sum != 3*float64(d.Count) || d.Count == 0 {
		t.Errorf("%d episodes of environments have %v rows", d.Count, d.Sum)
	}
}
