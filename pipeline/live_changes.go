package pipeline

import (
	"strings"

	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/pipeline/graph"
)

// changes lists what is to be changed: tables first, then instances, then wires. What environments are loaded from is
// not among them, because the text of a graph tells only where that lies.
func (p *plan) changes() []control.Change {
	before, next := p.graphs[0], p.graphs[1]
	var list []control.Change
	for _, c := range before.TableChanges(next) {
		list = append(list, control.Change{What: c.What, Name: c.Name, Text: c.Text})
	}
	return append(append(list, p.seatChanges()...), p.wireChanges()...)
}

func (p *plan) seatChanges() (list []control.Change) {
	for _, s := range p.seats {
		name := s.of.InstanceName(s.index)
		switch {
		case s.old == nil:
			list = append(list, control.Change{What: "scale", Name: name, Text: "added"})
		case len(s.why) > 0:
			list = append(list, control.Change{What: "component", Name: name, Text: strings.Join(s.why, ", ")})
		}
	}
	for _, m := range p.ended {
		list = append(list, control.Change{What: "scale", Name: m.name, Text: "ended"})
	}
	return list
}

func (p *plan) wireChanges() (list []control.Change) {
	note := func(w *graph.Wire, text string) {
		list = append(list, control.Change{What: "wire", Name: w.String(), Text: text})
	}
	kept := map[string]bool{}
	for _, w := range p.wires {
		kept[w.wire.String()] = true
		switch {
		case w.old == nil:
			note(w.wire, "added: "+w.wire.Way())
		case !w.same:
			note(w.wire, w.old.wire.Way()+" → "+w.wire.Way())
		}
	}
	for i := range p.graphs[0].Wires {
		if w := &p.graphs[0].Wires[i]; !kept[w.String()] {
			note(w, "removed")
		}
	}
	return list
}
