package trajectory

// Operations on all columns of a flag. None allocates.

// ObservedBytes is the length of the observed columns of one row.
func (s *Schema) ObservedBytes() (n int) {
	for _, c := range s.observed {
		n += s.columns[c].RowBytes
	}
	return n
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

// SaveObserved copies what is observed in a row to dst, which is ObservedBytes long.
func (t Trajectory) SaveObserved(dst []byte, row int) {
	for _, c := range t.Schema.observed {
		dst = dst[copy(dst, t.at(c, row).Data):]
	}
}

// LoadObserved copies what SaveObserved has saved to a row.
func (t Trajectory) LoadObserved(row int, src []byte) {
	for _, c := range t.Schema.observed {
		src = src[copy(t.at(c, row).Data, src):]
	}
}

// CopyObserved copies what all environments observe in a row of a block that is laid out like this one.
func (t Trajectory) CopyObserved(row int, from Trajectory, fromRow int) {
	for _, c := range t.Schema.observed {
		copy(t.at(c, row).Data, from.at(c, fromRow).Data)
	}
}

// CopyObservedOf is CopyObserved for one environment.
func (t Trajectory) CopyObservedOf(env, row int, from Trajectory, fromRow int) {
	for _, c := range t.Schema.observed {
		t.at(c, row).CopyRow(env, from.at(c, fromRow))
	}
}

// CopyOutcomeOf copies a step's result for one environment, and its last observation if it has ended an episode.
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

// ClearOutcomeOf makes a step empty for one environment: no reward, no episode has ended, and the observation is the
// previous one.
func (t Trajectory) ClearOutcomeOf(env, row int) {
	for _, c := range t.Schema.outcome {
		t.at(c, row).clearRow(env)
	}
	t.CopyObservedOf(env, row+1, t, row)
}

// KeepFinal makes an environment's observation in a row its last observation.
func (t Trajectory) KeepFinal(env, row int) {
	for _, c := range t.Schema.final {
		t.at(c, 0).CopyRow(env, t.Row(Obs.At(t.Schema.columns[c].Column.Index()), row))
	}
}
