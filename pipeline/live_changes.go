package pipeline

import (
	"fmt"
	"strings"

	"github.com/rlhost/rlhost/core/control"
)

// changes lists what is to be changed: tables first, then instances, then wires. What environments are loaded from is
// not among them, because the text of a graph tells only where that lies.
func (p *plan) changes() []control.Change {
	before, next := p.graphs[0], p.graphs[1]
	var list []control.Change
	tables := func(what, name string, a, b []keyValue) {
		if lines := lineChanges(a, b); len(lines) > 0 {
			list = append(list, control.Change{What: what, Name: name, Text: strings.Join(lines, ", ")})
		}
	}
	tables("run", "run", before.runLines(), next.runLines())
	for i := range next.Envs {
		e := &next.Envs[i]
		if was := before.Env(e.Name); was != nil {
			tables("limit", e.Name, withoutSource(was.lines()), withoutSource(e.lines()))
		}
	}
	return append(append(list, p.seatChanges()...), p.wireChanges()...)
}

// withoutSource leaves out where an environment's source lies.
func withoutSource(lines []keyValue) (rest []keyValue) {
	for _, kv := range lines {
		if kv.key != "use" && kv.key != "sha256" && kv.key != "swap" {
			rest = append(rest, kv)
		}
	}
	return rest
}

func (p *plan) seatChanges() (list []control.Change) {
	for _, s := range p.seats {
		name := s.of.nameOf(s.index)
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
	note := func(w *Wire, text string) {
		list = append(list, control.Change{What: "wire", Name: w.String(), Text: text})
	}
	kept := map[string]bool{}
	for _, w := range p.wires {
		kept[w.wire.String()] = true
		switch {
		case w.old == nil:
			note(w.wire, "added: "+w.wire.way())
		case !w.same:
			note(w.wire, w.old.wire.way()+" → "+w.wire.way())
		}
	}
	for i := range p.graphs[0].Wires {
		if w := &p.graphs[0].Wires[i]; !kept[w.String()] {
			note(w, "removed")
		}
	}
	return list
}

// way tells how a wire carries messages.
func (w *Wire) way() string { return fmt.Sprintf("%v, depth %d, %v", w.Mode, w.Depth, w.OnFull) }
