package rollout

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
)

// firstBlock returns the advantages of the first block of the game of horizon 6, by row, environment and player; none for
// rows in no loss. The rig has been run until games have ended in all environments since.
func firstBlock(t *testing.T, p env.Plugin) (r *rig, got [6][2][2]float64) {
	t.Helper()
	blocks := 0
	r = tableRig(t, p, 6, func(tr trajectory.Trajectory) {
		if blocks++; blocks > 1 {
			return
		}
		for i, a := range advantages(t, tr) {
			at := &got[i/4][i%4/2][i%2]
			if *at = none; tr.Bytes(trajectory.Valid)[i] != 0 {
				*at = float64(a)
			}
		}
	})
	r.MustRun(func() bool { return blocks >= 6 })
	return r, got
}

// The environment that dies loses its current step. The agent that was to act in it has a last observation whose value was
// asked for. Nobody knows the consequences of the other agent's last decision, so it is in no loss.
func TestS21_ALossTakesTheDecisionsWhoseEndNobodyKnows(t *testing.T) {
	const cutOff, known = 0.9*3 - 1, 0.5 + 0.9*4 - 2 // of the first moves, with the value of the next one
	a, b := byHand[0], byHand[1]
	for row, c := range []struct {
		want     [6][2]float64 // of the environment that dies, by row and player
		episodes uint64        // lost
	}{
		{[6][2]float64{{none, none}, {a[0], none}, {none, b[1]}, {a[2], none}, {none, b[3]}, {none, none}}, 1},
		{[6][2]float64{{none, none}, {none, none}, {a[0], none}, {none, known}, {a[2], none}, {none, b[3]}}, 2},
		{[6][2]float64{{cutOff, none}, {none, none}, {none, none}, {cutOff, none}, {none, known}, {none, none}}, 2},
		{[6][2]float64{{cutOff, none}, {none, known}, {none, none}, {none, none}, {cutOff, none}, {none, none}}, 2},
	} {
		dies := func(call string, number, _ int) []env.Span {
			if call == hostabi.ExportStep && number == row+1 {
				return []env.Span{{First: 1, Count: 1}}
			}
			return nil
		}
		r, got := firstBlock(t, mortal{game(true), dies})
		for at := range got {
			for player := range 2 {
				for env, want := range []float64{byHand[player][at], c.want[at][player]} {
					if math.Abs(got[at][env][player]-want) > 1e-5 {
						t.Errorf("lost in row %d: row %d of environment %d, player %d: advantage %v, want %v", row, at, env, player,
							got[at][env][player], want)
					}
				}
			}
		}
		checkGames(t, r)
		restarts, steps, episodes := r.counter("rollout/restarts"), r.counter("rollout/lost_env_steps"), r.counter("rollout/lost_episodes")
		if restarts != 1 || steps != 1 || episodes != c.episodes {
			t.Errorf("lost in row %d: %d restarts, %d env steps and %d episodes lost; want 1, 1, %d", row, restarts, steps, episodes, c.episodes)
		}
	}
}

// trapping is a table whose environments trap in one call of Step.
type trapping struct {
	*table
	number int
}

type trappingEnv struct {
	env.Env
	left int // calls of Step until the trap
}

func (p trapping) NewEnv(o env.Options) (env.Env, error) {
	e, err := p.table.NewEnv(o)
	return &trappingEnv{e, p.number}, err
}

func (e *trappingEnv) Step(t int) error {
	if e.left--; e.left == 0 {
		return &env.Fault{Kind: env.FaultTrap, Name: "rollout", Source: "table", Call: hostabi.ExportStep, Env: 1, Err: errors.New("trap on cue")}
	}
	return e.Env.Step(t)
}

func TestS21_ATrapGivesUpTheBlockAndRestartsTheGames(t *testing.T) {
	for row := range 6 {
		r, got := firstBlock(t, trapping{game(true), row + 1})
		for at := range got {
			for i, want := range []float64{byHand[0][at], byHand[1][at]} {
				if got[at][0][i] != got[at][1][i] || math.Abs(got[at][0][i]-want) > 1e-5 {
					t.Errorf("trap in row %d: row %d of player %d: advantages %v and %v, want %v", row, at, i, got[at][0][i], got[at][1][i], want)
				}
			}
		}
		checkGames(t, r)
		// Of two environments one player each has acted in every row before.
		if restarts, steps := r.counter("rollout/restarts"), r.counter("rollout/lost_env_steps"); restarts != 1 || steps != uint64(2*row) {
			t.Errorf("trap in row %d: %d restarts and %d env steps lost, want 1 and %d", row, restarts, steps, 2*row)
		}
		if want := "rollout env 1: trap in rl_step"; !strings.Contains(r.Log.String(), want) {
			t.Errorf("log %s\nwant %q", r.Log.String(), want)
		}
	}
}
