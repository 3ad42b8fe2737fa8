package trajectory

import (
	"slices"

	"github.com/rlhost/rlhost/hostabi"
)

// everyGroup is the group of columns that all agents have.
const everyGroup = -1

// span is which agents' rows of a column belong to a tensor.
type span struct {
	column        uint8
	first, agents int
}

// listSpans fills in which rows the host completes after the environment.
func (s *Schema) listSpans() {
	for i := range s.Spec.Tensors {
		c, ok := s.columnOf(i)
		if d := &s.Spec.Tensors[i]; ok && d.Flags&hostabi.TensorPerAgent == 0 {
			if first, agents := s.Spec.AgentsOf(d.Group); agents > 1 {
				s.shared = append(s.shared, span{s.place(c), first, agents})
			}
		}
	}
	if !s.Has(Active) {
		return
	}
	for group := range s.Spec.Groups {
		of := s.Spec.OfGroup(group)
		if _, turns := of.Tensor(hostabi.RoleActive); !turns {
			first, agents := s.Spec.AgentsOf(uint16(group))
			s.always = append(s.always, span{s.place(Active), first, agents})
		}
	}
}

// place returns the index of an existing column in the list of columns.
func (s *Schema) place(c Column) uint8 {
	return uint8(slices.IndexFunc(s.columns, func(l Layout) bool { return l.Column == c }))
}

// onlyGroup returns the schema without the columns of other groups.
func (s *Schema) onlyGroup(group int) *Schema {
	own := *s
	own.part, own.Spec, own.columns = true, s.Spec.OfGroup(group), nil
	own.groups, own.shared, own.always = nil, nil, nil
	for i := range kinds {
		kind := kinds[i].first
		own.first[kind>>kindAt] = uint8(len(own.columns))
		for _, l := range s.columns {
			if l.Column.Kind() != kind || l.group != everyGroup && l.group != group {
				continue
			}
			if l.group == group {
				l.Column = kind.At(int(l.index))
			}
			own.columns = append(own.columns, l)
		}
	}
	own.listColumns()
	return &own
}

// OfGroup returns the schema of the same blocks for a user of one group of agents: its columns are the group's, with the indices of a
// description of that group alone. Rows are unchanged: rows of agents of other groups do not belong to it. It does not allocate.
func (s *Schema) OfGroup(group int) *Schema {
	if s.groups == nil {
		return s
	}
	return s.groups[group]
}

// Holds reports whether the agent of a row has the tensor of a column; other rows of the column are unused.
func (s *Schema) Holds(c Column, row int) bool {
	l := s.find(c)
	return l != nil && s.holds(l, row)
}

// Written reports whether environments write a row of a column: that of an agent whose group has such a tensor, of the first such agent
// where all agents of a group have the same.
func (s *Schema) Written(c Column, row int) bool {
	l := s.find(c)
	if l == nil || l.Flags&Guest == 0 || !s.holds(l, row) {
		return false
	}
	within := func(list []span, from int) bool {
		agent, column := row%s.Agents, s.place(c)
		return slices.ContainsFunc(list, func(x span) bool { return x.column == column && agent >= x.first+from && agent < x.first+x.agents })
	}
	return !within(s.shared, 1) && !within(s.always, 0)
}

// GroupOf returns which group of agents a row belongs to.
func (s *Schema) GroupOf(row int) (group int) { return s.Spec.GroupOf(row % s.Agents) }

// holds reports whether a row of a column is one of its group's.
func (s *Schema) holds(l *Layout, row int) bool {
	return l.group == everyGroup || s.groups == nil || s.GroupOf(row) == l.group
}
