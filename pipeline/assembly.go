package pipeline

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/loading"
	"github.com/rlhost/rlhost/pipeline/loops"
)

// assembly is a graph and the instances and connections built from it. It is immutable once it runs.
type assembly struct {
	*loading.Set
	graph   *graph.Graph
	run     *component.Run
	members []member // in the order of the graph
	wires   []*runningWire
}

// member is the place of an instance in a graph. The instance may have been made for an earlier graph.
type member struct {
	*instance
	of    *graph.Component
	index int
	name  string
}

// instance is one instance of a component.
type instance struct {
	run       *running
	component component.Component
	of        *graph.Component // that it was made for
	host      *component.Host
	loop      *loops.Loop
	hostOf    func(name string) string // where it is away, the host that has the instance of that name, "" for none; nil: it runs here
	envs      int                      // environments that it has
	handed    atomic.Uint64            // env steps in the trajectories that it and its predecessors have handed over
	joining   atomic.Pointer[assembly] // the assembly that it will run in; nil once that runs

	bound     atomic.Bool  // it has its ports
	questions atomic.Int32 // that it has asked others and that have no answer yet

	live liveness

	mu      sync.Mutex // held while other goroutines than the loop's call the component
	stopped bool       // guarded by mu: Stop has been called
}

// instanceKey identifies a place in the graph, whichever instance has it.
type instanceKey struct {
	component string
	index     int
}

// pairing is a connection between two instances.
type pairing struct {
	*bus.Connection
	from, to *instance
	share    bus.Share
}

// runningWire is a wire with a connection for each pair of instances. It is immutable once it runs, except its totals.
type runningWire struct {
	wire  *graph.Wire
	links []pairing
	*totals
}

// totals keeps the counters of a wire's previous connections, so that nothing goes uncounted.
type totals struct {
	mu       sync.Mutex
	past     control.WireStatus
	draining []*bus.Connection // disconnected, and still delivering
}

// envs returns how many environments the members have, and the index after the last one.
func (a *assembly) envs() int {
	n := 0
	for _, x := range a.members {
		n = max(n, x.host.FirstEnv+x.instance.envs)
	}
	return n
}

// task returns the newest task of the environments that run.
func (a *assembly) task() uint16 {
	task, first := uint16(0), true
	for _, m := range a.members {
		m.live.mu.Lock()
		if own := m.live.task; m.live.env != nil && (first || int16(own-task) > 0) { // they wrap around after 65,535
			task, first = own, false
		}
		m.live.mu.Unlock()
	}
	return task
}

// member returns the member of that name and index, or nil.
func (a *assembly) member(name string, index int) *member {
	i := slices.IndexFunc(a.members, func(m member) bool { return m.of.Name == name && m.index == index })
	if i < 0 {
		return nil
	}
	return &a.members[i]
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

// policies returns the policies of the instances, by their IDs; see Host.PolicyOf.
func (a *assembly) policies() map[uint16]string {
	found := map[uint16]string{}
	for i := range a.members {
		if name := a.policyOf(a.members[i].of); name != "" {
			found[a.members[i].host.ID] = name
		}
	}
	return found
}

// actsIn returns how many environments the instances have whose requests a component of that policy answers.
func (a *assembly) actsIn(policy string) (envs int) {
	asks := func(of *graph.Component) bool {
		return slices.ContainsFunc(a.graph.Wires, func(w graph.Wire) bool {
			return w.From == of.Name && w.Payload == component.PayloadRequest && a.graph.Component(w.To).Policy == policy
		})
	}
	for i := range a.members {
		if m := &a.members[i]; m.of.Flow.Envs > 0 && asks(m.of) {
			envs += m.instance.envs
		}
	}
	return envs
}

// policyOf returns the policy of a component's table, else the only one among the components that its signals lead to.
func (a *assembly) policyOf(of *graph.Component) (name string) {
	if of.Policy != "" {
		return of.Policy
	}
	for i := range a.graph.Wires {
		w := &a.graph.Wires[i]
		next := a.graph.Component(w.To).Policy
		if w.From != of.Name || next == "" || next == name {
			continue
		}
		if name != "" {
			return ""
		}
		name = next
	}
	return name
}

func (a *assembly) policy(name string) (component.Policy, error) {
	if made, ok := a.Policies[name]; ok {
		return made, nil
	}
	return nil, fmt.Errorf("policy %q is not declared", name)
}

func (a *assembly) memory(policy string) trajectory.Memory {
	if made := a.Policies[policy]; made != nil {
		return made.Memory()
	}
	return trajectory.Memory{}
}

// tables returns the parts of the file for components that run elsewhere.
func (a *assembly) tables(parts *graph.Parts) component.Tables {
	t := component.Tables{
		Policies: map[string]component.PolicyTable{}, Envs: map[string]hostabi.EnvSpec{}, Peers: a.graph.InstancesByKind(),
		Sources: map[string]env.Source{},
	}
	for i := range a.graph.Policies {
		x := &a.graph.Policies[i]
		t.Policies[x.Name] = component.PolicyTable{Env: x.Env, Table: x.Plain(), Memory: a.memory(x.Name),
			Of: x.Of, From: x.From, Version: x.Version, Group: a.Groups[x.Name]}
	}
	for name, v := range a.Envs {
		t.Envs[name] = v.Plugin.Spec()
		if e := a.graph.Env(name); !e.Table.Isolated() {
			t.Sources[name] = a.graph.SourceOf(&e.Table, parts)
		}
	}
	return t
}

// signals names all signals, once for each component.
func (a *assembly) signals() (list []string) {
	for i := range a.graph.Components {
		c := &a.graph.Components[i]
		for _, port := range c.Manifest.Signals {
			list = append(list, component.Qualified(c.Name, port.Name))
		}
	}
	return list
}

// newest returns the newest message of a payload that a component of a policy, or of no policy, has sent; policy may be empty, for any.
func (a *assembly) newest(payload, policy string) (found hostabi.Message, ok bool) {
	for i := range a.members {
		x := &a.members[i]
		if policy != "" && x.of.Policy != "" && x.of.Policy != policy {
			continue
		}
		for _, port := range x.of.Manifest.Signals {
			if port.Payload != payload {
				continue
			}
			if m, sent := x.host.Signal(port.Name).Newest(); sent && (!ok || m.PolicyVersion > found.PolicyVersion) {
				found, ok = m, true
			}
		}
	}
	return found, ok
}

// eachEnv calls fn with the environments of an assembly; a nil assembly has none.
func (a *assembly) eachEnv(fn func(*loading.Env)) {
	if a != nil && a.Set != nil {
		for _, v := range a.Envs {
			fn(v)
		}
	}
}
