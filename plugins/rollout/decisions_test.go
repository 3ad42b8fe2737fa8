package rollout

import (
	"testing"

	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
)

// A run that continues from a snapshot learns from its open decisions like a run that was never interrupted.
func TestS27_OpenDecisionsAreInSnapshots(t *testing.T) {
	const horizon, after = 5, 3
	plain, w := watched(t, game(false), horizon), watched(t, game(false), horizon)
	w.eachBlock(t, func(*hostabi.Message, trajectory.Trajectory) { w.silent = w.blocks == after })
	w.more(after)
	w.MustSettle()
	state := snapshot(t, w.rig)
	next := watched(t, game(false), horizon)
	if err := next.c.Restore(state); err != nil {
		t.Fatal(err)
	}
	next.more(after)
	plain.more(2 * after)
	for i, want := range plain.rows[:2*after*horizon] {
		if got := append(w.rows[:after*horizon:after*horizon], next.rows...)[i]; got != want {
			t.Errorf("row %d is %s, without an interruption %s", i, got, want)
		}
	}
}

// The next block has an open decision with the policy's state before it. Here the state counts the decisions of the episode, which is its
// age.
func TestS27_OpenDecisionsKeepWhatTheirPolicyKnew(t *testing.T) {
	for _, chunk := range []int{1, 3} {
		carried := 0
		r := newRig(t, rigOptions{plugin: game(true), memory: trajectory.Memory{State: 1, Chunk: chunk},
			config: func(c *config) { c.Envs, c.Splits, c.Horizon = 2, 1, 3 }})
		r.judge = func(tr trajectory.Trajectory, q trajectory.ActRequest) {
			if q.ValueOnly {
				return
			}
			state := func(t int) []float32 { return tr.Row(trajectory.CoreState, tr.Schema.StateRow(t)).Float32() }
			before, behind := state(q.T), state(q.T+1)
			for i, age := range tr.Ages(q.T) {
				if behind[i] = 1; age > 0 {
					behind[i] = before[i] + 1
				}
			}
		}
		blocks := 0
		r.eachBlock(t, func(_ *hostabi.Message, tr trajectory.Trajectory) {
			blocks++
			for i, age := range tr.Ages(0) {
				if tr.Row(trajectory.Valid, 0).Data[i] == 0 || age == 0 {
					continue
				}
				if got := tr.Row(trajectory.CoreState, tr.Schema.StateRow(0)).Float32()[i]; got != float32(age) {
					t.Errorf("chunks of %d, block %d: decision %d of agent %d is made with the state %v", chunk, blocks, age, i, got)
				}
				if tr.Row(trajectory.Obs, 0).Float32()[i] == 3 {
					carried++ // the first player's second decision, which ends no block
				}
			}
		})
		r.MustRun(func() bool { return blocks >= 8 })
		if carried == 0 {
			t.Errorf("chunks of %d: no open decision behind the first of its episode was in the next block", chunk)
		}
	}
}

// An agent that waits for longer than MaxIdle steps is in no loss, and its return is announced unchanged.
func TestS27_ADecisionWaitsForSoLong(t *testing.T) {
	for waits, learned := range map[int]bool{trajectory.MaxIdle - 100: true, trajectory.MaxIdle + 100: false} {
		p := newTable(false, row{acts: []byte{1, 0}, reward: []float32{2, 0}})
		for range waits {
			p.rows = append(p.rows, row{acts: []byte{0, 1}})
		}
		p.rows = append(p.rows, row{acts: []byte{0, 1}, reward: []float32{1, 0}, terminated: []byte{1, 1}})
		rows := 0
		r := tableRig(t, p, 64, func(tr trajectory.Trajectory) {
			for i, valid := range tr.Bytes(trajectory.Valid) {
				if valid == 0 || i%2 != 0 {
					continue
				}
				if rows++; tr.Float32(trajectory.Reward)[i] != 3 {
					t.Errorf("waiting %d steps: a decision got %v, want 3", waits, tr.Float32(trajectory.Reward)[i])
				}
			}
		})
		r.MustRun(func() bool { return len(r.episodes) >= 12 })
		if learned != (rows > 0) {
			t.Errorf("waiting %d steps: %d decisions are learned from", waits, rows)
		}
		for _, e := range r.episodes {
			if e.Agent == 0 && (e.Return != 3 || e.Length != 1) {
				t.Errorf("waiting %d steps: episode %+v", waits, e)
			}
		}
	}
}
