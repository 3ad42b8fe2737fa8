package loading

import (
	"fmt"
	"slices"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/pipeline/graph"
)

// checkColumns checks that blocks of trajectories have the columns that the components to which they come say they look at.
func (s *Set) checkColumns(g *graph.Graph, c *graph.Report) {
	for i := range g.Wires {
		w := &g.Wires[i]
		to, payload := g.Component(w.To), component.PayloadOf(w.Payload)
		if len(to.Looks) == 0 || !payload.Steps && !payload.OnLoan {
			continue
		}
		slot, _ := to.Manifest.Slot(w.Slot)
		for _, maker := range s.makers(g, w) {
			schema, err := s.schema(g, maker)
			if err != nil {
				continue // E042, E052, E054
			}
			for _, look := range to.Looks {
				if look.Slot != slot {
					continue
				}
				if reason, help := lacks(schema, &look); reason != "" {
					c.Add("E083", w.SlotAt, help, "%s looks at the column %q: in blocks of %q %s", component.Qualified(w.To, w.Slot), look.Name, maker.Name, reason)
				}
			}
		}
	}
}

// makers returns the components that make the blocks of a wire's messages: who sends on it, or those whose blocks that one passes on.
func (s *Set) makers(g *graph.Graph, w *graph.Wire) (list []*graph.Component) {
	seen := map[string]bool{}
	for queue := []string{w.From}; len(queue) > 0; queue = queue[1:] {
		x := g.Component(queue[0])
		if seen[x.Name] {
			continue
		}
		seen[x.Name] = true
		if f := x.Flow; s.Envs[x.Env] != nil && f.BlockRows > 0 && f.Splits > 0 && f.Envs >= f.Splits {
			list = append(list, x)
			continue
		}
		for i := range g.Wires {
			if v := &g.Wires[i]; v.To == x.Name && v.Payload == w.Payload {
				queue = append(queue, v.From)
			}
		}
	}
	return list
}

// lacks returns what is wrong with a column of a schema for who looks at it; empty if nothing is.
func lacks(schema *trajectory.Schema, look *hostabi.ManifestColumn) (reason, help string) {
	columns := schema.Columns()
	i := slices.IndexFunc(columns, func(l trajectory.Layout) bool { return l.Column.String() == look.Name })
	switch {
	case i < 0 && look.Flags&hostabi.ColumnOptional != 0:
		return "", ""
	case i < 0:
		names := make([]string, len(columns))
		for k, l := range columns {
			names[k] = l.Column.String()
		}
		return "there is none", table.DidYouMean(look.Name, "%s", "columns", names)
	case look.DType != 0 && look.DType != columns[i].DType:
		return fmt.Sprintf("it is %v, not %v", columns[i].DType, look.DType), "correct the type in the component"
	}
	return "", ""
}
