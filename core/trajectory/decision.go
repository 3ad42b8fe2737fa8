package trajectory

// NewDecisions returns a trajectory of one step outside of any arena, which keeps a decision of each agent between two blocks of a
// schema. It is laid out like those but for the number of steps.
func (s *Schema) NewDecisions() (Trajectory, error) {
	shape := s.Shape
	shape.Steps, shape.Chunk, shape.Granted, shape.Shaped = 1, 0, "", s.Has(ShapedReward)
	one, err := NewSchema(s.Spec, shape)
	if err != nil {
		return Trajectory{}, err
	}
	return Trajectory{Schema: one, Mem: make([]byte, one.Bytes)}, nil
}

// CopyDecisionOf copies a decision of one environment, or agent, to a row: what it acted on, with its action and what a policy has said of
// both, and the reward so far. What a policy keeps before the row is CopyStateOf's. It does not allocate.
func (t Trajectory) CopyDecisionOf(i, row int, from Trajectory, fromRow int) {
	for _, c := range t.Schema.decided {
		t.at(c, row).CopyRow(i, from.at(c, fromRow))
	}
}

// CopyStateOf copies what a policy keeps of one environment, or agent, before a row, in blocks that keep such. That of a row which is not
// at a whole chunk is there until two rows later.
func (t Trajectory) CopyStateOf(i, row int, from Trajectory, fromRow int) {
	if t.Schema.find(CoreState) != nil {
		t.Row(CoreState, t.Schema.StateRow(row)).CopyRow(i, from.Row(CoreState, from.Schema.StateRow(fromRow)))
	}
}
