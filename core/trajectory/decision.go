package trajectory

import "github.com/rlhost/rlhost/hostabi"

// NewDecisions returns a trajectory of one step outside any arena, which keeps a decision of each agent between two blocks of a
// schema. It has the layout of such a block except for the number of steps.
func (s *Schema) NewDecisions() (Trajectory, error) { return s.newDecisions(s.Spec, s.Shape.SoA) }

// NewRelaid is NewDecisions in the other layout: in Shape.SoA where the schema is not, and the reverse. Nothing steps into such a block.
func (s *Schema) NewRelaid() (Trajectory, error) {
	spec := s.Spec
	spec.Caps |= hostabi.CapStrides
	return s.newDecisions(spec, !s.Shape.SoA)
}

func (s *Schema) newDecisions(spec hostabi.EnvSpec, soa bool) (Trajectory, error) {
	shape := s.Shape
	shape.Steps, shape.Chunk, shape.Granted, shape.Shaped, shape.SoA = 1, 0, "", s.Has(ShapedReward), soa
	one, err := NewSchema(spec, shape)
	if err != nil {
		return Trajectory{}, err
	}
	return Trajectory{Schema: one, Mem: make([]byte, one.Bytes)}, nil
}

// CopyAll copies all rows of a block of the same columns, whatever its layout.
func (t Trajectory) CopyAll(from Trajectory) {
	for c := range t.Schema.columns {
		for row := range t.Schema.columns[c].Rows {
			to, of := t.at(uint8(c), row), from.at(uint8(c), row)
			for i := range to.Rows {
				to.CopyRow(i, of)
			}
		}
	}
}

// CopyDecisionOf copies a decision of one environment, or agent, to a row: the observation, the action, the policy's outputs and the
// reward so far. CopyStateOf copies the state before the row. It does not allocate.
func (t Trajectory) CopyDecisionOf(i, row int, from Trajectory, fromRow int) {
	for _, c := range t.Schema.decided {
		t.at(c, row).CopyRow(i, from.at(c, fromRow))
	}
}

// CopyStateOf copies a policy's state of one environment, or agent, before a row, in blocks that keep states. The state of a row that is
// not at a whole chunk is there until two rows later.
func (t Trajectory) CopyStateOf(i, row int, from Trajectory, fromRow int) {
	if t.Schema.find(CoreState) != nil {
		t.Row(CoreState, t.Schema.StateRow(row)).CopyRow(i, from.Row(CoreState, from.Schema.StateRow(fromRow)))
	}
}
