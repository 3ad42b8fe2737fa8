package trajectory

// Operations on all columns of a flag. None allocates.

// ObservedBytes is the length of SaveObserved's output.
func (s *Schema) ObservedBytes() (n int) {
	for _, c := range s.moved {
		n += s.columns[c].RowBytes
	}
	for _, c := range s.past {
		n += s.carriedRows(c) * s.columns[c].RowBytes
	}
	return n
}

// carriedRows is how many rows of a past column belong to the observation of one row: its age, its state, or all rows before it.
func (s *Schema) carriedRows(c uint8) int {
	if kind := s.columns[c].Column; kind == Age || kind == CoreState {
		return 1
	}
	return s.Shape.Past
}

// carried returns one of those rows. They become the first rows of the column in the next block.
func (t Trajectory) carried(c uint8, row, i int) Matrix {
	switch t.Schema.columns[c].Column {
	case Age:
		return t.at(c, row)
	case CoreState:
		return t.at(c, t.Schema.StateRow(row))
	}
	if row += i - t.Schema.Shape.Past; row < 0 {
		return t.at(c, t.Schema.Shape.Past+row)
	}
	return t.Row(t.Schema.columns[c].Column.of(), row)
}

// AppendRows appends a row of each column with one of the flags Observed, Outcome and Final.
func (t Trajectory) AppendRows(to []Matrix, flag Flags, row int) []Matrix {
	for c := range t.Schema.columns {
		if l := &t.Schema.columns[c]; l.Flags&flag != 0 {
			to = append(to, t.row(l, row))
		}
	}
	return to
}

// SaveObserved copies the observation of a row, and the rows before it in blocks that keep them, to dst, which is ObservedBytes long.
func (t Trajectory) SaveObserved(dst []byte, row int) {
	for _, c := range t.Schema.moved {
		dst = dst[copy(dst, t.at(c, row).Data):]
	}
	for _, c := range t.Schema.past {
		for i := range t.Schema.carriedRows(c) {
			dst = dst[copy(dst, t.carried(c, row, i).Data):]
		}
	}
}

// LoadObserved copies an observation that SaveObserved has saved to a row; for row 0, the rows before it too.
func (t Trajectory) LoadObserved(row int, src []byte) {
	for _, c := range t.Schema.moved {
		src = src[copy(t.at(c, row).Data, src):]
	}
	if row > 0 {
		return
	}
	for _, c := range t.Schema.past {
		for i := range t.Schema.carriedRows(c) {
			src = src[copy(t.at(c, i).Data, src):]
		}
	}
}

// CopyObserved copies a row of observations from a block with the same layout; for row 0, the rows before it too.
func (t Trajectory) CopyObserved(row int, from Trajectory, fromRow int) {
	for _, c := range t.Schema.moved {
		copy(t.at(c, row).Data, from.at(c, fromRow).Data)
	}
	if row > 0 {
		return
	}
	for _, c := range t.Schema.past {
		for i := range t.Schema.carriedRows(c) { // forward, so that a block can be its own source
			copy(t.at(c, i).Data, from.carried(c, fromRow, i).Data)
		}
	}
}

// Ages returns how many rows the episodes of a row have been running, 255 at most, to be read and written; nil in blocks
// that do not keep it.
func (t Trajectory) Ages(row int) []byte {
	l := t.Schema.find(Age)
	if l == nil {
		return nil
	}
	return t.row(l, row).Data
}

// KeepState copies a policy's state before a row to its state after the row, for the agents that do not act in that row.
func (t Trajectory) KeepState(row int) {
	if t.Schema.find(CoreState) == nil {
		return
	}
	before, behind := t.Row(CoreState, t.Schema.StateRow(row)), t.Row(CoreState, t.Schema.StateRow(row+1))
	for i, acts := range t.Acts(row) {
		if acts == 0 {
			behind.CopyRow(i, before)
		}
	}
}

// Older returns the age of the row after one with an age, in the same episode.
func Older(age byte) byte { return min(age, MaxPast-1) + 1 }

