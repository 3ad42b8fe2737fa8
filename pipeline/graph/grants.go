package graph

import (
	"slices"
	"strings"

	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/component"
)

// grant reads which columns a wire lets its receiver write in the blocks of its messages.
func (c *wireReader) grant(t *node, w *Wire) {
	n := t.at("write")
	if n == nil {
		return
	}
	w.writeAt = n.val
	can := component.PayloadOf(w.Payload).Grantable
	for _, column := range c.names(n, "write", `write ["reward"]`) {
		switch {
		case len(can) == 0:
			c.Add(component.CodeGrant, column.at, "leave `write` out", "only their maker writes blocks with payload %s", w.Payload)
		case !slices.Contains(can, column.text):
			c.Add(component.CodeGrant, column.at, "of a "+w.Payload+" can be granted: "+strings.Join(can, ", "), "%q cannot be granted", column.text)
		}
		w.Write = append(w.Write, column.text)
	}
	slices.Sort(w.Write)
	w.Write = slices.Compact(w.Write)
	if w.Mode != bus.Queue {
		c.Add(component.CodeGrant, t.at("mode").val, `write mode = "queue"`, "a block that is written must have one receiver, mode %q gives it to several", w.Mode.String())
	}
}

// checkGrants holds wires against each other: nobody else may get a block that somebody writes, and a component cannot tell
// which of its slot's wires a message came by.
func (c *wireReader) checkGrants() {
	for i := range c.graph.Wires {
		w := &c.graph.Wires[i]
		if len(w.Write) == 0 {
			continue
		}
		for j := range c.graph.Wires {
			o := &c.graph.Wires[j]
			switch {
			case i == j:
			case o.From == w.From && o.Signal == w.Signal && o.Mode != bus.Queue:
				c.Add(component.CodeGrant, w.writeAt, "leave `write` out, or wire that slot to what "+w.To+" sends",
					"%s gets each block as well, while it is written", component.Qualified(o.To, o.Slot))
			case o.To == w.To && o.Slot == w.Slot && !slices.Equal(o.Write, w.Write):
				c.Add(component.CodeGrant, w.writeAt, "write the same `write` in both", "%q leads to the same slot and does not grant the same", o.String())
			}
		}
	}
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

// grantLines returns what Grants does as keys.
func (g *Graph) grantLines(name string) (lines []keyValue) {
	for i := range g.Wires {
		if w := &g.Wires[i]; w.To == name && len(w.Write) > 0 {
			lines = append(lines, keyValue{"write of " + w.Slot, quoteList(w.Write)})
		}
	}
	return lines
}

func quoteList(list []string) string {
	quoted := make([]string, len(list))
	for i, s := range list {
		quoted[i] = quote(s)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}
