package graph

import (
	"slices"
	"strings"

	"github.com/rlhost/rlhost/core/component"
)

// Section is one table of a pipeline as Graph.Expanded writes it.
type Section struct {
	Name   string // policy.main; of a wire, which has one for each slot, Wire.String
	Text   string // its lines; empty for a table that is not to be there
	Behind string // name of the table before it; empty for the first
}

// Undo returns the tables in which the next graph differs, as they are in this one: with them UndoneText makes this graph of the
// next. Rules of the whole run are left out. It is nil where no policy, component or wire is added, removed or led elsewhere: the
// changes are then within tables.
func (g *Graph) Undo(next *Graph) (list []Section) {
	was, is := g.undoable(), next.undoable()
	whole := false
	for _, s := range was {
		other := slices.IndexFunc(is, s.same)
		if other >= 0 && is[other].Text == s.Text {
			continue
		}
		list = append(list, s)
		whole = whole || other < 0 || s.wire()
	}
	for _, s := range is {
		if !slices.ContainsFunc(was, s.same) {
			list = append(list, Section{Name: s.Name})
			whole = true
		}
	}
	if !whole {
		return nil
	}
	return list
}

// UndoneText returns the graph as a file with some of its tables as Undo has them. The others are as they are, whatever has become
// of them meanwhile.
func (g *Graph) UndoneText(list []Section) string {
	all := g.sections()
	for _, s := range list {
		at := slices.IndexFunc(all, s.same)
		switch {
		case at >= 0 && s.Text != "":
			all[at].Text = s.Text
		case at >= 0:
			all = slices.Delete(all, at, at+1)
		case s.Text != "":
			behind := slices.IndexFunc(all, func(o Section) bool { return o.Name == s.Behind })
			if behind < 0 { // its predecessor is gone: keep it with others of its kind
				behind = len(all) - 1
				for !s.wire() && all[behind].wire() {
					behind--
				}
			}
			all = slices.Insert(all, behind+1, s)
		}
	}
	var b strings.Builder
	b.WriteString(g.origin.lines())
	writeVersion(&b)
	for _, s := range all {
		header := "[" + s.Name + "]"
		if s.wire() {
			header = "[[wire]]"
		}
		b.WriteString("\n" + header + "\n" + s.Text)
	}
	return b.String()
}

// Table returns the text of one table, or of a wire, by its name in Undo; empty where there is none.
func (g *Graph) Table(name string) string {
	for _, s := range g.sections() {
		if s.Name == name {
			return s.Text
		}
	}
	return ""
}

// sections returns all tables.
func (g *Graph) sections() (list []Section) {
	add := func(name string, lines []keyValue) {
		var b strings.Builder
		writeLines(&b, lines)
		s := Section{Name: name, Text: b.String()}
		if len(list) > 0 {
			s.Behind = list[len(list)-1].Name
		}
		list = append(list, s)
	}
	g.eachTable(add)
	for i := range g.Wires {
		w := &g.Wires[i]
		add(w.String(), w.lines(quote(component.Qualified(w.To, w.Slot))))
	}
	return list
}

// undoable returns the sections that describe running parts.
func (g *Graph) undoable() []Section {
	return slices.DeleteFunc(g.sections(), func(s Section) bool { return !s.wire() && !strings.ContainsRune(s.Name, '.') })
}

func (s Section) same(o Section) bool { return s.Name == o.Name }

// wire reports whether it is that of a wire, which is named by both ends.
func (s Section) wire() bool { return strings.Contains(s.Name, wireArrow) }
