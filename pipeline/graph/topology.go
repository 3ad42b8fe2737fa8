package graph

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rlhost/rlhost/core/component"
)

// InstanceName returns the name of an instance: the component's, with the index where there are several.
func (x *Component) InstanceName(index int) string {
	if x.Count > 1 {
		return fmt.Sprintf("%s[%d]", x.Name, index)
	}
	return x.Name
}

// InstancesByKind counts the instances of each kind of component.
func (g *Graph) InstancesByKind() map[string]int {
	n := map[string]int{}
	for i := range g.Components {
		n[g.Components[i].Kind] += g.Components[i].Count
	}
	return n
}

// Readers returns how many blocks of a signal its receivers may have claims on at once: each works on one while
// others wait for it.
func (g *Graph) Readers(from, signal string) int {
	n := 0
	for i := range g.Wires {
		if w := &g.Wires[i]; w.From == from && w.Signal == signal {
			to, instances := g.Component(w.To), g.Component(w.To).Count
			if w.Paired {
				instances = 1
			}
			n += instances * (1 + w.Depth)
			if to.Runtime == RuntimeProcess {
				n += 2 * instances // one is in transit to the process, one is kept for its successor
			}
		}
	}
	return n
}

// Grants returns the columns that the wires let a component write, by slot.
func (g *Graph) Grants(name string) map[string][]string {
	grants := map[string][]string{}
	for i := range g.Wires {
		if w := &g.Wires[i]; w.To == name && len(w.Write) > 0 {
			grants[w.Slot] = w.Write
		}
	}
	return grants
}

// Written returns the columns, ascending, that wires let other components write in the blocks that a component makes: the wires of
// its own signals, and the wires after them as long as its trajectories are passed on.
func (g *Graph) Written(name string) []string {
	var columns []string
	seen := map[string]bool{name: true}
	for queue := []string{name}; len(queue) > 0; queue = queue[1:] {
		for i := range g.Wires {
			w := &g.Wires[i]
			passed := component.PayloadOf(w.Payload).Steps
			if w.From != queue[0] || !passed && w.From != name {
				continue
			}
			columns = append(columns, w.Write...)
			if passed && !seen[w.To] {
				seen[w.To] = true
				queue = append(queue, w.To)
			}
		}
	}
	slices.Sort(columns)
	return slices.Compact(columns)
}

// Way describes how a wire carries messages.
func (w *Wire) Way() string {
	way := fmt.Sprintf("%v, depth %d, %v", w.Mode, w.Depth, w.OnFull)
	if w.Paired {
		way += ", one to one"
	}
	if len(w.Write) > 0 {
		way += ", write " + strings.Join(w.Write, " ")
	}
	return way
}

// PoliciesBehind names the policies of the components that a component's messages reach first.
func (g *Graph) PoliciesBehind(from *Component) []string {
	var found []string
	seen := map[string]bool{from.Name: true}
	for queue := []string{from.Name}; len(queue) > 0; queue = queue[1:] {
		for _, w := range g.Wires {
			if w.From != queue[0] || seen[w.To] {
				continue
			}
			seen[w.To] = true
			if to := g.Component(w.To); to.Policy != "" {
				found = append(found, to.Policy)
			} else {
				queue = append(queue, w.To)
			}
		}
	}
	return unique(found)
}
