package graph

import (
	"slices"
	"strconv"
	"strings"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/control"
)

// Rewired returns Resolved with some wires less, which are named by their ends, and others more. missing is the first to take out
// that the graph does not have, or nil.
func (g *Graph) Rewired(cut, add []control.Wire) (text string, missing *control.Wire) {
	next := *g
	next.Wires = slices.Clone(g.Wires)
	for i := range cut {
		before := len(next.Wires)
		next.Wires = slices.DeleteFunc(next.Wires, func(w Wire) bool {
			return meant(cut[i].Signal, w.From, w.Signal) && meant(cut[i].Slot, w.To, w.Slot)
		})
		if len(next.Wires) == before {
			return "", &cut[i]
		}
	}
	var b strings.Builder
	b.WriteString(next.Resolved())
	for i := range add {
		b.WriteString("\n[[wire]]\n")
		writeLines(&b, linesOf(&add[i]))
	}
	return b.String(), nil
}

// meant reports whether a name, COMPONENT.PORT or *.PORT, is that of a component's port.
func meant(name, owner, port string) bool {
	return name == component.Qualified(owner, port) || name == component.Qualified(everyone, port)
}

func linesOf(w *control.Wire) []keyValue {
	lines := []keyValue{{Key: "signal", Value: quote(w.Signal)}, {Key: "slot", Value: quote(w.Slot)}}
	if w.Mode != "" {
		lines = append(lines, keyValue{Key: "mode", Value: quote(w.Mode)})
	}
	if w.Depth != 0 {
		lines = append(lines, keyValue{Key: "depth", Value: strconv.Itoa(w.Depth)})
	}
	if w.OnFull != "" {
		lines = append(lines, keyValue{Key: "on_full", Value: quote(w.OnFull)})
	}
	if len(w.Write) > 0 {
		lines = append(lines, keyValue{Key: "write", Value: quoteList(w.Write)})
	}
	return lines
}
