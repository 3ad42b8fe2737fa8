package graph

import (
	"strconv"
	"strings"

	"github.com/rlhost/rlhost/core/bus"
)

// indexSuffix at the end of a loop's name stands for the index of the instance, so that each has a loop.
const indexSuffix = "[i]"

func trimIndex(loop string) string { return strings.TrimSuffix(loop, indexSuffix) }

// LoopOf returns the name of the loop of one instance.
func (x *Component) LoopOf(index int) string {
	if base, ok := strings.CutSuffix(x.Loop, indexSuffix); ok {
		return base + "[" + strconv.Itoa(index) + "]"
	}
	return x.Loop
}

// placeOnLoops gives every component a loop that has none, and in synchronous mode the one loop. A component
// that replies to another shares its loop; the others have one each.
func (c *checker) placeOnLoops() {
	for i := range c.graph.Components {
		x := &c.graph.Components[i]
		if c.graph.Synchronous {
			x.Loop = "main"
		}
	}
	for i := range c.graph.Components {
		x := &c.graph.Components[i]
		if x.Loop == "" {
			x.Loop = c.graph.defaultLoop(x)
		}
	}
}

func (g *Graph) defaultLoop(x *Component) string {
	for _, w := range g.Wires {
		if w.Mode != bus.Reply || w.From != x.Name || w.To == x.Name {
			continue
		}
		if asker := g.Component(w.To); asker.Loop != "" {
			return asker.Loop
		}
		return w.To
	}
	return x.Name
}
