package member

import (
	"errors"
	"maps"
	"reflect"
	"slices"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/pipeline/graph"
)

// absent is a kind of a native plugin whose components all stay on the run's own host: others need its ports, and not the program.
type absent struct {
	Manifest component.Manifest `json:"manifest"`
	Flow     component.Flow     `json:"flow"`
}

// readAbsent returns the kinds of the native plugins that no other host needs, by the names of both.
func readAbsent(g *graph.Graph) map[string]map[string]absent {
	all, needed := map[string]map[string]absent{}, map[string]bool{}
	for i := range g.Envs {
		if t := g.Envs[i].Table.Plugin; t != nil {
			needed[t.Name] = true
		}
	}
	for i := range g.Policies {
		needed[g.Policies[i].Plugin] = true
	}
	for i := range g.Components {
		x := &g.Components[i]
		if x.Plugin == "" {
			continue
		}
		if all[x.Plugin] == nil {
			all[x.Plugin] = map[string]absent{}
		}
		now := absent{x.Manifest, x.Flow}
		if was, twice := all[x.Plugin][x.Kind]; twice && !reflect.DeepEqual(was, now) || g.HostRuleOf(x) != (graph.HostRule{}) {
			needed[x.Plugin] = true // their tables give them other ports
		}
		all[x.Plugin][x.Kind] = now
	}
	maps.DeleteFunc(all, func(plugin string, _ map[string]absent) bool { return needed[plugin] })
	return all
}

// makers returns what makes components that have the ports of such kinds, and run nowhere.
func makers(kinds map[string]absent) map[string]graph.Maker {
	all := map[string]graph.Maker{}
	for kind, of := range kinds {
		all[kind] = func() (component.Component, error) { return &portsOnly{of: of}, nil }
	}
	return all
}

// portsOnly stands for a component of a program that this host does not have.
type portsOnly struct{ of absent }

var (
	_ component.Component = (*portsOnly)(nil)
	_ component.Flowing   = (*portsOnly)(nil)
)

// Manifest lists the ports.
func (x *portsOnly) Manifest() component.Manifest {
	m := x.of.Manifest
	m.Signals, m.Slots = slices.Clone(m.Signals), slices.Clone(m.Slots)
	return m
}

// Flow is the component's, as the run knows it.
func (x *portsOnly) Flow() component.Flow { return x.of.Flow }

// Configure takes any table: the run has checked it.
func (x *portsOnly) Configure(decode func(into any) error) error {
	config := map[string]any{}
	return decode(&config)
}

// Start fails: a stand takes this component's place.
func (x *portsOnly) Start(*component.Host) error {
	return errors.New("its program is on the run's own host alone")
}

// Snapshot has no state.
func (x *portsOnly) Snapshot() (component.State, error) {
	return component.State{}, component.ErrNoSnapshot
}

// Restore ignores a state.
func (x *portsOnly) Restore(component.State) error { return nil }

// Stop does nothing.
func (x *portsOnly) Stop() error { return nil }
