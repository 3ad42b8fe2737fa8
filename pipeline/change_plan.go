package pipeline

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/pipeline/graph"
)

// changes lists the changes: tables first, then instances, then wires. The sources of environments are not among
// them, because the text of a graph has only their paths.
func (p *plan) changes() []control.Change {
	before, next := p.graphs[0], p.graphs[1]
	var list []control.Change
	for _, c := range before.TableChanges(next) {
		list = append(list, control.Change{What: c.What, Name: c.Name, Text: c.Text})
	}
	return append(append(list, p.assignmentChanges()...), p.wireChanges()...)
}

func (p *plan) assignmentChanges() (list []control.Change) {
	for _, s := range p.assignments {
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

// plan is the difference from the running assembly to a graph, apart from the environments.
type plan struct {
	differs     bool // the graphs differ, in anything
	assignments []assignment
	ended       []member
	wires       []wirePlan
	graphs      [2]*graph.Graph // that runs, and the next
	// wiresGone: there are wires that the next graph does not have.
	wiresGone bool
}

// assignment is a member of the next assembly.
type assignment struct {
	of    *graph.Component
	index int
	old   *member  // the current one; nil if it is added
	why   []string // reasons to replace old
}

// wirePlan is a wire of the next assembly.
type wirePlan struct {
	wire *graph.Wire
	old  *runningWire // the same ends; nil if it is added
	same bool         // and the same mode, depth, policy and grant
}

// planOf compares the running assembly with a graph and rejects changes that a run cannot make.
func planOf(before *assembly, next *graph.Graph) (*plan, error) {
	if err := sameRun(before.graph, next); err != nil {
		return nil, err
	}
	p := &plan{differs: before.graph.Expanded() != next.Expanded(), graphs: [2]*graph.Graph{before.graph, next}}
	for i := range next.Components {
		if err := p.assign(before, next, &next.Components[i]); err != nil {
			return nil, err
		}
	}
	for _, m := range before.members {
		if x := next.Component(m.of.Name); x != nil && m.index < x.Count {
			continue
		}
		p.ended = append(p.ended, m)
	}
	p.planElsewhere(next)
	p.planWires(before, next)
	return p, nil
}

// rewires reports whether the wires from a component differ.
func (p *plan) rewires(name string) bool {
	before := 0
	for i := range p.graphs[0].Wires {
		if p.graphs[0].Wires[i].From == name {
			before++
		}
	}
	for i := range p.wires {
		if w := &p.wires[i]; w.wire.From == name {
			if !w.same {
				return true
			}
			before--
		}
	}
	return before > 0
}

// sameRun rejects changes of settings that a run keeps from beginning to end.
func sameRun(a, b *graph.Graph) error {
	fixed := func(key string, a, b any) error {
		if a == b {
			return nil
		}
		return refuse(control.CodeRefused, "start a new run for it", "%s cannot change while the run goes on: it is %v, the new file says %v", key, a, b)
	}
	for _, err := range []error{
		fixed("run.name", a.Run.Name, b.Run.Name), fixed("run.seed", a.Run.Seed, b.Run.Seed),
		fixed("run.dir", a.Run.Dir, b.Run.Dir), fixed("run.record", a.Run.Record, b.Run.Record),
		fixed("run.traces", a.Run.Traces, b.Run.Traces), fixed("train.mode", a.Mode(), b.Mode()),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}

// assign plans the instances of one component.
func (p *plan) assign(before *assembly, next *graph.Graph, of *graph.Component) error {
	was := before.graph.Component(of.Name)
	if was != nil && was.Kind != of.Kind {
		return refuse(control.CodeRefused, "give the new one a name of its own, and remove this one",
			"%s is a %s, the new file makes it a %s: a component keeps its kind", of.Name, was.Kind, of.Kind)
	}
	var why []string
	if was != nil {
		why = before.graph.Reasons(next, of.Name)
	}
	for index := range of.Count {
		s := assignment{of: of, index: index, old: before.member(of.Name, index), why: why}
		if s.old != nil && s.old.loop.Name() != of.LoopOf(index) {
			s.because("loop %s → %s", s.old.loop.Name(), of.LoopOf(index))
		}
		if s.old != nil && !s.old.live.suffices(next, of.Name) {
			s.because("more readers of its blocks")
		}
		if s.old != nil && s.old.live.failed() != nil {
			s.because("it has failed")
		}
		p.assignments = append(p.assignments, s)
	}
	return nil
}

func (s *assignment) because(format string, args ...any) {
	s.why = append(slices.Clip(s.why), fmt.Sprintf(format, args...))
}

func (p *plan) planWires(before *assembly, next *graph.Graph) {
	for i := range next.Wires {
		w := wirePlan{wire: &next.Wires[i]}
		if w.old = before.wire(w.wire); w.old != nil {
			o := w.old.wire
			w.same = o.Mode == w.wire.Mode && o.Depth == w.wire.Depth && o.OnFull == w.wire.OnFull && slices.Equal(o.Write, w.wire.Write) && o.Paired == w.wire.Paired
		}
		p.wires = append(p.wires, w)
	}
	same := func(w wirePlan) bool { return w.old != nil }
	p.wiresGone = len(before.wires) > len(slices.DeleteFunc(slices.Clone(p.wires), func(w wirePlan) bool { return !same(w) }))
}

// empty reports whether the graph runs already.
func (p *plan) empty() bool {
	if p.differs || len(p.ended) > 0 {
		return false
	}
	return !slices.ContainsFunc(p.assignments, func(s assignment) bool { return s.old == nil || len(s.why) > 0 })
}

// structural reports whether instances or wires change.
func (p *plan) structural() bool {
	if len(p.ended) > 0 || slices.ContainsFunc(p.wires, func(w wirePlan) bool { return !w.same }) || p.wiresGone {
		return true
	}
	return slices.ContainsFunc(p.assignments, func(s assignment) bool { return s.old == nil || len(s.why) > 0 })
}

// fixed rejects replacing or ending instances that are Fixed.
func (p *plan) fixed() error {
	for _, s := range p.assignments {
		if s.old != nil && len(s.why) > 0 {
			if err := unfixed(s.old, s.why); err != nil {
				return err
			}
		}
	}
	for i := range p.ended {
		if err := unfixed(&p.ended[i], []string{"it is gone"}); err != nil {
			return err
		}
	}
	return nil
}

func unfixed(m *member, why []string) error {
	manifest := m.component.Manifest()
	if manifest.Fixed == "" {
		return nil
	}
	return refuse(control.CodeRefused, "stop the run and resume it with the new file", "%s cannot be replaced while it runs (%s): %s",
		m.name, strings.Join(why, ", "), manifest.Fixed)
}
