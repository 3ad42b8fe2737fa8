package trajectory

// NewDecisions returns a trajectory of one step outside any arena, which keeps a decision of each agent between two blocks of a
// schema. It has the layout of such a block except for the number of steps.
func (s *Schema) NewDecisions() (Trajectory, error) {
	shape := s.Shape
	shape.Steps, shape.Chunk, shape.Granted, shape.Shaped = 1, 0, "", s.Has(ShapedReward)
	one, err := NewSchema(s.Spec, shape)
	if err != nil {
		return Trajectory{}, err
	}
	return Trajectory{Schema: one, Mem: make([]byte, one.Bytes)}, nil
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
