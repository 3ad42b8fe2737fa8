package policytest

import (
	"errors"
	"slices"
	"testing"

	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
)

// inactiveRows: rows in which agents do not act are skipped, by advantages and by a core's state, too:
// the next row is the next one in which the agent acts.
func (s *suite) inactiveRows(t *testing.T) {
	d, params := s.stale(t)
	if past := s.shape.net.Past(); past > 0 {
		_, err := trajectory.NewSchema(takingTurns(&d.Blocks[0].Schema.Spec, 2), trajectory.Shape{Steps: 2, Envs: 1, Memory: trajectory.Memory{Past: past}})
		if !errors.Is(err, trajectory.ErrShape) {
			t.Errorf("blocks of agents that do not always act, with %d rows before the first: %v, want ErrShape", past, err)
		}
		return
	}
	sparse := *s // has chunks with as many rows in which an agent acts
	sparse.shape.net = s.shape.net.Clone()
	sparse.shape.net.Chunk *= 2
	turns := *d
	turns.Blocks = nil
	for _, b := range d.Blocks {
		turns.Blocks = append(turns.Blocks, InTurns(t, b))
	}
	for _, c := range s.variants() {
		vtrace := c.VTrace
		want, wantStats := s.update(t, params, c, d, 2)
		if sparse.shape.net.Chunk > 0 {
			c.Minibatch, c.BurnInRows = 2*c.Minibatch, 2*c.BurnInRows // as many chunks
		}
		got, stats := sparse.update(t, params, c, &turns, 2)
		if stats.Gathered = wantStats.Gathered; stats != wantStats || !sameBits(got, want) { // V-trace's ratios are computed for all rows
			t.Errorf("vtrace %v: with rows of agents that do not act it learns %+v, without %+v; same bits: %v", vtrace, stats, wantStats,
				sameBits(got, want))
		}
	}
}

// takingTurns describes an environment of several agents that do not always act.
func takingTurns(one *hostabi.EnvSpec, agents int) hostabi.EnvSpec {
	spec := *one
	spec.Groups = []hostabi.Group{{Name: "agents", Agents: agents}}
	spec.Tensors = append(slices.Clone(spec.Tensors), hostabi.Tensor{Role: hostabi.RoleActive, DType: hostabi.U8})
	for i := range spec.Tensors {
		spec.Tensors[i].Flags |= hostabi.TensorPerAgent
	}
	return spec
}

// InTurns returns the rows of a block as rows of one environment whose agents act in turns: the first half in every
// second row, the other half in the rows between. All other rows are NaN.
func InTurns(t testing.TB, b trajectory.Trajectory) trajectory.Trajectory {
	t.Helper()
	agents, steps := b.Schema.Rows(), b.Schema.Shape.Steps
	schema, err := trajectory.NewSchema(takingTurns(&b.Schema.Spec, agents), trajectory.Shape{Steps: 2 * steps, Envs: 1, SoA: b.Schema.Shape.SoA,
		Memory: trajectory.Memory{State: b.Schema.Shape.State, Chunk: 2 * b.Schema.StoredEvery()}})
	if err != nil {
		t.Fatal(err)
	}
	to := trajectory.Trajectory{Schema: schema, Mem: slices.Repeat([]byte{255}, schema.Bytes)}
	clear(to.Bytes(trajectory.Valid))
	clear(to.Bytes(trajectory.Active))
	to.Meta().FirstEnv = b.Meta().FirstEnv
	for _, l := range b.Schema.Columns() {
		if l.Flags&trajectory.PerEnv == 0 || l.Flags&(trajectory.AtT|trajectory.AtT1) == 0 {
			continue
		}
		for row := range l.Rows {
			for agent := range agents {
				to.Row(l.Column, turn(row, agent, agents, steps)).CopyRow(agent, b.Row(l.Column, row))
			}
		}
	}
	for chunk := 0; b.Schema.Shape.State > 0 && chunk <= steps; chunk += b.Schema.StoredEvery() {
		copy(to.Row(trajectory.CoreState, schema.StateRow(2*chunk)).Data, b.Row(trajectory.CoreState, b.Schema.StateRow(chunk)).Data)
	}
	for row := range steps + 1 {
		for agent := range agents {
			to.Acts(turn(row, agent, agents, steps))[agent] = 1
		}
	}
	return to
}

// turn returns the row that has an agent's row of a block of so many steps.
func turn(row, agent, agents, steps int) int {
	if row < steps && agent >= agents/2 {
		return 2*row + 1
	}
	return 2 * row
}
