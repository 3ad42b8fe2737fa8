package pipeline

import (
	"slices"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/pipeline/graph"
)

// Elsewhere says which instances of a graph run on other hosts. Every host builds the whole graph, so that names, IDs and environments have the
// same numbers everywhere; for an instance of another host it has a component that stands for it.
type Elsewhere interface {
	// Away reports whether an instance does not run on this host. That never changes.
	Away(instance string) bool
	// Host returns the host that has an instance which is away, as it is now; "" where no host has it.
	Host(instance string) string
	// Stand returns what stands for an instance that is away. It has the ports and the table of the component that is given.
	Stand(name string, of *graph.Component, made component.Component) component.Component
	// Prepare notes that a change to a graph is being prepared, or returns why the run cannot have it. Until Release what stands for instances
	// with environments prepares them for that graph; see component.EnvRunner.
	Prepare(next *graph.Graph) error
	// Install notes what the run has from now on.
	Install(now Installed)
	// Release notes that the change that was prepared has been made, or will not be.
	Release()
	// LostSteps returns how many env steps of instances elsewhere were made and will not come.
	LostSteps() uint64
}

// Installed is what a run has.
type Installed struct {
	Graph *graph.Graph
	Task  uint16 // of the episodes of its environments
	// Stands is what stands for the instances that are away, by their names; Names has the names of all instances, by their IDs.
	Stands map[string]component.Component
	Names  map[uint16]string
}

// stand returns what stands here for an instance that is away and says where that is, or made where it runs here.
func (o *BuildOptions) stand(of *graph.Component, index int, made component.Component) (host func(name string) string, stands component.Component) {
	name := of.InstanceName(index)
	if o.Elsewhere == nil || !o.Elsewhere.Away(name) {
		return nil, made
	}
	return o.Elsewhere.Host, o.Elsewhere.Stand(name, of, made)
}

// away reports whether an instance runs on another host, or waits for one; its component stands for it here.
func (x *instance) away() bool { return x.hostOf != nil }

// apart reports whether a wire leads between two instances that have no business with each other here: both run elsewhere, or one asks the
// other about blocks that are still on loan, which leave no host.
func apart(w *graph.Wire, from, to *instance) bool {
	if from.away() == to.away() {
		return from.away()
	}
	return component.PayloadOf(w.Payload).OnLoan
}

// planElsewhere replaces all instances elsewhere where one is replaced, added or ended: hosts build their shares of one graph.
func (p *plan) planElsewhere(next *graph.Graph) {
	others := slices.ContainsFunc(p.ended, func(m member) bool { return m.away() })
	for i := range p.assignments {
		s := &p.assignments[i]
		if s.old == nil {
			others = others || next.HostRuleOf(s.of) != (graph.HostRule{})
			continue
		}
		others = others || s.old.away() && len(s.why) > 0
	}
	if !others {
		return
	}
	for i := range p.assignments {
		if s := &p.assignments[i]; s.old != nil && s.old.away() && len(s.why) == 0 {
			s.because("its host gets the next pipeline")
		}
	}
}

// still reports whether an instance has nothing to pause here: its component stands for it, and does nothing of its own.
func (x *instance) still() bool {
	_, pauses := x.component.(component.Pauser)
	return x.away() && !pauses
}

// tell tells Elsewhere, if there is any, what the run has now.
func (a *assembly) tell(to Elsewhere) {
	if to == nil {
		return
	}
	now := Installed{Graph: a.graph, Task: a.task(), Stands: map[string]component.Component{}, Names: map[uint16]string{}}
	for i := range a.members {
		m := &a.members[i]
		now.Names[m.host.ID] = m.name
		if m.away() {
			now.Stands[m.name] = m.component
		}
	}
	to.Install(now)
}
