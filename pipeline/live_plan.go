package pipeline

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/pipeline/graph"
)

// plan is what the way from the running assembly to a graph takes, apart from the environments.
type plan struct {
	differs bool // the graphs do, in whatever
	seats   []seat
	ended   []member
	wires   []wirePlan
	graphs  [2]*graph.Graph // that runs, and the next
	// wiresGone: there are wires that the next graph does not have.
	wiresGone bool
}

// seat is a member of the next assembly.
type seat struct {
	of    *graph.Component
	index int
	old   *member  // who has it now; nil for one that is added
	why   []string // reasons to replace that one
}

// wirePlan is a wire of the next assembly.
type wirePlan struct {
	wire *graph.Wire
	old  *runningWire // the same ends; nil if it is added
	same bool         // and the same mode, depth and policy
}

// planOf compares what runs with a graph and refuses what cannot be done while a run goes on.
func planOf(before *assembly, next *graph.Graph) (*plan, error) {
	if err := sameRun(before.graph, next); err != nil {
		return nil, err
	}
	p := &plan{differs: before.graph.Expanded() != next.Expanded(), graphs: [2]*graph.Graph{before.graph, next}}
	for i := range next.Components {
		if err := p.seat(before, next, &next.Components[i]); err != nil {
			return nil, err
		}
	}
	for _, m := range before.members {
		if x := next.Component(m.of.Name); x != nil && m.index < x.Count {
			continue
		}
		p.ended = append(p.ended, m)
	}
	p.planWires(before, next)
	return p, nil
}

// sameRun refuses what a run keeps from its beginning to its end.
func sameRun(a, b *graph.Graph) error {
	fixed := func(key string, a, b any) error {
		if a == b {
			return nil
		}
		return refuse(control.CodeRefused, "start a new run for it", "%s cannot change while the run goes on: it is %v, the new file says %v", key, a, b)
	}
	for _, err := range []error{
		fixed("run.name", a.Run.Name, b.Run.Name), fixed("run.seed", a.Run.Seed, b.Run.Seed),
		fixed("run.dir", a.Run.Dir, b.Run.Dir), fixed("train.mode", a.Mode(), b.Mode()),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}

// seat plans the instances of one component.
func (p *plan) seat(before *assembly, next *graph.Graph, of *graph.Component) error {
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
		s := seat{of: of, index: index, old: before.member(of.Name, index), why: why}
		if s.old != nil && s.old.loop.Name() != of.LoopOf(index) {
			s.because("loop %s → %s", s.old.loop.Name(), of.LoopOf(index))
		}
		if s.old != nil && !s.old.live.suffices(next, of.Name) {
			s.because("more readers of its blocks")
		}
		if s.old != nil && s.old.live.failed() != nil {
			s.because("it has failed")
		}
		p.seats = append(p.seats, s)
	}
	return nil
}

func (s *seat) because(format string, args ...any) {
	s.why = append(slices.Clip(s.why), fmt.Sprintf(format, args...))
}

// member returns the member of that name and index, or nil.
func (a *assembly) member(name string, index int) *member {
	i := slices.IndexFunc(a.members, func(m member) bool { return m.of.Name == name && m.index == index })
	if i < 0 {
		return nil
	}
	return &a.members[i]
}

func (p *plan) planWires(before *assembly, next *graph.Graph) {
	for i := range next.Wires {
		w := wirePlan{wire: &next.Wires[i]}
		if w.old = before.wire(w.wire); w.old != nil {
			o := w.old.wire
			w.same = o.Mode == w.wire.Mode && o.Depth == w.wire.Depth && o.OnFull == w.wire.OnFull
		}
		p.wires = append(p.wires, w)
	}
	same := func(w wirePlan) bool { return w.old != nil }
	p.wiresGone = len(before.wires) > len(slices.DeleteFunc(slices.Clone(p.wires), func(w wirePlan) bool { return !same(w) }))
}

// wire returns the running wire with the same ends, or nil.
func (a *assembly) wire(w *graph.Wire) *runningWire {
	i := slices.IndexFunc(a.wires, func(o *runningWire) bool {
		return o.wire.From == w.From && o.wire.Signal == w.Signal && o.wire.To == w.To && o.wire.Slot == w.Slot
	})
	if i < 0 {
		return nil
	}
	return a.wires[i]
}

// empty reports whether the graph runs already.
func (p *plan) empty() bool {
	if p.differs || len(p.ended) > 0 {
		return false
	}
	return !slices.ContainsFunc(p.seats, func(s seat) bool { return s.old == nil || len(s.why) > 0 })
}

// structural reports whether instances or wires change.
func (p *plan) structural() bool {
	if len(p.ended) > 0 || slices.ContainsFunc(p.wires, func(w wirePlan) bool { return !w.same }) || p.wiresGone {
		return true
	}
	return slices.ContainsFunc(p.seats, func(s seat) bool { return s.old == nil || len(s.why) > 0 })
}

// fixed refuses to replace or end instances that cannot be.
func (p *plan) fixed() error {
	for _, s := range p.seats {
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
