// Package picture draws pipelines.
package picture

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/pipeline/graph"
)

// Draw writes a picture of a graph: ascii is an indented list of loops, components and wires for a terminal, dot is
// for Graphviz, mermaid for Markdown.
func Draw(w io.Writer, g *graph.Graph, format string) error {
	var text string
	switch format {
	case "ascii":
		text = list(g)
	case "dot":
		text = dot(g)
	case "mermaid":
		text = mermaid(g)
	default:
		return fmt.Errorf("unknown format %q: want ascii, dot or mermaid", format)
	}
	_, err := io.WriteString(w, text)
	return err
}

// list writes each component under its loop, with the wires that leave it.
func list(g *graph.Graph) string {
	var b strings.Builder
	byLoop(g, func(loop string, members []*graph.Component) {
		fmt.Fprintf(&b, "loop %s\n", loop)
		for _, x := range members {
			fmt.Fprintf(&b, "  %s\n", title(x))
			for i := range g.Wires {
				if w := &g.Wires[i]; w.From == x.Name {
					fmt.Fprintf(&b, "    %s → %s\n", label(w), w.To)
				}
			}
		}
	})
	return b.String()
}

// byLoop calls fn with the components of each loop, in the order of the graph.
func byLoop(g *graph.Graph, fn func(loop string, members []*graph.Component)) {
	var loops []string
	for _, x := range g.Components {
		if !slices.Contains(loops, x.Loop) {
			loops = append(loops, x.Loop)
		}
	}
	for _, loop := range loops {
		var members []*graph.Component
		for i := range g.Components {
			if g.Components[i].Loop == loop {
				members = append(members, &g.Components[i])
			}
		}
		fn(loop, members)
	}
}

func dot(g *graph.Graph) string {
	var b strings.Builder
	fmt.Fprintf(&b, "digraph %q {\n  rankdir=LR;\n  node [shape=box, fontname=\"sans-serif\"];\n  edge [fontname=\"sans-serif\", fontsize=10];\n",
		g.Run.Name)
	clusters := 0
	byLoop(g, func(loop string, members []*graph.Component) {
		fmt.Fprintf(&b, "  subgraph cluster_%d {\n    label=%q; style=dashed;\n", clusters, "loop "+loop)
		clusters++
		for _, x := range members {
			fmt.Fprintf(&b, "    %q [label=%q];\n", x.Name, title(x))
		}
		b.WriteString("  }\n")
	})
	for i := range g.Wires {
		w := &g.Wires[i]
		fmt.Fprintf(&b, "  %q -> %q [label=%q%s];\n", w.From, w.To, label(w), dotStyle(w.Mode))
	}
	return b.String() + "}\n"
}

func dotStyle(m bus.Mode) string {
	switch m {
	case bus.Latest:
		return ", style=dashed"
	case bus.Reply:
		return ", style=dotted"
	}
	return ""
}

func mermaid(g *graph.Graph) string {
	var b strings.Builder
	b.WriteString("flowchart LR\n")
	id := map[string]string{}
	for i, x := range g.Components {
		id[x.Name] = fmt.Sprintf("c%d", i) // names may be words of mermaid's
	}
	loops := 0
	byLoop(g, func(loop string, members []*graph.Component) {
		fmt.Fprintf(&b, "  subgraph l%d [\"loop %s\"]\n", loops, loop)
		loops++
		for _, x := range members {
			fmt.Fprintf(&b, "    %s[\"%s\"]\n", id[x.Name], title(x))
		}
		b.WriteString("  end\n")
	})
	for i := range g.Wires {
		w := &g.Wires[i]
		arrow := "-->"
		if w.Mode == bus.Latest || w.Mode == bus.Reply {
			arrow = "-.->"
		}
		fmt.Fprintf(&b, "  %s %s|\"%s\"| %s\n", id[w.From], arrow, label(w), id[w.To])
	}
	return b.String()
}

// title is a component's name with the number of its instances.
func title(x *graph.Component) string {
	if x.Count == 1 {
		return x.Name
	}
	return fmt.Sprintf("%s×%d", x.Name, x.Count)
}

// label is the text of a wire in a picture. Mode all is not shown.
func label(w *graph.Wire) string {
	switch w.Mode {
	case bus.All:
		return w.Signal
	case bus.Queue:
		return fmt.Sprintf("%s [queue %d]", w.Signal, w.Depth)
	}
	return fmt.Sprintf("%s [%v]", w.Signal, w.Mode)
}
