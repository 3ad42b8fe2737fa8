package wasm

import (
	"strconv"

	"github.com/rlhost/rlhost/sdk"
)

// ask finds out which agents of environment i act now.
func (b *batch[A, O]) ask(i int) {
	acts := b.acts[i*b.agents:][:b.agents:b.agents]
	for k := range acts {
		acts[k] = 1
	}
	if turns, ok := b.envs.(sdk.BatchTurnTaker); ok {
		turns.Active(i, acts)
	}
	for k, over := range b.over[i*b.agents:][:b.agents] {
		acts[k] = flag(acts[k] != 0 && over == 0)
	}
}

// writeActive writes who acts at time t.
func (b *batch[A, O]) writeActive(t uint32, first, count int) {
	if b.acts == nil {
		return
	}
	for i := first; i < first+count; i++ {
		b.ask(i)
	}
	rows := b.active.rows(t, first, count)
	copy(rows, b.acts[first*b.agents:])
	b.active.write(t, first, rows)
}

// freeIdle makes everything legal for the agents of environment i that do not act.
func (b *batch[A, O]) freeIdle(i int) {
	if b.acts == nil {
		return
	}
	for k, acts := range b.acts[i*b.agents:][:b.agents] {
		if acts == 0 {
			copy(b.legal[k*b.choices:(k+1)*b.choices], b.allLegal)
		}
	}
}

// acting reports whether an agent acts, by its place among the agents of all environments.
func (b *batch[A, O]) acting(agent int) bool { return b.acts == nil || b.acts[agent] != 0 }

// giveLast takes what an agent of environment i observes as its last observation, during a step.
func (b *batch[A, O]) giveLast(i, agent int) {
	var obs []O
	if b.parts == nil {
		obs = b.seen[(i-b.from)*b.obs.elems:][:b.obs.elems]
	}
	b.keepLast(i, agent, agent+1, obs)
	b.kept[i*b.agents+agent] = 1
}

// respawn looks at the agents of environment i whose episodes have ended: the author has put them back, or ends the environment's own.
func (b *batch[A, O]) respawn(i int, rows sdk.Rows[A, O]) {
	kept, ended, given, missing := b.kept[i*b.agents:][:b.agents], 0, 0, -1
	for k := range kept {
		if rows.Terminated[k] != 0 {
			rows.Truncated[k] = 0
		}
		over := rows.Terminated[k] | rows.Truncated[k]
		ended, given = ended+int(over), given+int(kept[k])
		if over != 0 && kept[k] == 0 && missing < 0 {
			missing = k
		}
		kept[k] = 0
	}
	switch {
	case missing < 0:
	case ended < b.agents || given > 0:
		panic("agent " + strconv.Itoa(missing) + " of environment " + strconv.Itoa(i) +
			" has ended without its last observation: call the function that SetLast got, then put the agent back")
	default:
		b.end(i, rows.Obs)
	}
}

// endApart ends the episodes of agents of environment i by their flags, and the environment's with the last one.
func (b *batch[A, O]) endApart(i int, rows sdk.Rows[A, O]) {
	over, ended, left := b.over[i*b.agents:][:b.agents], false, 0
	for k := range over {
		if over[k] != 0 {
			rows.Terminated[k], rows.Truncated[k] = 0, 0
			continue
		}
		if rows.Terminated[k] != 0 {
			rows.Truncated[k] = 0
		}
		if rows.Terminated[k]|rows.Truncated[k] == 0 {
			left++
			continue
		}
		over[k], ended = 1, true
		b.keepLast(i, k, k+1, rows.Obs)
	}
	if ended && left == 0 {
		b.begin(i, rows.Obs)
	}
}
