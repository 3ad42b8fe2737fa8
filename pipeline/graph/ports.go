package graph

import (
	"slices"
	"strings"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/table"
)

// port finds the component and the port that a wire's end names.
func (c *checker) port(end name, slot bool) (owner string, port component.Port, ok bool) {
	owner, portName, qualified := component.SplitQualified(end.text)
	x := c.graph.Component(owner)
	switch {
	case c.broken["component."+owner] || c.bad["component"]:
		return "", port, false
	case x == nil:
		c.unknownComponent(end, owner, portName, slot, qualified)
		return "", port, false
	}
	mine, others := x.Manifest.Signals, x.Manifest.Slots
	if slot {
		mine, others = others, mine
	}
	if i := findPort(mine, portName); i >= 0 {
		return owner, mine[i], true
	}
	what, other, code := "signal", "slot", "E031"
	if slot {
		what, other, code = "slot", "signal", "E032"
	}
	if findPort(others, portName) >= 0 {
		c.Add("E033", end.at, "swap `signal` and `slot`", "%q is a %s of %s, not a %s", end.text, other, x.Kind, what)
		return "", port, false
	}
	c.Add(code, end.at, suggestPort(owner, portName, what, mine), "%s %q has no %s %q", x.Kind, owner, what, portName)
	return "", port, false
}

func findPort(ports []component.Port, name string) int {
	return slices.IndexFunc(ports, func(p component.Port) bool { return p.Name == name })
}

func suggestPort(owner, port, what string, ports []component.Port) string {
	var list []string
	for _, p := range ports {
		list = append(list, p.Name)
	}
	if best, ok := table.Nearest(port, list); ok {
		return suggest(component.Qualified(owner, best))
	}
	if len(list) == 0 {
		return "it has no " + what + "s"
	}
	for i := range list {
		list[i] = component.Qualified(owner, list[i])
	}
	return what + "s: " + strings.Join(list, ", ")
}

func (c *checker) unknownComponent(end name, owner, port string, slot, qualified bool) {
	if !qualified {
		c.Add("E030", end.at, `write "component.port"`, "%q does not name a port of a component", end.text)
		return
	}
	names := c.declared("component")
	help := table.DidYouMean("", "%q", "declared", names)
	owners := c.owners(port, slot)
	best, ok := table.Nearest(owner, owners)
	if !ok && len(owners) == 1 {
		best, ok = owners[0], true
	}
	if !ok && len(owners) == 0 {
		best, ok = table.Nearest(owner, names)
	}
	if ok {
		help = suggest(component.Qualified(best, port))
	}
	c.Add("E030", end.at, help, "component %q is not declared", owner)
}

// owners names the components that have a port.
func (c *checker) owners(port string, slot bool) []string {
	var list []string
	for _, x := range c.graph.Components {
		ports := x.Manifest.Signals
		if slot {
			ports = x.Manifest.Slots
		}
		if findPort(ports, port) >= 0 {
			list = append(list, x.Name)
		}
	}
	return list
}