// BeginWhere makes a row the first one of new episodes where the mask of environments is not 0, or everywhere if it is nil.
func (t Trajectory) BeginWhere(row int, mask []uint8) {
	ages := t.Ages(row)
	for i := range ages {
		if mask == nil || mask[i/t.Schema.Agents] != 0 {
			ages[i] = 0
		}
	}
}

// CopyObservedOf is CopyObserved for one environment, or agent.
func (t Trajectory) CopyObservedOf(env, row int, from Trajectory, fromRow int) {
	for _, c := range t.Schema.moved {
		t.at(c, row).CopyRow(env, from.at(c, fromRow))
	}
}

// CopyOutcomeOf copies a step's result for one environment or agent, and its last observation if it has ended an episode.
func (t Trajectory) CopyOutcomeOf(env, row int, from Trajectory) {
	for _, c := range t.Schema.outcome {
		t.at(c, row).CopyRow(env, from.at(c, row))
	}
	if t.Row(Terminated, row).Data[env]|t.Row(Truncated, row).Data[env] == 0 {
		return
	}
	for _, c := range t.Schema.final {
		t.at(c, 0).CopyRow(env, from.at(c, 0))
	}
}

// ClearOutcomeOf makes a step empty for one environment or agent: no reward, no episode has ended, and the observation is the
// previous one.
func (t Trajectory) ClearOutcomeOf(env, row int) {
	t.ClearResultOf(env, row)
	t.CopyObservedOf(env, row+1, t, row)
}

// ClearResultOf is ClearOutcomeOf without the observation.
func (t Trajectory) ClearResultOf(env, row int) {
	for _, c := range t.Schema.outcome {
		t.at(c, row).clearRow(env)
	}
}

// Pad completes a block whose first rows, 1 or more, have been stepped: the others are not valid, have no outcome, and repeat the
// observation and the value of the row after the last step, and what was drawn in it, with actions that its masks allow. The versions of the
// environment are left out.
func (t Trajectory) Pad(rows int) {
	steps := t.Schema.Shape.Steps
	if rows >= steps {
		return
	}
	for i := range t.Schema.columns {
		l := &t.Schema.columns[i]
		switch {
		case l.Column == CoreState:
			chunk := t.Schema.StoredEvery()
			repeat(t, l, rows/chunk+1, steps/chunk+1, nil)
		case l.Column == PluginVersion:
		case l.Flags&Outcome != 0 || l.Column.Kind() == Valid:
			repeat(t, l, rows, steps, nil)
		case l.Flags&AtT1 != 0:
			repeat(t, l, rows+1, steps+1, t.row(l, rows).Data)
		case l.Flags&AtT != 0:
			repeat(t, l, rows, steps, t.row(l, rows-1).Data)
		}
	}
	if !t.Schema.Has(Mask) {
		return
	}
	for i := range t.Schema.Rows() {
		t.FirstLegal(i, rows)
	}
	for i := range t.Schema.actions {
		l := &t.Schema.columns[t.Schema.actions[i].action]
		repeat(t, l, rows+1, steps, t.row(l, rows).Data)
	}
}

// repeat writes what one row of a column holds, or zeros, to its rows from first up to, but not including, end.
func repeat(t Trajectory, l *Layout, first, end int, row []byte) {
	for r := first; r < end; r++ {
		if to := t.row(l, r).Data; row == nil {
			clear(to)
		} else {
			copy(to, row)
		}
	}
}

// KeepFinal makes an environment's, or agent's, observation in a row its last observation.
func (t Trajectory) KeepFinal(env, row int) {
	for _, c := range t.Schema.final {
		t.at(c, 0).CopyRow(env, t.Row(Obs.At(t.Schema.columns[c].Column.Index()), row))
	}
}

// KeepFinalWhere is KeepFinal for the environments, or agents, for which a byte is not 0.
func (t Trajectory) KeepFinalWhere(which []byte, row int) {
	for _, c := range t.Schema.final {
		final, obs := t.at(c, 0), t.Row(Obs.At(t.Schema.columns[c].Column.Index()), row)
		for i, keep := range which {
			if keep != 0 {
				final.CopyRow(i, obs)
			}
		}
	}
}
