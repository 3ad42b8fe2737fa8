package pipeline

import (
	"fmt"

	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/pipeline/diagnosis"
	"github.com/rlhost/rlhost/pipeline/graph"
)

// Runtimes in status that the file does not name.
const runtimeWasm = "wasm"

// where the parts of a run are, for status.
const (
	hostLocal = "local"
	hostNone  = "none" // has an instance that waits for another machine
)

// statusSnapshot is a run at one moment: its instances are an assembly's members, in their order.
type statusSnapshot struct {
	*diagnosis.Run
	of *assembly
}

// connect finds the connections between the instances.
func (s *statusSnapshot) connect() {
	type owner struct {
		at   int    // of the member
		name string // of its signal
	}
	owners := map[*bus.Signal]owner{}
	for i := range s.of.members {
		m := &s.of.members[i]
		for _, port := range m.of.Manifest.Signals {
			owners[m.host.Signal(port.Name)] = owner{i, component.Qualified(m.name, port.Name)}
		}
	}
	for i := range s.of.members {
		m := &s.of.members[i]
		for _, port := range m.of.Manifest.Slots {
			slot := m.host.BoundSlot(port.Name)
			if slot == nil {
				continue
			}
			name := component.Qualified(m.name, port.Name)
			for _, c := range slot.Connections() {
				if from, ok := owners[c.Signal()]; ok {
					s.Instances[from.at].Connect(s.Instances[i], c, from.name, name)
				}
			}
		}
	}
}

// describe makes the status of one instance.
func (s *statusSnapshot) describe(i int) control.ComponentStatus {
	m, x := &s.of.members[i], s.Instances[i]
	d := control.ComponentStatus{
		Name: m.name, Kind: m.of.Kind, Runtime: m.of.Runtime, Host: hostLocal, State: x.State,
		Queued: x.Queued, Depth: x.Depth, IdleSecs: s.At.Sub(x.TookAt).Seconds(), WaitsFor: s.WaitsFor(x),
		Version: m.version(s.of.graph), Note: s.Note(x),
	}
	if group := s.of.graph.GroupOfComponent(m.of.Name); group != nil {
		d.Group = group.Name
	}
	d.Placed = control.Placed(s.of.graph.PlaceOf(m.of))
	_, d.Unit = m.done(0)
	if v := m.live.runs(); v != nil && m.of.Runtime == graph.RuntimeBuiltin {
		d.Runtime = runtimeWasm
		if v.Table.Isolated() {
			d.Runtime = graph.RuntimeProcess
			d.Envs = control.Placed(v.Table.PlaceOf())
		}
	}
	switch {
	case x.Process.PID != 0:
		d.Host = fmt.Sprintf("pid %d", x.Process.PID)
	case x.Process.State != "":
		d.Host = "process"
	case m.away():
		if d.Host = m.hostOf(m.name); d.Host == "" {
			d.Host, d.State = hostNone, control.Lost
		}
	}
	if x.State != control.Paused { // whose rate is a previous one
		d.Rate = x.PerSecond
	}
	return d
}
