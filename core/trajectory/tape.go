package trajectory

// AppendSeen appends what environments write into a row that is observed: observations, masks, and who acts.
func AppendSeen(to []byte, t Trajectory, row int) []byte {
	eachSeen(t, row, func(b []byte) { to = append(to, b...) })
	return to
}

// LoadSeen writes a row that AppendSeen has appended, of a block for as many of the same environments. It reports false, and has written
// nothing, where that has another length.
func LoadSeen(t Trajectory, row int, from []byte) bool {
	n := 0
	if eachSeen(t, row, func(b []byte) { n += len(b) }); n != len(from) {
		return false
	}
	eachSeen(t, row, func(b []byte) { from = from[copy(b, from):] })
	return true
}

func eachSeen(t Trajectory, row int, fn func(b []byte)) {
	for i := range t.Schema.columns {
		if l := &t.Schema.columns[i]; l.Flags&Observed != 0 && l.Flags&Guest != 0 {
			fn(t.row(l, row).Data)
		}
	}
}

// AppendActions appends the actions of rows: in each row all agents' first action, then their next ones.
func AppendActions(to []byte, t Trajectory, from, end int) []byte {
	for row := from; row < end; row++ {
		for i := range t.Schema.actions {
			to = append(to, t.at(t.Schema.actions[i].action, row).Data...)
		}
	}
	return to
}

// ActionBytes is how many bytes AppendActions appends for a row.
func (s *Schema) ActionBytes() (n int) {
	for i := range s.actions {
		n += s.columns[s.actions[i].action].RowBytes
	}
	return n
}

// LoadActions writes the actions of a row, as AppendActions has appended them.
func LoadActions(t Trajectory, row int, from []byte) {
	for i := range t.Schema.actions {
		from = from[copy(t.at(t.Schema.actions[i].action, row).Data, from):]
	}
}
